// qr/block/panel.cuh — Householder reflections of a strip's own columns, and T of their product.
//
//     H_0 ⋯ H_15 = I − V T Vᵀ,   T_cc = τ_c,   T_{0…c, c} = −τ_c T_{0…c, 0…c} V_{0…c}ᵀ v_c
//
// (Schreiber & Van Loan 1989). A step needs one barrier: warps sum what they have of u_cᵀ x for all sixteen columns, the
// pivot's own norm and the finished reflectors among them, so that V_{0…c}ᵀ v_c costs nothing more.
// Column c keeps u_c below its diagonal, v_c = s_c u_c; its diagonal entry β_c and s_c stay with the lanes of column c.
// Pivots of a half of the columns lie in one layer, the head, which alone needs to know which rows are below the pivot.
// Called by the whole block.
#pragma once
#include "common/thread/householder.cuh"
#include "qr/block/strip.cuh"

namespace qr {
using namespace common;

template <typename Real, int Warps, int Tiles>
struct Panel {
    using Columns = Strip<Real, Warps, Tiles>;
    static constexpr int HALF = PANEL / 2;
    Columns& strip;
    typename Columns::Memory& memory;
    Real scale[2] = {}, beta[2] = {};  // of columns g, g + 8

    __device__ explicit Panel(Columns& strip) : strip(strip), memory(strip.memory) {}

    // Reflections of columns c < pivots with pivots in rows row0 + c, and −T to `triangle`.
    __device__ __forceinline__ void factor(int row0, int pivots, int layers, Real* triangle) {
        if (threadIdx.x < PANEL) memory.taus[threadIdx.x] = 0;
        __syncwarp();
        steps<0>(row0, min(pivots, HALF), layers);
        steps<1>(row0 + HALF, min(pivots - HALF, HALF), layers);
        __syncwarp();
        if (strip.warp == 0) invert(pivots, triangle);
    }

    // R's and V's entry at the strip's entry (i, e).
    __device__ __forceinline__ Real r(int i, int e, int row0, int pivots) const {
        const int row = strip.row(i, e) - row0, c = strip.column(e);
        if (row < c) return strip.x[i][e];
        return row == c && c < pivots ? beta[e / 2] : Real(0);
    }
    __device__ __forceinline__ Real v(int i, int e, int row0, int pivots) const {
        const int row = strip.row(i, e) - row0, c = strip.column(e);
        if (row < c || c >= pivots) return 0;
        return row == c ? Real(1) : strip.x[i][e] * scale[e / 2];
    }

  private:
    // `count` pivots of half Half, the first in row row0, a multiple of TILE_ROWS.
    template <int Half>
    __device__ __forceinline__ void steps(int row0, int count, int layers) {
        const int own = row0 / (Warps * TILE_ROWS);
        Real head[4] = {};
#pragma unroll
        for (int i = 0; i < Tiles; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const Real entry = strip.x[i][e];
                head[e] = i == own ? entry : head[e];
            }
        for (int c = 0; c < count; c++) step<Half>(c, own, row0 / TILE_ROWS - own * Warps, layers, head);
#pragma unroll
        for (int i = 0; i < Tiles; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const Real entry = strip.x[i][e];
                strip.x[i][e] = i == own ? head[e] : entry;
            }
    }

