// thread/hip.cuh — CUDA's names for what HIP calls otherwise, so that a part of the kernels compiles for AMD's devices too.
//
// A warp stays 32 lanes: where a wave has 64, it is two of them, and neither shuffles nor parts reach across. Kernels that
// need more than this file has (cp.async by pieces, mma) do not compile as HIP.
#pragma once
#include <hip/hip_runtime.h>

template <typename Number>
__device__ Number __shfl_xor_sync(unsigned, Number x, int distance, int width = 32) { return __shfl_xor(x, distance, width); }
template <typename Number>
__device__ Number __shfl_sync(unsigned, Number x, int from, int width = 32) { return __shfl(x, from, width); }

// What lanes of a wave have written is seen by the others; they march together.
__device__ inline void __syncwarp() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

__device__ inline unsigned clock_cycles() { return __builtin_readcyclecounter(); }

// The hardware's approximations; the callers refine them.
__device__ inline double approximate_reciprocal(double x) { return __builtin_amdgcn_rcp(x); }
__device__ inline double approximate_rsqrt(double x) { return __builtin_amdgcn_rsq(x); }
__device__ inline float plain_reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }
__device__ inline float plain_rsqrt(float x) { return __builtin_amdgcn_rsqf(x); }
