// products/axpy.cuh — out_b = α_b X_b + Y_b; one block a run of AXPY_RUN entries of a matrix. And out = α X + Y, a piece a thread.
#pragma once
#include "common/thread/tiling.cuh"
#include "common/thread/wide.cuh"
#include "products/thread/operands.cuh"

namespace products {
using namespace common;

constexpr int AXPY_THREADS = 256, AXPY_BLOCKS = 8, AXPY_BYTES = 16;  // of a multiprocessor; of a piece
template <typename Real> constexpr int AXPY_RUN = 8192 / sizeof(Real);  // entries of a block

// out = alpha X + Y of a run of entries; a thread asks for all of its before it stores one, for out may be X or Y.
// at most `left` entries; Wide: there are AXPY_RUN of them, and the three begin at multiples of 16 bytes
template <bool Wide, typename Real>
__device__ void axpy_run(const Real* X, const Real* Y, Real* out, long long left, Real alpha) {
    constexpr int EACH = Wide ? AXPY_BYTES / sizeof(Real) : 1, STEP = AXPY_THREADS * EACH, STEPS = AXPY_RUN<Real> / STEP;
    const int first = threadIdx.x * EACH;
    Real x[STEPS][EACH], y[STEPS][EACH];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int e = first + s * STEP;
        if constexpr (Wide) read_wide(x[s], X + e), read_wide(y[s], Y + e);
        else if (e < left) x[s][0] = X[e], y[s][0] = Y[e];
    }
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
#pragma unroll
        for (int i = 0; i < EACH; i++) y[s][i] = alpha * x[s][i] + y[s][i];
        const int e = first + s * STEP;
        if constexpr (Wide) write_wide(out + e, y[s]);
        else if (e < left) out[e] = y[s][0];
    }
}

// X, Y, out: batch × m × n, `count` entries in all   table: products/thread/operands.cuh, X in the place of A, Y in that of y
// alphas: (batch,)
template <typename Real>
__global__ __launch_bounds__(AXPY_THREADS, AXPY_BLOCKS)
void axpy(const Real* X, const Real* Y, Real* out, const long long* table, long long batch, const long long* first, const int* owner,
          int each, int m, int n, long long count, const Real* alphas) {
    const Tile tile = tile_of_block(first, owner, each);
    const long long entries = static_cast<long long>(m) * n;
    const Operands at(table, batch, tile.matrix, m, n, entries, entries);
    const long long size = min(static_cast<long long>(at.m) * at.n, count - at.out), begin = static_cast<long long>(tile.index) * AXPY_RUN<Real>;
    const Real alpha = alphas[tile.matrix];
    X += at.a + begin, Y += at.y + begin, out += at.out + begin;
    const auto skew = (reinterpret_cast<unsigned long long>(X) | reinterpret_cast<unsigned long long>(Y) | reinterpret_cast<unsigned long long>(out)) % AXPY_BYTES;
    if (size - begin >= AXPY_RUN<Real> && skew == 0) axpy_run<true>(X, Y, out, AXPY_RUN<Real>, alpha);
    else axpy_run<false>(X, Y, out, size - begin, alpha);
}

// X, Y, out: count, one behind the other; what they are of does not matter
template <typename Real>
__global__ __launch_bounds__(AXPY_THREADS)
void axpy_flat(const Real* X, const Real* Y, Real* out, long long count, Real alpha) {
    constexpr int EACH = AXPY_BYTES / sizeof(Real);
    const long long first = (static_cast<long long>(blockIdx.x) * AXPY_THREADS + threadIdx.x) * EACH;
    const auto skew = (reinterpret_cast<unsigned long long>(X) | reinterpret_cast<unsigned long long>(Y) | reinterpret_cast<unsigned long long>(out)) % AXPY_BYTES;
    if (skew == 0 && first + EACH <= count) {
        Real x[EACH], y[EACH];
        read_wide(x, X + first), read_wide(y, Y + first);
#pragma unroll
        for (int i = 0; i < EACH; i++) y[i] = alpha * x[i] + y[i];
        write_wide(out + first, y);
    } else {
        for (long long e = first; e < min(first + EACH, count); e++) out[e] = alpha * X[e] + Y[e];
    }
}

}  // namespace products
