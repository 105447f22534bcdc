// studies/hold.cuh — keeps a stream busy for some time, so that a benchmark can queue its work behind it; one thread.
#pragma once

namespace studies {

__device__ inline unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

__global__ void hold(unsigned long long duration) {
    for (const unsigned long long start = nanoseconds(); nanoseconds() - start < duration;) {}
}

}  // namespace studies
