// skeletonization/changes.cuh — panels, and blocks of one buffer, met entry by entry by their addresses:
//     mask_panels:       K[b][i][j] ·= weights[b][i] where weights[b][j] ≠ 0, else 0
//     add_blocks:        K[b][i][j] += buffer[base[b][i] + step[b][i] · slot[b][j]]
//     subtract_updates:  buffer[base[b][i][c] + step[b][i][c] · slot[b][j]] −= U[b][i][j],   c = which[b][j]
// A base of 0 stands for no entry. One warp a row, its lanes along it. The host's side, flat_changes.py, sees to it that
// no entry is met twice. Updates of Minden, Ho, Damle & Ying (2017), section 3.
#pragma once
#include "common/thread/constants.cuh"
#include "skeletonization/thread/index.cuh"

namespace skeletonization {
using namespace common;

// K: cells × height × columns   weights: cells × height, columns ≤ height   lines: cells · height
template <typename Real, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void mask_panels(const Real* weights, long long lines, int height, int columns, Real* K) {
    const long long line = static_cast<long long>(blockIdx.x) * Warps + threadIdx.x / WARP;
    if (line >= lines) return;
    const Real weight = weights[line];
    weights += line / height * height;
    K += line * columns;
    for (int j = threadIdx.x % WARP; j < columns; j += WARP) K[j] = weights[j] == 0 ? 0 : weight * K[j];
}

// K: cells × height × columns   base, step, slot, real: cells × rows, rows ≤ height, columns ≤ rows   lines: cells · rows
template <typename Real, bool Wide, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void add_blocks(const Real* buffer, const Index<Wide>* base, const Index<Wide>* step, const Index<Wide>* slot, const bool* real,
                long long lines, int rows, int height, int columns, Real* K) {
    const long long line = static_cast<long long>(blockIdx.x) * Warps + threadIdx.x / WARP;
    if (line >= lines) return;
    const auto first = base[line], stride = step[line];
    if (first == 0) return;
    const long long cell = line / rows;
    slot += cell * rows;
    real += cell * rows;
    K += (cell * height + (line - cell * rows)) * columns;
    for (int j = threadIdx.x % WARP; j < columns; j += WARP)
        if (real[j]) K[j] += buffer[first + stride * slot[j]];
}

// U: cells × rows × rows   base, step: cells × rows × neighbours   which, slot: cells × rows   lines: cells · rows
template <typename Real, bool Wide, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void subtract_updates(const Real* U, const Index<Wide>* base, const Index<Wide>* step, const int* which, const Index<Wide>* slot,
                      long long lines, int rows, int neighbours, Real* buffer) {
    const long long line = static_cast<long long>(blockIdx.x) * Warps + threadIdx.x / WARP;
    if (line >= lines) return;
    const long long before = line / rows * rows;
    base += line * neighbours;
    step += line * neighbours;
    which += before;
    slot += before;
    U += line * rows;
    for (int j = threadIdx.x % WARP; j < rows; j += WARP) {
        const int c = which[j];
        if (base[c] != 0) buffer[base[c] + step[c] * slot[j]] -= U[j];
    }
}

}  // namespace skeletonization
