// svd/block/pair_sweep.cuh — one sweep of one-sided Jacobi over a panel in shared memory, its products on the tensor cores.
//
//     round r:  warp w takes pair w of column blocks, X = [X_I X_J]:   G = Xᵀ X,   J by Jacobi on G,   X ← X + X (J − I)
//
// Round robin: block 0 stays and the others move on. Columns that follow along (right vectors) lie below X and meet J alone: a
// visit reads X twice and the rest once for 64 rotations, and only J's 16 × 16 entries wait for angles (svd/warp/pair_jacobi.cuh).
// Called by svd/svd_triangle.cuh, by the whole block.
#pragma once

#include "svd/block/pair_gram.cuh"

namespace svd {

constexpr int TILE_LINES = 16;                               // rows of a tile of X

// G as the pairs between the blocks see it, from what is known within the blocks and the upper right. False: all are orthogonal.
template <typename Real>
__device__ bool load_between(PairState<Real>& state, const PairScratch<Real>& scratch, const Real* left, const Real* right, const Limits<Real>& limits) {
    bool oblique = false;
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
        const int a = state.a, b = state.b[s];
        state.G[s][0][0] = left[a * SIDE + b], state.G[s][1][1] = right[a * SIDE + b];
        state.G[s][0][1] = scratch.entry[a * PAIR_PITCH + SIDE + b], state.G[s][1][0] = scratch.entry[b * PAIR_PITCH + SIDE + a];
        bool exceeds[1];
        quick_cosine(left[a * (SIDE + 1)], right[b * (SIDE + 1)], state.G[s][0][1], {limits.oblique}, exceeds);
        oblique |= exceeds[0];
    }
    return __any_sync(EVERY_LANE, oblique);
}

// Rotations of columns left … and right … as J in scratch, if any; G within the blocks into `inner`.
template <typename Real>
__device__ Turned rotations_of_pair(const Panel<Real>& panel, int left, int right, Real* inner, PairScratch<Real>& scratch,
                                    const Limits<Real>& limits, bool first_visit) {
    Real *of_left = inner + left * SIDE, *of_right = inner + right * SIDE;
    Turned turned = {};
    if (!first_visit && max(left, right) >= panel.columns) return turned;
    __syncwarp();                                            // all have read the scratch of the visit before
    PairState<Real> state;
    if (first_visit) {
        gram_of_pair<true>(panel, left, right, scratch.entry);
        __syncwarp();
        turned = turn_within(state, scratch, limits);
    } else {
        gram_of_pair<false>(panel, left, right, scratch.entry);
        __syncwarp();
        if (!load_between(state, scratch, of_left, of_right, limits)) return turned;
    }
    turned |= state.template steps<SIDE>(limits);
    turned.any = __any_sync(EVERY_LANE, turned.any);
    constexpr int LAST = SIDE - 1;                           // XOR of the last step
    __syncwarp();                                            // all have read both
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
        const int a = state.a, b = state.b[s];
        of_left[a * SIDE + b] = state.G[s][0][0], of_right[(a ^ LAST) * SIDE + (b ^ LAST)] = state.G[s][1][1];
    }
    state.template each<0, true>(LAST, [&](int place, const Real& x) { scratch.entry[place] = x; });
    __syncwarp();
    return turned;
}

