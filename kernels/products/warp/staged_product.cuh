// products/warp/staged_product.cuh — a warp's part of C += op(A) op(B), both in shared memory, on the tensor cores, by tiles of 16 × 8; what lies
// beyond their edges is read but reaches no entry of C that counts: inner indices end where the matrices do.
#pragma once
#include "common/thread/pair.cuh"
#include "common/warp/tile_chain.cuh"
#include "products/warp/fringe_sums.cuh"
#include "products/warp/share.cuh"

namespace products {
using namespace common;

__device__ __forceinline__ void add_tile(double (&sum)[4], const double (&a)[4], double b0, double b1) { multiply_tile(sum, a, b0, b1); }
__device__ __forceinline__ void add_tile(float (&sum)[4], const float (&a)[4], float b0, float b1) {
    float part[4] = {};
    multiply_tile(part, a, b0, b1);
#pragma unroll
    for (int e = 0; e < 4; e++) sum[e] += part[e];
}

// Real numbers on the tensor cores, float32 in three products of TF32 parts whose sums live short (common/warp/tile_chain.cuh).
// op(A)_ik = A[i · RowStep + k · InnerA], op(B)_kj = B[k · InnerB + j · ColumnStep]
// Spread: all of the steps that are not 1 are odd, else as FixedLayout's: no bank is asked for twice
// AllRows: every block has all tiles.   Beside: a warp's strips of columns lie beside each other
// Halves: float64 by products of four inner indices, whose factors take half the registers
// FringeRows, FringeColumns: of C behind its whole tiles, which are no tiles
template <typename Real, int Tiles, int Strips, int WarpRows, int WarpColumns, bool AllRows, int RowStep, int InnerA, int InnerB, int ColumnStep,
          bool Spread, bool Beside, bool Halves = false, int FringeRows = 0, int FringeColumns = 0>
struct TensorProduct {
    static constexpr int TILE = 16, STRIP = 8, HALF = STRIP / 2, QUADS = 4, UNIT = Halves ? HALF : STRIP;  // inner indices of a step
    static constexpr int OWN_TILES = (Tiles + WarpRows - 1) / WarpRows, OWN_STRIPS = (Strips + WarpColumns - 1) / WarpColumns;
    static constexpr int NEXT_STRIP = (Beside ? 1 : WarpColumns) * STRIP;  // columns from one of a warp's strips to the next
    static constexpr int FULL = Strips - (OWN_STRIPS - 1) * WarpColumns;  // warps of a row that have all strips, the first
    // strips that leave at once along their rows, 256 bytes at most, as even as can be; no bank twice
    static constexpr int RUNS = (OWN_STRIPS * int(sizeof(Real)) + 31) / 32, RUN = (OWN_STRIPS + RUNS - 1) / RUNS;
    static constexpr int RUN_PITCH = RUN / 2 * 2 * STRIP + STRIP, SCRATCH = STRIP * RUN_PITCH;
    using Fringe = FringeSums<Real, FringeRows, FringeColumns, OWN_TILES, OWN_STRIPS, WarpRows, WarpColumns>;
    Real sum[OWN_TILES][OWN_STRIPS][4] = {};
    Fringe fringe;
    Share first;
    int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4, tiles;

    // rows: of C that count
    __device__ TensorProduct(int warp, int rows) : first(warp, WarpRows, WarpColumns), tiles((rows + TILE - 1) / TILE) {}

    // over the inner indices 0 … Depth − 1
    template <int Depth>
    __device__ void add(const Real* A, const Real* B) {
        A += (first.row * TILE + g) * RowStep, B += (column() + g) * ColumnStep;
        first.with_share<OWN_TILES, OWN_STRIPS, WarpRows, WarpColumns, AllRows && Tiles % WarpRows == 0, Strips>(
            tiles, [&](auto rows, auto strips) { add_share<Depth, rows.value, strips.value>(A, B); });
    }

