// Householder QR with the matrix in the registers of a thread block: columns cyclic over warps, rows over lanes.
//
//     H_{r−1} … H_0 W = R,   H_j = I − τ_j u_j u_jᵀ,   u_j = x − β e_j,  τ_j = 1 / (β (β − x_j)),  β = −sign(x_j) ‖x‖
//
// The column x of step j, the largest that remains or column j, goes to all warps through shared memory; each warp then sums
// the dot products of its Slots columns together (common/warp/reduce_many.cuh). Columns stay where they are: R has them in the
// caller's order. Reflectors are saved to global memory as they arise. Lane group l·Slots/32 keeps the numbers of slot l.
// Called by svd/block/register_stages.cuh, by the whole block of Warps warps; inlined, or the columns would live in memory.
#pragma once

#include "common/thread/householder.cuh"
#include "common/thread/jacobi_rotation.cuh"
#include "common/warp/reduce_many.cuh"

namespace qr {
using namespace common;

constexpr int INDEX_BITS = 8;                              // of a key: a column; above them the leading bits of its norm

// An order-preserving integer of a norm, and the column. The pivot is the largest to 4 digits, which is all that pivoting needs.
__device__ inline int norm_key(double norm, int column) { return norm > 0 ? (__double2hiint(norm) & -(1 << INDEX_BITS)) | column : column; }
__device__ inline int norm_key(float norm, int column) { return norm > 0 ? (__float_as_int(norm) & -(1 << INDEX_BITS)) | column : column; }
__device__ inline void norm_of(int key, double& norm) { norm = __hiloint2double(key & -(1 << INDEX_BITS), 0); }
__device__ inline void norm_of(int key, float& norm) { norm = __int_as_float(key & -(1 << INDEX_BITS)); }

// What the steps exchange, in shared memory.
template <typename Real, int Rows, int Slots, int Warps>
struct Exchange {
    Real column[2][WARP * Rows];                           // the reflector in hand, and the one before
    Real numbers[Warps][Slots];                            // row j, then factors, of a warp's columns
    int keys[Warps];
    Real sums[Warps];                                      // of squares, of a warp's columns
};

// Where a pivoted QR stops: before the first step whose rest, the remaining rows of the remaining columns, is small enough.
template <typename Real>
struct Rest {
    Real allowed;                                          // its squared Frobenius norm, at most
    Real square;                                           // what it is in the end, computed afresh
};

template <typename Real, int Rows, int Slots, int Warps>
struct RegisterColumns {
    static constexpr int SHARE = WARP / Slots;             // lanes that keep the numbers of one slot
    Real X[Slots][Rows];

    __device__ static int lane() { return threadIdx.x % WARP; }
    __device__ static int warp() { return threadIdx.x / WARP; }
    __device__ static int column(int slot) { return warp() + slot * Warps; }

    // column l of S (rows × columns, leading dimension ld), zero outside
    __device__ __forceinline__ void load(const Real* S, int ld, int rows, int columns) {
#pragma unroll
        for (int c = 0; c < Slots; c++)
#pragma unroll
            for (int r = 0; r < Rows; r++) {
                int i = lane() + r * WARP;
                X[c][r] = i < rows && column(c) < columns ? S[column(c) * ld + i] : Real(0);
            }
    }

    __device__ __forceinline__ void store(Real* S, int ld, int rows, int columns) const {
#pragma unroll
        for (int c = 0; c < Slots; c++)
#pragma unroll
            for (int r = 0; r < Rows; r++) {
                int i = lane() + r * WARP;
                if (i < rows && column(c) < columns) S[column(c) * ld + i] = X[c][r];
            }
    }

    // S(l, i) = X(i, l) for rows i < rows
    __device__ __forceinline__ void store_transposed(Real* S, int ld, int rows, int columns) const {
#pragma unroll
        for (int c = 0; c < Slots; c++)
#pragma unroll
            for (int r = 0; r < Rows; r++) {
                int i = lane() + r * WARP;
                if (i < rows && column(c) < columns) S[i * ld + column(c)] = X[c][r];
            }
    }

    // Σ_i X(i, l)² over i ≥ first, for this lane's slot
    __device__ __forceinline__ Real squares(int first) const {
        Real sums[Slots];
#pragma unroll
        for (int c = 0; c < Slots; c++) {
            sums[c] = 0;
#pragma unroll
            for (int r = 0; r < Rows; r++)
                if (lane() + r * WARP >= first) sums[c] = fma(X[c][r], X[c][r], sums[c]);
        }
        return sum_each<Slots>(sums);
    }

    // numbers of all slots, each written by its lanes, to all lanes: X −= numbers[c] u
    __device__ __forceinline__ void subtract(Real own, const Real (&u)[Rows], Real* numbers) {
        __syncwarp();
        if (lane() % SHARE == 0) numbers[lane() / SHARE] = own;
        __syncwarp();
#pragma unroll
        for (int c = 0; c < Slots; c++) {
            Real factor = numbers[c];
#pragma unroll
            for (int r = 0; r < Rows; r++) X[c][r] = fma(-factor, u[r], X[c][r]);
        }
        __syncwarp();
    }

    // this lane's slot: uᵀ x
    __device__ __forceinline__ Real dots(const Real (&u)[Rows]) const {
        Real sums[Slots];
#pragma unroll
        for (int c = 0; c < Slots; c++) {
            sums[c] = 0;
#pragma unroll
            for (int r = 0; r < Rows; r++) sums[c] = fma(u[r], X[c][r], sums[c]);
        }
        return sum_each<Slots>(sums);
    }

