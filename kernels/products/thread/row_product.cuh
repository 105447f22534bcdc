// products/thread/row_product.cuh — one row of C += A B a thread, for matrices of a few rows and columns in shared memory.
#pragma once
#include "products/thread/multiply_add.cuh"

namespace products {

// A_ik at i · PitchA + k, B_kj at k · PitchB + j; columns: of C
template <typename Entry, int Columns, int PitchA, int PitchB>
struct RowProduct {
    Entry sum[Columns] = {};
    int row;

    __device__ explicit RowProduct(int row) : row(row) {}

    template <int Depth>
    __device__ void add(const Entry* A, const Entry* B) {
#pragma unroll
        for (int k = 0; k < Depth; k++) {
            const Entry a = A[row * PitchA + k];
#pragma unroll
            for (int j = 0; j < Columns; j++) sum[j] = multiply_add(sum[j], a, B[k * PitchB + j]);
        }
    }

    template <typename Store>
    __device__ void each_pair(Store store) const {
#pragma unroll
        for (int j = 0; j < Columns; j += 2) store(row, j, sum[j], sum[j + 1 < Columns ? j + 1 : j]);
    }
};

}  // namespace products
