// svd/shared_ranks.cuh — how many values each matrix keeps when all share what may be discarded.
//
//     threshold = the first of the ascending squares whose sum with all before it exceeds the allowance
//     ranks[b]  = squares of matrix b that are not below it
#pragma once
#include "common/thread/constants.cuh"
#include "common/warp/reduce.cuh"

namespace svd {
using namespace common;

// The sum of count squares, by one warp.
__device__ inline double sum_of(const double* squares, long long count) {
    double sum = 0;
#pragma unroll 8  // loads under way
    for (long long i = threadIdx.x % WARP; i < count; i += WARP) sum += squares[i];
    return warp_sum(sum);
}

// squares: `count` of them, ascending   One block, a warp for each of WARP parts: the part that the allowance ends in is cut into
// parts again. The threshold is infinite where everything may be discarded.
__global__ __launch_bounds__(WARP * WARP)
void discard_threshold(const double* squares, long long count, const double* allowance, double* threshold) {
    __shared__ double sums[WARP];
    const int warp = threadIdx.x / WARP;
    const double allowed = *allowance;
    long long first = 0, stop = count;
    double spent = 0;
    while (stop - first > 1) {
        const long long part = (stop - first + WARP - 1) / WARP, begin = min(first + warp * part, stop);
        const double sum = sum_of(squares + begin, min(part, stop - begin));
        __syncthreads();
        if (threadIdx.x % WARP == 0) sums[warp] = sum;
        __syncthreads();
        int w = 0;
        while (w < WARP - 1 && spent + sums[w] <= allowed) spent += sums[w++];
        first = min(first + w * part, stop), stop = min(first + part, stop);
    }
    if (threadIdx.x == 0) {
        if (first < stop && spent + squares[first] <= allowed) first++;
        *threshold = first < count ? squares[first] : __longlong_as_double(0x7ff0000000000000LL);
    }
}

// total: the sum of the squares behind the ranks, always in the same order.   sigma: matrices × values, `count` in all, values > 0
// One block.
template <typename Real>
__global__ __launch_bounds__(WARP * WARP)
void discarded_squares(const Real* sigma, long long count, int values, const long long* ranks, double* total) {
    __shared__ double sums[WARP];
    const int rows = WARP * WARP / values, rest = WARP * WARP % values;  // to the entry that is this thread's next
    int b = threadIdx.x / values, j = threadIdx.x % values;
    double sum = 0;
#pragma unroll 8  // loads under way
    for (long long i = threadIdx.x; i < count; i += WARP * WARP) {
        const double value = sigma[i];
        sum += j >= ranks[b] ? value * value : 0.0;
        b += rows, j += rest;
        if (j >= values) b++, j -= values;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x < WARP) {
        sum = warp_sum(sums[threadIdx.x]);
        if (threadIdx.x == 0) *total = sum;
    }
}

// sigma: matrices × values, descending, zeros behind   One thread a matrix.
template <typename Real>
__global__ void kept_ranks(const Real* sigma, long long matrices, int values, const double* threshold, long long* ranks) {
    const long long b = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (b >= matrices) return;
    const double least = *threshold;
    int rank = 0;
    for (; rank < values; rank++) {
        const double value = sigma[b * values + rank], square = value * value;
        if (!(square > 0 && square >= least)) break;
    }
    ranks[b] = rank;
}

}  // namespace svd
