// blocksparse/warp/panel_turns.cuh — panels of one launch that take turns: those of a step wait for all of the steps before it.
//
// A warp takes the next panel when it begins, so that all panels before its own are at work or done and nobody waits for a
// warp that cannot begin, whatever else the device has to do. Not the panels' results but their number is counted by atomics.
// Called by all lanes of a warp together; turns: panels begun, panels ended.
#pragma once
#include "blocksparse/warp/panel_stage.cuh"
#include "common/thread/prefetch.cuh"

namespace blocksparse {
using namespace common;

constexpr int NAP = 500;                                 // ns between two looks at most

// The number of the next panel.
__device__ inline int turn_begun(int* turns) {
    int own = 0;
    if (threadIdx.x % WARP == 0) own = atomicAdd(turns, 1);
    return __shfl_sync(EVERY_LANE, own, 0);
}

// Waits until so many panels have ended, in naps of about a nanosecond for each that is missing; what they wrote can be read.
__device__ inline void await_turns(const int* turns, int before) {
    const volatile int* ended = turns + 1;
    for (;;) {
        const int missing = __reduce_max_sync(EVERY_LANE, before - *ended);
        if (missing <= 0) break;
        __nanosleep(min(missing, NAP));
    }
    __threadfence();
}

// What the warp wrote can be read by whoever sees this.
__device__ inline void turn_ended(int* turns) {
    __syncwarp();
    if (threadIdx.x % WARP > 0) return;
    __threadfence();
    atomicAdd(turns + 1, 1);
}

// Asks the second-level cache for a panel's entries, while others are at work.
template <typename Stored>
__device__ void fetch_ahead(const Stored* entries, const Panel& panel) {
    for (int r = threadIdx.x % WARP; r < panel.rows; r += WARP) {
        const Stored* row = entries + panel.entry + static_cast<long long>(r) * panel.pitch;
        for (int c = 0; c < panel.width; c += LINE_BYTES / sizeof(Stored)) prefetch(row + c);
        prefetch(row + panel.width - 1);
    }
}

}  // namespace blocksparse
