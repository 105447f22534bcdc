// warp/solve_turned.cuh — U = L⁻¹ A for a few columns in registers, L a unit lower triangle in shared memory.
//
// Turned, so that sums are factors at once (warp/tile_chain.cuh): tiles of Uᵀ by blocks of rows, U_i = L_ii⁻¹ (A_i − Σ_j L_ij U_j),
// for which only triangles of TURNED_ROWS rows are inverted. What a lane holds then is what it holds of a right factor U.
// Called by whole warps.
#pragma once

#include "thread/field.cuh"
#include "thread/pair.cuh"
#include "warp/tile_chain.cuh"

constexpr int TURNED_COLUMNS = 16, TURNED_ROWS = 8;  // of a warp; that are solved for at once

// Entries between N rows of L: pairs that a warp reads lie in different banks.
template <int N> constexpr int TURNED_PITCH = N % (2 * TURNED_ROWS) == 0 ? N + TURNED_ROWS : N;

// The square blocks on the diagonal of L, unit lower triangles, become their inverses; above them and on the diagonal
// there are zeros before and afterwards. By whole warps, `threads` in all.
template <int N, typename Scalar>
__device__ void invert_blocks(Scalar* L, int thread, int threads) {
    constexpr int PITCH = TURNED_PITCH<N>;
    for (int t = thread; t < (N + WARP - 1) / WARP * WARP; t += threads) {
        const int c = t % TURNED_ROWS, corner = min(t - c, N - TURNED_ROWS);
        Scalar x[TURNED_ROWS];
#pragma unroll
        for (int i = 0; i < TURNED_ROWS; i++) {
            x[i] = i == c ? one<Scalar>() : Scalar();
#pragma unroll
            for (int k = 0; k < i; k++) x[i] = less_product(x[i], L[(corner + i) * PITCH + corner + k], x[k]);
        }
        __syncwarp();
#pragma unroll
        for (int i = 1; i < TURNED_ROWS; i++)
            if (i > c && t < N) L[(corner + i) * PITCH + corner + c] = x[i];
        __syncwarp();
    }
}

// u ← L⁻¹ of it: rows 8 i + 2t, 2t + 1 of columns g and g + 8 are the lane's (g, t); L as invert_blocks leaves it
template <int N, typename Scalar>
__device__ void solve_turned(Scalar (&u)[N / TURNED_ROWS][4], const Scalar* L) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    const auto subtract = [&](Scalar(&sum)[4], int i, int j, const Scalar(&factor)[4]) {
        const auto l = *reinterpret_cast<const Pair<Scalar>*>(L + (i * TURNED_ROWS + g) * TURNED_PITCH<N> + j * TURNED_ROWS + 2 * t);
        multiply_tile(sum, factor, l.x, l.y);
    };
#pragma unroll
    for (int i = 0; i < N / TURNED_ROWS; i++) {
        Scalar sum[4] = {}, change[4] = {};
#pragma unroll
        for (int j = 0; j < i; j++) subtract(sum, i, j, u[j]);
#pragma unroll
        for (int e = 0; e < 4; e++) u[i][e] = minus(u[i][e], sum[e]);
        subtract(change, i, i, u[i]);
#pragma unroll
        for (int e = 0; e < 4; e++) u[i][e] = plus(u[i][e], change[e]);
    }
}
