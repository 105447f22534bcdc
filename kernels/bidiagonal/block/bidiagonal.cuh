// One matrix of a batch that becomes bidiagonal, W = H_0 ⋯ H_{n−1} B (G_0 ⋯ G_{n−2})ᵀ.
//
// W is A where A has no more columns than rows, else Aᵀ. Reflectors H = I − τ u uᵀ are stored as qr/reflectors.cuh
// applies them: u_j whole, zeros before its first entry, which is 1. G_{n−1} has τ = 0.
// Called by bidiagonal/bidiagonalize.cuh and bidiagonal/bidiagonalize_large.cuh.
#pragma once
#include "bidiagonal/block/cluster.cuh"
#include "bidiagonal/warp/sum_all.cuh"
#include "common/thread/householder.cuh"
#include "common/thread/power_of_two.cuh"
#include "common/thread/stopwatch.cuh"

namespace bidiagonal {
using namespace common;

// Parts of the time: A comes, the reflections, W r, what becomes of W, aᵀ W, products with what is put off; between borders.
enum BidiagonalPart { READ, REFLECT, ROW_PRODUCT, UPDATE_ALL, COLUMN_PRODUCT, PUT_OFF, BETWEEN, BIDIAGONAL_PARTS };

// A(i, c) of W is A[i · down + c · right]   V: n × m   U: n × n   d, tau_v, tau_u: n   e: n − 1   V is null for B alone
template <typename Real>
struct Bidiagonal {
    const Real* A;
    Real *V, *U, *d, *e, *tau_v, *tau_u;
    long long down, right;
    int m, n;

    // table: 7 numbers a matrix: where A, V, U, d (and both τ), e begin, and rows and columns of A
    __device__ Bidiagonal(const Real* A, Real* V, Real* U, Real* d, Real* e, Real* tau_v, Real* tau_u, const long long* row)
        : A(A + row[0]), V(V ? V + row[1] : nullptr), U(U + row[2]), d(d + row[3]), e(e + row[4]), tau_v(tau_v + row[3]),
          tau_u(tau_u + row[3]) {
        const int rows = int(row[5]), columns = int(row[6]);
        const bool tall = rows >= columns;
        m = tall ? rows : columns, n = tall ? columns : rows;
        down = tall ? columns : 1, right = tall ? 1 : columns;
    }

    __device__ Real entry(int i, int c) const { return A[i * down + c * right]; }

    // d and e as they are without the shift; by the block that wrote them
    __device__ void unscale(int shift) const {
        if (!shift) return;
        __syncthreads();
        const PowerOfTwo scale(shift);
        for (int j = threadIdx.x; j < n; j += blockDim.x) {
            d[j] = scale(d[j]);
            if (j + 1 < n) e[j] = scale(e[j]);
        }
    }
};

// The shift s such that 2^-s W is safe to compute with, the same in every thread.   field: the largest exponent field of
// the thread's entries   scratch: Warps, shared   Blocks: that share the matrix
template <typename Real, int Warps, int Blocks = 1>
__device__ int block_shift(int field, int* scratch) {
    field = __reduce_max_sync(EVERY_LANE, field);
    if (threadIdx.x % WARP == 0) scratch[threadIdx.x / WARP] = field;
    Cluster<Blocks>::meet();
#pragma unroll
    for (int b = 0; b < Blocks; b++)
#pragma unroll
        for (int w = 0; w < Warps; w++) field = max(field, Cluster<Blocks>::of(scratch[w], b));
    return safe_shift<Real>(field - Range<Real>::BIAS);
}

}  // namespace bidiagonal
