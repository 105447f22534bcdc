// systems/warp/moved_rows.cuh — where rows are after interchanges that no row has followed yet.
//
// Called by whole warps.
#pragma once
#include "common/thread/constants.cuh"

namespace systems {
using namespace common;

// Of the k-th pivot, in lane k: where its row stood at first, where before the interchange, and its warp.
struct PanelPivots {
    int row, before, warp;
};

// Where the first rows of a panel are by now, one a lane; the others stay where they were until they are pivots.
struct Moved {
    int first, lane, position;
    __device__ explicit Moved(int first) : first(first), lane(threadIdx.x % WARP), position(first + lane) {}

    // of the row that was at `row` (by whole warps)
    __device__ int of(int row) const {
        const int there = __shfl_sync(EVERY_LANE, position, row - first & WARP - 1);
        return row >= first && row < first + WARP ? there : row;
    }
    // The row that was at `row` and the one at position k change places; returns the first one's before.
    __device__ int interchange(int row, int k) {
        const int before = of(row);
        if (position == k) position = before;
        if (lane == row - first) position = k;
        return before;
    }
};

}  // namespace systems
