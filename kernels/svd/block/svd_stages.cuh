// The singular value decomposition of one matrix by one thread block, in stages around Jacobi's sweeps:
//
//     W P = Q R,   R = L Q₂ᵀ,   L V_L = U_L Σ by Jacobi (svd/block/jacobi_sweep.cuh),   W = (Q U_L) Σ (P Q₂ V_L)ᵀ
//
// W is A, or Aᵀ where A has more columns than rows. Drmač & Veselić 2008: columns of L are nearly orthogonal already, so
// that Jacobi needs a third of the sweeps. Left vectors of a wide A: A = P₀ R₀ᵀ Q₀ᵀ first, then the same for the square R₀ᵀ.
// Entries are scaled by a power of two first, so that squares neither overflow nor vanish.
// Called by the kernels of svd/svd_*.cuh; the workspace lies in shared memory, or in global memory for large matrices.
#pragma once

#include "common/block/workspace.cuh"
#include "common/thread/verdicts.cuh"
#include "qr/block/pivoted_qr.cuh"
#include "svd/block/jacobi_sweep.cuh"

namespace svd {
using namespace common;
using namespace qr;

// OF_TRIANGLE: A is Lᵀ, the R of an LQ done already; vectors of L, those that the kernel's instance is for
enum Vectors { NO_VECTORS, LEFT_VECTORS, BOTH_VECTORS, OF_TRIANGLE };

// One matrix of the batch and where its results go; all row-major.
//     A  m × n     U  m × k     s  k     Vt  k × n     k = min(m, n)
template <typename Real>
struct Problem {
    const Real* A;
    Real *U, *s, *Vt;
    int m, n, index;
    __device__ int rank() const { return min(m, n); }
    __device__ int longer() const { return max(m, n); }
    __device__ bool tall() const { return m >= n; }
    // reflectors of Q and of Q₂ wait where the vectors they act on will be written
    __device__ Real* first_reflectors() const { return tall() ? U : Vt; }
    __device__ Real* second_reflectors() const { return tall() ? Vt : U; }
};

// table   (matrices, 7) int64: offsets of A, U, s, Vt, then m, n and the index in the caller's batch; or null, when all
//         matrices are m × n, one after the other
template <typename Real>
__device__ Problem<Real> problem(const Real* A, Real* U, Real* s, Real* Vt, const long long* table, int m, int n, int b) {
    if (table) {
        const long long* row = table + 7LL * b;
        return {A + row[0], U + row[1], s + row[2], Vt + row[3], int(row[4]), int(row[5]), int(row[6])};
    }
    long long k = min(m, n), i = b;
    return {A + i * m * n, U + i * m * k, s + i * k, Vt + i * k * n, m, n, b};
}

template <typename Real>
__device__ bool load_problem(const Problem<Real>& p, const Workspace<Real>& w) {
    int exponent;
    bool finite = load_scaled(p.A, p.m, p.n, !p.tall(), w.W, w.ld, w.pivot, exponent);
    if (threadIdx.x == 0) *w.exponent = exponent;
    return finite;
}

// the leading columns of W to global memory, ld = rows; the caller synchronizes
template <typename Real>
__device__ void save_reflectors(const Workspace<Real>& w, Real* V, int rows, int columns) {
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (int j = warp; j < columns; j += warps)
        for (int i = j + lane; i < rows; i += WARP)
            V[static_cast<long long>(j) * rows + i] = w.W[static_cast<long long>(j) * w.ld + i];
}

// The triangle left by qr_in_place, transposed in place: r rows of R become r columns of `size` entries, lower triangular.
template <typename Real>
__device__ void transpose_triangle(const Workspace<Real>& w, int size, int r) {
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (int j = warp; j < size; j += warps) {
        Real* column = w.W + static_cast<long long>(j) * w.ld;
        for (int i = lane; i < j; i += WARP) {
            w.W[static_cast<long long>(i) * w.ld + j] = i < r ? column[i] : Real(0);
            column[i] = 0;
        }
        if (lane == 0) column[j] = j < r ? w.diagonal[j] : Real(0);
    }
    __syncthreads();
}

template <typename Real>
__device__ Real orthogonality_tolerance(int rows) { return (2 + sqrt(Real(rows))) * Floating<Real>::epsilon; }

// Rows of the triangle R whose entries are all below a QR's own errors, of their columns each, and at most `most`, ← 0. A matrix
// of low rank would leave rounding errors of rounding errors, which Jacobi peels off sixteen digits a sweep: equal entries,
// 160 × 150, took more than 40 sweeps. Single entries must stay: what is left of their rows would have such a low rank itself.
//     R   k × k, row i at i · ld     norms   k, scratch     told(i, whether row i stays)
template <typename Real, typename Told>
__device__ void drop_noise(Real* R, long long ld, int k, Real most, Real* norms, Told told) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (int j = threadIdx.x; j < k; j += blockDim.x) {
        Real sum = 0;
        for (int i = 0; i <= j; i++) sum = fma(R[i * ld + j], R[i * ld + j], sum);
        norms[j] = fmin(most, orthogonality_tolerance<Real>(k) * sqrt(sum));
    }
    __syncthreads();
    for (int i = warp; i < k; i += warps) {
        bool above = false;
        for (int j = i + lane; j < k; j += WARP) above |= fabs(R[i * ld + j]) > norms[j];
        above = __any_sync(EVERY_LANE, above);
        told(i, above);
        for (int j = i + lane; j < k && !above; j += WARP) R[i * ld + j] = 0;
    }
    __syncthreads();
}

