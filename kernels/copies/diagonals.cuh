// copies/diagonals.cuh — A_b[i, i] += d_b[i], for many matrices in place; a thread each.
#pragma once

namespace copies {

// A: buffer of all matrices, stored by rows of `columns` entries   first, sizes: batch (first entry, rows and columns of
// each), or null: `apart` entries from one to the next, and `most` diagonal entries of each
// d: numbers that come again after `period` of them, or null: `value` for all
template <typename Real>
__global__ void add_to_diagonals(Real* A, const long long* first, const long long* sizes, long long apart, int columns,
                                 int most, long long count, const Real* d, long long period, Real value) {
    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long matrix = thread / most, i = thread - matrix * most;
    if (matrix >= count || (sizes != nullptr && i >= sizes[matrix])) return;
    const long long pitch = sizes == nullptr ? columns : sizes[matrix];
    A[(first == nullptr ? matrix * apart : first[matrix]) + i * (pitch + 1)] += d == nullptr ? value : d[thread % period];
}

}  // namespace copies
