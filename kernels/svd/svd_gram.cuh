// A round of block Jacobi by Gram matrices, method "block-gram"; before and after it the kernels of
// svd/svd_blocks.cuh. One thread block a pair (I, J) of panels of Width columns, X = [X_I X_J]:
//
//     G = Xᵀ X,   G = Rᵀ R,   R J orthogonal by one sweep of Jacobi on the triangle,   X ← X + X (J − I)
//
// Both products run on the tensor cores. The preconditioned columns are nearly orthogonal, which makes the Gram
// matrix safe; whether a pair needs turning is asked of a fresh G, so that the result is as orthogonal as the direct method's.
// J comes by single rotations (Cholesky, Jacobi on the triangle) only where angles are large, else by a series of products.
// A pair is passed over if neither of its panels has changed since it was found orthogonal; the workspace's `order` holds, for
// each panel, 1 + the round of its last change.
// What does not converge is handed to svd_round. Arguments as there.
#pragma once

#include "common/block/cholesky.cuh"
#include "svd/block/jacobi_sweep.cuh"
#include "svd/block/rotation_series.cuh"

namespace svd {
using namespace common;

constexpr int GRAM_SLACK = 2;                            // cosines of R differ from those of X by rounding: ask less of X

// Blocks that a multiprocessor shall hold: as many as shared memory has room for, the phases of one hide another's latency.
template <typename Real> constexpr int PAIRS_RESIDENT = sizeof(Real) == sizeof(double) ? 3 : 4;

// Whether two columns, from different panels where `halves`, are not orthogonal yet; the same in every thread.
template <int N, int Ld, typename Real>
__device__ bool oblique(const Real* G, Real* inverse, bool halves, Real tolerance) {
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int c = threadIdx.x; c < N; c += PAIR_THREADS) {
        Real square = G[c * Ld + c];
        inverse[c] = square > Floating<Real>::vanishing ? approximate_rsqrt(square) : Real(0);
    }
    __syncthreads();
    bool found = false;
    for (int c = (halves ? N / 2 : 1) + warp; c < N; c += PAIR_WARPS)
        for (int i = lane; i < (halves ? N / 2 : c); i += WARP)
            found |= fabs(G[c * Ld + i]) * inverse[i] * inverse[c] > tolerance;
    return __syncthreads_or(found);
}

// J ← E = J − I for J of one sweep of Jacobi on G's triangle; in float32 its high part, G ← the low part
template <int Width, int Columns, typename Real>
__device__ void rotate_in_turn(Real* G, Real* J, Real* norms, Real* diagonal, Angle<Real>* angles, Real tolerance, bool halves) {
    using Memory = PairMemory<Real, Width>;
    constexpr int TILE = Memory::TILE, LD = Memory::LD, DOT_ROWS = TILE / WARP;
    __syncthreads();                                       // all have read what lies in J and `diagonal`
    for (int c = threadIdx.x / WARP; c < TILE; c += PAIR_WARPS)
        for (int i = threadIdx.x % WARP; i < TILE; i += WARP) {
            J[c * LD + i] = i == c;
            if (i == c) diagonal[c] = G[c * LD + c];
            if (i > c) G[c * LD + i] = 0;
        }
    __syncthreads();
    cholesky<TILE, LD, PAIR_WARPS>(G, diagonal);
    Panel<Real> triangle = {G, LD, TILE, Memory::SQUARE, TILE, norms};
    jacobi_sweep<2 * DOT_ROWS, DOT_ROWS, Columns>(triangle, TILE / Columns, angles, tolerance, halves);
    correction_of<Width>(J, G);
}

template <typename Real, int Width, bool Both, int Columns>
__global__ __launch_bounds__(PAIR_THREADS, PAIRS_RESIDENT<Real>)
void svd_gram(const long long* table, int m, int n, char* workspaces, long long stride, int* turned, int matrices, int pairs,
              int sweep, int round) {
    using Memory = PairMemory<Real, Width>;
    constexpr int TILE = Memory::TILE, LD = Memory::LD;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Angle<Real> angles[PAIR_WARPS * Columns];
    int b = blockIdx.x / pairs;
    if (sweep > 0 && turned[static_cast<long long>(sweep - 1) * matrices + b] == 0) return;
    Problem<Real> p = problem<Real>(nullptr, nullptr, nullptr, nullptr, table, m, n, b);
    Workspace<Real> w = panel_workspace<Real>(workspaces + b * stride, p.rank(), Both);
    int r = *w.rank;
    Meeting pair(2 * pairs, round, blockIdx.x % pairs);
    bool halves = round > 0, paired = pair.right * Width < r;
    if (pair.left * Width >= r || (halves && !paired)) return;

    int step = sweep * (2 * pairs - 1) + round, *changed = w.order;
    if (sweep > 0 && max(changed[pair.left], paired ? changed[pair.right] : 0) <= step - (2 * pairs - 1)) return;
    PanelPair<Width, Real> X = {w.W, pair.left * Width * w.ld, pair.right * Width * w.ld, w.ld, paired};
    Real *G = reinterpret_cast<Real*>(memory), *J = G + Memory::SQUARE, *norms = J + Memory::SQUARE, *diagonal = norms + TILE;
    gram(G, J, X, panel_rows(r));
    __syncthreads();
    Real tolerance = orthogonality_tolerance<Real>(r);
    if (!oblique<TILE, LD>(G, norms, halves, GRAM_SLACK * tolerance)) return;
    Real angle = rotation_angles<Width>(G, J, norms, halves, tolerance, diagonal);
    if (angle <= Real(SERIES_LIMIT)) sum_series<Width>(J, G, last_term(angle));
    else rotate_in_turn<Width, Columns>(G, J, norms, diagonal, angles, tolerance, halves);
    __syncthreads();
    add_correction(J, G, X, w.ld);
    if (threadIdx.x > 0) return;
    turned[static_cast<long long>(sweep) * matrices + b] = 1;
    changed[pair.left] = step + 1;
    if (paired) changed[pair.right] = step + 1;
}

}  // namespace svd
