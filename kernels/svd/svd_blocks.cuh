// What surrounds the rounds of block Jacobi for large matrices; one thread block a matrix. The host goes on from each to the
// batched QR and products:
//
//     svd_scale     W' = 2^e W P, W = A or Aᵀ, columns sorted by norm
//                   for left vectors of a wide A alone, W' = Q₀ R₀ and svd_clean: then W' is the square R₀ᵀ, in whatever
//                   order its columns are
//                   Q R = W' by batched QR
//     svd_clean     R without rows of the size of its rounding errors, the others first: R ← P₁ᵀ R
//                   Q₂ R₂ = Rᵀ by batched QR, svd_clean: the rows of R₂ are the columns of L, R = L Q₂ᵀ
//     svd_enter     the workspace's columns ← the columns of L; V_L ← I
//                   rounds: L V_L = U_L Σ
//     svd_leave     s; P₁ U_L and V_L with columns in descending order
//                   Q P₁ U_L and Q₂ V_L by batched products
//     svd_unsort    rows of Q₂ V_L, or of Q P₁ U_L of R₀ᵀ, back in the caller's order
//
// LQ alone brings the columns near orthogonality: pivoting saves no sweep on top of it (measured), but sorted columns keep
// the small singular values of column-scaled matrices accurate. Arguments as in svd/svd_shared.cuh, and
//     places   matrices + 1: where each p × k or k × k matrix begins in a packed batch     workspaces   matrices × stride bytes
#pragma once

#include "svd/block/jacobi_panels.cuh"
#include "svd/block/svd_finish.cuh"

