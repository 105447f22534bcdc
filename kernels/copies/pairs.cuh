// copies/pairs.cuh — the two points behind every entry of a ragged batch of matrices:
//     x[e] = X[x_start_b + i],  y[e] = Y[y_start_b + j]    for entry e = (i, j) of matrix b, in order.
// One block a run of Run entries of one matrix.
#pragma once
#include "common/thread/tiling.cuh"

namespace copies {
using namespace common;

constexpr int RESIDENT = 4;  // thread blocks a multiprocessor: registers enough for all addresses

// X, Y: points × dim   x, y: entries × dim   first, owner, each: common/thread/tiling.cuh, a tile being a run
// x_starts, y_starts, columns, sizes, entries: batch (first points, row length, entries of and before each matrix)
template <typename Real, int Threads, int Run>
__global__ __launch_bounds__(Threads, RESIDENT)
void pairs(const Real* X, const Real* Y, Real* x, Real* y, int dim, const long long* first, const int* owner,
           int each, const long long* x_starts, const long long* y_starts, const long long* columns, const long long* sizes,
           const long long* entries) {
    const Tile tile = tile_of_block(first, owner, each);
    const int b = tile.matrix;
    const long long start = static_cast<long long>(tile.index) * Run, size = sizes[b];
    const unsigned n = static_cast<unsigned>(columns[b]);
    X += x_starts[b] * dim;
    Y += y_starts[b] * dim;
    x += entries[b] * dim;
    y += entries[b] * dim;
    for (long long e = start + threadIdx.x; e < start + Run && e < size; e += Threads) {
        const long long i = e < (1LL << 32) ? static_cast<unsigned>(e) / n : e / n, j = e - i * n;
        for (int d = 0; d < dim; d++) {
            x[e * dim + d] = X[i * dim + d];
            y[e * dim + d] = Y[j * dim + d];
        }
    }
}

}  // namespace copies
