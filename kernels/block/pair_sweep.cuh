// block/pair_sweep.cuh — one sweep of one-sided Jacobi over a panel in shared memory, its products on the tensor cores.
//
//     round r:  warp w takes pair w of column blocks, X = [X_I X_J]:   G = Xᵀ X,   J by Jacobi on G,   X ← X + X (J − I)
//
// Round robin: block 0 stays and the others move on. Columns that follow along (right vectors) lie below X and meet J alone: a
// visit reads X twice and the rest once for 64 rotations, and only J's 16 × 16 entries wait for angles (warp/pair_jacobi.cuh).
// The leading dimension is pair_pitch(rows): no bank is asked for twice.
// Called by batched/svd_triangle.cuh, by the whole block.
#pragma once

#include "block/jacobi_sweep.cuh"
#include "warp/pair_jacobi.cuh"
#include "warp/tile_chain.cuh"
#include "warp/tile_product.cuh"

constexpr int TILE_LINES = 16;                               // rows of a tile of X
constexpr int TILES_AHEAD = 3;                               // tiles of a warp under way
constexpr int PARTS = 4;                                     // independent sums of a product
constexpr int ROWS = 4;                                      // that an instruction multiplies at once

// An odd multiple of ROWS, so that ROWS rows of SIDE columns lie in different banks.
__host__ __device__ constexpr int pair_pitch(int rows) { return (rows + ROWS - 1) / SIDE * SIDE + ROWS; }

// Sums over products of the rows in a lane's registers: of entries (g, 2 t) and (g, 2 t + 1), g, t = lane / 4, lane % 4.
template <int Count>
__device__ void row_products(double (&sums)[2], const double (&x)[Count], const double (&y)[Count], int count) {
    double part[PARTS][2] = {};
#pragma unroll
    for (int q = 0; q < Count; q++)
        if (q < count) multiply_strip(part[q % PARTS], x[q], y[q]);
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

// Every fourth row of a column from row t on; zeros outside.   inside(q): whether row t + 4 q is there
template <int Count, typename Real, typename Inside>
__device__ __forceinline__ void load_rows(Real (&x)[Count], const Panel<Real>& panel, int column, int count, Inside inside) {
    const Real* X = panel.X + column * panel.ld + threadIdx.x % ROWS;
#pragma unroll
    for (int q = 0; q < Count; q++) {
        x[q] = 0;
        if (q < count && inside(q)) x[q] = X[q * ROWS];
    }
}

// Products of both blocks' columns with one another into the upper right of G; the rest of G too, if `all`.
template <int DotRows, typename Real>
__device__ void gram_of_pair(const Panel<Real>& panel, int left, int right, Real* G, bool all) {
    const int lane = threadIdx.x % WARP, g = lane / ROWS, t = lane % ROWS, count = (panel.rows + ROWS - 1) / ROWS;
    Real x[WARP / ROWS * DotRows], y[WARP / ROWS * DotRows], sums[2];
    if (panel.rows % ROWS == 0 && max(left, right) + SIDE <= panel.columns) {
        load_rows(x, panel, left + g, count, [](int) { return true; });
        load_rows(y, panel, right + g, count, [](int) { return true; });
    } else {
        load_rows(x, panel, left + g, count, [&](int q) { return left + g < panel.columns && q * ROWS + t < panel.rows; });
        load_rows(y, panel, right + g, count, [&](int q) { return right + g < panel.columns && q * ROWS + t < panel.rows; });
    }
    row_products(sums, x, y, count);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        G[g * PAIR_PITCH + SIDE + 2 * t + h] = sums[h];
        if (all) G[(SIDE + 2 * t + h) * PAIR_PITCH + g] = sums[h];
    }
    if (!all) return;
    row_products(sums, x, x, count);
#pragma unroll
    for (int h = 0; h < 2; h++) G[g * PAIR_PITCH + 2 * t + h] = sums[h];
    row_products(sums, y, y, count);
#pragma unroll
    for (int h = 0; h < 2; h++) G[(SIDE + g) * PAIR_PITCH + SIDE + 2 * t + h] = sums[h];
}

// G as the pairs between the blocks see it, from what is known within the blocks and the upper right. False: all are orthogonal.
template <typename Real>
__device__ bool load_between(PairState<Real>& state, const PairScratch<Real>& scratch, const Real* left, const Real* right, Real tolerance) {
    bool oblique = false;
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
        const int a = state.a, b = state.b + ALONG * s;
        state.G[s][0][0] = left[a * SIDE + b], state.G[s][1][1] = right[a * SIDE + b];
        state.G[s][0][1] = scratch.entry[a * PAIR_PITCH + SIDE + b], state.G[s][1][0] = scratch.entry[b * PAIR_PITCH + SIDE + a];
        oblique |= quick_cosine(left[a * (SIDE + 1)], right[b * (SIDE + 1)], state.G[s][0][1]) > tolerance;
    }
    return __any_sync(EVERY_LANE, oblique);
}

