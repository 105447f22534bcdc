// qr/block/pivoted_sweep.cuh — Cholesky with diagonal pivoting of a symmetric positive semidefinite N × N matrix, and the
// inverse of its triangle in the same sweeps.
//
//     step k, pivot p:   z = A_·p / √a_pp,   A ← A − z zᵀ,   column and row p ← −A_·p / a_pp
//
// z holds row k of the triangle R (RᵀR = A) in columns not yet eliminated and row k of its inverse's transpose in the
// others. Ends where no pivot exceeds `least`. Entries are to be at most 1, or those of row p cancel.
// A column is shared by PARTS threads, its entries in their registers. Called by the whole block of Threads threads.
#pragma once
#include "common/thread/constants.cuh"
#include "common/thread/householder.cuh"

namespace qr {
using namespace common;

template <int N, int Threads>
struct PivotedSweep {
    static constexpr int PARTS = Threads / N, ROWS = N / PARTS, INDEX_BITS = 6;
    static_assert(N <= 1 << INDEX_BITS && Threads % N == 0, "an index beside the leading bits of a pivot");
    static_assert(N % WARP == 0, "whole warps hold the diagonal");

    struct Memory {                           // shared
        alignas(16) double column[N];         // the pivot's, a_pp + 1 in its own row
        double2 pivot[N];                     // a_jj and 1 / √a_jj
        unsigned best[N / WARP];              // pivots of each warp of columns, leading bits and index
        int place[N];                         // of each column in the order of elimination
    };

    double a[ROWS], diagonal = 0;
    Memory& memory;
    const int own = threadIdx.x % N, part = threadIdx.x / N;
    int place = -1;

    __device__ explicit PivotedSweep(Memory& shared) : memory(shared) {}

    // Takes A(i, j) = entry(i, j) for i ≤ j; the caller has synchronized.
    template <typename Entry>
    __device__ void load(Entry entry) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) a[i] = entry(min(part * ROWS + i, own), max(part * ROWS + i, own));
        diagonal = entry(own, own);
    }

    // Column `own` as a candidate, where not eliminated and above `least`. Of nearly equal ones the first is taken.
    __device__ void propose(double least) {
        const bool possible = place < 0 && diagonal > least;
        const unsigned key = static_cast<unsigned>(__double2hiint(diagonal)) >> INDEX_BITS << INDEX_BITS | (N - 1 - own);
        const unsigned best = __reduce_max_sync(EVERY_LANE, possible ? key : 0);
        if (own % WARP == 0) memory.best[own / WARP] = best;
        if (possible) memory.pivot[own] = {diagonal, inverse_sqrt(diagonal)};
    }

    // The pivot, or −1 where there is none; the same in every thread.
    __device__ int pivot() const {
        unsigned best = 0;
#pragma unroll
        for (int w = 0; w < N / WARP; w++) best = max(best, memory.best[w]);
        return best == 0 ? -1 : N - 1 - static_cast<int>(best & ((1 << INDEX_BITS) - 1));
    }

    // Steps until the end; their number. emit(k, j, z_j, whether column j was eliminated before, whether it is the pivot)
    // is called once for every step and column.
    template <typename Emit>
    __device__ int run(double least, Emit emit) {
        int k = 0;
        for (; k < N; k++) {
            if (part == 0) propose(least);
            __syncthreads();
            const int p = pivot();
            if (p < 0) break;
            const double2 chosen = memory.pivot[p];
            const double d = chosen.x, root = chosen.y, inverse = root * root;
            if (own == p) {
#pragma unroll
                for (int i = 0; i < ROWS; i++) memory.column[part * ROWS + i] = a[i];
                if (p / ROWS == part) memory.column[p] = d + 1;
            }
            __syncthreads();
            const double x = own == p ? d : memory.column[own], factor = own == p ? 1 + inverse : x * inverse;
            diagonal = fma(-x, factor, diagonal);
#pragma unroll
            for (int i = 0; i < ROWS; i++) a[i] = fma(-memory.column[part * ROWS + i], factor, a[i]);
            if (part == 0) emit(k, own, own == p ? d * root : x * root, place >= 0, own == p);
            if (own == p) place = k;
        }
        return k;
    }

    // Columns that were never pivots come after those that were, in their order; the caller synchronizes.
    __device__ void place_the_rest(int rank) {
        if (part == 0) memory.place[own] = place;
        __syncthreads();
        int before = 0;
        for (int j = 0; j < own; j++) before += memory.place[j] < 0;
        __syncthreads();
        if (place < 0) place = rank + before;
        if (part == 0) memory.place[own] = place;
    }
};

}  // namespace qr
