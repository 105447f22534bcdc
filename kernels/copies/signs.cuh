// copies/signs.cuh — whether a number is negative, and whether one is positive: tell of common/thread/verdicts.cuh, for all of them.
#pragma once

#include "common/thread/verdicts.cuh"

namespace copies {
using namespace common;

// info: size   found: 2   The grid may have any number of blocks.
__global__ void signs(const int* info, int* found, long long size) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += step)
        tell(found, info[i]);
}

}  // namespace copies
