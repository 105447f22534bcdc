// systems/cholesky_panel.cuh — one panel of N columns of every A_b = L_b L_bᵀ, from column `first` on; one block a matrix.
//
//     L₁₁ L₁₁ᵀ = A₁₁ by one warp in its registers,   L₂₁ = A₂₁ L₁₁⁻ᵀ a row a thread
//
// systems/lu_update.cuh updates what remains. The first panel looks for NaN and Inf; what is above the diagonal is made zero.
#pragma once

#include "systems/thread/place.cuh"
#include "systems/warp/cholesky_rows.cuh"
#include "systems/warp/panel_rows.cuh"

namespace systems {

// Everything of a matrix that cannot be factorized becomes NaN; by all threads.
template <typename Real>
__device__ void give_up(Real* L, int n, int* info, int verdict) {
    for (long long e = threadIdx.x; e < static_cast<long long>(n) * n; e += blockDim.x)
        L[e] = e % n <= e / n ? not_a_number<Real>() : Real(0);
    if (threadIdx.x == 0) *info = verdict;
}

// L, info, table, n: matrices, in place, as in systems/cholesky_register.cuh; info is 0 before
// Shared memory: ROW_BUFFER entries a warp.
template <typename Real, int N, int Warps>
__global__ __launch_bounds__(Warps * WARP, 2)           // without the second NVRTC 13.5 takes 146 registers in double
void cholesky_panel(Real* L, int* info, const long long* table, int n, int first) {
    static_assert(N == WARP, "a lane a row of the diagonal block");
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Real triangle[N][N + 1], inverse[N];
    __shared__ int verdict;
    const Place p(table, n, n, blockIdx.x);
    if (first >= p.n || info[p.index] != 0) return;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, rows = p.n, width = min(N, rows - first);
    const long long ld = rows;
    L += p.target;
    if (first == 0) {
        bool finite = true;
        for (int i = warp; i < rows; i += Warps)
            for (int j = lane; j <= i; j += WARP) finite &= is_finite(L[i * ld + j]);
        for (int i = warp; i < rows; i += Warps)  // apart: the compiler may not move a read over a store
            for (int j = lane; j < rows; j += WARP)
                if (j > i) L[i * ld + j] = 0;
        if (!__syncthreads_and(finite)) return give_up(L, rows, info + p.index, NOT_FINITE);
    }
    Real* buffer = reinterpret_cast<Real*>(memory) + warp * ROW_BUFFER;
    Real x[1][N];
    if (warp == 0) {
        read_rows(x[0], L + first, ld, first, rows, width, buffer);
        const int failed = cholesky_rows<WARP>(x, width, width);
#pragma unroll
        for (int j = 0; j < N; j++) {
            triangle[lane][j] = x[0][j];
            if (j == lane) inverse[j] = Real(1) / x[0][j];
            if (j > lane) x[0][j] = 0;
        }
        write_rows(L + first, ld, lane < width ? first + lane : -1, width, x[0], buffer);
        if (lane == 0) verdict = failed == 0 ? 0 : first + failed;
    }
    __syncthreads();
    if (verdict != 0) return give_up(L, rows, info + p.index, verdict);
    if (width < N) return;
    for (int row0 = first + N + warp * WARP; row0 < rows; row0 += Warps * WARP) {
        read_rows(x[0], L + first, ld, row0, rows, N, buffer);
#pragma unroll
        for (int k = 0; k < N; k++) {
            x[0][k] *= inverse[k];
#pragma unroll
            for (int j = k + 1; j < N; j++) x[0][j] = fma(-x[0][k], triangle[j][k], x[0][j]);
        }
        write_rows(L + first, ld, row0 + lane < rows ? row0 + lane : -1, N, x[0], buffer);
    }
}

}  // namespace systems
