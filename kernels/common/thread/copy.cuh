// common/thread/copy.cuh — asynchronous copies from global to shared memory, past the registers.
#pragma once
#include "common/thread/constants.cuh"

namespace common {

// *target = valid ? *source : 0, once copies_arrived says so; source must be a readable address only where valid.
template <typename Real>
__device__ void copy_async(Real* target, const Real* source, bool valid) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(target));
    const int bytes = valid ? sizeof(Real) : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 ::"r"(address), "l"(source), "n"(sizeof(Real)), "r"(bytes));
}

// Closes a group of copies.
__device__ inline void copies_issued() { asm volatile("cp.async.commit_group;"); }

// Waits until all but the Pending latest groups of this thread have arrived.
template <int Pending>
__device__ void copies_arrived() { asm volatile("cp.async.wait_group %0;" ::"n"(Pending)); }

// 16 bytes from one multiple of 16 to another in shared memory, past the nearest cache; zeros where not valid.
__device__ inline void copy_piece(unsigned target, const void* source, bool valid) {
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(bytes));
}

}  // namespace common
