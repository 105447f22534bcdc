// batched/lu_rows.cuh — after a panel: its interchanges of rows in all other columns, and its rows of U right of it.
//
//     A ← P A,   U = L⁻¹ A   with L the panel's unit lower triangle
//
// A column is a thread's: it reads every row that moves before it writes one, so nobody waits. Where a row comes from is
// found by going back through the interchanges, one row a thread. One block a strip of columns of one matrix.
#pragma once

#include "thread/field.cuh"
#include "thread/place.cuh"

// LU, pivots, info, table, m, n: as in batched/lu_panel.cuh     first, N: the panel     strips: blocks a matrix
template <typename Scalar, int N, int Threads>
__global__ __launch_bounds__(Threads)
void lu_rows(Scalar* LU, const int* pivots, const int* info, const long long* table, int m, int n, int first, int strips) {
    static_assert(Threads >= 2 * N, "a thread a row that moves");
    __shared__ Scalar unit[N][N];
    __shared__ int swaps[N], from[2 * N];  // where rows first … and rows swaps[…] come from
    const Place p(table, m, n, blockIdx.x / strips);
    const int width = min(N, p.steps() - first);
    const int column = blockIdx.x % strips * Threads;
    if (width <= 0 || column >= p.n || info[p.index] == NOT_FINITE) return;
    const long long ld = p.n;
    Scalar* A = LU + p.target;
    const int t = threadIdx.x;
    if (t < width) swaps[t] = pivots[p.pivots + first + t];
    for (int e = t; e < width * N; e += Threads)
        if (e % N < width) unit[e / N][e % N] = A[(first + e / N) * ld + first + e % N];
    __syncthreads();
    if (t < 2 * N && t % N < width) {
        int row = t < N ? first + t : swaps[t - N];
        for (int k = width - 1; k >= 0; k--) row = row == first + k ? swaps[k] : row == swaps[k] ? first + k : row;
        from[t] = row;
    }
    __syncthreads();
    const int j = column + t;
    if (j >= p.n || (j >= first && j < first + width)) return;
    A += j;
    Scalar u[N], v[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (k >= width) continue;
        u[k] = A[from[k] * ld];
        if (swaps[k] >= first + width) v[k] = A[from[N + k] * ld];
    }
    if (j >= first)
#pragma unroll
        for (int k = 0; k < N; k++)
#pragma unroll
            for (int i = k + 1; i < N; i++)
                if (i < width) u[i] = less_product(u[i], unit[i][k], u[k]);
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (k >= width) continue;
        A[(first + k) * ld] = u[k];
        if (swaps[k] >= first + width) A[swaps[k] * ld] = v[k];
    }
}
