// systems/warp/small_stage.cuh — small matrices between device memory and the registers of a part of a warp, by way of shared memory.
//
// Rows of a matrix are shared by Lanes lanes: row s · Lanes + lane is slot s of a lane. Memory is read and written along rows.
// Of lower triangles, the stage has no more than the blocks of Lanes rows up to the diagonal, so that more warps fit.
// Called by whole warps; a part of Lanes lanes has a matrix and a stage of its own.
#pragma once

#include "common/thread/copy.cuh"
#include "common/thread/field.cuh"

namespace systems {
using namespace common;

template <int N, int Lanes, bool Lower>
struct StageRows {
    // entries of a row of slot s, and the distance between two: odd, so that rows lie in different banks
    __device__ static constexpr int width(int s) { return Lower && (s + 1) * Lanes < N ? (s + 1) * Lanes : N; }
    __device__ static constexpr int pitch(int s) { return width(s) | 1; }
    // where slot s begins: all before have pitch (s + 1) · Lanes + 1
    __device__ static constexpr int start(int s) { return Lower ? Lanes * (Lanes * s * (s + 1) / 2 + s) : s * Lanes * pitch(0); }
};

template <typename Scalar, int N, int Lanes, int Slots, bool Lower>
struct SmallStage {
    using Rows = StageRows<N, Lanes, Lower>;
    static constexpr int HALF = WARP / 4, RAW = Rows::start(Slots - 1) + Lanes * Rows::pitch(Slots - 1);
    // of triangles, half of the banks on: two parts take turns in them
    static constexpr int ENTRIES = Lower && Lanes < WARP ? (RAW + HALF - 1) / (2 * HALF) * 2 * HALF + HALF : RAW;
    Scalar* entries;
    int lane;

    __device__ SmallStage(Scalar* memory, int part)
        : entries(memory + part * ENTRIES), lane(threadIdx.x % Lanes) {}

    __device__ Scalar* row(int i) const { return entries + Rows::start(i / Lanes) + i % Lanes * Rows::pitch(i / Lanes); }

    // x[s][j] = A[s · Lanes + lane][j] of the m × n matrix, zero outside; says whether all of it (of the lower triangle) is finite
    __device__ bool load(const Scalar* A, int m, int n, Scalar (&x)[Slots][N]) const {
        for (int i = 0; i < m; i++)
            for (int j = lane; j < (Lower ? i + 1 : n); j += Lanes) copy_async(row(i) + j, A + i * n + j, true);
        copies_issued();
        copies_arrived<0>();
        __syncwarp();
        bool finite = true;
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            const int i = s * Lanes + lane;
            const Scalar* own = row(i);
#pragma unroll
            for (int j = 0; j < Rows::width(s); j++) {
                x[s][j] = i < m && j < (Lower ? i + 1 : n) ? own[j] : Scalar();
                finite = finite && is_finite(x[s][j]);
            }
        }
        __syncwarp();
        const unsigned all = __ballot_sync(EVERY_LANE, finite);
        if constexpr (Lanes == WARP) return all == EVERY_LANE;
        else return (all >> threadIdx.x % WARP / Lanes * Lanes & ((1u << Lanes) - 1)) == (1u << Lanes) - 1;
    }

    // out[position[s]][j] = x[s][j], rows of negative position nowhere; Lower: zeros above the diagonal
    __device__ void store(Scalar* out, int m, int n, const Scalar (&x)[Slots][N], const int (&position)[Slots]) const {
#pragma unroll
        for (int s = 0; s < Slots; s++)
#pragma unroll
            for (int j = 0; j < Rows::width(s); j++)
                if (position[s] >= 0) row(position[s])[j] = x[s][j];
        __syncwarp();
        for (int i = 0; i < m; i++)
            for (int j = lane; j < n; j += Lanes)
                out[i * n + j] = Lower && j > i ? Scalar() : row(i)[j];
    }
};

}  // namespace systems
