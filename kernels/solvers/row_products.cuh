// solvers/row_products.cuh — Y = W X of a sparse matrix in compressed rows and some columns, stored by rows:
//     y[i][c] = Σ_k data[k] · x[indices[k]][c],     indptr[i] ≤ k < indptr[i + 1]
// Lanes threads a row: of one column each takes every Lanes-th entry, of several each takes every Lanes-th column. Sums are
// in a fixed order, no atomics: the same bits every time, which cuSPARSE's default algorithms do not promise.
#pragma once
#include "common/warp/part_sums.cuh"

namespace solvers {
using namespace common;

template <typename Real, int Lanes, int Threads>
__global__ __launch_bounds__(Threads)
void row_sums(const Real* data, const int* indices, const int* indptr, const Real* x, Real* y, int rows) {
    const long long thread = static_cast<long long>(blockIdx.x) * Threads + threadIdx.x, row = thread / Lanes;
    Real sum = 0;
    if (row < rows)
        for (int k = indptr[row] + thread % Lanes; k < indptr[row + 1]; k += Lanes) sum += data[k] * x[indices[k]];
    sum = part_sum<1, Lanes>(sum);
    if (row < rows && thread % Lanes == 0) y[row] = sum;
}

template <typename Real, int Lanes, int Threads>
__global__ __launch_bounds__(Threads)
void row_products(const Real* data, const int* indices, const int* indptr, const Real* X, Real* Y, int rows, int columns) {
    const long long thread = static_cast<long long>(blockIdx.x) * Threads + threadIdx.x, row = thread / Lanes;
    if (row >= rows) return;
    const int first = indptr[row], end = indptr[row + 1];
    for (int c = thread % Lanes; c < columns; c += Lanes) {
        Real sum = 0;
        for (int k = first; k < end; k++) sum += data[k] * X[indices[k] * static_cast<long long>(columns) + c];
        Y[row * columns + c] = sum;
    }
}

}  // namespace solvers
