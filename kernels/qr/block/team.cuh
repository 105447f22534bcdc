// qr/block/team.cuh — the threads that share a matrix: a part of a warp, a warp, or a whole block.
//
// Threads <= WARP: Threads lanes a matrix, WARP / Threads matrices a block of one warp.
// Threads > WARP: a block of at most Threads threads a matrix.
#pragma once
#include "common/thread/wide.cuh"

namespace qr {
using namespace common;

template <int Threads>
struct Team {
    static constexpr int COUNT = Threads < WARP ? WARP / Threads : 1;      // teams of a block
    static constexpr int BLOCK = Threads < WARP ? WARP : Threads;          // threads of a block, at most
    static constexpr int WARPS = (BLOCK + WARP - 1) / WARP;
    int index, member;  // of this thread: its team in the block, its place in the team

    __device__ Team() : index(Threads < WARP ? threadIdx.x / Threads : 0),
                        member(Threads < WARP ? threadIdx.x % Threads : threadIdx.x) {}

    __device__ int size() const { return Threads < WARP ? Threads : blockDim.x; }

    __device__ unsigned lanes() const {
        if constexpr (Threads >= WARP) return EVERY_LANE;
        else return ((1u << Threads) - 1) << index * Threads;
    }

    __device__ void sync() const {
        if constexpr (Threads <= WARP) __syncwarp(lanes());
        else __syncthreads();
    }

    // value = the value that the owner brought, in every thread; the owner is member `from % size` of the team.
    // buffer: Count + 1 at a 16-byte boundary, not the one of the call before (only beyond a warp)
    template <int Count, typename Real>
    __device__ void share(Real (&value)[Count], Real& extra, int from, Real* buffer) const {
        if constexpr (Threads <= WARP) {
#pragma unroll
            for (int i = 0; i < Count; i++) value[i] = __shfl_sync(lanes(), value[i], from, Threads);
            extra = __shfl_sync(lanes(), extra, from, Threads);
        } else {
            if (member == from % size()) {
                write_wide(buffer, value);
                buffer[Count] = extra;
            }
            __syncthreads();
            read_wide(value, buffer);
            extra = buffer[Count];
        }
    }

    // The largest value of the team, in every thread.   scratch: WARPS, shared, not in use by others
    __device__ int max(int value, int* scratch) const {
        value = __reduce_max_sync(lanes(), value);
        if constexpr (Threads > WARP) {
            if (threadIdx.x % WARP == 0) scratch[threadIdx.x / WARP] = value;
            __syncthreads();
            for (int w = 0; w < (blockDim.x + WARP - 1) / WARP; w++) value = ::max(value, scratch[w]);
        }
        return value;
    }
};

}  // namespace qr
