// common/thread/verdicts.cuh — what info holds of a matrix that could not be treated; h2gpu/batched/core/status.py says so in words.
#pragma once

namespace common {

enum Failure { NO_FAILURE = 0, NOT_FINITE = -1, NOT_CONVERGED = -2 };

// found   2 numbers in memory of the host that the device can write to, or null: 1 in the first where a verdict is negative, in the
//         second where one is positive; else they stay as they are. Whoever waits for the kernel reads them without a copy.
__device__ __forceinline__ void tell(volatile int* found, int verdict) {
    if (verdict != 0 && found != nullptr) found[verdict > 0] = 1;
}

}  // namespace common
