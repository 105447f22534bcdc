// The last stage of svd/block/svd_stages.cuh: singular values, sorted, and the vectors of A from those of the triangle L.
//
//     σ_j = ‖x_j‖,  U_L = X Σ⁻¹;   left vectors  H_0 … H_{r−1} [U_L; 0],   right vectors  P (G_0 … G_{r−1} V_L)
//
// Columns past the rank r are unit vectors already orthogonal to the others; a column that Jacobi annihilated is completed by
// Gram-Schmidt, twice, on the unit vector farthest from the span of the others.
// Called by the kernels of svd/svd_*.cuh, by the whole block.
#pragma once

#include "svd/block/svd_stages.cuh"

namespace svd {

constexpr int ALL = 0x7fffffff;                            // triplets that are kept
constexpr int NORMS = 4;                                   // columns that a warp divides by their norms together

// column `missing` of the r × r matrix in W becomes orthonormal to all columns with exact[l] ≠ 0
template <typename Real>
__device__ void complete_column(const Workspace<Real>& w, int r, int missing) {
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    long long ld = w.ld;
    for (int i = threadIdx.x; i < r; i += blockDim.x) {
        Real sum = 0;
        for (int l = 0; l < r; l++)
            if (w.exact[l] != 0) sum = fma(w.W[l * ld + i], w.W[l * ld + i], sum);
        w.norms[i] = sum;
    }
    __syncthreads();
    int farthest = 0;
    for (int i = 1; i < r; i++)
        if (w.norms[i] < w.norms[farthest]) farthest = i;
    Real* x = w.W + missing * ld;
    for (int i = threadIdx.x; i < r; i += blockDim.x) x[i] = i == farthest ? Real(1) : Real(0);
    __syncthreads();
    for (int pass = 0; pass < 2; pass++) {
        for (int l = warp; l < r; l += warps) {
            Real dot = 0;
            for (int i = lane; i < r; i += WARP) dot = fma(w.W[l * ld + i], x[i], dot);
            dot = warp_sum(dot);
            if (lane == 0) w.diagonal[l] = w.exact[l] != 0 ? dot : Real(0);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < r; i += blockDim.x) {
            Real y = x[i];
            for (int l = 0; l < r; l++)
                if (l != missing) y = fma(-w.diagonal[l], w.W[l * ld + i], y);
            x[i] = y;
        }
        __syncthreads();
    }
    if (warp == 0) {
        Real sum = 0;
        for (int i = lane; i < r; i += WARP) sum = fma(x[i], x[i], sum);
        sum = 1 / sqrt(warp_sum(sum));
        for (int i = lane; i < r; i += WARP) x[i] *= sum;
        if (lane == 0) w.exact[missing] = -1;
    }
    __syncthreads();
}

// σ_j into exact[j], the columns' order by descending σ, s, of which `kept` are wanted; and unit columns
template <typename Real>
__device__ void singular_values(const Problem<Real>& p, const Workspace<Real>& w, int kept = ALL) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const int k = p.rank(), r = *w.rank;
    for (int j0 = warp; j0 < k; j0 += NORMS * warps) {
        const auto each = [&](auto visit) {                // entries of columns, this warp's next ones
            for (int i = lane; i < r; i += WARP)
#pragma unroll
                for (int c = 0; c < NORMS; c++)
                    if (j0 + c * warps < r) visit(w.W[static_cast<long long>(j0 + c * warps) * w.ld + i], c);
        };
        Real sums[NORMS] = {}, sum = 0;
        each([&](Real x, int c) { sums[c] = fma(x, x, sums[c]); });
#pragma unroll
        for (int c = 0; c < NORMS; c++) {
            const Real total = warp_sum(sums[c]);
            sum = lane == c ? total : sum;
        }
        const int j = j0 + lane * warps;                   // lane c finishes column c
        const Real sigma = sum > Floating<Real>::vanishing ? sqrt(sum) : Real(0);
        const Real inverse = sigma > 0 ? 1 / sigma : Real(1);
        if (lane < NORMS && j < k) w.exact[j] = sigma;
#pragma unroll
        for (int c = 0; c < NORMS; c++) sums[c] = __shfl_sync(EVERY_LANE, inverse, c);
        each([&](Real& x, int c) { x *= sums[c]; });
    }
    __syncthreads();
    PowerOfTwo unscale(-*w.exponent);
    bool missing = false;
    for (int j = threadIdx.x; j < k; j += blockDim.x) {
        const Real sigma = w.exact[j];
        missing |= j < r && sigma == 0;
        int place = 0;
        for (int i = 0; i < k; i++) {
            const Real other = w.exact[i];
            place += (other > sigma) | ((other == sigma) & (i < j));
        }
        w.order[place] = j;
        if (place < kept) p.s[place] = unscale(sigma);
    }
    if (!__syncthreads_or(missing)) return;
    for (int j = 0; j < r; j++)
        if (w.exact[j] == 0) complete_column(w, r, j);
}