// As prepare, for a square A = Lᵀ. Errors of errors are dropped, not errors: U would need as many columns that complete it. In
// float32 they last two sweeps, until squares vanish.
template <bool Both, typename Real>
__device__ bool prepare_triangle(const Problem<Real>& p, const Workspace<Real>& w) {
    int exponent, k = p.m;
    if (!load_scaled<ManyLines>(p.A, k, k, true, w.W, w.ld, w.pivot, exponent)) return false;
    if (threadIdx.x == 0) *w.exponent = exponent, *w.rank = *w.rows = k;
    if constexpr (sizeof(Real) == sizeof(double)) {
        const Real error = orthogonality_tolerance<Real>(k);
        drop_noise(w.W, w.ld, k, error * error, w.norms, [](int, bool) {});
    }
    if (Both)
        for (int j = threadIdx.x / WARP; j < k; j += blockDim.x / WARP)
            for (int i = threadIdx.x % WARP; i < k; i += WARP) w.W[j * w.ld + k + i] = i == j ? Real(1) : Real(0);
    __syncthreads();
    return true;
}

// Everything before the sweeps. False, and nothing more to do, for NaN and Inf.
template <typename Real>
__device__ bool prepare(const Problem<Real>& p, const Workspace<Real>& w, Vectors vectors) {
    if (!load_problem(p, w)) return false;
    int k = p.rank(), rows = p.longer();
    if (vectors == LEFT_VECTORS && !p.tall()) {
        int r = qr_in_place<true>(reflectors(w, rows, k, w.tau), w.flag);
        __syncthreads();
        for (int j = threadIdx.x; j < k; j += blockDim.x) w.pivot0[j] = w.pivot[j];
        transpose_triangle(w, k, r);
        rows = k;
    }
    int r = qr_in_place<true>(reflectors(w, rows, k, w.tau), w.flag);
    __syncthreads();
    if (threadIdx.x == 0) *w.rank = r, *w.rows = rows;
    if (vectors == LEFT_VECTORS) save_reflectors(w, p.U, rows, r);
    if (vectors == BOTH_VECTORS) save_reflectors(w, p.first_reflectors(), rows, r);
    __syncthreads();
    transpose_triangle(w, k, r);
    qr_in_place<false>(reflectors(w, k, r, w.tau2), w.flag);
    if (vectors == BOTH_VECTORS) save_reflectors(w, p.second_reflectors(), k, r);
    __syncthreads();
    transpose_triangle(w, r, r);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (int j = warp; j < k; j += warps) {                // L in the leading r × r, identities everywhere else
        Real* column = w.W + static_cast<long long>(j) * w.ld;
        for (int i = (j < r ? r : 0) + lane; i < rows; i += WARP) column[i] = i == j ? Real(1) : Real(0);
        __syncwarp();
        if (vectors == BOTH_VECTORS)
            for (int i = lane; i < k; i += WARP) column[k + i] = i == j ? Real(1) : Real(0);
    }
    __syncthreads();
    return true;
}

template <int Columns>
__device__ int even_blocks(int columns) { return max(2, ((columns + Columns - 1) / Columns + 1) / 2 * 2); }

}  // namespace svd
