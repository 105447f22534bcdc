// clustering/thread/segment.cuh — which thread this is, and which of ranges, one behind the other, holds a place.
#pragma once

namespace clustering {

__device__ inline long long own_number() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }

// c of first[c] <= i < first[c + 1]   first: count + 1, ascending, from 0; no range is empty
__device__ inline int segment_of(const long long* first, int count, long long i) {
    int low = 0, high = count;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (first[middle] <= i) low = middle;
        else high = middle;
    }
    return low;
}

}  // namespace clustering
