// Householder QR in place, with column pivoting if asked for:
//
//     W P = H_0 H_1 … H_{r−1} R,   H_j = I − τ_j v_j v_jᵀ
//
// Left in W: v_j with its leading 1 on and below the diagonal, R strictly above it; R's diagonal in `diagonal`. Norms are
// downdated and, where cancellation makes them doubtful, recomputed (Drmač & Bujanović 2008, the rule of xGEQP3).
// r < columns when what remains is zero, or so small that its squares would vanish (Floating<Real>::negligible).
// One warp makes the reflector, all warps apply it, four columns at a time. Called by svd/block/svd_stages.cuh.
#pragma once

#include "common/block/workspace.cuh"
#include "common/thread/jacobi_rotation.cuh"
#include "common/warp/reduce_many.cuh"

namespace qr {
using namespace common;

constexpr int TOGETHER = 4;                                // columns a warp works on at once

// W      column-major rows × columns, leading dimension ld, in shared or global memory
// tau, diagonal   (columns)
// pivot           (columns): column j of W P is column pivot[j] of W
// norms, exact    (columns) scratch: squared norms below row j, running and last computed afresh
template <typename Real>
struct Reflectors {
    Real* W;
    int ld, rows, columns;
    Real *tau, *diagonal, *norms, *exact;
    int* pivot;
};

template <typename Real>
__device__ Reflectors<Real> reflectors(const Workspace<Real>& w, int rows, int columns, Real* tau) {
    return {w.W, w.ld, rows, columns, tau, w.diagonal, w.norms, w.exact, w.pivot};
}

// one warp: the largest remaining column; returns its index, the same in every lane, and its squared norm
template <typename Real>
__device__ int largest_column(const Reflectors<Real>& F, int j, Real& norm) {
    int best = j;
    norm = -1;
    for (int l = j + threadIdx.x % WARP; l < F.columns; l += WARP)
        if (F.norms[l] > norm) norm = F.norms[l], best = l;
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        Real other = __shfl_xor_sync(EVERY_LANE, norm, distance);
        int index = __shfl_xor_sync(EVERY_LANE, best, distance);
        if (other > norm || (other == norm && index < best)) norm = other, best = index;
    }
    __syncwarp();                                          // all have read the norms
    return best;
}

