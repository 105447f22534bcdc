// products/block/store_run.cuh — a run of memory leaves shared memory. Called by all threads of a block, after a barrier.
#pragma once
#include "products/thread/multiply_add.cuh"

namespace products {

// out[0 … count − 1] = α sums + β C, in pieces of 16 bytes but for the ends; skew: entries between a multiple of 16 bytes and
// out, and between another and sums
template <int Threads, typename Entry>
__device__ void store_run(const Entry* sums, const Entry* C, Entry* out, int count, int skew, Entry alpha, Entry beta) {
    constexpr int PIECE = 16, CHUNK = PIECE / sizeof(Entry);
    struct alignas(PIECE) Piece { Entry entry[CHUNK]; };
    const bool together = is_zero(beta) || (reinterpret_cast<unsigned long long>(C) - reinterpret_cast<unsigned long long>(out)) % PIECE == 0;
    for (int first = threadIdx.x * CHUNK - skew; first < count; first += Threads * CHUNK) {
        if (together && first >= 0 && first + CHUNK <= count) {
            Piece piece = *reinterpret_cast<const Piece*>(sums + first), c;
            if (!is_zero(beta)) c = *reinterpret_cast<const Piece*>(C + first);
#pragma unroll
            for (int e = 0; e < CHUNK; e++) piece.entry[e] = scaled_sum(alpha, piece.entry[e], beta, &c.entry[e]);
            *reinterpret_cast<Piece*>(out + first) = piece;
        } else {
#pragma unroll
            for (int e = 0; e < CHUNK; e++)
                if (first + e >= 0 && first + e < count) out[first + e] = scaled_sum(alpha, sums[first + e], beta, C + first + e);
        }
    }
}

}  // namespace products
