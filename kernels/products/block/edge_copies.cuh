// products/block/edge_copies.cuh — a matrix whose sizes are known at run time on its way to shared memory, whole rounds of rows and columns.
//
// What stands beyond the last row and column: the last once more (REDIRECTED, what kernels use); for the study of Nath, Tomov
// & Dongarra (2010) also the rows and columns before it (MIRRORED), zeros (PADDED), or nothing (CONDITIONAL).
#pragma once
#include "common/thread/constants.cuh"
#include "common/thread/copy.cuh"

namespace products {
using namespace common;

constexpr int REDIRECTED = 0, MIRRORED = 1, PADDED = 2, CONDITIONAL = 3;
constexpr int AT_ONCE = 4, ROUND = 16;  // rows of a warp's copies behind one another, of a block's at most

// Entries between rows in shared memory of kernels for matrices up to `edge`.
__host__ __device__ constexpr int edge_pitch(int edge) { return edge + 4; }

__host__ __device__ constexpr int at_once(int warps) { return warps * AT_ONCE > ROUND ? ROUND / warps : AT_ONCE; }

// The index that is read for index i of `count`.
template <int Beyond>
__device__ inline int index_read(int i, int count) {
    if constexpr (Beyond == MIRRORED) return i < count ? i : max(0, 2 * (count - 1) - i);
    else return min(i, count - 1);
}

// target[i · Pitch + j] (Turned: [j · Pitch + i]) = source[i · columns + j] for i < rows, j < columns, both from 1 to Edge, a
// multiple of at_once · Warps
template <int Edge, int Pitch, int Warps, bool Turned, int Beyond, typename Real>
__device__ __forceinline__ void copy_to_edges(Real* target, const Real* source, int rows, int columns) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP % Warps;
#pragma unroll 1
    for (int j0 = 0; j0 < columns; j0 += WARP) {
        const int j = j0 + lane;
        if (j >= Edge) break;
        const Real* from = source + index_read<Beyond>(j, columns);
#pragma unroll 1
        for (int i0 = 0; i0 < rows; i0 += at_once(Warps) * Warps)
#pragma unroll
            for (int u = 0; u < at_once(Warps); u++) {
                const int i = i0 + u * Warps + warp;
                const bool inside = i < rows && j < columns;
                if (Beyond == CONDITIONAL && !inside) continue;
                copy_async(target + (Turned ? j * Pitch + i : i * Pitch + j), from + index_read<Beyond>(i, rows) * columns,
                           Beyond != PADDED || inside);
            }
    }
}

}  // namespace products
