// G = Rᵀ R, R upper triangular, for a symmetric positive semidefinite matrix in shared memory, 16 rows of R at a time:
//
//     rows of the panel −= R_aboveᵀ R_above (warp/tile_product.cuh),   then for its rows k:   R_k· = G_k· / √g_kk,
//     G_i· −= R_ki R_k·   for the rows i below in the panel
//
// Warp w owns columns 16 w … A column is a lane's, its 16 entries in registers: lanes 0 … 15 of every warp hold the panel's
// own columns, lanes 16 … 31 those of the warp, so that R_ki comes by a shuffle and warps meet three times a panel.
// A pivot that rounding has eaten up is replaced by N ε g_kk, g the diagonal of the given matrix: R then still shows which
// columns are parallel. Or, if its row is passed over, R has nothing but that pivot there, and no such rows amplify one another.
// Called by batched/svd_gram.cuh and batched/cholesky_qr.cuh, by the whole block of Warps warps.
#pragma once

#include "thread/jacobi_rotation.cuh"
#include "thread/wide.cuh"
#include "warp/tile_product.cuh"

constexpr int PANEL_ROWS = WARP / 2;

// x: entries of a panel's rows, one column a lane, the panel's own in lanes 0 … 15; R's entries afterwards
// least: what the pivot of those is at least   pivots: of the panel; PassOver: rows of pivots that are less stay empty
template <bool PassOver, typename Real>
__device__ void eliminate_panel(Real (&x)[PANEL_ROWS], Real least, int pivots) {
    const int lane = threadIdx.x % WARP;
    const auto next = [&](Real pivot) { return PassOver && pivot <= least ? -least : fmax(pivot, least); };  // negative: empty
    Real ahead = next(x[0]);
#pragma unroll
    for (int k = 0; k < PANEL_ROWS; k++) {
        if (k >= pivots) break;
        const Real found = __shfl_sync(EVERY_LANE, ahead, k), pivot = PassOver ? fabs(found) : found;
        const Real root = pivot > 0 ? exact_rsqrt(pivot) : Real(0);
        x[k] *= PassOver && !(found > 0) ? Real(0) : root;
        if (lane == k) x[k] = pivot * root;
        if (k + 1 == PANEL_ROWS) break;
        ahead = next(fma(-x[k], x[k], x[k + 1 < PANEL_ROWS ? k + 1 : k]));
#pragma unroll
        for (int i = k + 1; i < PANEL_ROWS; i++) x[i] = fma(-__shfl_sync(EVERY_LANE, x[k], i), x[k], x[i]);
    }
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
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int first = 0; first < N; first += PANEL_ROWS) {
        const bool has = N == PANEL_ROWS * Warps || warp * PANEL_ROWS < N, mine = has && first <= warp * PANEL_ROWS;  // else finished
        if (mine && first > 0) subtract_above<Ld>(G, first, warp * PANEL_ROWS);
        __syncthreads();
        const int column = lane < PANEL_ROWS ? first + lane : warp * PANEL_ROWS + lane - PANEL_ROWS;
        Real x[PANEL_ROWS];
        if (mine) read_wide(x, G + column * Ld + first);
        __syncthreads();                                   // all have read the panel's own columns
        if (mine) {
            eliminate_panel<PassOver>(x, lane < PANEL_ROWS ? N * Floating<Real>::epsilon * diagonal[column] : Real(0),
                                      columns < N ? columns - first : PANEL_ROWS);
            if (lane < PANEL_ROWS == (first == warp * PANEL_ROWS))   // the warp's own columns
#pragma unroll
                for (int i = 0; i < PANEL_ROWS; i++)
                    G[column * Ld + first + i] = first + i <= column ? x[i] : Real(0);
        }
        __syncthreads();
    }
}
