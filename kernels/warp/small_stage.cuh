// warp/small_stage.cuh — small matrices between device memory and the registers of a part of a warp, by way of shared memory.
//
// Rows of a matrix are shared by Lanes lanes: row s · Lanes + lane is slot s of a lane. Memory is read and written along rows.
// Called by whole warps; a part of Lanes lanes has a matrix and a stage of its own.
#pragma once

#include "thread/copy.cuh"
#include "thread/field.cuh"

template <typename Scalar, int N, int Lanes, int Slots>
struct SmallStage {
    static constexpr int PITCH = N | 1, ENTRIES = Lanes * Slots * PITCH;  // odd pitch: rows in different banks
    Scalar* entries;
    int lane;

    __device__ SmallStage(Scalar* memory, int part)
        : entries(memory + part * ENTRIES), lane(threadIdx.x % Lanes) {}

    // x[s][j] = A[s · Lanes + lane][j] of the m × n matrix, zero outside; says whether all of it (of the lower triangle) is finite
    template <bool Lower>
    __device__ bool load(const Scalar* A, int m, int n, Scalar (&x)[Slots][N]) const {
        for (int i = 0; i < m; i++)
            for (int j = lane; j < (Lower ? i + 1 : n); j += Lanes) copy_async(entries + i * PITCH + j, A + i * n + j, true);
        copies_issued();
        copies_arrived<0>();
        __syncwarp();
        bool finite = true;
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            const int i = s * Lanes + lane;
#pragma unroll
            for (int j = 0; j < (Lower ? min(N, (s + 1) * Lanes) : N); j++) {
                x[s][j] = i < m && j < (Lower ? i + 1 : n) ? entries[i * PITCH + j] : Scalar();
                finite = finite && is_finite(x[s][j]);
            }
        }
        __syncwarp();
        const unsigned all = __ballot_sync(EVERY_LANE, finite);
        if constexpr (Lanes == WARP) return all == EVERY_LANE;
        else return (all >> threadIdx.x % WARP / Lanes * Lanes & ((1u << Lanes) - 1)) == (1u << Lanes) - 1;
    }

    // out[position[s]][j] = x[s][j], rows of negative position nowhere; Lower: zeros above the diagonal
    template <bool Lower>
    __device__ void store(Scalar* out, int m, int n, const Scalar (&x)[Slots][N], const int (&position)[Slots]) const {
#pragma unroll
        for (int s = 0; s < Slots; s++)
#pragma unroll
            for (int j = 0; j < (Lower ? min(N, (s + 1) * Lanes) : N); j++)
                if (position[s] >= 0) entries[position[s] * PITCH + j] = x[s][j];
        __syncwarp();
        for (int i = 0; i < m; i++)
            for (int j = lane; j < n; j += Lanes)
                out[i * n + j] = Lower && j > i ? Scalar() : entries[i * PITCH + j];
    }
};
