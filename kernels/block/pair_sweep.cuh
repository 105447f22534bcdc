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

// Calls visit(place in `inner`, place in G) for this lane's entry of one block or the other.
template <typename Visit>
__device__ void each_inner(int left, int right, Visit visit) {
    const int lane = threadIdx.x % WARP, entry = lane % (SIDE * SIDE), side = lane / (SIDE * SIDE);
    visit((side ? right : left) * SIDE + entry, (SIDE * side + entry / SIDE) * PAIR_PITCH + SIDE * side + entry % SIDE);
}

// Sums over products of the rows in a lane's registers: of entries (g, 2 t) and (g, 2 t + 1), g, t = lane / 4, lane % 4.
template <int Count>
__device__ void row_products(double (&sums)[2], const double (&x)[Count], const double (&y)[Count], int count) {
    double part[SIDE][2] = {};
#pragma unroll
    for (int q = 0; q < Count; q++)
        if (q < count) multiply_strip(part[q % SIDE], x[q], y[q]);
#pragma unroll
    for (int h = 0; h < 2; h++) sums[h] = (part[0][h] + part[1][h]) + (part[2][h] + part[3][h]);
}

template <int Count>
__device__ void row_products(float (&sums)[2], const float (&x)[Count], const float (&y)[Count], int count) {
    float part[2][4] = {};
#pragma unroll
    for (int q = 0; q < Count; q += 2)
        if (q < count) multiply_tile(part[q / 2 % 2], {x[q], x[q + 1], 0, 0}, y[q], y[q + 1]);
#pragma unroll
    for (int h = 0; h < 2; h++) sums[h] = part[0][h] + part[1][h];
}

// Entries of a column, `step` apart of four neighbouring rows in every tile from the row `first` on; zeros outside.
template <int Step, int Count, typename Real>
__device__ void load_rows(Real (&x)[Count], const Panel<Real>& panel, int column, int first) {
    constexpr int EACH = SIDE / Step;
    const int row0 = SIDE * (threadIdx.x % SIDE) + first;
    const bool here = column < panel.columns;
    const Real* X = panel.X + column * panel.ld + row0;
#pragma unroll
    for (int q = 0; q < Count; q += EACH) {
        const int tile = q / EACH * TILE_LINES;
        const bool whole = tile + TILE_LINES <= panel.rows;  // of all threads: only the last tile asks for every row
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            x[q + e] = 0;
            if (whole) { if (here) x[q + e] = X[tile + e * Step]; }
            else if (here && row0 + tile + e * Step < panel.rows) x[q + e] = X[tile + e * Step];
        }
    }
}

// G of both blocks from the columns.
template <int DotRows, typename Real>
__device__ void gram_of_pair(const Panel<Real>& panel, int left, int right, Real* G) {
    const int lane = threadIdx.x % WARP, g = lane / SIDE, t = lane % SIDE;
    Real x[WARP / SIDE * DotRows], sums[2];
    load_rows<1>(x, panel, g < SIDE ? left + g : right + g - SIDE, 0);
    row_products(sums, x, x, (panel.rows + TILE_LINES - 1) / TILE_LINES * SIDE);
    G[g * PAIR_PITCH + 2 * t] = sums[0], G[g * PAIR_PITCH + 2 * t + 1] = sums[1];
}

// G from what is known within the blocks, inner: 4 × 4 entries each, and their products with one another from the columns: rows
// in two sets, of which a product of tiles takes one for the first, one for the other half of its rows and columns.
template <int DotRows, typename Real>
__device__ void gram_between(const Panel<Real>& panel, int left, int right, const Real* inner, Real* G) {
    const int lane = threadIdx.x % WARP, g = lane / SIDE, t = lane % SIDE, set = g / SIDE;
    const int both = lane ^ (WARP / 2 + SIDE / 2);           // where the other set's sum of the same entries is
    Real x[WARP / SIDE / 2 * DotRows], y[WARP / SIDE / 2 * DotRows], sums[2];
    load_rows<2>(x, panel, left + g % SIDE, set);
    load_rows<2>(y, panel, right + g % SIDE, set);
    row_products(sums, x, y, (panel.rows + TILE_LINES - 1) / TILE_LINES * 2);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        sums[h] += __shfl_sync(EVERY_LANE, sums[h], both);
        const int column = SIDE + 2 * t + h;
        if (set == 0 && t < SIDE / 2) G[g * PAIR_PITCH + column] = G[column * PAIR_PITCH + g] = sums[h];
    }
    each_inner(left, right, [&](int known, int place) { G[place] = inner[known]; });
}

