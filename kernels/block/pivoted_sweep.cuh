// block/pivoted_sweep.cuh — Cholesky with diagonal pivoting of a symmetric positive semidefinite N × N matrix, and the
// inverse of its triangle in the same sweeps.
//
//     step k, pivot p:   z = A_·p / √a_pp,   A ← A − z zᵀ,   column and row p ← −A_·p / a_pp
//
// z holds row k of the triangle R (RᵀR = A) in columns not yet eliminated and row k of its inverse's transpose in the
// others. Ends where no pivot exceeds `least`. Entries are to be at most 1, or those of row p cancel.
// A column is shared by PARTS threads, its entries in their registers. Called by the whole block of SWEEP_THREADS.
#pragma once
#include "thread/constants.cuh"
#include "thread/householder.cuh"

constexpr int SWEEP_THREADS = 128;

template <int N>
struct PivotedSweep {
    static constexpr int PARTS = SWEEP_THREADS / N, ROWS = N / PARTS, INDEX_BITS = 6;
    static constexpr double ELIMINATED = -2;  // in the place of such a diagonal entry: rounding leaves others above −1
    static_assert(N <= 1 << INDEX_BITS && N % PARTS == 0 && ROWS % 2 == 0, "an index beside the leading bits of a pivot");

    struct Memory {                           // shared
        alignas(16) double column[N];         // the pivot's, a_pp + 1 in its own row
        double diagonal[N];
        int place[N];                         // of each column in the order of elimination
    };

    double a[ROWS];
    Memory& memory;
    const int own = threadIdx.x % N, part = threadIdx.x / N;
    int place = -1;

    __device__ explicit PivotedSweep(Memory& shared) : memory(shared) {}

    // Takes A(i, j) = entry(i, j) for i ≤ j; the caller has synchronized.
    template <typename Entry>
    __device__ void load(Entry entry) {
        if (part >= PARTS) return;
#pragma unroll
        for (int i = 0; i < ROWS; i++) a[i] = entry(min(part * ROWS + i, own), max(part * ROWS + i, own));
        if (part == 0) memory.diagonal[own] = entry(own, own);
    }

    // The pivot, or −1 where none exceeds `least`; the same in every thread. Of nearly equal ones the first.
    __device__ int pivot(double least) const {
        unsigned best = 0;
        for (int j = threadIdx.x % WARP; j < N; j += WARP) {
            const double d = memory.diagonal[j];
            const unsigned key = static_cast<unsigned>(__double2hiint(d)) >> INDEX_BITS << INDEX_BITS | (N - 1 - j);
            if (d > least) best = max(best, key);
        }
        best = __reduce_max_sync(EVERY_LANE, best);
        return best == 0 ? -1 : N - 1 - static_cast<int>(best & ((1 << INDEX_BITS) - 1));
    }

    // Steps until the end; their number. emit(k, j, z_j, whether column j was eliminated before, whether it is the pivot)
    // is called once for every step and column.
    template <typename Emit>
    __device__ int run(double least, Emit emit) {
        int k = 0;
        for (; k < N; k++) {
            __syncthreads();
            const int p = pivot(least);
            if (p < 0) break;
            const double d = memory.diagonal[p];
            if (own == p && part < PARTS) {
#pragma unroll
                for (int i = 0; i < ROWS; i++) memory.column[part * ROWS + i] = a[i];
                if (p / ROWS == part) memory.column[p] = d + 1;
            }
            __syncthreads();
            if (part >= PARTS) continue;
            const double root = inverse_sqrt(d), inverse = root * root, x = own == p ? d : memory.column[own];
            const double factor = own == p ? 1 + inverse : x * inverse;
#pragma unroll
            for (int i = 0; i < ROWS; i++) a[i] = fma(-memory.column[part * ROWS + i], factor, a[i]);
            if (part == 0) {
                emit(k, own, own == p ? d * root : x * root, place >= 0, own == p);
                const double rest = fma(-x, factor, memory.diagonal[own]);
                memory.diagonal[own] = place >= 0 || own == p ? ELIMINATED : rest;
            }
            if (own == p) place = k;
        }
        return k;
    }

    // Columns that were never pivots come after those that were, in their order; the caller synchronizes.
    __device__ void place_the_rest(int rank) {
        if (place < 0) {
            place = rank;
            for (int j = 0; j < own; j++) place += memory.diagonal[j] > ELIMINATED / 2;
        }
        if (part == 0) memory.place[own] = place;
    }
};
