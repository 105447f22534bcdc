// G = Rᵀ R, R upper triangular, for a symmetric positive semidefinite matrix in shared memory, 16 rows of R at a time:
//
//     rows of the panel −= R_aboveᵀ R_above (common/warp/tile_product.cuh),   then for its rows k:   R_k· = G_k· / √g_kk,
//     G_i· −= R_ki R_k·   for the rows i below in the panel
//
// Warp w owns columns 16 w … A column is a lane's, its 16 entries in registers: lanes 0 … 15 of every warp hold the panel's
// own columns, lanes 16 … 31 those of the warp, so that G_ki comes by a shuffle and warps meet three times a panel.
// A pivot that rounding has eaten up is replaced by N ε g_kk, g the diagonal of the given matrix: R then still shows which
// columns are parallel. Or, if its row is passed over, R has nothing but that pivot there, and no such rows amplify one another.
// Called by svd/svd_gram.cuh and qr/cholesky_qr.cuh, by the whole block of Warps warps.
#pragma once

#include "common/thread/jacobi_rotation.cuh"
#include "common/thread/wide.cuh"
#include "common/warp/tile_product.cuh"

namespace common {

constexpr int PANEL_ROWS = WARP / 2;

// x: entries of a panel's rows, one column a lane, the panel's own in lanes 0 … 15; R's entries afterwards, zeros below its diagonal
// least: what the pivot of those is at least
template <typename Real>
__device__ void eliminate_panel(Real (&x)[PANEL_ROWS], Real least) {
    const int lane = threadIdx.x % WARP;
    Real ahead = fmax(x[0], least);
#pragma unroll
    for (int k = 0; k < PANEL_ROWS; k++) {
        const Real pivot = __shfl_sync(EVERY_LANE, ahead, k), root = pivot > 0 ? exact_rsqrt(pivot) : Real(0);
        x[k] *= root;
        if (lane == k) x[k] = pivot * root;
        if (k + 1 == PANEL_ROWS) break;
        ahead = fmax(fma(-x[k], x[k], x[k + 1 < PANEL_ROWS ? k + 1 : k]), least);
#pragma unroll
        for (int i = k + 1; i < PANEL_ROWS; i++) x[i] = fma(-__shfl_sync(EVERY_LANE, x[k], i), x[k], x[i]);
    }
#pragma unroll
    for (int i = 1; i < PANEL_ROWS; i++) x[i] = lane < i ? Real(0) : x[i];
}

// The same where rows of pivots that are less stay empty. R's diagonal is returned in lanes 0 … 15: x has it but where a pivot was less.
// pivots: of the panel
// Rows travel before they are scaled, so that a step waits for 1 / pivot alone, and every lane knows the next pivot without waiting
// for its column. A branch a step keeps what follows of the step before, all but two rows, beside that division.
template <typename Real>
__device__ Real pass_over_panel(Real (&x)[PANEL_ROWS], Real least, int pivots) {
    const int lane = threadIdx.x % WARP;
    Real left = __shfl_sync(EVERY_LANE, x[0], 0), bound = __shfl_sync(EVERY_LANE, least, 0), own, before, factor[PANEL_ROWS];
#pragma unroll
    for (int k = 0; k < PANEL_ROWS; k++) {
        if (k >= pivots) break;
        if (k == 0 || lane >= k) own = left;                // of lane k in the end
        else x[k] = 0;
        if (k + 1 == PANEL_ROWS) break;
        const Real rough = approximate_reciprocal(left), near = left > bound ? rough : Real(0);
        const Real error = fma(-left, near, Real(1)), rest = fma(error, error, error);
        const auto divided = [&](Real y) { return fma(y * near, rest, y * near); };
        const Real row = divided(x[k]), square = __shfl_sync(EVERY_LANE, x[k + 1], k + 1);
        bound = __shfl_sync(EVERY_LANE, least, k + 1);
#pragma unroll
        for (int i = k + 1; i < PANEL_ROWS; i++) {
            if (k > 0 && i > k + 1) x[i] = fma(-factor[i], before, x[i]);
            factor[i] = __shfl_sync(EVERY_LANE, x[k], i);
            if (i <= k + 2) x[i] = fma(-factor[i], row, x[i]);
        }
        left = fma(-factor[k + 1], divided(factor[k + 1]), square);
        before = row;
    }
    const bool full = own > least;
    if (!full) own = least;
    const Real inverse = exact_rsqrt(own > 0 ? own : Real(1)), scale = full ? inverse : Real(0);
#pragma unroll
    for (int k = 0; k < PANEL_ROWS; k++) x[k] *= __shfl_sync(EVERY_LANE, scale, k);
    return own * inverse;
}

// rows first … of G in columns `columns` … lose what the rows above explain; the warp's own
template <int Ld, typename Real>
__device__ void subtract_above(Real* G, int first, int columns) {
    constexpr int STRIPS = PANEL_ROWS / STRIP;
    TileProduct<Real, STRIPS, STRIPS> product;
    for (int above = 0; above < first; above += PANEL_ROWS)
        product.template add<PANEL_ROWS, Ld>(G + first * Ld + above, G + columns * Ld + above, STRIP, STRIP, PANEL_ROWS,
                                             STRIPS, STRIPS);
    product.each(first, columns, STRIP, STRIP, [&](int i, int c, Real sum) { G[c * Ld + i] -= sum; });
}

// G         N × N, column-major of leading dimension Ld, zero below its diagonal; R afterwards
// diagonal  N, the given diagonal   columns: of G that are not all zeros, the leading ones
template <int N, int Ld, int Warps, bool PassOver = false, typename Real>
__device__ void cholesky(Real* G, const Real* diagonal, int columns = N) {
    static_assert(N <= PANEL_ROWS * Warps, "a panel of columns a warp");
    const int lane = threadIdx.x % WARP, warp = __reduce_max_sync(EVERY_LANE, threadIdx.x / WARP);  // told: all lanes are together
    for (int first = 0; first < columns; first += PANEL_ROWS) {
        const bool has = N == PANEL_ROWS * Warps || warp * PANEL_ROWS < N, mine = has && first <= warp * PANEL_ROWS;  // else finished
        if (mine && first > 0) subtract_above<Ld>(G, first, warp * PANEL_ROWS);
        __syncthreads();
        const int column = lane < PANEL_ROWS ? first + lane : warp * PANEL_ROWS + lane - PANEL_ROWS;
        Real x[PANEL_ROWS];
        Real least = 0;
        if (mine) {
            read_wide(x, G + column * Ld + first);
            if (lane < PANEL_ROWS) least = N * Floating<Real>::epsilon * diagonal[column];
        }
        __syncthreads();                                   // all have read the panel's own columns
        if (mine) {
            const int pivots = N == columns ? PANEL_ROWS : min(columns - first, PANEL_ROWS);
            Real root = 0;
            if constexpr (PassOver) root = pass_over_panel(x, least, pivots);
            else eliminate_panel(x, least);
            if (lane < PANEL_ROWS == (first == warp * PANEL_ROWS)) {  // the warp's own columns
                write_wide(G + column * Ld + first, x);
                if (PassOver && lane < pivots && first == warp * PANEL_ROWS) G[column * (Ld + 1)] = root;
            }
        }
        __syncthreads();
    }
}

}  // namespace common
