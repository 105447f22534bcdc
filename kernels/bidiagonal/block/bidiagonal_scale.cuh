// The entries d, e of a bidiagonal matrix in shared memory, as double or as they are, multiplied by a power of two.
// Called by bidiagonal/bidiagonal_values.cuh and bidiagonal/bidiagonal_svd.cuh, by all threads of a block.
#pragma once
#include "common/thread/constants.cuh"
#include "common/thread/power_of_two.cuh"

namespace bidiagonal {
using namespace common;

// 2^-exponent: entries then lie below ONE in size, also sums of two of them   finite: whether all were
struct BidiagonalScale { int exponent; bool finite; };

// scaled: 2 n − 1, d_0, e_0, d_1, … where interleaved, else d, then e   scratch: two, shared
template <bool Interleaved, typename Real, typename Wide>
__device__ BidiagonalScale scale_bidiagonal(const Real* d, const Real* e, int n, Wide* scaled, int* scratch) {
    if (threadIdx.x == 0) scratch[0] = NO_EXPONENT, scratch[1] = 0;
    __syncthreads();
    int exponent = NO_EXPONENT, bad = 0;
    for (int i = threadIdx.x; i < 2 * n - 1; i += blockDim.x) {
        const double x = widened(i < n ? d[i] : e[i - n]);
        if (isfinite(x)) exponent = max(exponent, exponent_of(x));
        else bad = 1;
    }
    atomicMax(scratch, exponent);
    atomicMax(scratch + 1, bad);
    __syncthreads();
    const BidiagonalScale found{scratch[0] == NO_EXPONENT ? 0 : scratch[0] + 1, scratch[1] == 0};
    const PowerOfTwo scale(-found.exponent);
    for (int i = threadIdx.x; i < 2 * n - 1; i += blockDim.x) {
        const int place = !Interleaved ? i : i < n ? 2 * i : 2 * (i - n) + 1;
        scaled[place] = static_cast<Wide>(scale(widened(i < n ? d[i] : e[i - n])));
    }
    __syncthreads();
    return found;
}

}  // namespace bidiagonal
