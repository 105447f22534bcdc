// copies/gather.cuh — out_b = the leading part of A_b, or of A_bᵀ; one block a tile of Edge × Edge entries.
// A transposed tile passes through shared memory, so that reads and writes both run along rows.
#pragma once
#include "common/thread/tiling.cuh"

namespace copies {
using namespace common;

// A, out: buffers of all matrices   first, owner, each: common/thread/tiling.cuh
// sources, pitches, flips: batch (first entry of A_b, its row length, whether to transpose)
// targets, rows, columns: batch (first entry of out_b, its shape)
template <typename Real, int Edge, int Lines>
__global__ __launch_bounds__(Edge * Lines)
void gather(const Real* A, Real* out, const long long* first, const int* owner, int each,
            const long long* sources, const long long* pitches, const long long* flips,
            const long long* targets, const long long* rows, const long long* columns) {
    __shared__ Real tile[Edge][Edge + 1];
    const Tile mine = tile_of_block(first, owner, each);
    const int b = mine.matrix;
    const long long m = rows[b], n = columns[b], across = max(1LL, (n + Edge - 1) / Edge), pitch = pitches[b];
    const long long i0 = mine.index / across * Edge, j0 = mine.index % across * Edge;
    if (i0 >= m) return;
    const int lane = threadIdx.x % Edge, line = threadIdx.x / Edge;
    A += sources[b];
    out += targets[b];
    if (flips && flips[b]) {
        for (int l = line; l < Edge; l += Lines)
            if (j0 + l < n && i0 + lane < m) tile[l][lane] = A[(j0 + l) * pitch + i0 + lane];
        __syncthreads();
        for (int l = line; l < Edge; l += Lines)
            if (i0 + l < m && j0 + lane < n) out[(i0 + l) * n + j0 + lane] = tile[lane][l];
    } else {
        for (int l = line; l < Edge; l += Lines)
            if (i0 + l < m && j0 + lane < n) out[(i0 + l) * n + j0 + lane] = A[(i0 + l) * pitch + j0 + lane];
    }
}

// A batch whose matrices are the next ones of all: entries, and of each matrix the first entry and the row length.
template <typename Real>
struct Source {
    const Real* A;
    const long long *offsets, *pitches;
    long long first;                             // number of its first matrix
};
constexpr int SOURCES = 32;  // at most
template <typename Real>
struct Sources {
    Source<Real> each[SOURCES];
};

// out_b = the leading part of the b-th matrix of all batches   sources: `count` of them; the others as above
template <typename Real, int Edge, int Lines>
__global__ __launch_bounds__(Edge * Lines)
void gather_batches(const Sources<Real> sources, int count, Real* out, const long long* first, const int* owner, int each,
                    const long long* targets, const long long* rows, const long long* columns) {
    const Tile mine = tile_of_block(first, owner, each);
    const int b = mine.matrix;
    const long long m = rows[b], n = columns[b], across = max(1LL, (n + Edge - 1) / Edge);
    const long long i0 = mine.index / across * Edge, j = mine.index % across * Edge + threadIdx.x % Edge;
    if (i0 >= m || j >= n) return;
    Source<Real> source = sources.each[0];
#pragma unroll
    for (int s = 1; s < SOURCES; s++)
        if (s < count && sources.each[s].first <= b) source = sources.each[s];
    const long long pitch = source.pitches[b - source.first];
    const Real* A = source.A + source.offsets[b - source.first];
    out += targets[b];
    for (long long i = i0 + threadIdx.x / Edge; i < min(m, i0 + Edge); i += Lines) out[i * n + j] = A[i * pitch + j];
}

}  // namespace copies
