// A line of the second-level cache asked for, which nobody waits for.
// Called by qr/blocked_chain.cuh, qr/blocked_qr.cuh and bidiagonal/bidiagonalize_large.cuh.
#pragma once

namespace common {

constexpr int LINE_BYTES = 128;

__device__ __forceinline__ void prefetch(const void* address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

}  // namespace common
