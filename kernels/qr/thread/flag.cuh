// qr/thread/flag.cuh — whole numbers in memory by which thread blocks of one launch tell each other how far they are.
// Called by qr/tree_qr.cuh.
#pragma once

namespace qr {

// What other blocks wrote before they raised it to this number can be read.
__device__ inline int load_acquire(const int* flag) {
    int value;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}
__device__ inline void store_release(int* flag, int value) {
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

}  // namespace qr
