// All rotations of a panel pair at once, where they are small: from the angles θ of pairs of columns,
//
//     S_ij = θ_ij = −S_ji,   J = e^S,   E = J − I = Σ_k M^k (I/(2k)! + S/(2k+1)!) − I,   M = S²
//
// J is orthogonal as exactly as the series is summed, and diagonalizes the Gram matrix to second order in the angles: that
// is what a sweep of single rotations does, whose chain of dependent steps this replaces by a few products. (Sweeps: none
// or one more than with rotations one by one, where all pairs with ‖S‖²_F ≤ 2 SERIES_LIMIT take the series.) Entries of S
// and of its powers fall off as the columns' norms differ, so that small columns keep their relative accuracy.
// Called by svd/svd_gram.cuh, by the whole block of TILE / LINES warps.
#pragma once

#include "common/block/reduce.cuh"
#include "svd/block/pair_products.cuh"

namespace svd {
using namespace common;

constexpr double SERIES_LIMIT = 0.5;

// θ from t = tan θ, |t| ≤ 1, to 0.3 %, for small t to t⁴
template <typename Real>
__device__ Real arc_tangent(Real t) { return t * fma(t * t, fma(t * t, Real(0.1154), Real(-0.33)), Real(1)); }

// S from the Gram matrix G (its upper triangle); zero for pairs within a panel where `halves`, and for orthogonal pairs.
// Returns Σ_{i<j} θ², which bounds ‖S‖₂², the same in every thread.
template <int Width, typename Real>
__device__ Real rotation_angles(const Real* G, Real* S, const Real* inverse, bool halves, Real tolerance, Real* scratch) {
    using Memory = PairMemory<Real, Width>;
    constexpr int N = Memory::TILE, LD = Memory::LD;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    Real sum = 0;
    for (int c = warp; c < N; c += PAIR_WARPS)
        for (int i = lane; i <= c; i += WARP) {
            Real gamma = G[c * LD + i], theta = 0;
            bool apart = !halves || (i < Width && c >= Width);
            if (apart && i < c && fabs(gamma) * inverse[i] * inverse[c] > tolerance)
                theta = arc_tangent(jacobi_rotation(G[i * LD + i], G[c * LD + c], gamma).t);
            S[c * LD + i] = theta, S[i * LD + c] = -theta;
            sum = fma(theta, theta, sum);
        }
    return block_sum<PAIR_WARPS>(sum, scratch);
}

// the last index of the sum, so that the rest is below rounding where ‖S‖₂² ≤ square
template <typename Real>
__device__ int last_term(Real square) {
    int k = 1;
    for (Real rest = square * square / 24; rest > Floating<Real>::epsilon / 8; k++)
        rest *= square / ((2 * k + 3) * (2 * k + 4));
    return k;
}

// this lane's entries of the warp's rows of a matrix in shared memory: visit(entry, u, e, on the diagonal)
template <int Ld, int Strips, typename Real, typename Visit>
__device__ void each_entry(Real* matrix, Visit visit) {
    const int first = threadIdx.x / WARP * LINES, above = first + threadIdx.x % WARP / 4 - 2 * (threadIdx.x % 4);
    Real* entry = matrix + first + line_entry(Ld);
#pragma unroll
    for (int u = 0; u < Strips; u++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            visit(entry[u * LINE_STRIP * Ld + line_step(Ld, e)], u, e, above + line_step(0, e) == u * LINE_STRIP + e % 2);
}

// S ← E, in float32 its high part, `other` the low part; meanwhile M lies there
template <int Width, typename Real>
__device__ void sum_series(Real* S, Real* other, int last) {
    constexpr int N = 2 * Width, STRIPS = N / STRIP, LD = PairMemory<Real, Width>::LD;
    static_assert(PAIR_WARPS * LINES == N, "the warps' rows make up the matrix");
    Lines<STRIPS, Real> x;
    LineSums<STRIPS, Real> y = {};
    each_entry<LD, STRIPS>(S, [&](Real s, int u, int e, bool) { x.set(u, e, s); });
    add_product<LD, false>(y, x, S, S);
    each_entry<LD, STRIPS>(other, [&](Real& m, int u, int e, bool) { m = y[u][e]; });
    __syncthreads();
    Real even = 1, odd = 1;                                // 1 / (2k)!, 1 / (2k + 1)!
    for (int k = 1; k <= last; k++) even /= (2 * k - 1) * (2 * k), odd /= 2 * k * (2 * k + 1);
    const auto term = [&](Real s, bool diagonal) { return fma(odd, s, diagonal ? even : Real(0)); };
    each_entry<LD, STRIPS>(S, [&](Real s, int u, int e, bool diagonal) { x.set(u, e, term(s, diagonal)); });
    for (int k = last - 1; k >= 0; k--) {
        even *= k > 0 ? (2 * k + 1) * (2 * k + 2) : 0, odd *= (2 * k + 2) * (2 * k + 3);
        each_entry<LD, STRIPS>(S, [&](Real s, int u, int e, bool diagonal) { y[u][e] = term(s, diagonal); });
        add_product<LD, false>(y, x, other, other);
#pragma unroll
        for (int e = 0; e < 4 * STRIPS; e++) x.set(e / 4, e % 4, y[e / 4][e % 4]);
    }
    __syncthreads();                                       // all have read S and M
    each_entry<LD, STRIPS>(S, [&](Real& s, int u, int e, bool) { split_correction(y[u][e], s, other[&s - S]); });
}

}  // namespace svd