    // column of slot `slot` from row `first` on, zeros above
    __device__ __forceinline__ void send_column(int slot, int first, Real* target) const {
#pragma unroll
        for (int c = 0; c < Slots; c++) {
            if (slot != c) continue;
#pragma unroll
            for (int r = 0; r < Rows; r++) target[lane() + r * WARP] = lane() + r * WARP >= first ? X[c][r] : Real(0);
        }
    }

    // this lane's row number `row` of all columns
    __device__ __forceinline__ void send_row(int row, Real* target) const {
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            if (r != row) continue;
#pragma unroll
            for (int c = 0; c < Slots; c++) target[c] = X[c][r];
        }
    }

    __device__ __forceinline__ static void save(const Real (&u)[Rows], Real* U, int rows) {
#pragma unroll
        for (int r = 0; r < Rows; r++)
            if (lane() + r * WARP < rows) U[lane() + r * WARP] = u[r];
    }

    // sum over the block of a number of each slot, the same in every thread
    __device__ __forceinline__ static Real total(Real own, Exchange<Real, Rows, Slots, Warps>& exchange) {
        own = warp_sum(own) / SHARE;
        if (lane() == 0) exchange.sums[warp()] = own;
        __syncthreads();
        Real sum = 0;
        for (int w = 0; w < Warps; w++) sum += exchange.sums[w];
        return sum;
    }

    // U       reflector j from U[j·rows] on, in global memory, zeros above its row j; or null
    // tau     columns
    // rest    or null; places   in shared memory, of each column: the step that chose it; or null
    // Returns the rank, the same in every thread; rows from it on are not part of R.
    template <bool Pivoted>
    __device__ __forceinline__ int factor(int rows, int columns, Real* U, Real* tau, Exchange<Real, Rows, Slots, Warps>& exchange,
                                          Rest<Real>* rest = nullptr, int* places = nullptr) {
        int slot = lane() / SHARE;
        Real norm = 0, exact = 0, floor = -1;
        bool done = column(slot) >= columns;
        if (Pivoted) norm = exact = squares(0);
        for (int j = 0; j < min(rows, columns); j++) {
            int pivot = j;
            if (Pivoted) {
                int key = __reduce_max_sync(EVERY_LANE, done ? -1 : norm_key(norm, column(slot)));
                if (lane() == 0) exchange.keys[warp()] = key;
                __syncthreads();
                key = __reduce_max_sync(EVERY_LANE, lane() < Warps ? exchange.keys[lane()] : -1);
                Real largest;
                norm_of(key, largest);
                if (j == 0) floor = largest * Floating<Real>::negligible;
                if (rest && !(largest > fmax(floor, rest->allowed))) {
                    norm = exact = squares(j);
                    rest->square = total(done ? Real(0) : norm, exchange);
                    if (rest->square <= rest->allowed) return j;
                }
                if (!(largest > floor)) return j;
                pivot = key & ((1 << INDEX_BITS) - 1);
            }
            Real* shared = exchange.column[j % 2];
            bool mine = pivot % Warps == warp();
            if (mine) send_column(pivot / Warps, j, shared);
            if (lane() == j % WARP) send_row(j / WARP, exchange.numbers[warp()]);
            __syncthreads();
            Real u[Rows], square = 0, alpha = shared[j], row = exchange.numbers[warp()][slot];
#pragma unroll
            for (int r = 0; r < Rows; r++) u[r] = shared[lane() + r * WARP], square = fma(u[r], u[r], square);
            Real total = dots(u);
            square = warp_sum(square);
            bool some = square > Floating<Real>::vanishing;
            Real size = square * inverse_sqrt(square), beta = some ? -copysign(size, alpha) : Real(0);
            Real t = some ? inverse(fma(fabs(alpha), size, square)) : Real(0);
            bool own = column(slot) == pivot;
            Real factor = own && some ? Real(1) : t * fma(-beta, row, total);
#pragma unroll
            for (int r = 0; r < Rows; r++)
                if (lane() + r * WARP == j) u[r] = alpha - beta;
            subtract(factor, u, exchange.numbers[warp()]);
            if (mine) {
                if (lane() == 0) {
                    tau[j] = t;
                    if (places) places[pivot] = j;
                }
                if (U) save(u, U + static_cast<long long>(j) * rows, rows);
            }
            if (Pivoted) {
                Real entry = fma(-factor, alpha - beta, row);
                done |= own;
                norm = fma(-entry, entry, norm);
                bool doubtful = !done && !(norm > exact * sqrt(Floating<Real>::epsilon));
                if (__any_sync(EVERY_LANE, doubtful)) {
                    Real fresh = squares(j + 1);
                    if (doubtful) norm = exact = fresh;
                }
            }
        }
        return min(rows, columns);
    }

    // X ← H_0 … H_{count−1} X, reflectors as saved by factor
    __device__ __forceinline__ void apply(const Real* U, int rows, const Real* tau, int count, Real* numbers) {
        Real next[Rows];
        fetch(U, rows, count - 1, next);
        for (int j = count - 1; j >= 0; j--) {
            Real u[Rows];
#pragma unroll
            for (int r = 0; r < Rows; r++) u[r] = next[r];
            fetch(U, rows, j - 1, next);
            subtract(tau[j] * dots(u), u, numbers);
        }
    }

    __device__ __forceinline__ static void fetch(const Real* U, int rows, int j, Real (&u)[Rows]) {
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            int i = lane() + r * WARP;
            u[r] = j >= 0 && i < rows ? U[static_cast<long long>(j) * rows + i] : Real(0);
        }
    }
};

}  // namespace qr
