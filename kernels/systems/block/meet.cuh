// systems/block/meet.cuh — some warps of a block meet without the others, which may do something else meanwhile.
#pragma once
#include "common/thread/constants.cuh"

namespace systems {
using namespace common;

// Called by all threads of those `warps` warps: afterwards each sees what all wrote to shared memory before.
__device__ inline void meet(int warps) { asm volatile("bar.sync 1, %0;" ::"r"(warps * WARP) : "memory"); }

}  // namespace systems
