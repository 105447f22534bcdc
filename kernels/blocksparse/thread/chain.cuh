// blocksparse/thread/chain.cuh — kernels one behind the other, of which each may begin before the one before has ended.
//
// The host launches them by launch_behind (programmatic dependent launch, CUDA C++ Programming Guide): blocks start once
// all blocks of the kernel before have called let_next_begin. What they read before await_earlier must not be written by
// kernels before. Every kernel of a chain waits, so that all before it have ended then. Launched plainly, neither does
// anything, nor on devices before compute capability 9.
#pragma once

namespace blocksparse {

__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Until what the kernels before have written can be read, and what they read can be written.
__device__ inline void await_earlier() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace blocksparse
