// batched/frobenius_norms.cuh — norms[b] = ‖A_b‖_F, or of what rounding A_b to float changes; one block a matrix.
// Squares are summed in double precision.
#pragma once
#include "block/reduce.cuh"

// A: buffer of all matrices   offsets, sizes: batch (first entry, entries of each)   norms: batch
template <typename Real, int Warps, bool OfRounding>
__global__ __launch_bounds__(Warps * WARP)
void frobenius_norms(const Real* A, const long long* offsets, const long long* sizes, double* norms) {
    __shared__ double scratch[Warps];
    const Real* entries = A + offsets[blockIdx.x];
    const long long size = sizes[blockIdx.x];
    double sum = 0;
    for (long long i = threadIdx.x; i < size; i += blockDim.x) {
        const Real entry = entries[i];
        const double x = OfRounding ? entry - static_cast<float>(entry) : entry;
        sum += x * x;
    }
    sum = block_sum<Warps>(sum, scratch);
    if (threadIdx.x == 0) norms[blockIdx.x] = sqrt(sum);
}