    // The same over `steps` times UNIT, where all warps have as many tiles: one piece of code, wherever inner indices end
    // Known: to the compiler
    template <bool Known>
    __device__ void add_steps(const Real* A, const Real* B, int steps) {
        static_assert(Tiles % WarpRows == 0 && Strips % WarpColumns == 0, "warps have as many tiles");
        A += (first.row * TILE + g) * RowStep + t * InnerA, B += (column() + g) * ColumnStep + t * InnerB;
        constexpr int TOGETHER = Known && UNIT == STRIP && sizeof(Real) == sizeof(double) ? 2 : 1;
#pragma unroll TOGETHER
        for (int s = 0; s < steps; s++) {
            if constexpr (Halves) half_step<OWN_TILES, OWN_STRIPS>(A + s * UNIT * InnerA, B + s * UNIT * InnerB, true);
            else step<HALF, OWN_TILES, OWN_STRIPS>(A + s * UNIT * InnerA, B + s * UNIT * InnerB, true);
        }
    }

    // The same over as many as there are, known at run time; columns: of C that count
    __device__ void add_up_to(const Real* A, const Real* B, int depth, int columns) {
        A += (first.row * TILE + g) * RowStep + t * InnerA, B += (column() + g) * ColumnStep + t * InnerB;
        const int own_tiles = per_warp(tiles - first.row, WarpRows), own_strips = per_warp((columns + STRIP - 1) / STRIP - first.column, WarpColumns);
        int k = 0;
#pragma unroll 1
        for (; k + STRIP <= depth; k += STRIP)
            step<HALF, OWN_TILES, OWN_STRIPS>(A + k * InnerA, B + k * InnerB, true, true, own_tiles, own_strips);
        if (k < depth)
            step<HALF, OWN_TILES, OWN_STRIPS, true>(A + k * InnerA, B + k * InnerB, k + HALF + t < depth, k + t < depth, own_tiles, own_strips);
    }

    // Calls store(row, column, value, value beside it) for all pairs of entries this lane holds, some beyond the edges.
    template <typename Store>
    __device__ void each_pair(Store store) const {
#pragma unroll
        for (int i = 0; i < OWN_TILES; i++)
#pragma unroll
            for (int j = 0; j < OWN_STRIPS; j++)
#pragma unroll
                for (int e = 0; e < 4; e += 2)
                    if (j < strips()) store((first.row + i * WarpRows) * TILE + g + e / 2 * STRIP, column() + j * NEXT_STRIP + 2 * t, sum[i][j][e],
                          sum[i][j][e + 1]);
    }

