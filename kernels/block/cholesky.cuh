// G = Rᵀ R in place, R upper triangular, for a symmetric positive semidefinite matrix in shared memory.
//
//     for k:   R_kk = √G_kk,   R_kj = G_kj / R_kk,   G_ij −= R_ki R_kj     k < i ≤ j
//
// A pivot that rounding has eaten up is replaced by √(N ε g_kk), g the diagonal of the given matrix: R then still shows which
// columns are parallel. Zeros fill the part below the diagonal. Called by batched/svd_gram.cuh, by the whole block.
#pragma once

#include "thread/jacobi_rotation.cuh"

// G         N × N, column-major of leading dimension ld
// diagonal  N, the given diagonal
template <int N, typename Real>
__device__ void cholesky(Real* G, int ld, const Real* diagonal) {
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (int k = 0; k < N; k++) {
        Real least = N * Floating<Real>::epsilon * diagonal[k], pivot = fmax(G[k * ld + k], least);
        Real inverse = pivot > 0 ? 1 / sqrt(pivot) : Real(0);
        for (int j = k + 1 + warp; j < N; j += warps) {
            Real factor = G[j * ld + k] * inverse * inverse;
            for (int i = k + 1 + lane; i <= j; i += WARP) G[j * ld + i] = fma(-factor, G[i * ld + k], G[j * ld + i]);
        }
        __syncthreads();
        for (int j = k + threadIdx.x; j < N; j += blockDim.x) G[j * ld + k] = j == k ? pivot * inverse : G[j * ld + k] * inverse;
        for (int i = k + 1 + threadIdx.x; i < N; i += blockDim.x) G[k * ld + i] = 0;
    }
    __syncthreads();
}
