// studies/gebrd_stages.cuh — bidiagonal reduction, a kernel a stage, for apps/studies/baselines/gebrd.py.
//
// What LAPACK's GEBD2 and LABRD call LARFG, GEMV, GER, SCAL and GEMM (Dong, Haidar, Tomov & Dongarra 2018, section 6), one launch
// each for all matrices of a batch. Every operand lies in one array W of each matrix, `size` entries, rows `ld` apart: A, to the
// right of it X, below it Yᵀ and vectors. An operand is the place of its first entry; vectors go on by `step` entries.
#pragma once
#include "common/block/reduce.cuh"
#include "common/thread/householder.cuh"
#include "systems/lu_update.cuh"

namespace studies {
using namespace common;
using namespace systems;

constexpr int STAGE_WARPS = 8, STAGE_THREADS = STAGE_WARPS * WARP;
constexpr int SEGMENT_BYTES = 128;  // that a warp reads at once, and where padded reads begin

// How many entries before p the segment begins that p lies in.
template <typename Real>
__device__ int skew_of(const Real* p) { return reinterpret_cast<unsigned long long>(p) % SEGMENT_BYTES / sizeof(Real); }

// Householder's reflection of `count` numbers from v on: v ← its vector, whose first entry is 1. A block a matrix.
// beta, tau: a number a matrix, `apart` entries from one to the next
template <typename Real>
__global__ __launch_bounds__(STAGE_THREADS)
void stage_reflection(Real* W, long long size, long long v, int step, int count, Real* beta, Real* tau, int apart) {
    __shared__ Real scratch[STAGE_WARPS];
    Real* x = W + blockIdx.x * size + v;
    const Real first = x[0];
    Real square = 0;
    for (int i = 1 + threadIdx.x; i < count; i += STAGE_THREADS) {
        const Real entry = x[static_cast<long long>(i) * step];
        square = fma(entry, entry, square);
    }
    const Householder<Real> h = householder(first, block_sum<STAGE_WARPS>(square, scratch));
    for (int i = threadIdx.x; i < count; i += STAGE_THREADS)
        x[static_cast<long long>(i) * step] = i == 0 ? Real(1) : h.scale * x[static_cast<long long>(i) * step];
    if (threadIdx.x == 0) beta[blockIdx.x * apart] = h.beta, tau[blockIdx.x * apart] = h.tau;
}

// y ← M x (negative: y − M x), M rows × columns; a warp a row, `blocks` thread blocks a matrix.
// Padded: reads begin where a segment of memory does, at columns before the first that count for nothing
template <typename Real, bool Padded>
__global__ __launch_bounds__(STAGE_THREADS)
void stage_rows_product(Real* W, long long size, int ld, long long M, int rows, int columns, long long x, int x_step, long long y, int y_step,
               int negative, int blocks) {
    W += blockIdx.x / blocks * size;
    const int lane = threadIdx.x % WARP;
    for (int i = blockIdx.x % blocks * STAGE_WARPS + threadIdx.x / WARP; i < rows; i += blocks * STAGE_WARPS) {
        const Real* row = W + M + static_cast<long long>(i) * ld;
        Real sum = 0;
        for (int j = lane - (Padded ? skew_of(row) : 0); j < columns; j += WARP)
            if (j >= 0) sum = fma(row[j], W[x + static_cast<long long>(j) * x_step], sum);
        sum = warp_sum(sum);
        Real& to = W[y + static_cast<long long>(i) * y_step];
        if (lane == 0) to = negative ? to - sum : sum;
    }
}

// y ← Mᵀ x (negative: y − Mᵀ x); WARP columns at a time, the rows in turns to the warps of a block.
template <typename Real, bool Padded>
__global__ __launch_bounds__(STAGE_THREADS)
void stage_columns_product(Real* W, long long size, int ld, long long M, int rows, int columns, long long x, int x_step, long long y,
                  int y_step, int negative, int blocks) {
    __shared__ Real sums[STAGE_WARPS][WARP];
    W += blockIdx.x / blocks * size;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, skew = Padded ? skew_of(W + M) : 0;
    for (int first = blockIdx.x % blocks * WARP - skew; first < columns; first += blocks * WARP) {
        const int j = first + lane;
        const bool inside = j >= 0 && j < columns;
        Real sum = 0;
        if (inside)
            for (int i = warp; i < rows; i += STAGE_WARPS)
                sum = fma(W[M + static_cast<long long>(i) * ld + j], W[x + static_cast<long long>(i) * x_step], sum);
        sums[warp][lane] = sum;
        __syncthreads();
        if (warp == 0 && inside) {
            for (int w = 1; w < STAGE_WARPS; w++) sum += sums[w][lane];
            Real& to = W[y + static_cast<long long>(j) * y_step];
            to = negative ? to - sum : sum;
        }
        __syncthreads();
    }
}

// y ← tau y, `count` numbers; a block a matrix.
template <typename Real>
__global__ __launch_bounds__(STAGE_THREADS)
void stage_scaling(Real* W, long long size, long long y, int step, int count, const Real* tau, int apart) {
    for (int i = threadIdx.x; i < count; i += STAGE_THREADS)
        W[blockIdx.x * size + y + static_cast<long long>(i) * step] *= tau[blockIdx.x * apart];
}

// M ← M − x yᵀ, rows × columns; a warp a row, `blocks` thread blocks a matrix.
template <typename Real>
__global__ __launch_bounds__(STAGE_THREADS)
void rank_one_update(Real* W, long long size, int ld, long long M, int rows, int columns, long long x, int x_step, long long y,
                     int y_step, int blocks) {
    W += blockIdx.x / blocks * size;
    for (int i = blockIdx.x % blocks * STAGE_WARPS + threadIdx.x / WARP; i < rows; i += blocks * STAGE_WARPS) {
        Real* row = W + M + static_cast<long long>(i) * ld;
        const Real factor = -W[x + static_cast<long long>(i) * x_step];
        for (int j = threadIdx.x % WARP; j < columns; j += WARP) row[j] = fma(factor, W[y + static_cast<long long>(j) * y_step], row[j]);
    }
}

// C −= L R: rows and columns first … end; L the N columns from `inner` on, R the N rows from `above` on; tiles² of each matrix.
// Shared memory: as systems/lu_update.cuh.
template <typename Real, int N>
__global__ __launch_bounds__(UPDATE_THREADS, 16 / sizeof(Real))
void subtract_panels(Real* W, long long size, int ld, int inner, int above, int first, int end, int tiles) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int area = tiles * tiles, tile = blockIdx.x % area;
    const int row = first + tile / tiles * UPDATE_EDGE, column = first + tile % tiles * UPDATE_EDGE;
    update_tile<N, false>(W + blockIdx.x / area * size, static_cast<long long>(ld), inner, above, row, min(UPDATE_EDGE, end - row),
                          column, min(UPDATE_EDGE, end - column), memory, [] { return true; });
}

}  // namespace studies
