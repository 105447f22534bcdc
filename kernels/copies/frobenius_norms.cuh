// copies/frobenius_norms.cuh — norms[b] = ‖A_b‖_F, or of what rounding A_b to float changes; one block a matrix.
// Squares are summed in double precision.
#pragma once
#include "common/block/reduce.cuh"
#include "common/thread/wide.cuh"

namespace copies {
using namespace common;

constexpr double LEAST_SQUARES = 0x1p-900, MOST_SQUARES = 0x1p+1000, SCALE = 0x1p+600;  // sums to be trusted; others are scaled

template <bool OfRounding, typename Real>
__device__ double square(Real entry, double scale) {
    const double x = scale * (OfRounding ? entry - static_cast<float>(entry) : entry);
    return x * x;
}

// A: buffer of all matrices   offsets, rows, columns: batch (first entry and shape of each)   norms: batch
template <typename Real, int Warps, bool OfRounding>
__global__ __launch_bounds__(Warps * WARP)
void frobenius_norms(const Real* A, const long long* offsets, const long long* rows, const long long* columns,
                     double* norms) {
    constexpr int BYTES = 16, AHEAD = 4, EACH = BYTES / sizeof(Real);  // AHEAD: pieces of a thread under way
    __shared__ double scratch[Warps];
    const Real* entries = A + offsets[blockIdx.x];
    const long long size = rows[blockIdx.x] * columns[blockIdx.x];
    const long long beyond = reinterpret_cast<unsigned long long>(entries) % BYTES;
    const long long head = min(size, (BYTES - beyond) % BYTES / static_cast<long long>(sizeof(Real)));
    const long long pieces = (size - head) / EACH, tail = head + pieces * EACH;
    const auto squares = [&](double scale) {
        double sum = 0;
        for (long long i = threadIdx.x; i < pieces; i += AHEAD * blockDim.x) {
            Real piece[AHEAD][EACH] = {};
#pragma unroll
            for (int a = 0; a < AHEAD; a++)
                if (i + a * blockDim.x < pieces) read_wide(piece[a], entries + head + (i + a * blockDim.x) * EACH);
#pragma unroll
            for (int a = 0; a < AHEAD; a++)
#pragma unroll
                for (int e = 0; e < EACH; e++) sum += square<OfRounding>(piece[a][e], scale);
        }
        if (threadIdx.x < head) sum += square<OfRounding>(entries[threadIdx.x], scale);
        if (threadIdx.x < size - tail) sum += square<OfRounding>(entries[tail + threadIdx.x], scale);
        return block_sum<Warps>(sum, scratch);
    };
    double sum = squares(1), scale = 1;
    if (sizeof(Real) == sizeof(double) && (sum <= LEAST_SQUARES || sum >= MOST_SQUARES)) {
        __syncthreads();  // all have read the parts of the first
        scale = sum < 1 ? SCALE : 1 / SCALE;
        sum = squares(scale);
    }
    if (threadIdx.x == 0) norms[blockIdx.x] = sqrt(sum) / scale;
}

}  // namespace copies