// out[row(i)·row_step + c·column_step] ← X(i, order[c]) for i < rows, c < k;   row(i) = map ? map[i] : i
template <typename Lines = FewLines, typename Real>
__device__ void write_vectors(const Workspace<Real>& w, const Real* X, int rows, int k, Real* out, int row_step, int column_step,
                              const int* map) {
    const bool along = column_step == 1;                    // the fast index of out is the column
    const auto entry = [&](int a, int b) { return X[static_cast<long long>(w.order[along ? b : a]) * w.ld + (along ? a : b)]; };
    by_lines<Lines::NEAR>(along ? rows : k, along ? k : rows, entry, [&](int a, int b, Real x) {
        const int i = along ? a : b, c = along ? b : a;
        out[static_cast<long long>(map ? map[i] : i) * row_step + static_cast<long long>(c) * column_step] = x;
    });
}

template <typename Real>
__device__ void apply_to_all(const Real* V, int ldv, const Real* tau, int count, Real* Y, int ld, int columns, int rows) {
    int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (int c = warp * TOGETHER; c < columns; c += warps * TOGETHER)
        apply_reflectors(V, ldv, tau, count, Y + static_cast<long long>(c) * ld, ld, columns - c, rows);
    __syncthreads();
}

template <typename Real>
__device__ void finish(const Problem<Real>& p, const Workspace<Real>& w, Vectors vectors) {
    singular_values(p, w);
    if (vectors == NO_VECTORS) return;
    int k = p.rank(), r = *w.rank, rows = *w.rows;
    if (vectors == BOTH_VECTORS) {
        apply_to_all(p.second_reflectors(), k, w.tau2, r, w.W + k, w.ld, k, k);
        if (p.tall()) write_vectors(w, w.W + k, k, k, p.Vt, 1, k, w.pivot);
        else write_vectors(w, w.W + k, k, k, p.U, k, 1, w.pivot);
        __syncthreads();
        int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
        for (int j = warp; j < k; j += warps)
            for (int i = k + lane; i < rows; i += WARP) w.W[static_cast<long long>(j) * w.ld + i] = 0;
        __syncthreads();
    }
    Real* V = vectors == BOTH_VECTORS ? p.first_reflectors() : p.U;
    apply_to_all(V, rows, w.tau, r, w.W, w.ld, k, rows);
    if (p.tall()) write_vectors(w, w.W, rows, k, p.U, k, 1, nullptr);
    else if (vectors == BOTH_VECTORS) write_vectors(w, w.W, rows, k, p.Vt, 1, p.n, nullptr);
    else write_vectors(w, w.W, rows, k, p.U, k, 1, w.pivot0);
}

// the matrix is reported, and every result of it is NaN, as many triplets as are kept
template <typename Real>
__device__ void fail(const Problem<Real>& p, Vectors vectors, Failure failure, int* info, int* worst, int kept = ALL) {
    long long k = min(p.rank(), kept);
    Real nan = Floating<Real>::largest * Real(0) / Real(0);
    for (long long i = threadIdx.x; i < k; i += blockDim.x) p.s[i] = nan;
    if (vectors != NO_VECTORS)
        for (long long i = threadIdx.x; i < p.m * k; i += blockDim.x) p.U[i] = nan;
    if (vectors == BOTH_VECTORS)
        for (long long i = threadIdx.x; i < k * p.n; i += blockDim.x) p.Vt[i] = nan;
    if (threadIdx.x == 0) {
        info[p.index] = failure;
        atomicMin(worst, failure);
    }
}

}  // namespace svd