// Rotations of columns left … and right … as J in scratch, if any; G within the blocks into `inner`.
template <int DotRows, typename Real>
__device__ Turned rotations_of_pair(const Panel<Real>& panel, int left, int right, Real* inner, PairScratch<Real>& scratch, Real tolerance,
                                    Real smooth, bool first_visit) {
    Real *of_left = inner + left * SIDE, *of_right = inner + right * SIDE;
    Turned turned = {};
    if (!first_visit && max(left, right) >= panel.columns) return turned;
    __syncwarp();                                            // all have read the scratch of the visit before
    gram_of_pair<DotRows>(panel, left, right, scratch.entry, first_visit);
    __syncwarp();
    PairState<Real> state;
    if (first_visit) turned = turn_within(state, scratch, tolerance, smooth);
    else if (!load_between(state, scratch, of_left, of_right, tolerance)) return turned;
    turned |= state.template steps<SIDE>(tolerance, smooth);
    turned.any = __any_sync(EVERY_LANE, turned.any);
    constexpr int LAST = SIDE - 1;                           // XOR of the last step
    __syncwarp();                                            // all have read both
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
        const int a = state.a, b = state.b + ALONG * s;
        of_left[a * SIDE + b] = state.G[s][0][0], of_right[(a ^ LAST) * SIDE + (b ^ LAST)] = state.G[s][1][1];
    }
    state.template each<0, true>(LAST, [&](int place, const Real& x) { scratch.entry[place] = x; });
    __syncwarp();
    return turned;
}

// X ← X + X E for TILES_AHEAD tiles.   columns: this lane's of either block, at its first row   E: [rows of a block][columns of a block]
// inside(row, side, h): whether there is such an entry
template <typename Real, typename Inside>
__device__ __forceinline__ void turn_tiles(Real* const (&columns)[2][2], const Real (&E)[2][2][2], Inside inside) {
    constexpr bool APART = sizeof(Real) == sizeof(float);    // float64 goes on from X itself
    Real x[TILES_AHEAD][2][4];
    const auto each = [&](auto visit) {
#pragma unroll
        for (int i = 0; i < TILES_AHEAD; i++)
#pragma unroll
            for (int side = 0; side < 2; side++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int row = i * TILE_LINES + e / 2 * SIDE;
                    visit(x[i][side][e], columns[side][e % 2] + row, inside(row, side, e % 2));
                }
    };
    each([](Real& value, const Real* place, bool here) { value = here ? *place : Real(0); });
#pragma unroll
    for (int i = 0; i < TILES_AHEAD; i++) {
        Real sum[2][4];
#pragma unroll
        for (int side = 0; side < 2; side++) {
#pragma unroll
            for (int e = 0; e < 4; e++) sum[side][e] = APART ? Real(0) : x[i][side][e];
            multiply_tile(sum[side], x[i][0], E[0][side][0], E[0][side][1]);
            multiply_tile(sum[side], x[i][1], E[1][side][0], E[1][side][1]);
        }
#pragma unroll
        for (int side = 0; side < 2; side++)
#pragma unroll
            for (int e = 0; e < 4; e++) x[i][side][e] = APART ? x[i][side][e] + sum[side][e] : sum[side][e];
    }
    each([](Real& value, Real* place, bool here) { if (here) *place = value; });
}

// Columns left … and right … of the panel against each other; the first visits of a sweep know nothing of the blocks.
// inner: 8 × 8 entries of XᵀX within each block   end: rows of the panel and of what follows
template <int DotRows, typename Real>
__device__ Turned turn_pair(const Panel<Real>& panel, int left, int right, int end, Real* inner, PairScratch<Real>& scratch,
                            Real tolerance, Real smooth, bool first_visit) {
    const Turned turned = rotations_of_pair<DotRows>(panel, left, right, inner, scratch, tolerance, smooth, first_visit);
    if (!turned.any) return turned;
    const int lane = threadIdx.x % WARP, g = lane / ROWS, t = lane % ROWS;
    const int to = g % 2 * ROWS + g / 2;                     // column of a block of J: this lane holds its rows t and 4 + t
    Real E[2][2][2], *columns[2][2];
    bool here[2][2];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = i * SIDE + h * ROWS + t, column = (i ? right : left) + h * ROWS + t;
#pragma unroll
            for (int j = 0; j < 2; j++) E[i][j][h] = scratch.entry[row * PAIR_PITCH + j * SIDE + to] - Real(row == j * SIDE + to);
            columns[i][h] = panel.X + column * panel.ld + g, here[i][h] = column < panel.columns;
        }
    const bool whole = max(left, right) + SIDE <= panel.columns;
    constexpr int STEP = TILES_AHEAD * TILE_LINES;
    for (int row0 = 0; row0 < end; row0 += STEP) {
        Real* const at[2][2] = {{columns[0][0] + row0, columns[0][1] + row0}, {columns[1][0] + row0, columns[1][1] + row0}};
        if (whole && row0 + STEP <= end) turn_tiles(at, E, [](int, int, int) { return true; });
        else turn_tiles(at, E, [&](int row, int side, int h) { return here[side][h] && row0 + g + row < end; });
    }
    return turned;
}

// All pairs of `blocks` column blocks, an even number.   end: rows of the panel and of what follows
// scratch: one a warp   inner: 64 entries a block
// Returns, the same in every thread, whether columns may still be oblique: not where all cosines and angles were so small that
// what rotations leave of each other's work, products of both, is below tolerance.
template <int DotRows, typename Real>
__device__ bool pair_sweep(const Panel<Real>& panel, int blocks, int end, PairScratch<Real>* scratch, Real* inner, Real tolerance) {
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP, ring = blocks - 1;
    const Real smooth = sqrt(tolerance) / 4;                 // of a column's rotations a sixteenth of it each, of random signs
    Turned turned = {};
    for (int round = 0; round < ring; round++) {
        for (int i = warp; i < blocks / 2; i += warps) {
            const int left = round + i < ring ? round + i : round + i - ring;
            const int right = i == 0 ? ring : round >= i ? round - i : round - i + ring;
            turned |= turn_pair<DotRows>(panel, left * SIDE, right * SIDE, end, inner, scratch[warp], tolerance, smooth, round == 0);
        }
        __syncthreads();
    }
    return __syncthreads_or(turned.rough);
}
