// systems/block/lu_advance.cuh — from the first columns of P A = L U, finished in shared memory, to the others, still in global memory.
//
//     [U₁₂]   [L₁₁    ]⁻¹                  rows of A₁₂ in the order of the pivots so far
//     [C  ] = [L₂₁   I]   [A₁₂],           C: what is to be factored next; X has the inverses of L₁₁'s diagonal blocks
//
// U₁₂ goes to LU, C to shared memory, where it takes the rows of [L₁₁ U₁₁]. Warps take TURNED_COLUMNS columns each, those of the
// same columns different rows of C; each solves for the rows of U it needs.
// Called by all threads of systems/lu_shared.cuh.
#pragma once

#include "systems/block/lu_window.cuh"

namespace systems {

constexpr int TILE_COLUMNS = TURNED_COLUMNS / 2;  // of a product
constexpr int WINDOW_SPREAD = 4;  // entries between rows of Window columns

// A, LU: m × n     X: rows of Window columns, WINDOW_SPREAD apart, row i of A in row i
// rows     where the row at each position lies in X, after Window steps
// ordered  from Window on: where its column 0 would lie if those of C were preceded by others
// behind   by the row of X that holds a row of C: where its row of L₂₁ lies
// finite   false where an entry of U₁₂ is not that leaves by this thread
template <int Window, int Warps, typename Scalar>
__device__ void advance_window(const Scalar* A, Scalar* LU, Scalar* X, const int* rows, int* ordered, int* behind, int m, int n, int warp,
                               bool& finite) {
    constexpr int BLOCKS = Window / TURNED_ROWS, PITCH = Window + WINDOW_SPREAD, HALF = STRIP_ROWS / 2;
    static_assert(Window / TURNED_COLUMNS <= Warps, "some warp has all rows of its columns");
    const int lane = anew(threadIdx.x % WARP), g = lane / 4, t = lane % 4, width = min(m, Window);
    const int groups = (n - Window + TURNED_COLUMNS - 1) / TURNED_COLUMNS, shares = Warps / groups, share = warp / groups;
    const int column = Window + warp % groups * TURNED_COLUMNS;
    const auto entry = [&](int offset, int j) { return A[offset / PITCH * n + min(j, n - 1)]; };
    const auto place = [&](int i) { return i < 2 * Window ? rows[i - Window] : (m + i - 2 * Window) * PITCH; };  // row i of C
    Scalar u[BLOCKS][4];
    const auto each = [&](auto visit) {
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
#pragma unroll
            for (int e = 0; e < 4; e++) visit(u[b][e], b * TURNED_ROWS + 2 * t + e % 2, column + g + e / 2 * 8);
    };
    Scalar c[2][4];  // entries of A₂₂, of each tile, asked for before they are needed
    const auto fetch = [&](int row) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int at = rows[min(row + g + HALF * h, m - 1)];
#pragma unroll
            for (int e = 0; e < 4; e++) c[e / 2][2 * h + e % 2] = entry(at, column + e / 2 * TILE_COLUMNS + 2 * t + e % 2);
        }
    };
    const int begin = Window + share * STRIP_ROWS;
    if (share < shares) {
        each([&](Scalar& x, int k, int j) { x = entry(rows[min(k, width - 1)], j); });
        if (begin < m) fetch(begin);
        divide_turned<Window>(u, [&](int i) {
            __syncwarp();  // else all of L would be read at once, into more registers than there are
            return X + rows[min(i, width - 1)];
        });
        if (share == 0)
            each([&](Scalar x, int k, int j) {
                if (k < width && j < n) finite &= is_finite(x), LU[k * n + j] = x;
            });
    }
    __syncthreads();  // L₁₁ is not needed any more
#pragma unroll 1
    for (int row = begin; row < m && share < shares; row += shares * STRIP_ROWS) {
        Scalar given[2][4], sum[2][4] = {};
#pragma unroll
        for (int e = 0; e < 8; e++) given[e / 4][e % 4] = c[e / 4][e % 4];
        if (row + shares * STRIP_ROWS < m) fetch(row + shares * STRIP_ROWS);
        const Scalar* left[2];
#pragma unroll
        for (int h = 0; h < 2; h++) left[h] = X + rows[min(row + g + HALF * h, m - 1)] + 2 * t;
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const auto upper = *reinterpret_cast<const Pair<Scalar>*>(left[0] + b * TURNED_ROWS);
            const auto lower = *reinterpret_cast<const Pair<Scalar>*>(left[1] + b * TURNED_ROWS);
            Scalar factor[4] = {upper.x, upper.y, lower.x, lower.y};
            if constexpr (!Field<Scalar>::COMPLEX) as_factor(factor, factor);
#pragma unroll
            for (int tile = 0; tile < 2; tile++) multiply_tile(sum[tile], factor, u[b][2 * tile], u[b][2 * tile + 1]);
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int tile = e / 2, h = e % 2, i = row + g + HALF * h, j = column + tile * TILE_COLUMNS + 2 * t;
            const Pair<Scalar> rest = {minus(given[tile][2 * h], sum[tile][2 * h]), minus(given[tile][2 * h + 1], sum[tile][2 * h + 1])};
            if (i < m) *reinterpret_cast<Pair<Scalar>*>(X + place(i) + j - Window) = rest;
        }
    }
    for (int i = Window + threadIdx.x; i < m; i += Warps * WARP) {
        const int there = place(i);
        ordered[i] = there - Window, behind[there / PITCH] = rows[i];
    }
    __syncthreads();
}

}  // namespace systems
