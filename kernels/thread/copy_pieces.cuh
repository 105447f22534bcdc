// thread/copy_pieces.cuh — asynchronous copies of pieces of 4, 8 or 16 bytes, of which the first few may count.
#pragma once

// The leading `bytes` of Bytes from source to target, zeros behind them; both addresses are multiples of Bytes.
template <int Bytes>
__device__ inline void copy_leading(void* target, const void* source, int bytes) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(target));
    if constexpr (Bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(source), "r"(bytes));
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(source), "n"(Bytes), "r"(bytes));
}
