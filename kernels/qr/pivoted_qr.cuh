// Householder QR with column pivoting, stopped early: one thread block a matrix.
//
//     A_b P = H_0 … H_{r−1} [R; 0] + E,   ‖E‖_F ≤ allowed_b,   H_j = I − τ_j u_j u_jᵀ
//
// r is the first step whose rest is small enough: nothing behind it is ever computed. pivoted_qr holds the matrix in registers
// (qr/block/register_qr.cuh); pivoted_qr_large takes any size and works in global memory (qr/block/pivoted_qr.cuh).
// qr/reflectors.cuh applies the reflectors afterwards.
#pragma once

#include "common/thread/verdicts.cuh"
#include "qr/block/pivoted_qr.cuh"
#include "qr/block/register_qr.cuh"

namespace qr {
using namespace common;

// One matrix of the batch and where its results go, k = min(m, n).
//     V  k × m: row j is u_j    tau  k    R  rows of r × n, see `put`    pivots  n: columns in the order chosen, then the others
//     rank   r     missed   ‖E‖_F     info, worst   a Failure, where there is one, and the least of all
template <typename Real>
struct Truncated {
    const Real* A;
    Real *V, *tau, *R;
    int* pivots;
    int m, n;
    double allowed;
    long long* rank;
    double* missed;
    int *info, *worst;
};

// Where the results of all matrices go.
struct Outcome {
    long long* ranks;  // matrices, like the others
    double* missed;
    int *info, *worst;
};

// table   (matrices, 8) int64: offsets of A, V, tau, R, pivots, then m, n and the index in the caller's batch
template <typename Real>
__device__ Truncated<Real> truncated(const Real* A, Real* V, Real* tau, Real* R, int* pivots, const Outcome& all, const double* allowed,
                                     const long long* table) {
    const long long *row = table + 8LL * blockIdx.x, b = row[7];
    return {A + row[0], V + row[1], tau + row[2], R + row[3], pivots + row[4], int(row[5]), int(row[6]), allowed[b],
            all.ranks + b, all.missed + b, all.info + b, all.worst};
}

// the square of what the scaled matrix may lose
template <typename Real>
__device__ Real scaled_square(double allowed, int exponent) {
    Real scaled;
    narrow(PowerOfTwo(exponent)(allowed), scaled);
    return scaled * scaled;
}

template <typename Real>
__device__ void report(const Truncated<Real>& p, int rank, Real square, int exponent) {
    if (threadIdx.x != 0) return;
    *p.rank = rank;
    *p.missed = PowerOfTwo(-exponent)(sqrt(static_cast<double>(square)));
}

template <typename Real>
__device__ void refuse(const Truncated<Real>& p) {
    if (threadIdx.x != 0) return;
    *p.rank = 0, *p.missed = nan(""), *p.info = NOT_FINITE;
    atomicMin(p.worst, NOT_FINITE);
}

// Columns never chosen follow the others in the caller's order. places: of chosen columns their step, else −1; of all in the end.
// At least n threads; the caller synchronizes before and after.
__device__ inline void complete_places(int* places, int* pivots, int rank, int n) {
    int l = threadIdx.x, place = l < n ? places[l] : 0;
    if (place < 0) {
        place = rank;
        for (int i = 0; i < l; i++) place += places[i] < 0;
    }
    __syncthreads();
    if (l < n) places[l] = place, pivots[place] = l;
}

// Sorted: R(i, l) at i·n + place of l, upper triangular; else at l·r + i: the transpose, in the caller's order of columns.
// Matrices of at most `above` rows or more than `upto` are left to other launches.
template <typename Real, int Rows, int Slots, int Warps, bool Sorted, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void pivoted_qr(const Real* A, Real* V, Real* tau, Real* R, int* pivots, long long* ranks, double* missed, int* info, int* worst,
                const double* allowed, const long long* table, int above, int upto) {
    constexpr int COLUMNS = Warps * Slots;
    static_assert(Slots <= WARP && COLUMNS <= 1 << INDEX_BITS, "a thread a column, a key its index");
    extern __shared__ double memory[];
    __shared__ Exchange<Real, Rows, Slots, Warps> exchange;
    __shared__ int places[COLUMNS];
    Truncated<Real> p = truncated(A, V, tau, R, pivots, {ranks, missed, info, worst}, allowed, table);
    if (p.m <= above || p.m > upto || p.n == 0) return;
    Real* staged = reinterpret_cast<Real*>(memory);
    int m = p.m, n = p.n, exponent;
    bool finite = load_scaled(p.A, m, n, false, staged, m | 1, exchange.keys, exponent);
    if (!finite) return refuse(p);
    RegisterColumns<Real, Rows, Slots, Warps> columns;
    columns.load(staged, m | 1, m, n);
    if (Sorted)
        for (int l = threadIdx.x; l < COLUMNS; l += blockDim.x) places[l] = -1;
    __syncthreads();
    Rest<Real> rest = {scaled_square<Real>(p.allowed, exponent), 0};
    int r = columns.template factor<true>(m, n, p.V, p.tau, exchange, &rest, Sorted ? places : nullptr);
    report(p, r, r < min(m, n) ? rest.square : Real(0), exponent);
    if (Sorted) {
        __syncthreads();
        complete_places(places, p.pivots, r, n);
        __syncthreads();
    }
    PowerOfTwo unscale(-exponent);
#pragma unroll
    for (int c = 0; c < Slots; c++)
#pragma unroll
        for (int q = 0; q < Rows; q++) {
            int i = columns.lane() + q * WARP, l = columns.column(c);
            if (i < r && l < n) p.R[Sorted ? i * n + places[l] : l * r + i] = unscale(columns.X[c][q]);
        }
}

// The same for any size.   workspaces   matrices × stride bytes, see common/block/workspace.cuh
template <typename Real, bool Sorted, int Threads>
__global__ __launch_bounds__(Threads)
void pivoted_qr_large(const Real* A, Real* V, Real* tau, Real* R, int* pivots, long long* ranks, double* missed, int* info, int* worst,
                      const double* allowed, const long long* table, char* workspaces, long long stride) {
    Truncated<Real> p = truncated(A, V, tau, R, pivots, {ranks, missed, info, worst}, allowed, table);
    Workspace<Real> w = workspace<Real>(workspaces + blockIdx.x * stride, p.m, p.n, false);
    int m = p.m, n = p.n, exponent, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    bool finite = load_scaled(p.A, m, n, false, w.W, w.ld, w.pivot, exponent);
    if (!finite) return refuse(p);
    Real allowed_square = scaled_square<Real>(p.allowed, exponent), rest = 0;
    int r = qr_in_place<true>(reflectors(w, m, n, p.tau), w.flag, allowed_square, &rest);
    report(p, r, rest, exponent);
    PowerOfTwo unscale(-exponent);
    for (int l = warp; l < n; l += Threads / WARP) {
        const Real* column = w.W + static_cast<long long>(l) * w.ld;
        if (Sorted && lane == 0) p.pivots[l] = w.pivot[l];
        for (int i = lane; i < m; i += WARP) {
            long long target = Sorted ? static_cast<long long>(i) * n + l : static_cast<long long>(w.pivot[l]) * r + i;
            if (i < r) p.R[target] = i > l ? Real(0) : unscale(i == l ? w.diagonal[l] : column[i]);
            if (l < r) p.V[static_cast<long long>(l) * m + i] = i < l ? Real(0) : column[i];
        }
    }
}

}  // namespace qr