    // Column c of the half is the pivot, in row c of layer `own`'s tile of warp `owner`.
    template <int Half>
    __device__ __forceinline__ void step(int c, int own, int owner, int layers, Real (&head)[4]) {
        const bool above = strip.warp < owner, mine = strip.warp == owner && strip.t == c / 2;
        const auto below = [&](int h) { return strip.warp > owner || (!above && 2 * strip.t + h > c); };
        auto* column = memory.column[strip.warp];
        __syncwarp();  // the warp is done with the column before
        if (strip.g == c) {
            column[0][strip.t] = {below(0) ? head[2 * Half] : Real(0), below(1) ? head[2 * Half + 1] : Real(0)};
#pragma unroll
            for (int i = 1; i < Tiles; i++)
                if (within(i, own + 1, layers)) {
                    branch();
                    column[i][strip.t] = {strip.x[i][2 * Half], strip.x[i][2 * Half + 1]};
                }
        }
        __syncwarp();
        Two<Real> first = column[0][strip.t];
        Real d[2][2] = {{first.x * head[0], first.y * head[1]}, {first.x * head[2], first.y * head[3]}};
#pragma unroll
        for (int i = 1; i < Tiles; i++) {
            if (!within(i, own + 1, layers)) continue;
            branch();
            const Two<Real> u = column[i][strip.t];
#pragma unroll
            for (int q = 0; q < 2; q++) d[q][0] += u.x * strip.x[i][2 * q], d[q][1] += u.y * strip.x[i][2 * q + 1];
        }
        Real dot[2], row[2] = {c % 2 ? head[1] : head[0], c % 2 ? head[3] : head[2]};
        add_over_warps(memory.dots[c % 2], d[0][0] + d[0][1], d[1][0] + d[1][1], mine, c / 2, dot, row);
        const Real alpha = __shfl_sync(EVERY_LANE, row[Half], 4 * c), sigma2 = __shfl_sync(EVERY_LANE, dot[Half], 4 * c);
        const Householder<Real> h = householder(alpha, sigma2);
        const bool none = h.product == 0;  // H = I
        const Real diagonal = none ? alpha : h.beta;
        if (mine && c % 2 == 0) first.x = alpha - diagonal;
        if (mine && c % 2 == 1) first.y = alpha - diagonal;
        Real factor[2];
#pragma unroll
        for (int q = 0; q < 2; q++) {
            const Real all = fma(h.inverse, h.product * h.product * dot[q], h.product * row[q]);
            factor[q] = q > Half || (q == Half && strip.g > c) ? all : Real(0);
            if (strip.warp == 0 && strip.t == 0)
                memory.gram[c + HALF * Half][strip.g + HALF * q] = fma(h.scale, dot[q], row[q]) * scale[q];
        }
        if (strip.g == c) scale[Half] = h.scale, beta[Half] = diagonal;
        if (threadIdx.x == 0) memory.taus[c + HALF * Half] = none ? Real(0) : h.tau;
#pragma unroll
        for (int q = Half; q < 2; q++) head[2 * q] -= factor[q] * first.x, head[2 * q + 1] -= factor[q] * first.y;
#pragma unroll
        for (int i = 1; i < Tiles; i++) {
            if (!within(i, own + 1, layers)) continue;
            branch();
            const Two<Real> u = column[i][strip.t];
#pragma unroll
            for (int q = Half; q < 2; q++) strip.x[i][2 * q] -= factor[q] * u.x, strip.x[i][2 * q + 1] -= factor[q] * u.y;
        }
    }

    // Of columns g, g + 8: sums over the block of a thread's parts, and the pivot row, which lanes `mine`, (g, from), bring.
    __device__ __forceinline__ void add_over_warps(Real (&dots)[Warps + 1][PANEL], Real part0, Real part1, bool mine, int from,
                                                   Real (&dot)[2], Real (&row)[2]) {
        const bool odd = strip.t % 2;
        Real sum = (odd ? part1 : part0) + __shfl_xor_sync(EVERY_LANE, odd ? part0 : part1, 1);
        sum += __shfl_xor_sync(EVERY_LANE, sum, 2);  // of column g + 8 (t % 2)
        if constexpr (Warps == 1) {
#pragma unroll
            for (int q = 0; q < 2; q++) {
                dot[q] = __shfl_sync(EVERY_LANE, sum, 4 * strip.g + q);
                row[q] = __shfl_sync(EVERY_LANE, row[q], 4 * strip.g + from);
            }
        } else {
            if (strip.t < 2) dots[strip.warp][2 * strip.g + strip.t] = sum;
            if (mine) dots[Warps][2 * strip.g] = row[0], dots[Warps][2 * strip.g + 1] = row[1];
            __syncthreads();
            Real sums[2][4] = {};
#pragma unroll
            for (int w = 0; w < Warps; w++)
#pragma unroll
                for (int q = 0; q < 2; q++) sums[q][w % 4] += dots[w][2 * strip.g + q];
#pragma unroll
            for (int q = 0; q < 2; q++)
                dot[q] = (sums[q][0] + sums[q][1]) + (sums[q][2] + sums[q][3]), row[q] = dots[Warps][2 * strip.g + q];
        }
    }

    // −T, a row a lane, from gram and taus; one warp.
    __device__ __forceinline__ void invert(int pivots, Real* triangle) {
        if (strip.lane >= PANEL) return;
        Real T[PANEL];
#pragma unroll
        for (int c = 0; c < PANEL; c++) {
            Real sum[2] = {};
#pragma unroll
            for (int l = 0; l < c; l++) sum[l % 2] += c < pivots ? T[l] * memory.gram[c][l] : Real(0);
            const Real tau = memory.taus[c];
            T[c] = c == strip.lane ? tau : -tau * (sum[0] + sum[1]);
            triangle[strip.lane * PANEL + c] = -T[c];
        }
    }
};

}  // namespace qr
