// common/thread/stopwatch.cuh — how the cycles of a kernel divide among its parts, for studies of time; kernels in use have a NoWatch.
//
// Anderson, Sheffield & Keutzer (2012), figure 8. Called by all threads of a block at the borders of parts; the first of them
// writes. A border waits for nothing: what a load takes counts for the part that needs the number. Consecutive borders show
// what measuring takes. 32 bits hold two seconds.
#pragma once
#include "common/thread/constants.cuh"

namespace common {

__device__ inline unsigned clock_cycles() {
    unsigned now;  // 64 bits cost registers, and with them a thread block of a multiprocessor
    asm volatile("mov.u32 %0, %clock;" : "=r"(now)::"memory");
    return now;
}

struct NoWatch {
    __device__ void part(int) const {}
    __device__ void panel() const {}
    __device__ void finish() const {}
};

// out   rows of Parts numbers, one for every call of `panel`, then the cycles from begin to end in one number
template <int Parts>
struct Stopwatch {
    long long* out;
    unsigned begin, last, sums[Parts] = {};

    __device__ explicit Stopwatch(long long* out) : out(out), begin(clock_cycles()), last(begin) {}

    // What has passed since the last border was for part p.
    __device__ void part(int p) {
        const unsigned now = clock_cycles();
        sums[p] += now - last, last = now;
    }

    // A row; its writing is nobody's.
    __device__ void panel() {
#pragma unroll
        for (int p = 0; p < Parts; p++) {
            if (threadIdx.x == 0) out[p] = sums[p];
            sums[p] = 0;
        }
        out += Parts, last = clock_cycles();
    }

    __device__ void finish() const {
        const unsigned now = clock_cycles();
        if (threadIdx.x == 0) *out = now - begin;
    }
};

}  // namespace common
