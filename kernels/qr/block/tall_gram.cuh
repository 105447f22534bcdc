// qr/block/tall_gram.cuh — G = QᵀQ of tall Q, slabs of rows at a time, on the tensor cores in float64: tiles of 16 × 8 entries of G's
// upper triangle, those of a warp known at compile time, so that no product is asked whether it is there.
//
// A slab lies column by column. Two rows of a column are one factor of a lane, read together (16 bytes); pairs change places with the
// column, pair XOR swap(column): no bank is asked for twice, neither for these nor for the entries of a tile that are written.
// Called by qr/cholesky_qr.cuh, by the whole block of Warps warps.
#pragma once
#include "common/warp/tile_chain.cuh"
#include "qr/warp/row_tile.cuh"

namespace qr {
using namespace common;

constexpr int STEP_ROWS = 2 * STRIP;                          // of a slab, between which no pair changes its place

// Tile number `number` of the upper triangle of `Strips` strips of STRIP columns, row by row: rows 16 i …, columns 8 j …
struct GramTile {
    int i, j;
    __host__ __device__ constexpr GramTile(int strips, int number) : i(0), j(0) {
        while (number >= strips - 2 * i) number -= strips - 2 * i++;
        j = 2 * i + number;
    }
};

template <int Strips, int Warps>
struct TallGram {
    static constexpr int ROWS = Warps * TILE_ROWS, COLUMNS = Strips * STRIP;          // of a slab
    static constexpr int TILES = (Strips + 1) / 2 * (Strips - (Strips - 1) / 2), MOST = (TILES + Warps - 1) / Warps;
    static_assert(ROWS % STEP_ROWS == 0, "whole steps");
    double sum[MOST][4] = {};

    __device__ static int swap(int column) { return column / 2 % 4 * 2 ^ column % 2 * 4; }
    __device__ static int place(int row, int column) { return column * ROWS + (row / 2 ^ swap(column)) * 2 + row % 2; }

    // 16 rows of the slab by a warp, as common/warp/tile_chain.cuh holds them.
    __device__ static void store(double* slab, const double (&x)[Strips][4], int row0) {
        const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
        double* at[2] = {slab + place(row0 + g, 2 * t), slab + place(row0 + g + STRIP, 2 * t)};  // one column more: exchanged
#pragma unroll
        for (int i = 0; i < Strips; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) at[e / 2 ^ e % 2][(i * STRIP + e % 2) * ROWS] = x[i][e];
    }

    // sum += this warp's tiles of SᵀS, S the slab's leading `rows` rows, those to the next multiple of STEP_ROWS zeros.
    __device__ void add(const double* slab, int rows) { of_warp<0>([&](auto share) { share.add(*this, slab, rows); }); }

    // Calls visit(row, column, entry of G) for this warp's entries, some of them below the diagonal or behind the last row.
    template <typename Visit>
    __device__ void each(Visit visit) const { of_warp<0>([&](auto share) { share.each(*this, visit); }); }

  private:
    template <int Warp>
    struct Share {
        static constexpr int FIRST = Warp * TILES / Warps, COUNT = (Warp + 1) * TILES / Warps - FIRST;

        __device__ void add(TallGram& gram, const double* slab, int rows) const {
            const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
            const double *at = slab + place(2 * t, g), *next = slab + place(2 * t + STRIP, g);
#pragma unroll 1
            for (int row = 0; row < rows; row += STRIP) {
                const double* after = at + STEP_ROWS;
                double left[4];
                multiply<0>(gram.sum, left, at);
                at = next, next = after;
            }
        }
        template <typename Visit>
        __device__ void each(const TallGram& gram, Visit visit) const { visit_from<0>(gram.sum, visit); }

      private:
        // The Q-th tile and those after it; left: rows of the one before
        template <int Q>
        __device__ static void multiply(double (&sum)[MOST][4], double (&left)[4], const double* at) {
            constexpr GramTile tile(Strips, FIRST + Q), before(Strips, FIRST + (Q ? Q - 1 : 0));
            if constexpr (Q == 0 || tile.i != before.i) {
                const double2 upper = pair(at, 2 * tile.i), lower = 2 * tile.i + 1 < Strips ? pair(at, 2 * tile.i + 1) : double2{0, 0};
                as_factor(left, {upper.x, upper.y, lower.x, lower.y});
            }
            const double2 right = pair(at, tile.j);
            multiply_tile(sum[Q], left, right.x, right.y);
            if constexpr (Q + 1 < COUNT) multiply<Q + 1>(sum, left, at);
        }
        template <int Q, typename Visit>
        __device__ static void visit_from(const double (&sum)[MOST][4], Visit visit) {
            constexpr GramTile tile(Strips, FIRST + Q);
            const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
            for (int e = 0; e < 4; e++) visit(tile.i * TILE_ROWS + g + e / 2 * STRIP, tile.j * STRIP + 2 * t + e % 2, sum[Q][e]);
            if constexpr (Q + 1 < COUNT) visit_from<Q + 1>(sum, visit);
        }
        __device__ static double2 pair(const double* at, int strip) { return *reinterpret_cast<const double2*>(at + strip * STRIP * ROWS); }
    };

    template <int Warp, typename Work>
    __device__ static void of_warp(Work work) {
        if (Warp + 1 == Warps || threadIdx.x / WARP == Warp) work(Share<Warp>());
        else if constexpr (Warp + 1 < Warps) of_warp<Warp + 1>(work);
    }
};

}  // namespace qr