    // Calls store(row, column, value) for all entries of the fringe, each by one lane of all warps; also some beyond the edges.
    template <typename Store>
    __device__ void each_fringe(Store store) const {
        const bool writes = t == 0;
#pragma unroll
        for (int j = 0; j < OWN_STRIPS; j++)
#pragma unroll
            for (int r = 0; r < FringeRows; r++)
                if (j < strips() && Fringe::takes_strip(j, first.row)) {
                    const Real x = Fringe::total(fringe.rows[r][j / WarpRows]);
                    if (writes) store(Tiles * TILE + r, column() + j * NEXT_STRIP + g, x);
                }
#pragma unroll
        for (int i = 0; i < OWN_TILES; i++)
#pragma unroll
            for (int c = 0; c < FringeColumns; c++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (first.row + i * WarpRows < Tiles && Fringe::takes_tile(i, first.column)) {
                        const Real x = Fringe::total(fringe.columns[c][i / WarpColumns][e]);
                        if (writes) store((first.row + i * WarpRows) * TILE + g + e * STRIP, Strips * STRIP + c, x);
                    }
#pragma unroll
        for (int r = 0; r < FringeRows; r++)
#pragma unroll
            for (int c = 0; c < FringeColumns; c++)
                if (Fringe::takes_corner(first.row, first.column)) {
                    const Real x = Fringe::total(fringe.corner[r][c]);
                    if (writes && g == 0) store(Tiles * TILE + r, Strips * STRIP + c, x);
                }
    }

    // Calls store(row, column, value) for the same, lanes beside each other along rows: whole sectors leave wherever rows begin.
    // scratch: SCRATCH entries of this warp in shared memory, a multiple of 16 bytes
    template <typename Store>
    __device__ void each_in_rows(Real* scratch, Store store) const {
        static_assert(Beside && Strips % WarpColumns == 0, "a warp's strips are a run of columns");
        constexpr int ACROSS = RUN * STRIP < WARP ? RUN * STRIP : WARP, TOGETHER = WARP / ACROSS;  // columns and rows at once
        const int lane = threadIdx.x % WARP, r = lane / ACROSS, c = lane % ACROSS;
#pragma unroll
        for (int i = 0; i < OWN_TILES; i++)
#pragma unroll
            for (int e = 0; e < 4; e += 2)
#pragma unroll
                for (int run = 0; run < OWN_STRIPS; run += RUN) {
                    const int strips = min(RUN, OWN_STRIPS - run);
#pragma unroll
                    for (int j = 0; j < strips; j++)
                        *reinterpret_cast<Pair<Real>*>(scratch + g * RUN_PITCH + j * STRIP + 2 * t) = {sum[i][run + j][e], sum[i][run + j][e + 1]};
                    __syncwarp();
#pragma unroll
                    for (int q = r; q < STRIP; q += TOGETHER)
#pragma unroll
                        for (int j = c; j < strips * STRIP; j += ACROSS)
                            if (r < TOGETHER)
                                store((first.row + i * WarpRows) * TILE + e / 2 * STRIP + q, column() + run * STRIP + j, scratch[q * RUN_PITCH + j]);
                    __syncwarp();
                }
    }

  private:
    __device__ int strips() const { return OWN_STRIPS - (Beside && FULL < WarpColumns && first.column >= FULL); }
    __device__ int column() const { return STRIP * (Beside ? first.column * OWN_STRIPS - max(0, first.column - FULL) : first.column); }

    // The fringe's rows of op(A) and columns of op(B), seen from this lane's first of either, at one inner index.
    __device__ void read_rows(Real (&a)[Fringe::PLACES_ROW], const Real* A, bool inside) const {
#pragma unroll
        for (int r = 0; r < FringeRows; r++) a[r] = inside ? A[((Tiles - first.row) * TILE - g + r) * RowStep] : 0;
    }
    __device__ void read_columns(Real (&b)[Fringe::PLACES_COLUMN], const Real* B, bool inside) const {
#pragma unroll
        for (int c = 0; c < FringeColumns; c++) b[c] = inside ? B[(Strips * STRIP - column() - g + c) * ColumnStep] : 0;
    }

    template <int Depth, int OwnTiles, int OwnStrips>
    __device__ __forceinline__ void add_share(const Real* A, const Real* B) {
        constexpr int EACH = Spread ? 32 / sizeof(Real) : 1, ROUND = EACH * QUADS;  // inner indices of a lane behind one another
        constexpr int SPREAD = Spread ? Depth / ROUND * ROUND : 0, WHOLE = SPREAD + (Depth - SPREAD) / UNIT * UNIT;
        constexpr int TOGETHER = sizeof(Real) < sizeof(double) ? 1 : 2;  // more is more registers, and more code than is kept near
#pragma unroll TOGETHER
        for (int round = 0; round < SPREAD; round += ROUND)
#pragma unroll
            for (int k = 0; k < EACH; k += 2) {
                const int at = round + EACH * t + k;
                step<1, OwnTiles, OwnStrips>(A + at * InnerA, B + at * InnerB, true);
            }
#pragma unroll TOGETHER
        for (int k = SPREAD; k < WHOLE; k += STRIP) step<HALF, OwnTiles, OwnStrips>(A + (k + t) * InnerA, B + (k + t) * InnerB, true);
        const int last = WHOLE + t;
        if constexpr (Depth - WHOLE > HALF || (Depth > WHOLE && sizeof(Real) < sizeof(double)))
            step<HALF, OwnTiles, OwnStrips, true>(A + last * InnerA, B + last * InnerB, HALF + last < Depth, last < Depth);
        else if constexpr (Depth > WHOLE) half_step<OwnTiles, OwnStrips, true>(A + last * InnerA, B + last * InnerB, last < Depth);
    }

    // Two inner indices a lane, Apart from each other; inside, second: whether the first and the second are inside
    // tiles, strips: of OwnTiles × OwnStrips that there are
    // Partial: lanes differ in that. Without a barrier of the warp the compiler makes paths of their own for those that read and
    // those that do not, products included, which wait for each other forever
    template <int Apart, int OwnTiles, int OwnStrips, bool Partial = false>
    __device__ __forceinline__ void step(const Real* A, const Real* B, bool second, bool inside = true, int tiles = OwnTiles,
                                         int strips = OwnStrips) {
        Real a[OwnTiles][4];
#pragma unroll
        for (int i = 0; i < OwnTiles; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                a[i][e] = i < tiles && (e % 2 ? second : inside) ? A[(i * WarpRows * TILE + e / 2 * STRIP) * RowStep + e % 2 * Apart * InnerA] : 0;
        Real last_a[2][Fringe::PLACES_ROW], last_b[2][Fringe::PLACES_COLUMN];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            read_rows(last_a[e], A + e * Apart * InnerA, e ? second : inside);
            read_columns(last_b[e], B + e * Apart * InnerB, e ? second : inside);
            if (Fringe::takes_corner(first.row, first.column)) fringe.add_corner(last_a[e], last_b[e]);
#pragma unroll
            for (int i = 0; i < OwnTiles; i++)
                if (Fringe::takes_tile(i, first.column)) fringe.add_columns(i, a[i][e], a[i][e + 2], last_b[e]);
        }
#pragma unroll
        for (int j = 0; j < OwnStrips; j++) {
            if (j >= strips) break;
            const int at = j * NEXT_STRIP * ColumnStep;
            const Real b0 = inside ? B[at] : 0, b1 = second ? B[at + Apart * InnerB] : 0;
            if constexpr (Partial) { __syncwarp(); }
            if (Fringe::takes_strip(j, first.row)) fringe.add_rows(j, last_a[0], b0), fringe.add_rows(j, last_a[1], b1);
#pragma unroll
            for (int i = 0; i < OwnTiles; i++)
                if (i < tiles) add_tile(sum[i][j], a[i], b0, b1);
        }
    }

    // One inner index a lane; `inside`: whether it is; Partial: as above
    template <int OwnTiles, int OwnStrips, bool Partial = false>
    __device__ __forceinline__ void half_step(const Real* A, const Real* B, bool inside) {
        Real a[OwnTiles][2];
#pragma unroll
        for (int i = 0; i < OwnTiles; i++)
#pragma unroll
            for (int e = 0; e < 2; e++) a[i][e] = inside ? A[(i * WarpRows * TILE + e * STRIP) * RowStep] : 0;
        Real last_a[Fringe::PLACES_ROW], last_b[Fringe::PLACES_COLUMN];
        read_rows(last_a, A, inside), read_columns(last_b, B, inside);
        if (Fringe::takes_corner(first.row, first.column)) fringe.add_corner(last_a, last_b);
#pragma unroll
        for (int i = 0; i < OwnTiles; i++)
            if (Fringe::takes_tile(i, first.column)) fringe.add_columns(i, a[i][0], a[i][1], last_b);
#pragma unroll
        for (int j = 0; j < OwnStrips; j++) {
            const Real b = inside ? B[j * NEXT_STRIP * ColumnStep] : 0;
            if constexpr (Partial) { __syncwarp(); }
            if (Fringe::takes_strip(j, first.row)) fringe.add_rows(j, last_a, b);
#pragma unroll
            for (int i = 0; i < OwnTiles; i++) multiply_half_tile(sum[i][j], a[i][0], a[i][1], b);
        }
    }
};

}  // namespace products