// X ← X + X E for TILES_AHEAD tiles.   columns: this lane's of either block, at its first row   e0, e1: E's entries, rows t, 4 + t
// inside(row, side): whether there is such an entry
template <typename Real, typename Inside>
__device__ __forceinline__ void turn_tiles(Real* const (&columns)[2], Real e0, Real e1, Inside inside) {
    constexpr bool APART = sizeof(Real) == sizeof(float);    // float64 goes on from X itself
    Real x[TILES_AHEAD][4];
#pragma unroll
    for (int i = 0; i < TILES_AHEAD; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int row = i * TILE_LINES + e / 2 * 2;
            x[i][e] = inside(row, e % 2) ? columns[e % 2][row] : Real(0);
        }
#pragma unroll
    for (int i = 0; i < TILES_AHEAD; i++) {
        Real sum[4];
#pragma unroll
        for (int e = 0; e < 4; e++) sum[e] = APART ? Real(0) : x[i][e];
        multiply_tile(sum, x[i], e0, e1);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int row = i * TILE_LINES + e / 2 * 2;
            if (inside(row, e % 2)) columns[e % 2][row] = APART ? x[i][e] + sum[e] : sum[e];
        }
    }
}

// Columns left … and right … of the panel against each other; the first visits of a sweep know nothing of the blocks.
// inner: 4 × 4 entries of XᵀX within each block   end: rows of the panel and of what follows
template <int DotRows, typename Real>
__device__ bool turn_pair(const Panel<Real>& panel, int left, int right, int end, Real* inner, PairScratch<Real>& scratch,
                          Real tolerance, bool first_visit) {
    const int lane = threadIdx.x % WARP, g = lane / SIDE, t = lane % SIDE;
    __syncwarp();                                            // all have read the scratch of the visit before
    if (first_visit) gram_of_pair<DotRows>(panel, left, right, scratch.gram);
    else gram_between<DotRows>(panel, left, right, inner, scratch.gram);
    __syncwarp();
    const bool turned = pair_jacobi(scratch, tolerance, first_visit);
    if (turned || first_visit) each_inner(left, right, [&](int known, int place) { inner[known] = scratch.gram[place]; });
    if (!turned) return false;
    const int to = g % 2 * SIDE + g / 2;                     // the column of J whose entries, those of rows t and 4 + t, this lane holds
    const Real e0 = scratch.turn[t * PAIR_PITCH + to] - Real(t == to);
    const Real e1 = scratch.turn[(SIDE + t) * PAIR_PITCH + to] - Real(SIDE + t == to);
    const bool here[2] = {left + t < panel.columns, right + t < panel.columns};
    const int first = SIDE * (g % SIDE) + g / SIDE;          // of the two rows of a tile that this lane holds; the other: 2 below
    Real* const column[2] = {panel.X + (left + t) * panel.ld + first, panel.X + (right + t) * panel.ld + first};
    const bool whole = max(left, right) + SIDE <= panel.columns;
    constexpr int STEP = TILES_AHEAD * TILE_LINES;
    for (int row0 = 0; row0 < end; row0 += STEP) {
        Real* const at[2] = {column[0] + row0, column[1] + row0};
        if (whole && row0 + STEP <= end) turn_tiles(at, e0, e1, [](int, int) { return true; });
        else turn_tiles(at, e0, e1, [&](int row, int side) { return here[side] && row0 + first + row < end; });
    }
    return true;
}

// All pairs of `blocks` column blocks, an even number.   end: rows of the panel and of what follows
// scratch: one a warp   inner: 16 entries a block
// Returns whether anything was turned, the same in every thread.
template <int DotRows, typename Real>
__device__ bool pair_sweep(const Panel<Real>& panel, int blocks, int end, PairScratch<Real>* scratch, Real* inner, Real tolerance) {
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP, ring = blocks - 1;
    bool turned = false;
    for (int round = 0; round < ring; round++) {
        for (int i = warp; i < blocks / 2; i += warps) {
            const int left = (round + i) % ring, right = i == 0 ? ring : (round + ring - i) % ring;
            turned |= turn_pair<DotRows>(panel, left * SIDE, right * SIDE, end, inner, scratch[warp], tolerance, round == 0);
        }
        __syncthreads();
    }
    return __syncthreads_or(turned);
}
