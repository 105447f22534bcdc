// systems/lu_rows.cuh — after panels: their interchanges of rows in other columns, and their rows of U right of them.
//
//     A ← P A,   U = L⁻¹ A   with L the unit lower triangle of all the panels together
//
// A column is one warp's, which has read every row that moves before it writes one; U from systems/warp/solve_turned.cuh. Where a row
// comes from is found by going back through the interchanges, one row a thread. L and the rows are on their way at once.
#pragma once

#include "common/thread/copy.cuh"
#include "common/thread/field.cuh"
#include "systems/thread/place.cuh"
#include "systems/warp/solve_turned.cuh"

namespace systems {
using namespace common;

// LU, pivots, info, table, m, n: as in systems/lu_panel.cuh     blocks: of a matrix, a warp for TURNED_COLUMNS columns
// first, end   the panels that begin there and before end ≤ first + N
// start, stop  inside: these columns, but for those of the panels; else all but these, in which the panels' rows are in place
template <typename Scalar, int N, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void lu_rows(Scalar* LU, const int* pivots, const int* info, const long long* table, int m, int n, int first, int end, int start,
             int stop, int inside, int blocks) {
    constexpr int BLOCKS = N / TURNED_ROWS, PITCH = TURNED_PITCH<N>;
    __shared__ __align__(16) Scalar L[N][PITCH];
    __shared__ int swaps[N];
    // entries before rows: those that come to first …, those that go to rows swaps[…], and these rows, −1 where one of the former
    __shared__ __align__(16) long long coming[N], going[N], beyond[N];
    const Place p(table, m, n, blockIdx.x / blocks);
    const int width = min(end, p.steps()) - first, verdict = info[p.index];
    if (width <= 0) return;
    for (int t = threadIdx.x; t < width; t += blockDim.x) swaps[t] = pivots[p.pivots + first + t];
    if (verdict == NOT_FINITE) return;
    const int left = inside ? start : 0, right = inside ? first + width : stop, left_end = inside ? first : start;
    const int left_strips = (left_end - left + TURNED_COLUMNS - 1) / TURNED_COLUMNS, warps = blockDim.x / WARP;
    const int strip0 = blockIdx.x % blocks * warps, strip = strip0 + threadIdx.x / WARP;
    const bool solves = strip >= left_strips, some_solve = strip0 + warps > left_strips;
    const int column0 = solves ? right + (strip - left_strips) * TURNED_COLUMNS : left + strip * TURNED_COLUMNS;
    const int limit = !solves ? left_end : inside ? min(stop, p.n) : p.n;
    const long long ld = p.n;
    Scalar* A = LU + p.target;
    if (some_solve)
#pragma unroll 4
        for (int e = threadIdx.x; e < N * N; e += blockDim.x) {
            const int i = e / N, k = e % N;
            const bool known = k < i && i < width;
            copy_async(&L[i][k], A + (known ? (first + i) * ld + first + k : 0), known);
        }
    copies_issued();
    __syncthreads();
    for (int t = threadIdx.x; t < 2 * N; t += blockDim.x) {
        const int mine = t % N, there = mine < width ? swaps[mine] : first;
        int row = t < N ? first + min(mine, width - 1) : there;
#pragma unroll 8
        for (int k = width - 1; k >= 0; k--) row = row == first + k ? swaps[k] : row == swaps[k] ? first + k : row;
        if (t < N) coming[mine] = row * ld;
        else going[mine] = row * ld, beyond[mine] = there < first + width ? -1 : there * ld;
    }
    __syncthreads();
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    const bool there[] = {column0 + g < limit, column0 + g + 8 < limit};
    Scalar* const columns[] = {A + min(column0 + g, limit - 1), A + min(column0 + g + 8, limit - 1)};
    const auto each = [&](auto visit) {  // of what the lane holds: block, entry, row in N, column
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
#pragma unroll
            for (int e = 0; e < 4; e++) visit(b, e, b * TURNED_ROWS + 2 * t + e % 2, columns[e / 2], there[e / 2]);
    };
    Scalar u[BLOCKS][4], v[BLOCKS][4];  // of rows and columns that are not there some other number, on which no other depends
    each([&](int b, int e, int k, const Scalar* column, bool) { v[b][e] = column[going[k]]; });
    each([&](int b, int e, int k, const Scalar* column, bool) { u[b][e] = column[coming[k]]; });
    copies_arrived<0>();
    __syncthreads();  // L is there, and the warp has read every row
    each([&](int b, int e, int k, Scalar* column, bool valid) {
        if (valid && beyond[k] >= 0) column[beyond[k]] = v[b][e];
    });
    if (solves) solve_turned<N>(u, [&](int i) { return L[i]; });
    each([&](int b, int e, int k, Scalar* column, bool valid) {
        if (valid && k < width) column[(first + k) * ld] = u[b][e];
    });
}

}  // namespace systems
