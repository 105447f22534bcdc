// copies/signs.cuh — found[0] = 1 where a number is negative, found[1] = 1 where one is positive; else they stay as they are.
//
// found lies in memory of the host that the device can write to: whoever waits for the kernel reads it without a copy.
#pragma once

namespace copies {

// info: size   found: 2   The grid may have any number of blocks.
__global__ void signs(const int* info, long long size, volatile int* found) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += step) {
        const int value = info[i];
        if (value < 0) found[0] = 1;
        if (value > 0) found[1] = 1;
    }
}

}  // namespace copies
