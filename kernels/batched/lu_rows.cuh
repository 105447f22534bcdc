// batched/lu_rows.cuh — after panels: their interchanges of rows in other columns, and their rows of U right of them.
//
//     A ← P A,   U = L⁻¹ (A − L′ U′)   with L a panel's unit lower triangle
//
// L′ and U′ are of the panels before, where there are several, which batched/lu_update.cuh takes at once.
// A column is a thread's: it reads every row that moves before it writes one, so nobody waits. Where a row comes from is
// found by going back through the interchanges, one row a thread. One block a strip of columns of one matrix.
#pragma once

#include "thread/field.cuh"
#include "thread/place.cuh"

// LU, pivots, info, table, m, n: as in batched/lu_panel.cuh     strips: blocks a matrix
// first, end   the panels that begin there, of N columns, and before `end` ≤ first + Most
// start, stop  inside: these columns, but for those of the one panel; else all but these, in which the panels' rows are in place
template <typename Scalar, int N, int Most, int Threads>
__global__ __launch_bounds__(Threads)
void lu_rows(Scalar* LU, const int* pivots, const int* info, const long long* table, int m, int n, int first, int end, int start,
             int stop, int inside, int strips) {
    static_assert(Threads >= 2 * N, "a thread a row that moves");
    __shared__ Scalar known[N][Most];      // L′ and L
    __shared__ int swaps[N], from[2 * N];  // where rows first … and rows swaps[…] come from
    const Place p(table, m, n, blockIdx.x / strips);
    if (first >= p.steps() || info[p.index] == NOT_FINITE) return;
    const long long ld = p.n;
    const int t = threadIdx.x, limit = inside ? min(stop, p.n) : p.n;
    int j = blockIdx.x % strips * Threads + t + (inside ? start : 0);
    if (inside && j >= first) j += min(N, p.steps() - first);
    if (!inside && j >= start) j += stop - start;
    if (!__syncthreads_or(j < limit)) return;
    Scalar* A = LU + p.target;
    for (int before = 0; first < min(end, p.steps()); first += N, before += N) {
        const int width = min(N, p.steps() - first);
        __syncthreads();  // all are done with the panel before
        if (t < width) swaps[t] = pivots[p.pivots + first + t];
        for (int e = t; e < width * Most; e += Threads)
            if (e % Most < before + width) known[e / Most][e % Most] = A[(first + e / Most) * ld + first - before + e % Most];
        __syncthreads();
        if (t < 2 * N && t % N < width) {
            int row = t < N ? first + t : swaps[t - N];
            for (int k = width - 1; k >= 0; k--) row = row == first + k ? swaps[k] : row == swaps[k] ? first + k : row;
            from[t] = row;
        }
        __syncthreads();
        if (j >= limit) continue;
        Scalar *column = A + j, u[N], v[N];
#pragma unroll
        for (int k = 0; k < N; k++) {
            u[k] = k < width ? column[from[k] * ld] : Scalar();
            if (k < width && swaps[k] >= first + width) v[k] = column[from[N + k] * ld];
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            if (k < width && swaps[k] >= first + width) column[swaps[k] * ld] = v[k];
        if (j >= first) {
            for (int c = 0; c < before; c += N) {
#pragma unroll
                for (int k = 0; k < N; k++) v[k] = column[(first - before + c + k) * ld];
#pragma unroll
                for (int i = 0; i < N; i++)
#pragma unroll
                    for (int k = 0; k < N; k++) u[i] = less_product(u[i], known[i][c + k], v[k]);
            }
#pragma unroll
            for (int k = 0; k < N; k++)
#pragma unroll
                for (int i = k + 1; i < N; i++) u[i] = less_product(u[i], known[i][before + k], u[k]);
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            if (k < width) column[(first + k) * ld] = u[k];
    }
}
