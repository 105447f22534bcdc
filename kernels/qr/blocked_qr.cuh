// qr/blocked_qr.cuh — Q_b R_b = A_b by blocked Householder reflections, from the left: one strip of columns at a time.
//
//     strip k of A meets I − V_j T_jᵀ V_jᵀ, j = 0 … k−1, then turns into V_k, T_k and R's columns;
//     strip k of Q = (I − V_0 T_0 V_0ᵀ) ⋯ (I − V_k T_k V_kᵀ) E_k
//
// (compact WY, Schreiber & Van Loan 1989.) A strip stays in registers (qr/block/strip.cuh) while earlier panels stream by, so
// that a matrix of n columns moves n³/48 entries a factor, all of them reads, and nothing else. Every strip is scaled by
// itself (common/thread/range.cuh): reflectors know no scale.
#pragma once
#include "qr/block/strip_factors.cuh"

namespace qr {

// One matrix, where its factors go and its reflectors.
template <typename Real, int Warps>
struct BlockedProblem {
    const Real* A;
    Real *Q, *R;
    int m, n, steps;
    Reflectors<Real, Warps> reflectors;
    __device__ int pitch() const { return n; }
    __device__ int height(int) const { return m; }
    __device__ static int apart() { return 1; }
};

// A: rows × columns each   Q: rows × min(rows, columns) each (or null)   R: min(rows, columns) × columns each
// table: 5 × batch (ragged; else null): first entries of A_b, Q_b, R_b, rows, columns   m, n: the shape otherwise
// workspace: V and T of a matrix, see Reflectors
template <int Warps, typename Real>
__device__ BlockedProblem<Real, Warps> blocked_problem(const Real* A, Real* Q, Real* R, const long long* table, long long batch, int m, int n,
                                                long long b, Real* workspace) {
    if (table) {
        A += table[b], Q += table[batch + b], R += table[2 * batch + b];
        m = table[3 * batch + b], n = table[4 * batch + b];
    } else {
        A += b * m * n, Q += b * m * min(m, n), R += b * min(m, n) * n;
    }
    const int steps = min(m, n);
    return {A, Q, R, m, n, steps, {workspace, m, steps}};
}

// Columns PANEL k … of Q.
template <typename Real, int Warps, int Tiles>
__device__ __forceinline__ void form_strip(const BlockedProblem<Real, Warps>& p, int k, StripMemory<Real, Warps, Tiles>& memory) {
    Strip<Real, Warps, Tiles> strip(memory);
    const int row0 = k * PANEL;
    strip.fetch_first(p.reflectors, k);
    strip.each(0, Tiles, [&](int i, int e) { strip.x[i][e] = strip.row(i, e) == row0 + strip.column(e); });
    for (int j = k; j >= 0; j--) strip.template apply<false>(p.reflectors, j, j - 1);
    strip.each_inside(p.Q, p.m, p.steps, p.steps, row0, [&](int i, int e, Real* entry) { *entry = strip.x[i][e]; });
}

// Blocks go through the batch by turns, each with a workspace of `stride` entries; with Q where `form`.
template <typename Real, int Warps, int Tiles, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void blocked_qr(const Real* A, Real* Q, Real* R, const long long* table, long long batch, int m, int n, Real* workspace,
                long long stride, bool form) {
    extern __shared__ __align__(16) unsigned char bytes[];
    auto& memory = *reinterpret_cast<StripMemory<Real, Warps, Tiles>*>(bytes);
    for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
        const auto p = blocked_problem<Warps>(A, Q, R, table, batch, m, n, b, workspace + blockIdx.x * stride);
        for (int k = 0; k * PANEL < p.n; k++) factor_strip(p, k, memory);
        __syncthreads();  // T of the last panel is there
        if (b + gridDim.x < batch) announce<Warps * WARP>(blocked_problem<Warps>(A, Q, R, table, batch, m, n, b + gridDim.x, workspace), 0);
        if (form)
            for (int k = p.reflectors.panels - 1; k >= 0; k--) form_strip<Real, Warps, Tiles>(p, k, memory);
    }
}

// Q alone, a block a strip, `strips` blocks a matrix, from the workspaces of blocked_qr with a block a matrix. Strips of `together`
// matrices come by their work, the last ones, with most of it, first.
template <typename Real, int Warps, int Tiles, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void blocked_q(const Real* A, Real* Q, Real* R, const long long* table, long long batch, int m, int n, Real* workspace,
               long long stride, int strips, int together) {
    extern __shared__ __align__(16) unsigned char bytes[];
    auto& memory = *reinterpret_cast<StripMemory<Real, Warps, Tiles>*>(bytes);
    const int before = static_cast<int>(blockIdx.x / (static_cast<unsigned>(together) * strips)) * together;
    const int place = blockIdx.x - before * strips, count = static_cast<int>(min(batch - before, static_cast<long long>(together)));
    const long long b = before + place % count;
    const auto p = blocked_problem<Warps>(A, Q, R, table, batch, m, n, b, workspace + b * stride);
    const int k = strips - 1 - place / count;
    if (k < p.reflectors.panels) form_strip<Real, Warps, Tiles>(p, k, memory);
}

}  // namespace qr