namespace svd {

// W(i, j) of the tall matrix
template <typename Real>
__device__ Real entry(const Problem<Real>& p, int i, int j) {
    return p.A[p.tall() ? static_cast<long long>(i) * p.n + j : static_cast<long long>(j) * p.n + i];
}

// 2^e so that the largest entry is just below 2^scaled_exponent; false for NaN and Inf
template <typename Real>
__device__ bool find_scale(const Problem<Real>& p, const Workspace<Real>& w, int& exponent) {
    double largest = 0;
    bool finite = true;
    for (long long i = threadIdx.x; i < static_cast<long long>(p.m) * p.n; i += blockDim.x) {
        finite &= fabs(p.A[i]) <= Floating<Real>::largest;
        largest = fmax(largest, fabs(widened(p.A[i])));
    }
    exponent = __reduce_max_sync(EVERY_LANE, exponent_of(largest));
    if (threadIdx.x % WARP == 0) w.order[threadIdx.x / WARP] = exponent;
    if (__syncthreads_or(!finite)) return false;
    for (int i = 0; i < blockDim.x / WARP; i++) exponent = max(exponent, w.order[i]);
    exponent = exponent == NO_EXPONENT ? 0 : Floating<Real>::scaled_exponent - exponent;
    __syncthreads();
    return true;
}

// squared norms of W's scaled columns: a thread a column where rows of A cross them, else a warp
template <typename Real>
__device__ void column_norms(const Problem<Real>& p, const Workspace<Real>& w, PowerOfTwo scale) {
    int step = p.tall() ? 1 : WARP, lane = threadIdx.x % step;
    for (int j = threadIdx.x / step; j < p.rank(); j += blockDim.x / step) {
        Real sum = 0;
        for (int i = lane; i < p.longer(); i += step) {
            Real x = scale(entry(p, i, j));
            sum = fma(x, x, sum);
        }
        if (step > 1) sum = warp_sum(sum);
        if (lane == 0) w.norms[j] = sum;
    }
    __syncthreads();
}

template <typename Real, bool Both, int Threads>
__global__ __launch_bounds__(Threads)
void svd_scale(const Real* A, Real* sorted, const long long* places, int* info, int* worst, const long long* table, int m, int n,
               char* workspaces, long long stride) {
    Problem<Real> p = problem<Real>(A, nullptr, nullptr, nullptr, table, m, n, blockIdx.x);
    Workspace<Real> w = panel_workspace<Real>(workspaces + blockIdx.x * stride, p.rank(), Both);
    int k = p.rank(), lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, exponent;
    bool finite = find_scale(p, w, exponent);
    PowerOfTwo scale(finite ? exponent : 0);
    if (finite) column_norms(p, w, scale);
    for (int j = threadIdx.x; j < k; j += Threads) {
        int place = 0;
        if (finite)
            for (int i = 0; i < k; i++) place += w.norms[i] > w.norms[j] || (w.norms[i] == w.norms[j] && i < j);
        w.pivot[finite ? place : j] = j;
    }
    if (threadIdx.x == 0) {
        *w.rank = finite ? k : 0, *w.exponent = exponent;
        if (!finite) info[p.index] = NOT_FINITE, atomicMin(worst, NOT_FINITE);
    }
    __syncthreads();
    Real* out = sorted + places[blockIdx.x];
    for (int i = warp; i < p.longer(); i += Threads / WARP)
        for (int c = lane; c < k; c += WARP)
            out[static_cast<long long>(i) * k + c] = finite ? scale(entry(p, i, w.pivot[c])) : Real(0);
}

// The first `rank` rows of the k × k matrix R ← its rows `order`, ascending; the others ← 0. A thread a column.
template <int Threads, typename Real>
__device__ void move_forward(Real* R, int k, const int* order, int rank) {
    constexpr int AHEAD = 4;                               // rows that are waited for together
    for (int j = threadIdx.x; j < k; j += Threads) {
        for (int i0 = 0; i0 < rank; i0 += AHEAD) {
            Real x[AHEAD];
#pragma unroll
            for (int h = 0; h < AHEAD; h++)
                if (i0 + h < rank) x[h] = R[static_cast<long long>(order[i0 + h]) * k + j];
#pragma unroll
            for (int h = 0; h < AHEAD; h++)
                if (i0 + h < rank) R[static_cast<long long>(i0 + h) * k + j] = x[h];
        }
        for (int i = rank; i < k; i++) R[static_cast<long long>(i) * k + j] = 0;
    }
}

// Rows of R without those of rounding errors (drop_noise).     R   k × k row-major, packed
//
// Where `forward`, the rows that stay move before the others, as many as the rank says: R ← P₁ᵀ R, P₁'s order in pivot0. Behind
// a row of zeros a QR of Rᵀ would have one row more than R has left, again a matrix of low rank: σ_j = exp(−0.7 j),
// 256 × 256, took up to 32 sweeps and more, and takes 8. A matrix of zeros keeps one: rank 0 stands for one that is not finite.
template <typename Real, int Threads>
__global__ __launch_bounds__(Threads)
void svd_clean(Real* R, const long long* places, bool forward, const long long* table, int m, int n, char* workspaces,
               long long stride) {
    Problem<Real> p = problem<Real>(nullptr, nullptr, nullptr, nullptr, table, m, n, blockIdx.x);
    Workspace<Real> w = panel_workspace<Real>(workspaces + blockIdx.x * stride, p.rank(), false);
    int k = p.rank(), *stays = w.order;
    R += places[blockIdx.x];
    drop_noise(R, k, k, Floating<Real>::largest, w.norms, [&](int i, bool stay) { stays[i] = stay; });
    if (!forward) return;
    int rank = 0;
    for (int i = 0; i < k; i++) rank += stays[i];
    for (int j = threadIdx.x; j < k; j += Threads) {
        int before = 0;
        for (int i = 0; i < j; i++) before += stays[i];
        w.pivot0[stays[j] ? before : rank + j - before] = j;
    }
    __syncthreads();
    if (rank < k) move_forward<Threads>(R, k, w.pivot0, rank);
    if (threadIdx.x == 0 && *w.rank > 0) *w.rank = max(rank, 1);
}

// triangles   k × k row-major, packed: row j becomes column j of the workspace; L in the leading r × r, an identity behind
template <typename Real, bool Both, int Threads>
__global__ __launch_bounds__(Threads)
void svd_enter(const Real* triangles, const long long* places, const long long* table, int m, int n, char* workspaces,
               long long stride) {
    Problem<Real> p = problem<Real>(nullptr, nullptr, nullptr, nullptr, table, m, n, blockIdx.x);
    Workspace<Real> w = panel_workspace<Real>(workspaces + blockIdx.x * stride, p.rank(), Both);
    int k = p.rank(), r = *w.rank, stack = panel_rows(k);
    for (int j = threadIdx.x; j < k; j += Threads) w.order[j] = 0;      // of the panels: svd_gram.cuh
    const Real* R = triangles + places[blockIdx.x];
    for (int j = threadIdx.x / WARP; j < stack; j += Threads / WARP)
        for (int i = threadIdx.x % WARP; i < stack; i += WARP) {
            Real* column = w.W + static_cast<long long>(j) * w.ld;
            bool unit = i == j && j < k;
            column[i] = max(i, j) < r ? R[static_cast<long long>(j) * k + i] : Real(unit);
            if (Both) column[stack + i] = unit;
        }
}

// left, right   k × k row-major, packed: P₁ U_L and V_L; left is null where only values are wanted
template <typename Real, bool Both, int Threads>
__global__ __launch_bounds__(Threads)
void svd_leave(Real* s, Real* left, Real* right, const long long* places, int* info, int* worst, const long long* table,
               int m, int n, char* workspaces, long long stride, const int* turned, int sweeps) {
    Problem<Real> p = problem<Real>(nullptr, nullptr, s, nullptr, table, m, n, blockIdx.x);
    Workspace<Real> w = panel_workspace<Real>(workspaces + blockIdx.x * stride, p.rank(), Both);
    bool finite = *w.rank > 0;
    int k = p.rank(), sweep = 0;
    Real *L = left ? left + places[blockIdx.x] : nullptr, *V = Both ? right + places[blockIdx.x] : nullptr;
    while (sweep < sweeps && turned[static_cast<long long>(sweep) * gridDim.x + blockIdx.x]) sweep++;
    if (finite && sweep < sweeps) {
        singular_values(p, w);
        if (L) write_vectors(w, w.W, k, k, L, k, 1, w.pivot0);
        if (Both) write_vectors(w, w.W + panel_rows(k), k, k, V, k, 1, nullptr);
        if (threadIdx.x == 0) info[p.index] = sweep + 1;
        return;
    }
    Real nan = Floating<Real>::largest * Real(0) / Real(0);
    for (long long i = threadIdx.x; i < static_cast<long long>(k) * k; i += Threads) {
        if (i < k) p.s[i] = nan;
        if (L) L[i] = nan;
        if (Both) V[i] = nan;
    }
    if (threadIdx.x == 0 && finite) info[p.index] = NOT_CONVERGED, atomicMin(worst, NOT_CONVERGED);
}

// products   k × k row-major, packed: transposed vectors, whose columns are in sorted order; to Vt where A is tall, else to U
template <typename Real, int Threads>
__global__ __launch_bounds__(Threads)
void svd_unsort(const Real* products, const long long* places, Real* U, Real* Vt, const long long* table, int m, int n,
                char* workspaces, long long stride) {
    Problem<Real> p = problem<Real>(nullptr, U, nullptr, Vt, table, m, n, blockIdx.x);
    Workspace<Real> w = panel_workspace<Real>(workspaces + blockIdx.x * stride, p.rank(), true);
    int k = p.rank(), lane = threadIdx.x % WARP;
    const Real* M = products + places[blockIdx.x];
    for (int a = threadIdx.x / WARP; a < k; a += Threads / WARP)
        for (int b = lane; b < k; b += WARP) {
            if (p.tall()) p.Vt[static_cast<long long>(a) * p.n + w.pivot[b]] = M[static_cast<long long>(a) * k + b];
            else p.U[static_cast<long long>(w.pivot[a]) * k + b] = M[static_cast<long long>(b) * k + a];
        }
}

}  // namespace svd
