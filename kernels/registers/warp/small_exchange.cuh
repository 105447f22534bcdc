// registers/warp/small_exchange.cuh — 32 matrices between device memory and the registers of 32 lanes, a matrix each.
//
// Matrices lie one after another, rows one after another, as NumPy has them. Pieces of PIECE entries of all 32 pass
// through shared memory, so that neighbouring lanes read neighbouring entries. Called by whole warps.
#pragma once
#include "common/thread/copy.cuh"
#include "common/thread/field.cuh"

namespace registers {
using namespace common;

template <typename Scalar>
struct SmallExchange {
    static constexpr int PIECE = 32, PITCH = PIECE + 1;  // odd: lanes in different banks
    Scalar entries[WARP * PITCH];

    // x[·][First …] = A of this lane, zeros from matrix `count` on; whether all of it is finite.
    // A   32 × M × N, this warp's first
    template <int M, int N, int First, int W>
    __device__ bool load(const Scalar* A, int count, Scalar (&x)[M][W]) {
        constexpr int ALL = M * N, WIDE = ALL < PIECE ? ALL : PIECE;
        const int lane = threadIdx.x % WARP;
        bool finite = true;
#pragma unroll
        for (int from = 0; from < ALL; from += WIDE) {
            __syncwarp();
#pragma unroll
            for (int pass = 0; pass < WIDE; pass++) {
                const int matrix = (pass * WARP + lane) / WIDE, entry = (pass * WARP + lane) % WIDE;
                if (from + entry < ALL)
                    copy_async(entries + matrix * PITCH + entry, A + matrix * ALL + from + entry, matrix < count);
            }
            copies_issued();
            copies_arrived<0>();
            __syncwarp();
#pragma unroll
            for (int entry = 0; entry < WIDE; entry++)
                if (from + entry < ALL) {
                    const Scalar value = entries[lane * PITCH + entry];
                    x[(from + entry) / N][First + (from + entry) % N] = value;
                    finite = finite && is_finite(value);
                }
        }
        return finite;
    }

    // The first M rows of x[·][First … First + N − 1] to out, of matrices before `count`.   out   32 × M × N
    template <int M, int N, int First, int Rows, int W>
    __device__ void store(Scalar* out, int count, const Scalar (&x)[Rows][W]) {
        constexpr int ALL = M * N, WIDE = ALL < PIECE ? ALL : PIECE;
        const int lane = threadIdx.x % WARP;
#pragma unroll
        for (int from = 0; from < ALL; from += WIDE) {
            __syncwarp();
#pragma unroll
            for (int entry = 0; entry < WIDE; entry++)
                if (from + entry < ALL) entries[lane * PITCH + entry] = x[(from + entry) / N][First + (from + entry) % N];
            __syncwarp();
#pragma unroll
            for (int pass = 0; pass < WIDE; pass++) {
                const int matrix = (pass * WARP + lane) / WIDE, entry = (pass * WARP + lane) % WIDE;
                if (from + entry < ALL && matrix < count) out[matrix * ALL + from + entry] = entries[matrix * PITCH + entry];
            }
        }
    }
};

}  // namespace registers
