// products/warp/share.cuh — which tiles of a block's part of C are a warp's, where a grid of warps shares them cyclically.
#pragma once
#include "common/thread/constants.cuh"
#include "common/thread/each_number.cuh"

namespace products {
using namespace common;

// How many of count indices are this warp's, that takes every step-th.
__device__ inline int per_warp(int count, int step) { return max(0, (count + step - 1) / step); }

// Which tiles of a block's part of C are this warp's: first, first + step, …
struct Share {
    int row, column;

    __device__ Share(int warp, int warp_rows, int warp_columns) : row(warp / warp_columns % warp_rows), column(warp % warp_columns) {}

    // work(rows, strips) with as many tiles as this warp has of Rows × Strips at most: all, or one row or strip of them less.
    // rows: of the block's that there are; EvenRows: every warp has all
    template <int Rows, int OwnStrips, int WarpRows, int WarpColumns, bool EvenRows, int Strips, typename Work>
    __device__ void with_share(int rows, Work work) const {
        const bool all_rows = EvenRows || row + (Rows - 1) * WarpRows < rows;
        const bool all_strips = Strips % WarpColumns == 0 || column + (OwnStrips - 1) * WarpColumns < Strips;
        if (all_rows && all_strips) work(Number<Rows>(), Number<OwnStrips>());
        if constexpr (Strips % WarpColumns && OwnStrips > 1)
            if (all_rows && !all_strips) work(Number<Rows>(), Number<OwnStrips - 1>());
        if constexpr (!EvenRows && Rows > 1) {
            if (!all_rows && all_strips) work(Number<Rows - 1>(), Number<OwnStrips>());
            if constexpr (Strips % WarpColumns && OwnStrips > 1)
                if (!all_rows && !all_strips) work(Number<Rows - 1>(), Number<OwnStrips - 1>());
        }
    }
};

}  // namespace products
