// products/thread/copy_pieces.cuh — asynchronous copies of pieces of 4, 8 or 16 bytes, of which the first few may count.
#pragma once

namespace products {

// The leading `bytes` of Bytes from source to target, an address of shared memory, zeros behind them; both are multiples of Bytes.
template <int Bytes>
__device__ inline void copy_leading_to(unsigned target, const void* source, int bytes) {
    if constexpr (Bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(bytes));
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(target), "l"(source), "n"(Bytes), "r"(bytes));
}

template <int Bytes>
__device__ inline void copy_leading(void* target, const void* source, int bytes) {
    copy_leading_to<Bytes>(static_cast<unsigned>(__cvta_generic_to_shared(target)), source, bytes);
}

// Where a thread's copies begin and end that lie at distances the compiler knows: made once, for it makes both addresses anew
// for every copy otherwise, 17 instructions each.
template <typename Entry>
struct CopyPlace {
    unsigned target;
    const Entry* source;

    __device__ CopyPlace(Entry* to, const Entry* from) : target(static_cast<unsigned>(__cvta_generic_to_shared(to))), source(from) {
        asm volatile("" : "+r"(target), "+l"(source));
    }

    // Each entries from source[from] to target[to], or as many zeros
    template <int Each>
    __device__ void copy(int to, int from, bool inside) const {
        constexpr int BYTES = Each * sizeof(Entry);
        copy_leading_to<BYTES>(target + to * int(sizeof(Entry)), source + from, inside ? BYTES : 0);
    }
};

}  // namespace products
