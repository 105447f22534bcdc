// systems/block/row_copies.cuh — columns of a matrix on their way from global to shared memory, 16 bytes at a time where its rows allow.
//
// Called by some warps of systems/lu_shared.cuh, each of systems/lu_warp.cuh; copies_issued closes the group.
#pragma once
#include "common/thread/constants.cuh"
#include "common/thread/copy.cuh"
#include "common/thread/copy_vector.cuh"

namespace systems {
using namespace common;

constexpr int WARP_BITS = 5;

// X[i · pitch + j] = A[i · ld + j] for i < m, begin ≤ j < end, once copies have arrived; by `threads` threads, whole warps, of which
// this is number `thread`. X and pitch: multiples of 16 bytes
template <typename Entry>
__device__ __forceinline__ void copy_columns(Entry* X, int pitch, const Entry* A, long long ld, int m, int begin, int end, int thread, int threads) {
    constexpr int EACH = 16 / sizeof(Entry);
    const auto each_run = [&](int length, auto copy) {  // as many lanes a row as it has runs of that length, or all of a warp
        const int runs = (end - begin) / length, bits = min(WARP - __clz(max(runs, 1) - 1), WARP_BITS), lanes = 1 << bits;
        const int first = thread >> bits, apart = threads >> bits;
        for (int run = thread & lanes - 1; run < runs; run += lanes) {
            const Entry* from = A + first * ld + begin + run * length;
            Entry* to = X + first * pitch + begin + run * length;
#pragma unroll 4
            for (int i = first; i < m; i += apart, from += apart * ld, to += apart * pitch) copy(to, from);
        }
    };
    const bool aligned = (reinterpret_cast<unsigned long long>(A) | ld * sizeof(Entry)) % 16 == 0;
    if (aligned && begin % EACH == 0 && end % EACH == 0) each_run(EACH, [](Entry* to, const Entry* from) { copy_vector_async(to, from); });
    else each_run(1, [](Entry* to, const Entry* from) { copy_async(to, from, true); });
}

}  // namespace systems
