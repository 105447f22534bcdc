// batched/frobenius_norms.cuh — norms[b] = ‖A_b‖_F, squares summed in double precision; one block a matrix.
#pragma once
#include "block/reduce.cuh"

// A: buffer of all matrices   offsets, sizes: batch (first entry, entries of each)   norms: batch
template <typename Real, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void frobenius_norms(const Real* A, const long long* offsets, const long long* sizes, double* norms) {
    __shared__ double scratch[Warps];
    const Real* entries = A + offsets[blockIdx.x];
    const long long size = sizes[blockIdx.x];
    double sum = 0;
    for (long long i = threadIdx.x; i < size; i += blockDim.x) {
        const double x = entries[i];
        sum += x * x;
    }
    sum = block_sum<Warps>(sum, scratch);
    if (threadIdx.x == 0) norms[blockIdx.x] = sqrt(sum);
}
