// The thread blocks of a cluster, which run at the same time and read each other's shared memory: from sm_90 on.
// Older devices compile what calls this and never run it: plans ask for one block there.
// Called by bidiagonal/block/bidiagonal.cuh, bidiagonal/block/bidiagonal_rows.cuh and bidiagonal/bidiagonalize_large.cuh, by all threads of a block.
#pragma once
#include "common/thread/constants.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define CLUSTER_OF(blocks)
#define CLUSTER_ASSEMBLY(...)
#else
#define CLUSTER_OF(blocks) __cluster_dims__(blocks)
#define CLUSTER_ASSEMBLY(...) asm __VA_ARGS__
#endif

namespace bidiagonal {
using namespace common;

// Blocks: of the cluster; 1: a block by itself, launched without one
template <int Blocks>
struct Cluster {
    __device__ static int rank() { return blockIdx.x % Blocks; }  // clusters lie along a grid of one dimension

    // After a wait every thread sees, in shared and device memory, what all had written before they arrived.
    __device__ static void arrive() {
        __syncwarp();
        CLUSTER_ASSEMBLY(volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"));
    }
    // As arrive by one that has only read: what it wrote need not be seen.
    __device__ static void leave() {
        __syncwarp();
        CLUSTER_ASSEMBLY(volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"));
    }
    __device__ static void wait() {
        __syncwarp();
        CLUSTER_ASSEMBLY(volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"));
    }
    __device__ static void meet() { arrive(), wait(); }

    // What lies at this place of the shared memory of another block.
    template <typename T>
    __device__ static const T& of(const T& here, int block) {
        const T* there = &here;
        CLUSTER_ASSEMBLY(("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(&here), "r"(block)));
        return *there;
    }
};

template <>
struct Cluster<1> {
    __device__ static int rank() { return 0; }
    __device__ static void leave() {}
    __device__ static void wait() {}
    __device__ static void meet() { __syncthreads(); }
    template <typename T>
    __device__ static const T& of(const T& here, int) { return here; }
};

}  // namespace bidiagonal
