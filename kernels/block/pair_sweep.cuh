// block/pair_sweep.cuh — one sweep of one-sided Jacobi over a panel in shared memory, its products on the tensor cores.
//
//     round r:  warp w takes pair w of column blocks, X = [X_I X_J]:   G = Xᵀ X,   J by Jacobi on G,   X ← X + X (J − I)
//
// Round robin: block 0 stays and the others move on. Columns that follow along (right vectors) lie below X and meet J alone: a
// visit reads X twice and the rest once for 16 rotations, and only J's 8 × 8 entries wait for angles (warp/pair_jacobi.cuh).
// The leading dimension is odd: rows are given to lanes so that no bank is asked for twice.
// Called by batched/svd_triangle.cuh, by the whole block.
#pragma once

#include "block/jacobi_sweep.cuh"
#include "warp/pair_jacobi.cuh"
#include "warp/tile_chain.cuh"
#include "warp/tile_product.cuh"

constexpr int TILE_LINES = 16;                               // rows of a tile of X
constexpr int TILES_AHEAD = 3;                               // tiles of a warp under way

// G += XᵀX, X: 4 · Groups rows of 8 columns; lane (g, t) holds of group q rows 4 q + t of column g, and entries (g, 2 t + 0, 1) of G
template <int Groups>
__device__ void gram_tile(double (&G)[2], const double (&x)[Groups], int count) {
    double sum[SIDE][2] = {};
#pragma unroll
    for (int q = 0; q < Groups; q++)
        if (q < count) multiply_strip(sum[q % SIDE], x[q], x[q]);
#pragma unroll
    for (int h = 0; h < 2; h++) G[h] = (sum[0][h] + sum[1][h]) + (sum[2][h] + sum[3][h]);
}

template <int Groups>
__device__ void gram_tile(float (&G)[2], const float (&x)[Groups], int count) {
    float sum[2][4] = {};
#pragma unroll
    for (int q = 0; q < Groups; q += 2)
        if (q < count) multiply_tile(sum[q / 2 % 2], {x[q], x[q + 1], 0, 0}, x[q], x[q + 1]);
#pragma unroll
    for (int h = 0; h < 2; h++) G[h] = sum[0][h] + sum[1][h];
}

// Columns left … and right … of the panel against each other.   end: rows of the panel and of what follows
template <int DotRows, typename Real>
__device__ bool turn_pair(const Panel<Real>& panel, int left, int right, int end, PairScratch<Real>& scratch, Real tolerance,
                          bool within) {
    constexpr int GROUPS = WARP / SIDE * DotRows;
    const int lane = threadIdx.x % WARP, g = lane / SIDE, t = lane % SIDE;
    {
        const int column = g < SIDE ? left + g : right + g - SIDE;
        const Real* X = panel.X + column * panel.ld;
        Real x[GROUPS], G[2];
#pragma unroll
        for (int q = 0; q < GROUPS; q++) {
            const int row = q / SIDE * TILE_LINES + SIDE * t + q % SIDE;
            x[q] = column < panel.columns && row < panel.rows ? X[row] : Real(0);
        }
        gram_tile(G, x, (panel.rows + TILE_LINES - 1) / TILE_LINES * SIDE);
        scratch.gram[g * PAIR_COLUMNS + 2 * t] = G[0], scratch.gram[g * PAIR_COLUMNS + 2 * t + 1] = G[1];
    }
    __syncwarp();
    if (!pair_jacobi(scratch, tolerance, within)) return false;
    const int to = g % 2 * SIDE + g / 2;                     // the column of J whose entries, those of rows t and 4 + t, this lane holds
    const Real e0 = scratch.turn[t * PAIR_COLUMNS + to] - Real(t == to);
    const Real e1 = scratch.turn[(SIDE + t) * PAIR_COLUMNS + to] - Real(SIDE + t == to);
    const bool here[2] = {left + t < panel.columns, right + t < panel.columns};
    const int first = SIDE * (g % SIDE) + g / SIDE;          // of the two rows of a tile that this lane holds; the other: 2 below
    Real* const column[2] = {panel.X + (left + t) * panel.ld + first, panel.X + (right + t) * panel.ld + first};
    for (int row0 = 0; row0 < end; row0 += TILES_AHEAD * TILE_LINES) {
        Real x[TILES_AHEAD][4];
#pragma unroll
        for (int i = 0; i < TILES_AHEAD; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int row = row0 + i * TILE_LINES + e / 2 * 2;
                x[i][e] = here[e % 2] && row + first < end ? column[e % 2][row] : Real(0);
            }
#pragma unroll
        for (int i = 0; i < TILES_AHEAD; i++) {
            Real sum[4] = {};
            if (row0 + i * TILE_LINES < end) multiply_tile(sum, x[i], e0, e1);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int row = row0 + i * TILE_LINES + e / 2 * 2;
                if (here[e % 2] && row + first < end) column[e % 2][row] = x[i][e] + sum[e];
            }
        }
    }
    return true;
}

// All pairs of `blocks` column blocks, an even number.   end: rows of the panel and of what follows   scratch: one a warp
// Returns whether anything was turned, the same in every thread.
template <int DotRows, typename Real>
__device__ bool pair_sweep(const Panel<Real>& panel, int blocks, int end, PairScratch<Real>* scratch, Real tolerance) {
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP, ring = blocks - 1;
    bool turned = false;
    for (int round = 0; round < ring; round++) {
        for (int i = warp; i < blocks / 2; i += warps) {
            const int left = (round + i) % ring, right = i == 0 ? ring : (round + ring - i) % ring;
            turned |= turn_pair<DotRows>(panel, left * SIDE, right * SIDE, end, scratch[warp], tolerance, round == 0);
        }
        __syncthreads();
    }
    return __syncthreads_or(turned);
}
