// covariance/pairwise.cuh — out_b[i, j] = f(X_b[i], Y_b[j]), b = 0, 1, …; one block a tile of at most
// Rows × Threads entries.
//
// As many threads as make whole rows take part: each stays in one column, whose point it keeps in registers, and steps
// over the rows, whose points all threads read from shared memory. So the threads write consecutive entries at every
// step, whatever the width, and no index is divided on the way.
#pragma once
#include "common/thread/tiling.cuh"
#include "covariance/thread/covariance.cuh"

namespace covariance {
using namespace common;

// The numbers of f, passed by value: they arrive in constant memory and are operands there.
template <typename Real, int Count>
struct Parameters { Real values[Count]; };

// k / n rounded down for 0 ≤ k ≤ 1024, 1 ≤ n ≤ 1024
__device__ inline int quotient(int k, int n) { return static_cast<int>(__fdividef(k + 0.5f, n)); }

// X, Y: points × dimension   out: buffer of all matrices
// x_first, y_first, offsets: batch (first entry of each of their matrices)   rows_of, columns_of: batch, of out
// first, owner, each: common/thread/tiling.cuh, tiles of Rows × Threads entries   tables: Function::table entries
template <typename Real, int Threads, int Rows, typename Function>
__global__ __launch_bounds__(Threads)
void pairwise(const Real* X, const Real* Y, Real* out, const long long* x_first, const long long* y_first,
              const long long* offsets, const long long* rows_of, const long long* columns_of,
              const long long* first, const int* owner, int each, const Real* tables,
              Parameters<Real, Function::parameters> parameters) {
    constexpr int DIM = Function::dimension;
    __shared__ Real points[Rows * DIM];
    const Tile tile = tile_of_block(first, owner, each);
    const long long pitch = columns_of[tile.matrix];
    int i0 = 0, j0 = 0, rows = static_cast<int>(rows_of[tile.matrix]), columns = static_cast<int>(pitch);
    if (rows <= 0 || columns <= 0) return;                  // an empty matrix
    if (rows > Rows || columns > Threads) {                 // tiles of even heights and widths
        const int across = (columns + Threads - 1) / Threads, down = (rows + Rows - 1) / Rows;
        const int height = (rows + down - 1) / down, width = (columns + across - 1) / across;
        i0 = tile.index / across * height;
        j0 = tile.index % across * width;
        rows = min(rows - i0, height);                      // rounding up may leave nothing for the last
        columns = min(columns - j0, width);
    } else if (tile.index) {
        return;
    }
    if (rows <= 0 || columns <= 0) return;
    X += x_first[tile.matrix] + static_cast<long long>(i0) * DIM;
    Y += y_first[tile.matrix] + static_cast<long long>(j0) * DIM;
    for (int e = threadIdx.x; e < rows * DIM; e += Threads) points[e] = X[e];
    const int lines = quotient(Threads, columns), line = quotient(threadIdx.x, columns);
    const int j = threadIdx.x - line * columns;
    Real y[DIM];
#pragma unroll
    for (int k = 0; k < DIM; k++) y[k] = Y[j * DIM + k];
    __syncthreads();
    if (line >= lines) return;
    out += offsets[tile.matrix] + (i0 + line) * pitch + j0 + j;
#pragma unroll 1                                            // two or four rows at once: no faster, and fewer warps
    for (int i = line; i < rows; i += lines, out += lines * pitch) {
        Real x[DIM];
#pragma unroll
        for (int k = 0; k < DIM; k++) x[k] = points[i * DIM + k];
        *out = Function::value(x, y, parameters.values, tables);
    }
}

}  // namespace covariance
