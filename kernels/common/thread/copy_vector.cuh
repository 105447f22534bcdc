// common/thread/copy_vector.cuh — asynchronous copies of 16 bytes from global to shared memory, past registers and first-level cache.
#pragma once
#include "common/thread/copy.cuh"

namespace common {

// *target = *source once copies_arrived says so; both at multiples of 16 bytes.
template <typename Real>
__device__ void copy_vector_async(Real* target, const Real* source) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(target));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(source) : "memory");
}

}  // namespace common
