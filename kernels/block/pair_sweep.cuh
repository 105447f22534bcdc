// block/pair_sweep.cuh — one sweep of one-sided Jacobi over a panel in shared memory, its products on the tensor cores.
//
//     round r:  warp w takes pair w of column blocks, X = [X_I X_J]:   G = Xᵀ X,   J by Jacobi on G,   X ← X + X (J − I)
//
// Round robin: block 0 stays and the others move on. Columns that follow along (right vectors) lie below X and meet J alone: a
// visit reads X twice and the rest once for 64 rotations, and only J's 16 × 16 entries wait for angles (warp/pair_jacobi.cuh).
// The leading dimension is pair_pitch(rows): no bank is asked for twice, neither for four rows of eight columns one by one (float32: for
// eight rows in pairs) nor for sixteen rows, in pairs, of four columns.
// Called by batched/svd_triangle.cuh, by the whole block.
#pragma once

#include "block/jacobi_sweep.cuh"
#include "warp/pair_jacobi.cuh"
#include "warp/tile_chain.cuh"
#include "warp/tile_product.cuh"

constexpr int TILE_LINES = 16;                               // rows of a tile of X
constexpr int PARTS = 4;                                     // independent sums of a product
constexpr int ROWS = 4;                                      // that an instruction multiplies at once
constexpr int AT_ONCE = WARP / ROWS;                         // rows of a lane whose products are under way together

// An odd multiple of 32 bytes.
template <typename Real>
__host__ __device__ constexpr int pair_pitch(int rows) {
    constexpr int ODD = 32 / sizeof(Real);
    return (rows + ODD - 1) / (2 * ODD) * (2 * ODD) + ODD;
}

// Two rows of a column, read and written together.
template <typename Real>
struct alignas(2 * sizeof(Real)) RowPair { Real x, y; };

// Sums over rows of products of columns: entries (g, 2 t) and (g, 2 t + 1), g, t = lane / 4, lane % 4, of XᵀY, XᵀX and YᵀY. A lane
// brings a fourth of the rows of columns g of X and of Y, the same of both.
template <typename Real>
struct BlockSums;

template <>
struct BlockSums<double> {
    double products[3][PARTS][2] = {};

    __device__ void add(const double (&x)[AT_ONCE], const double (&y)[AT_ONCE], bool all) {
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++) multiply_strip(products[0][q % PARTS], x[q], y[q]);
        if (!all) return;
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++) {
            multiply_strip(products[1][q % PARTS], x[q], x[q]);
            multiply_strip(products[2][q % PARTS], y[q], y[q]);
        }
    }
    __device__ double total(const double (&parts)[PARTS][2], int h) const { return (parts[0][h] + parts[1][h]) + (parts[2][h] + parts[3][h]); }
    __device__ double between(int h) const { return total(products[0], h); }
    __device__ double left(int h) const { return total(products[1], h); }
    __device__ double right(int h) const { return total(products[2], h); }
};

template <>
struct BlockSums<float> {
    float products[2][PARTS][4] = {};                        // [X Y]ᵀ Y and [X Y]ᵀ X

    __device__ void add(const float (&x)[AT_ONCE], const float (&y)[AT_ONCE], bool all) {
        static_assert(AT_ONCE == 2 * PARTS, "two rows a product");
#pragma unroll
        for (int q = 0; q < PARTS; q++)
            multiply_tile(products[0][q], {x[2 * q], x[2 * q + 1], y[2 * q], y[2 * q + 1]}, y[2 * q], y[2 * q + 1]);
        if (!all) return;
#pragma unroll
        for (int q = 0; q < PARTS; q++)
            multiply_tile(products[1][q], {x[2 * q], x[2 * q + 1], y[2 * q], y[2 * q + 1]}, x[2 * q], x[2 * q + 1]);
    }
    __device__ float total(const float (&parts)[PARTS][4], int e) const { return (parts[0][e] + parts[1][e]) + (parts[2][e] + parts[3][e]); }
    __device__ float between(int h) const { return total(products[0], h); }
    __device__ float left(int h) const { return total(products[1], h); }
    __device__ float right(int h) const { return total(products[0], 2 + h); }
};

