// systems/warp/solve_turned.cuh — U = L⁻¹ A for a few columns in registers, L a unit lower triangle in shared memory.
//
// Turned, so that sums are factors at once (common/warp/tile_chain.cuh): tiles of Uᵀ by blocks of rows, of which the tensor cores take
// those before off, A_i − Σ_j L_ij U_j; the few rows of a block by substitution, four lanes a column.
// What a lane holds then is what it holds of a right factor U.
// Called by whole warps.
#pragma once

#include "common/thread/field.cuh"
#include "common/thread/pair.cuh"
#include "common/warp/tile_chain.cuh"

namespace systems {
using namespace common;

constexpr int TURNED_COLUMNS = 16, TURNED_ROWS = 8;  // of a warp; of a block

// Entries between N rows of L: pairs that a warp reads lie in different banks.
template <int N> constexpr int TURNED_PITCH = N % (2 * TURNED_ROWS) == 0 ? N + TURNED_ROWS : N;

// u_i ← u_i − Σ_j L_ij u_j over the blocks of rows before i; row: the lane's of L, of which four share one
template <int Blocks, typename Scalar>
__device__ __forceinline__ void subtract_known(Scalar (&u)[Blocks][4], int i, const Scalar* row) {
    Scalar sum[4] = {};
#pragma unroll
    for (int j = 0; j < i; j++) {
        const auto l = *reinterpret_cast<const Pair<Scalar>*>(row + j * TURNED_ROWS);
        multiply_tile(sum, u[j], l.x, l.y);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) u[i][e] = minus(u[i][e], sum[e]);
}

// u ← L⁻¹ of it: rows 8 i + 2t, 2t + 1 of columns g and g + 8 are the lane's (g, t).   line(i): where row i of L lies, of which
// only what is below the diagonal matters. A row of u depends on none below it, a column on no other.
template <int N, typename Scalar, typename Line>
__device__ void solve_turned(Scalar (&u)[N / TURNED_ROWS][4], Line line) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < N / TURNED_ROWS; i++) {
        const Scalar* below = line(i * TURNED_ROWS + g) + 2 * t;
        subtract_known(u, i, below);
        const Scalar* mine[2];
#pragma unroll
        for (int h = 0; h < 2; h++) mine[h] = line(i * TURNED_ROWS + 2 * t + h) + i * TURNED_ROWS;
#pragma unroll
        for (int k = 0; k + 1 < TURNED_ROWS; k++) {
            const Scalar upper = mine[0][k], lower = mine[1][k];
#pragma unroll
            for (int h = 0; h < 4; h += 2) {
                const Scalar known = of_lane<4>(u[i][h + k % 2], k / 2);
                const Scalar first = less_chosen(u[i][h], upper, known), second = less_chosen(u[i][h + 1], lower, known);
                u[i][h] = 2 * t > k ? first : u[i][h];
                u[i][h + 1] = 2 * t + 1 > k ? second : u[i][h + 1];
            }
        }
    }
}

// The same where in place of L's diagonal blocks there are their inverses, zeros above included: products alone.
template <int N, typename Scalar, typename Line>
__device__ void divide_turned(Scalar (&u)[N / TURNED_ROWS][4], Line line) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < N / TURNED_ROWS; i++) {
        const Scalar* row = line(i * TURNED_ROWS + g) + 2 * t;
        subtract_known(u, i, row);
        Scalar product[4] = {};
        const auto inverse = *reinterpret_cast<const Pair<Scalar>*>(row + i * TURNED_ROWS);
        multiply_tile(product, u[i], inverse.x, inverse.y);
#pragma unroll
        for (int e = 0; e < 4; e++) u[i][e] = product[e];
    }
}

}  // namespace systems
