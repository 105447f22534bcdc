// G = Rᵀ R, R upper triangular, for a symmetric positive semidefinite matrix in shared memory.
//
//     for k:   v = G_·k,   R_k· = vᵀ / √v_k,   G ← G − v vᵀ / v_k
//
// G waits in registers, columns cyclic over warps, rows over lanes; R takes its place row by row. Only column k passes between
// warps, and one barrier a step is all. A pivot that rounding has eaten up is replaced by N ε g_kk, g the diagonal of the given
// matrix: R then still shows which columns are parallel. Called by batched/svd_gram.cuh, by the whole block of Warps warps.
#pragma once

#include "thread/jacobi_rotation.cuh"
#include "warp/reduce.cuh"

// G         N × N, column-major of leading dimension ld; R afterwards, zeros below its diagonal
// diagonal  N, the given diagonal
// v         2 × N scratch in shared memory
template <int N, int Warps, typename Real>
__device__ void cholesky(Real* G, int ld, const Real* diagonal, Real* v) {
    constexpr int ROWS = N / WARP, SLOTS = N / Warps;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    Real X[SLOTS][ROWS];
#pragma unroll
    for (int c = 0; c < SLOTS; c++)
#pragma unroll
        for (int r = 0; r < ROWS; r++) X[c][r] = G[(warp + c * Warps) * ld + lane + r * WARP];
    for (int k = 0; k < N; k++) {
        Real* column = v + k % 2 * N;
#pragma unroll
        for (int c = 0; c < SLOTS; c++) {
            if (k != warp + c * Warps) continue;
#pragma unroll
            for (int r = 0; r < ROWS; r++) column[lane + r * WARP] = X[c][r];
        }
        __syncthreads();
        const Real pivot = fmax(column[k], N * Floating<Real>::epsilon * diagonal[k]);
        const Real inverse = pivot > 0 ? 1 / pivot : Real(0);
        Real entry[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) entry[r] = column[lane + r * WARP];
#pragma unroll
        for (int c = 0; c < SLOTS; c++) {
            const Real factor = column[warp + c * Warps] * inverse;
#pragma unroll
            for (int r = 0; r < ROWS; r++) X[c][r] = fma(-factor, entry[r], X[c][r]);
        }
        if (k % Warps != warp) continue;
        const Real root = sqrt(pivot) * inverse;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int j = lane + r * WARP;
            G[j * ld + k] = j < k ? Real(0) : j == k ? pivot * root : entry[r] * root;
        }
    }
    __syncthreads();
}
