// systems/solve_triangles.cuh — X_b = U_b⁻¹ L_b⁻¹ P_b B_b, or L_b⁻ᵀ L_b⁻¹ B_b; one block a matrix and a few columns of B.
//
// The factor is read once a triangle, along its rows: WARP rows at a time lose what is known already, a dot product a warp
// (or, under Lᵀ, give what is known to all others, a column a thread), then their own triangle is solved by a warp a column
// of B, a row a lane. X waits in shared memory.
#pragma once

#include "common/warp/part_sums.cuh"
#include "systems/thread/place.cuh"
#include "systems/warp/substitute.cuh"

namespace systems {
using namespace common;

constexpr int TRIANGLE_PITCH = WARP + 1;

// What a block works with.
template <typename Scalar, int Columns>
struct Solution {
    const Scalar* F;   // n × n factors
    Scalar* x;         // n × Columns, in shared memory
    Scalar* triangle;  // WARP × TRIANGLE_PITCH, in shared memory
    int n, lane, warp, warps;

    // triangle = F's block on the diagonal from `first` on, with ones behind the matrix; everybody else is done with it
    __device__ void take_triangle(int first) const {
        for (int i = warp; i < WARP; i += warps)
            triangle[i * TRIANGLE_PITCH + lane] = first + i < n && first + lane < n ? F[(first + i) * static_cast<long long>(n) + first + lane]
                                                  : i == lane ? one<Scalar>() : Scalar();
    }

    // x_i −= Σ f_ij x_j for the rows i from `first` on, over begin ≤ j < end
    __device__ void subtract_known(int first, int begin, int end) const {
        for (int i = first + warp; i < min(first + WARP, n); i += warps) {
            Scalar sum[Columns] = {};
            for (int j = begin + lane; j < end; j += WARP) {
                const Scalar f = F[i * static_cast<long long>(n) + j];
#pragma unroll
                for (int c = 0; c < Columns; c++) sum[c] = less_product(sum[c], f, x[j * Columns + c]);
            }
#pragma unroll
            for (int c = 0; c < Columns; c++) {
                const Scalar less = minus(Scalar(), part_sum<1, WARP>(sum[c]));
                if (lane == c) x[i * Columns + c] = minus(x[i * Columns + c], less);
            }
        }
    }

    // x_j −= Σ f_ij x_i for all j < first, over the rows i from `first` on
    __device__ void subtract_transposed(int first) const {
        for (int j = threadIdx.x; j < first; j += warps * WARP) {
            Scalar sum[Columns];
#pragma unroll
            for (int c = 0; c < Columns; c++) sum[c] = x[j * Columns + c];
            for (int i = first; i < min(first + WARP, n); i++) {
                const Scalar f = F[i * static_cast<long long>(n) + j];
#pragma unroll
                for (int c = 0; c < Columns; c++) sum[c] = less_product(sum[c], f, x[i * Columns + c]);
            }
#pragma unroll
            for (int c = 0; c < Columns; c++) x[j * Columns + c] = sum[c];
        }
    }

