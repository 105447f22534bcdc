// common/thread/pair.cuh — two entries beside each other, read or written at once where they lie at a multiple of their size.
#pragma once

namespace common {

template <typename Entry>
struct alignas(2 * sizeof(Entry) < 16 ? 2 * sizeof(Entry) : 16) Pair { Entry x, y; };

// to[0] = x, to[1] = y; together: at once. The second only where there is one.
template <typename Entry>
__device__ __forceinline__ void store_pair(Entry* to, Entry x, Entry y, bool second, bool together) {
    if (together) {
        *reinterpret_cast<Pair<Entry>*>(to) = {x, y};
    } else {
        to[0] = x;
        if (second) to[1] = y;
    }
}

}  // namespace common
