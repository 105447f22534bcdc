// systems/block/warp_roles.cuh — numbers of a block's warps by what they do, such that blocks of a multiprocessor differ.
//
// A multiprocessor has four schedulers, and a warp keeps that of its slot: if the first warp of each of four blocks did most of
// the work, all would queue at one scheduler.
// Called by all threads of a block; each holds its warp's number.
#pragma once
#include "common/thread/constants.cuh"

namespace systems {
using namespace common;

constexpr int SCHEDULERS = 4;

// Between 0 and Warps − 1, a different one in each warp. Resident: blocks that a multiprocessor holds.
template <int Warps, int Resident>
__device__ int warp_role() {
    constexpr int APART = Resident < SCHEDULERS ? SCHEDULERS / Resident : 1;
    static_assert(Warps >= SCHEDULERS, "turned by fewer than there are warps");
    __shared__ int turn;
    if (threadIdx.x == 0) {
        int slot;
        asm volatile("mov.u32 %0, %%warpid;" : "=r"(slot));
        turn = (slot / Warps * APART - slot) & (SCHEDULERS - 1);
    }
    __syncthreads();
    const int role = static_cast<int>(threadIdx.x) / WARP + turn;
    return __reduce_max_sync(EVERY_LANE, role < Warps ? role : role - Warps);
}

}  // namespace systems