// This lane's rows of WARP of a column: every fourth, or in float32 two together of every eight; zeros outside.
// inside(row): whether it is there
template <typename Inside>
__device__ __forceinline__ void load_rows(double (&x)[AT_ONCE], const double* column, Inside inside) {
#pragma unroll
    for (int q = 0; q < AT_ONCE; q++) {
        const int row = threadIdx.x % ROWS + q * ROWS;
        x[q] = inside(row) ? column[row] : 0.0;
    }
}
template <typename Inside>
__device__ __forceinline__ void load_rows(float (&x)[AT_ONCE], const float* column, Inside inside) {
#pragma unroll
    for (int q = 0; q < AT_ONCE; q += 2) {
        const int row = 2 * (threadIdx.x % ROWS) + q * ROWS;
        const RowPair<float> pair = inside(row) ? *reinterpret_cast<const RowPair<float>*>(column + row) : RowPair<float>{0, 0};
        x[q] = pair.x, x[q + 1] = inside(row + 1) ? pair.y : 0.0f;
    }
}

// Products of both blocks' columns with one another into the upper right of G; the rest of G too, if `all`.
// No product asks whether its rows are there, or products would wait for one another: those beyond the last are zeros.
template <typename Real>
__device__ void gram_of_pair(const Panel<Real>& panel, int left, int right, Real* G, bool all) {
    const int lane = threadIdx.x % WARP, g = lane / ROWS, t = lane % ROWS;  // of sums
    const Real *x_column = panel.X + (left + g) * panel.ld, *y_column = panel.X + (right + g) * panel.ld;
    BlockSums<Real> sums;
#pragma unroll 1
    for (int row0 = 0; row0 < panel.rows; row0 += WARP) {
        const auto inside = [&](int column, int row) { return column + g < panel.columns && row0 + row < panel.rows; };
        Real x[AT_ONCE], y[AT_ONCE];
        load_rows(x, x_column + row0, [&](int row) { return inside(left, row); });
        load_rows(y, y_column + row0, [&](int row) { return inside(right, row); });
        sums.add(x, y, all);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        G[g * PAIR_PITCH + SIDE + 2 * t + h] = sums.between(h);
        if (!all) continue;
        G[(SIDE + 2 * t + h) * PAIR_PITCH + g] = sums.between(h);
        G[g * PAIR_PITCH + 2 * t + h] = sums.left(h);
        G[(SIDE + g) * PAIR_PITCH + SIDE + 2 * t + h] = sums.right(h);
    }
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
template <typename Real>
__device__ Turned rotations_of_pair(const Panel<Real>& panel, int left, int right, Real* inner, PairScratch<Real>& scratch, Real tolerance,
                                    Real smooth, bool first_visit) {
    Real *of_left = inner + left * SIDE, *of_right = inner + right * SIDE;
    Turned turned = {};
    if (!first_visit && max(left, right) >= panel.columns) return turned;
    __syncwarp();                                            // all have read the scratch of the visit before
    gram_of_pair(panel, left, right, scratch.entry, first_visit);
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
                            Real tolerance, Real smooth, bool first_visit) {
    const Turned turned = rotations_of_pair(panel, left, right, inner, scratch, tolerance, smooth, first_visit);
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
    const Real smooth = sqrt(tolerance) / 4;                 // of a column's rotations a sixteenth of it each, of random signs
    Turned turned = {};
    for (int round = 0; round < ring; round++) {
        for (int i = warp; i < blocks / 2; i += warps) {
            const int left = round + i < ring ? round + i : round + i - ring;
            const int right = i == 0 ? ring : round >= i ? round - i : round - i + ring;
            turned |= turn_pair<Ahead, Some>(panel, left * SIDE, right * SIDE, end, inner, scratch[warp], tolerance, smooth, round == 0);
        }
        __syncthreads();
    }
    return __syncthreads_or(turned.rough);
}