template <typename Real>
__device__ void swap_columns(const Reflectors<Real>& F, int j, int p) {
    int lane = threadIdx.x % WARP;
    Real *a = F.W + static_cast<long long>(j) * F.ld, *b = F.W + static_cast<long long>(p) * F.ld;
    for (int i = lane; i < F.rows; i += WARP) {
        Real x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
    if (lane == 0) {
        int index = F.pivot[j];
        F.pivot[j] = F.pivot[p], F.pivot[p] = index;
        F.norms[p] = F.norms[j], F.exact[p] = F.exact[j];
    }
    __syncwarp();
}

// one warp: v, τ and R's diagonal entry of column j
template <typename Real>
__device__ void make_reflector(const Reflectors<Real>& F, int j) {
    int lane = threadIdx.x % WARP;
    Real* v = F.W + static_cast<long long>(j) * F.ld;
    Real sum = 0;
    for (int i = j + 1 + lane; i < F.rows; i += WARP) sum = fma(v[i], v[i], sum);
    sum = warp_sum(sum);
    Real alpha = v[j], beta = alpha, tau = 0, scale = 0;
    if (sum > 0) {
        beta = -copysign(sqrt(fma(alpha, alpha, sum)), alpha);
        tau = (beta - alpha) / beta;
        scale = 1 / (alpha - beta);
    }
    __syncwarp();
    for (int i = j + 1 + lane; i < F.rows; i += WARP) v[i] *= scale;
    if (lane == 0) v[j] = 1, F.tau[j] = tau, F.diagonal[j] = beta;
}

// one warp: y ← (I − τ v vᵀ) y for the first min(count, TOGETHER) columns of Y; v_i and y_i from i = first on
template <typename Real>
__device__ void reflect(const Real* v, Real tau, Real* Y, int ld, int count, int first, int rows) {
    int lane = threadIdx.x % WARP;
    Real* y[TOGETHER];
#pragma unroll
    for (int c = 0; c < TOGETHER; c++) y[c] = Y + static_cast<long long>(min(c, count - 1)) * ld;
    Real dots[TOGETHER] = {};
    for (int i = first + lane; i < rows; i += WARP)
#pragma unroll
        for (int c = 0; c < TOGETHER; c++) dots[c] = fma(v[i], y[c][i], dots[c]);
    Real total = tau * sum_each<TOGETHER>(dots);
#pragma unroll
    for (int c = 0; c < TOGETHER; c++) dots[c] = __shfl_sync(EVERY_LANE, total, c * (WARP / TOGETHER));
    for (int i = first + lane; i < rows; i += WARP)
#pragma unroll
        for (int c = 0; c < TOGETHER; c++)
            if (c < count) y[c][i] = fma(-dots[c], v[i], y[c][i]);
    __syncwarp();
}

template <typename Real>
__device__ Real square_below(const Reflectors<Real>& F, int l, int first) {
    const Real* y = F.W + static_cast<long long>(l) * F.ld;
    Real sum = 0;
    for (int i = first + threadIdx.x % WARP; i < F.rows; i += WARP) sum = fma(y[i], y[i], sum);
    return warp_sum(sum);
}

// one warp: column l is past row j now
template <typename Real>
__device__ void downdate(const Reflectors<Real>& F, int l, int j) {
    Real r = F.W[static_cast<long long>(l) * F.ld + j], norm = F.norms[l] - r * r, exact = F.exact[l];
    __syncwarp();                                          // all have read them
    if (norm > exact * sqrt(Floating<Real>::epsilon)) {
        if (threadIdx.x % WARP == 0) F.norms[l] = norm;
    } else {
        norm = square_below(F, l, j + 1);
        if (threadIdx.x % WARP == 0) F.norms[l] = F.exact[l] = norm;
    }
}

// one warp: Y ← H_0 … H_{count−1} Y for up to TOGETHER columns; reflector j is V[j·ldv …] with its leading 1
template <typename Real>
__device__ void apply_reflectors(const Real* V, int ldv, const Real* tau, int count, Real* Y, int ld, int columns, int rows) {
    for (int j = count - 1; j >= 0; j--) reflect(V + static_cast<long long>(j) * ldv, tau[j], Y, ld, columns, j, rows);
}

// the whole block: whether the squares of columns j, j + 1 … add up to `allowed` at most, computed afresh into `square`;
// columns so large that they cannot are not added up
template <typename Real>
__device__ bool is_small(const Reflectors<Real>& F, int j, Real allowed, Real& square) {
    int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    Real largest, sum = 0;
    largest_column(F, j, largest);
    if (__syncthreads_or(largest > allowed)) return false;
    for (int l = j + warp; l < F.columns; l += warps) {
        Real norm = square_below(F, l, j);
        if (threadIdx.x % WARP == 0) F.norms[l] = F.exact[l] = norm;
    }
    __syncthreads();
    for (int l = j; l < F.columns; l++) sum += F.norms[l];
    __syncthreads();
    if (sum <= allowed) square = sum;
    return sum <= allowed;
}

// the whole block: returns r, the same in every thread.   shared: one int
// rest   or null: stop where the square of what remains is `allowed` at most, which it then receives
template <bool Pivoted, typename Real>
__device__ int qr_in_place(const Reflectors<Real>& F, int* shared, Real allowed = 0, Real* rest = nullptr) {
    int warp = threadIdx.x / WARP, warps = blockDim.x / WARP, steps = min(F.rows, F.columns);
    Real floor = -1;
    if (Pivoted)
        for (int l = warp; l < F.columns; l += warps) {
            Real norm = square_below(F, l, 0);
            if (threadIdx.x % WARP == 0) F.norms[l] = F.exact[l] = norm, F.pivot[l] = l;
        }
    __syncthreads();
    for (int j = 0; j < steps; j++) {
        if (Pivoted && rest && is_small(F, j, allowed, *rest)) return j;
        if (warp == 0) {
            if (Pivoted) {
                Real norm;
                int p = largest_column(F, j, norm);
                if (j == 0) floor = norm * Floating<Real>::negligible;
                if (threadIdx.x == 0) *shared = norm > floor;
                if (p != j) swap_columns(F, j, p);
            }
            make_reflector(F, j);
        }
        __syncthreads();
        if (Pivoted && !*shared) return j;
        const Real* v = F.W + static_cast<long long>(j) * F.ld;
        for (int l = j + 1 + warp * TOGETHER; l < F.columns; l += warps * TOGETHER) {
            reflect(v, F.tau[j], F.W + static_cast<long long>(l) * F.ld, F.ld, F.columns - l, j, F.rows);
            if (Pivoted)
                for (int c = 0; c < TOGETHER && l + c < F.columns; c++) downdate(F, l + c, j);
        }
        __syncthreads();
    }
    return steps;
}

}  // namespace qr
