// systems/warp/panel_rows.cuh — rows of a few columns between device memory and registers, a row a lane.
//
// A few columns at a time pass through shared memory, so that neighbouring lanes touch neighbouring addresses.
// Called by whole warps, each with a buffer of its own.
#pragma once

#include "common/thread/field.cuh"

namespace systems {
using namespace common;

constexpr int ROW_CHUNK = 8, ROW_PITCH = ROW_CHUNK + 1, ROW_BUFFER = WARP * ROW_PITCH;  // columns at a time; entries
constexpr int ROWS_AT_ONCE = WARP / ROW_CHUNK;

// x[j] = A[row0 + lane][j] of rows ld apart, zero from row `rows` and column `columns` on. All is asked for before any of it is
// passed on: a chunk's entries wait where its part of the row will be.
template <int N, typename Scalar>
__device__ void read_rows(Scalar (&x)[N], const Scalar* A, long long ld, int row0, int rows, int columns, Scalar* buffer) {
    static_assert(WARP / ROWS_AT_ONCE == ROW_CHUNK, "a lane reads as many entries of a chunk as it keeps");
    const int lane = threadIdx.x % WARP, c = lane % ROW_CHUNK;
#pragma unroll
    for (int first = 0; first < N; first += ROW_CHUNK)
#pragma unroll
        for (int q = 0; q < ROW_CHUNK; q++) {
            const int row = row0 + q * ROWS_AT_ONCE + lane / ROW_CHUNK;
            x[first + q] = row < rows && first + c < columns ? A[row * ld + first + c] : Scalar();
        }
#pragma unroll
    for (int first = 0; first < N; first += ROW_CHUNK) {
#pragma unroll
        for (int q = 0; q < ROW_CHUNK; q++) buffer[(q * ROWS_AT_ONCE + lane / ROW_CHUNK) * ROW_PITCH + c] = x[first + q];
        __syncwarp();
#pragma unroll
        for (int j = 0; j < ROW_CHUNK; j++) x[first + j] = buffer[lane * ROW_PITCH + j];
        __syncwarp();
    }
}

// A[position of lane][j] = x[j], nowhere for negative positions and from column `columns` on
template <int N, typename Scalar>
__device__ void write_rows(Scalar* A, long long ld, int position, int columns, const Scalar (&x)[N], Scalar* buffer) {
    const int lane = threadIdx.x % WARP, c = lane % ROW_CHUNK;
#pragma unroll
    for (int first = 0; first < N; first += ROW_CHUNK) {
#pragma unroll
        for (int j = 0; j < ROW_CHUNK; j++) buffer[lane * ROW_PITCH + j] = x[first + j];
        __syncwarp();
#pragma unroll
        for (int r0 = 0; r0 < WARP; r0 += ROWS_AT_ONCE) {
            const int r = r0 + lane / ROW_CHUNK, at = __shfl_sync(EVERY_LANE, position, r);
            if (at >= 0 && first + c < columns) A[at * ld + first + c] = buffer[r * ROW_PITCH + c];
        }
        __syncwarp();
    }
}

}  // namespace systems
