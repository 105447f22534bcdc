// studies/lu_stages.cuh — LU with partial pivoting, a kernel a stage, for apps/studies/baselines/lu.py.
//
// The generic design of Abdelfattah, Tomov & Dongarra (2019), section II: what LAPACK calls IDAMAX, SWAP, SCAL, GER, LASWP,
// TRSM and GEMM, one launch each for all matrices of a batch.
//     LU   batch × m × n, in place     pivots   batch × min(m, n): row k changes places with row pivots[k]
#pragma once
#include "systems/lu_panel.cuh"
#include "systems/lu_update.cuh"

namespace studies {
using namespace systems;

constexpr int STAGE_WARPS = 8, STAGE_THREADS = STAGE_WARPS * WARP;

// pivots[k] ← argmax |a_ik|, i ≥ k. A block a matrix.
template <typename Real>
__global__ __launch_bounds__(STAGE_THREADS)
void find_pivot(const Real* LU, int* pivots, int m, int n, int k) {
    const Place p(nullptr, m, n, blockIdx.x);
    const int pivot = largest_entry<STAGE_WARPS>(LU + p.target + k, n, k, m);
    if (threadIdx.x == 0) pivots[p.pivots + k] = pivot;
}

// Rows k and pivots[k] change places for first ≤ k < end, in columns from `left` on before `right`; each matrix `strips` blocks.
template <typename Real>
__global__ __launch_bounds__(STAGE_THREADS)
void swap_rows(Real* LU, const int* pivots, int m, int n, int first, int end, int left, int right, int strips) {
    const Place p(nullptr, m, n, blockIdx.x / strips);
    const int column = left + blockIdx.x % strips * blockDim.x + threadIdx.x;
    if (column >= right) return;
    Real* A = LU + p.target + column;
    for (int k = first; k < end; k++) {
        const int pivot = pivots[p.pivots + k];
        if (pivot == k) continue;
        const long long upper = static_cast<long long>(k) * n, lower = static_cast<long long>(pivot) * n;
        const Real x = A[upper];
        A[upper] = A[lower], A[lower] = x;
    }
}

// a_ik ← a_ik / a_kk, i > k; each matrix `strips` blocks.
template <typename Real>
__global__ __launch_bounds__(STAGE_THREADS)
void scale_column(Real* LU, int m, int n, int k, int strips) {
    const Place p(nullptr, m, n, blockIdx.x / strips);
    const long long i = k + 1 + blockIdx.x % strips * blockDim.x + threadIdx.x;
    Real* A = LU + p.target + k;
    const Divisor<Real> divided(A[static_cast<long long>(k) * n]);
    if (i < m) A[i * n] = divided(A[i * n]);
}

// a_ij ← a_ij − a_ik a_kj, i > k, k < j < stop; Width > stop − k − 1 threads a row.
template <typename Real, int Width>
__global__ __launch_bounds__(STAGE_THREADS)
void rank_one(Real* LU, int m, int n, int k, int stop, int strips) {
    const Place p(nullptr, m, n, blockIdx.x / strips);
    const int row = blockIdx.x % strips * (STAGE_THREADS / Width) + threadIdx.x / Width;
    const long long i = k + 1 + row, j = k + 1 + threadIdx.x % Width;
    if (i >= m || j >= stop) return;
    Real* A = LU + p.target;
    A[i * n + j] = less_product(A[i * n + j], A[i * n + k], A[static_cast<long long>(k) * n + j]);
}

// Rows first … first + N of columns left … right ← L⁻¹ of them, L the unit lower triangle of columns first … first + N.
template <typename Real, int N>
__global__ __launch_bounds__(STAGE_THREADS)
void solve_rows(Real* LU, int m, int n, int first, int left, int right, int strips) {
    __shared__ Real L[N][N];
    const Place p(nullptr, m, n, blockIdx.x / strips);
    Real* A = LU + p.target + static_cast<long long>(first) * n;
    for (int e = threadIdx.x; e < N * N; e += STAGE_THREADS) L[e / N][e % N] = A[static_cast<long long>(e / N) * n + first + e % N];
    __syncthreads();
    const int column = left + blockIdx.x % strips * STAGE_THREADS + threadIdx.x;
    if (column >= right) return;
    Real x[N];
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = A[static_cast<long long>(i) * n + column];
#pragma unroll
    for (int i = 1; i < N; i++)
#pragma unroll
        for (int j = 0; j < i; j++) x[i] = less_product(x[i], L[i][j], x[j]);
#pragma unroll
    for (int i = 1; i < N; i++) A[static_cast<long long>(i) * n + column] = x[i];
}

// C −= L U: rows top … bottom and columns left … right, L the columns and U the rows from `inner` on, N of them.
// Shared memory: as systems/lu_update.cuh, whose tiles these are; tiles_down × tiles_across of each matrix.
template <typename Real, int N>
__global__ __launch_bounds__(UPDATE_THREADS, 16 / sizeof(Real))
void subtract_product(Real* LU, int m, int n, int inner, int top, int bottom, int left, int right, int tiles_down, int tiles_across) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int area = tiles_down * tiles_across, tile = blockIdx.x % area;
    const Place p(nullptr, m, n, blockIdx.x / area);
    const int row = top + tile / tiles_across * UPDATE_EDGE, column = left + tile % tiles_across * UPDATE_EDGE;
    update_tile<N, false>(LU + p.target, n, inner, inner, row, min(UPDATE_EDGE, bottom - row), column, min(UPDATE_EDGE, right - column),
                          memory, [] { return true; });
}

}  // namespace studies