    // the rows from `first` on by their own triangle
    template <bool Forward, bool Unit, bool Transposed>
    __device__ void solve_own(int first) const {
        for (int c = warp; c < Columns; c += warps) {
            Scalar value = first + lane < n ? x[(first + lane) * Columns + c] : Scalar();
            value = substitute<WARP, TRIANGLE_PITCH, Forward, Unit, Transposed>(value, triangle, WARP);
            if (first + lane < n) x[(first + lane) * Columns + c] = value;
        }
    }
};

// F       matrices × n × n: L below and U on and above the diagonal, or (Symmetric) L on and below it
// pivots  matrices × n, of LU alone    B, X  matrices × n × columns    pieces  blocks a matrix, of Columns columns each
// table   source: of F, target: of B and X, pivots; m: columns of B, n; see systems/thread/place.cuh
// Shared memory: n · Columns + WARP · TRIANGLE_PITCH entries, then n numbers.
template <typename Scalar, int Columns, int Warps, bool Symmetric>
__global__ __launch_bounds__(Warps * WARP)
void solve_triangles(const Scalar* F, const int* pivots, const Scalar* B, Scalar* X, const long long* table, int n, int columns,
                     int pieces) {
    extern __shared__ __align__(16) unsigned char memory[];
    Place p;
    const long long b = blockIdx.x / pieces;
    if (table) p = Place(table, 0, 0, b), columns = p.m, n = p.n;
    else p.source = b * n * n, p.target = b * n * columns, p.pivots = b * n;
    const int column0 = blockIdx.x % pieces * Columns;
    if (column0 >= columns) return;
    Scalar *triangle = reinterpret_cast<Scalar*>(memory), *x = triangle + WARP * TRIANGLE_PITCH;
    int* from = reinterpret_cast<int*>(x + n * Columns);
    const Solution<Scalar, Columns> s = {F + p.source, x, triangle, n, static_cast<int>(threadIdx.x) % WARP,
                                         static_cast<int>(threadIdx.x) / WARP, static_cast<int>(blockDim.x) / WARP};
    if (!Symmetric) {
        for (int i = threadIdx.x; i < n; i += blockDim.x) from[i] = pivots[p.pivots + i];
        __syncthreads();
    }
    B += p.target, X += p.target;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        int row = i;
        if (!Symmetric)
            for (int k = n - 1; k >= 0; k--) row = row == k ? from[k] : row == from[k] ? k : row;
#pragma unroll
        for (int c = 0; c < Columns; c++)
            x[i * Columns + c] = column0 + c < columns ? B[static_cast<long long>(row) * columns + column0 + c] : Scalar();
    }
    for (int first = 0; first < n; first += WARP) {
        s.take_triangle(first);
        __syncthreads();
        s.subtract_known(first, 0, first);
        __syncthreads();
        s.template solve_own<true, !Symmetric, false>(first);
        __syncthreads();
    }
    for (int first = (n - 1) / WARP * WARP; first >= 0; first -= WARP) {
        s.take_triangle(first);
        if (!Symmetric) s.subtract_known(first, first + WARP, n);
        __syncthreads();
        s.template solve_own<false, false, Symmetric>(first);
        __syncthreads();
        if (Symmetric) s.subtract_transposed(first);
        __syncthreads();
    }
    for (int i = threadIdx.x; i < n; i += blockDim.x)
#pragma unroll
        for (int c = 0; c < Columns; c++)
            if (column0 + c < columns) X[static_cast<long long>(i) * columns + column0 + c] = x[i * Columns + c];
}

// X_b = P_b B_b, or P_b, for the interchanges that LU has made; a block a matrix and some of its entries.
// pivots  matrices × n: row k was interchanged with row pivots[k] ≥ k, for k = 0, 1, …; null: no interchanges
// B, X    matrices × n × columns; B null: the identity     pieces  blocks a matrix, which share its rows
// Shared memory: n numbers.
template <typename Scalar, int Threads>
__global__ __launch_bounds__(Threads)
void permuted_rows(const int* pivots, const Scalar* B, Scalar* X, int n, int columns, int pieces) {
    extern __shared__ int row_of[];
    const long long b = blockIdx.x / pieces;
    const int piece = blockIdx.x % pieces;
    for (int i = threadIdx.x; i < n; i += Threads) row_of[i] = i;
    __syncthreads();
    if (pivots && threadIdx.x == 0) {
        for (int k = 0; k < n; k++) {
            const int other = pivots[b * n + k], row = row_of[k];
            row_of[k] = row_of[other], row_of[other] = row;
        }
    }
    __syncthreads();
    const long long first = b * n * columns;
    for (int e = piece * Threads + threadIdx.x; e < n * columns; e += pieces * Threads) {
        const int row = row_of[e / columns], column = e % columns;
        X[first + e] = B ? B[first + static_cast<long long>(row) * columns + column] : row == column ? one<Scalar>() : Scalar();
    }
}

}  // namespace systems
