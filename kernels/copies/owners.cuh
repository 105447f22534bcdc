// copies/owners.cuh — owner[t] = b for first[b] <= t < first[b + 1]: which matrix a tile belongs to; one warp a matrix.
#pragma once
#include "common/thread/constants.cuh"

namespace copies {
using namespace common;

// first: batch + 1, ascending   owner: first[batch]
template <int Warps>
__global__ __launch_bounds__(Warps * WARP)
void owners(const long long* first, int* owner, int batch) {
    const long long b = static_cast<long long>(blockIdx.x) * Warps + threadIdx.x / WARP;
    if (b >= batch) return;
    for (long long t = first[b] + threadIdx.x % WARP; t < first[b + 1]; t += WARP) owner[t] = static_cast<int>(b);
}

}  // namespace copies