// X ← X + X E for Ahead tiles.   columns: this lane's of either block, at its first pair of rows   E: [rows of a block][columns of a block]
// Whole: all entries are there; else inside(row, side, h) tells
template <int Ahead, bool Whole, typename Real, typename Inside>
__device__ __forceinline__ void turn_tiles(Real* const (&columns)[2][2], const Real (&E)[2][2][2], Inside inside) {
    constexpr bool APART = sizeof(Real) == sizeof(float);    // float64 goes on from X itself
    Real x[Ahead][2][4];
    const auto each = [&](auto visit) {                      // two entries of a column, of a pair of rows
#pragma unroll
        for (int i = 0; i < Ahead; i++)
#pragma unroll
            for (int side = 0; side < 2; side++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int row = i * TILE_LINES;
                    visit(x[i][side][h], x[i][side][2 + h], columns[side][h] + row, Whole || inside(row, side, h), Whole || inside(row + 1, side, h));
                }
    };
    each([](Real& first, Real& second, const Real* place, bool here, bool next) {
        if constexpr (Whole) {
            const RowPair<Real> pair = *reinterpret_cast<const RowPair<Real>*>(place);
            first = pair.x, second = pair.y;
        } else first = here ? place[0] : Real(0), second = next ? place[1] : Real(0);
    });
#pragma unroll
    for (int i = 0; i < Ahead; i++) {
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
    each([](Real first, Real second, Real* place, bool here, bool next) {
        if constexpr (Whole) *reinterpret_cast<RowPair<Real>*>(place) = {first, second};
        else {
            if (here) place[0] = first;
            if (next) place[1] = second;
        }
    });
}

// Rows row0 … end by Ahead tiles together, as long as these are Whole, or all of them, each entry asked for. Returns the first row left.
template <int Ahead, bool Whole, typename Real, typename Inside>
__device__ __forceinline__ int turn_rows(Real* const (&columns)[2][2], const Real (&E)[2][2][2], int row0, int end, Inside inside) {
    constexpr int STEP = Ahead * TILE_LINES;
#pragma unroll 1
    for (; row0 < end && (!Whole || row0 + STEP <= end); row0 += STEP) {
        Real* const at[2][2] = {{columns[0][0] + row0, columns[0][1] + row0}, {columns[1][0] + row0, columns[1][1] + row0}};
        turn_tiles<Ahead, Whole>(at, E, [&](int row, int side, int h) { return inside(row0 + row, side, h); });
    }
    return row0;
}

// Columns left … and right … of the panel against each other; the first visits of a sweep know nothing of the blocks.
// inner: 8 × 8 entries of XᵀX within each block   end: rows of the panel and of what follows
template <int Ahead, int Some, typename Real>
__device__ Turned turn_pair(const Panel<Real>& panel, int left, int right, int end, Real* inner, PairScratch<Real>& scratch,
                            const Limits<Real>& limits, bool first_visit) {
    const Turned turned = rotations_of_pair(panel, left, right, inner, scratch, limits, first_visit);
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
            columns[i][h] = panel.X + column * panel.ld + 2 * g, here[i][h] = column < panel.columns;
        }
    const auto inside = [&](int row, int side, int h) { return here[side][h] && 2 * g + row < end; };
    if (max(left, right) + SIDE > panel.columns) {
        turn_rows<Some, false>(columns, E, 0, end, inside);
        return turned;
    }
    int row0 = turn_rows<Ahead, true>(columns, E, 0, end, inside);
    if (row0 >= end) return turned;
    if constexpr (Some < Ahead) row0 = turn_rows<Some, true>(columns, E, row0, end, inside);
    row0 = turn_rows<1, true>(columns, E, row0, end, inside);
    turn_rows<1, false>(columns, E, row0, end, inside);
    return turned;
}

// All pairs of `blocks` column blocks, an even number.   end: rows of the panel and of what follows
// scratch: one a warp   inner: 64 entries a block   Ahead: tiles of a visit that are under way together, of those left Some, then each
// Returns, the same in every thread, whether columns may still be oblique: not where all cosines and angles were so small that
// what rotations leave of each other's work, products of both, is below tolerance.
template <int Ahead, int Some, typename Real>
__device__ bool pair_sweep(const Panel<Real>& panel, int blocks, int end, PairScratch<Real>* scratch, Real* inner, Real tolerance) {
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP, ring = blocks - 1;
    const Limits<Real> limits = {tolerance * tolerance, tolerance / 16};   // of a column's rotations a sixteenth of √tolerance each, of random signs
    Turned turned = {};
    for (int round = 0; round < ring; round++) {
        for (int i = warp; i < blocks / 2; i += warps) {
            const int left = round + i < ring ? round + i : round + i - ring;
            const int right = i == 0 ? ring : round >= i ? round - i : round - i + ring;
            turned |= turn_pair<Ahead, Some>(panel, left * SIDE, right * SIDE, end, inner, scratch[warp], limits, round == 0);
        }
        __syncthreads();
    }
    return __syncthreads_or(turned.rough);
}

}  // namespace svd
