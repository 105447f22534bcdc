// systems/lu_update.cuh — what is behind N columns of L: C −= L U, or C −= L Lᵀ below the diagonal.
//
// One block a tile of C, which passes through shared memory as both factors do: so device memory is read and written by whole
// rows of a tile, 16 bytes at a time where all rows begin at multiples of 16 bytes. C is on its way during the product, which is
// summed from zero on the tensor cores (common/warp/tile_chain.cuh) and subtracted once. What lies outside is nowhere read or written;
// in its place there are any numbers, on which no other depends.
#pragma once

#include "common/thread/copy.cuh"
#include "common/thread/field.cuh"
#include "common/thread/pair.cuh"
#include "common/warp/tile_chain.cuh"
#include "products/thread/copy_pieces.cuh"
#include "systems/thread/place.cuh"

namespace systems {
using namespace common;
using namespace products;

constexpr int UPDATE_EDGE = 64, UPDATE_SIDE = 2, UPDATE_THREADS = UPDATE_SIDE * UPDATE_SIDE * WARP;
constexpr int UPDATE_INNER = 8, PIECE_BYTES = 16;

// Entries between rows of L, of U and of C: what a warp reads at once lies in different banks.
template <int N> constexpr int LEFT_PITCH = N + 4;
template <typename Scalar> constexpr int RIGHT_PITCH = UPDATE_EDGE + 32 / sizeof(Scalar);
constexpr int SUM_PITCH = UPDATE_EDGE + 8;

template <typename Scalar, int Each>
struct alignas(Each * sizeof(Scalar)) Piece { Scalar entries[Each]; };

// visit(row, column, count) for the thread's pieces of rows × columns ≤ UPDATE_EDGE × Columns, count ≤ Each entries of a row
template <int Columns, int Each, typename Visit>
__device__ void each_piece(int rows, int columns, Visit visit) {
    constexpr int ACROSS = Columns / Each;
#pragma unroll 8
    for (int r = threadIdx.x / ACROSS; r < rows; r += UPDATE_THREADS / ACROSS) {
        const int c = threadIdx.x % ACROSS * Each;
        if (c < columns) visit(r, c, min(Each, columns - c));
    }
}

// slab[r · Pitch + c] ← X[r · ld + c], asynchronously
template <int Columns, int Pitch, int Each, typename Scalar>
__device__ void load_pieces(Scalar* slab, const Scalar* X, long long ld, int rows, int columns) {
    each_piece<Columns, Each>(rows, columns, [&](int r, int c, int count) {
        copy_leading<Each * sizeof(Scalar)>(slab + r * Pitch + c, X + r * ld + c, count * static_cast<int>(sizeof(Scalar)));
    });
}

template <int Columns, int Pitch, typename Scalar>
__device__ void load_slab(Scalar* slab, const Scalar* X, long long ld, int rows, int columns, bool wide) {
    if (wide) load_pieces<Columns, Pitch, PIECE_BYTES / sizeof(Scalar)>(slab, X, ld, rows, columns);
    else load_pieces<Columns, Pitch, 1>(slab, X, ld, rows, columns);
    copies_issued();
}

template <int Each, typename Scalar>
__device__ void store_pieces(Scalar* C, long long ld, const Scalar* slab, int rows, int columns) {
    using Whole = Piece<Scalar, Each>;
    each_piece<UPDATE_EDGE, Each>(rows, columns, [&](int r, int c, int count) {
        const Whole piece = *reinterpret_cast<const Whole*>(slab + r * SUM_PITCH + c);
        if (count == Each) *reinterpret_cast<Whole*>(C + r * ld + c) = piece;
        else {
#pragma unroll
            for (int e = 0; e < Each; e++)
                if (e < count) C[r * ld + c + e] = piece.entries[e];
        }
    });
}

// A warp's STRIPS × STRIPS tiles of L U, of 16 × 8 each, from row `down` and column `across` on.
template <int Strips, int Columns, typename Scalar>
struct UpdateSums {
    Scalar sum[Strips][Columns][4] = {};

    // Turned: the rows of U lie as columns do in L.
    template <int N, bool Turned>
    __device__ void add(const Scalar* L, const Scalar* U, int down, int across) {
        const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
        constexpr int HALF = UPDATE_INNER / 2, LD = LEFT_PITCH<N>, RD = RIGHT_PITCH<Scalar>;
#pragma unroll 2
        for (int k = 0; k < N; k += UPDATE_INNER) {  // the inner indices of a lane: k + t and k + t + HALF
            Scalar a[Strips][4];
#pragma unroll
            for (int i = 0; i < Strips; i++)
#pragma unroll
                for (int e = 0; e < 4; e++) a[i][e] = L[(down + i * 16 + g + e / 2 * 8) * LD + k + t + e % 2 * HALF];
#pragma unroll
            for (int j = 0; j < Columns; j++) {
                const int column = across + j * 8 + g;
                const Scalar b0 = Turned ? U[column * LD + k + t] : U[(k + t) * RD + column];
                const Scalar b1 = Turned ? U[column * LD + k + t + HALF] : U[(k + t + HALF) * RD + column];
#pragma unroll
                for (int i = 0; i < Strips; i++) multiply_tile(sum[i][j], a[i], b0, b1);
            }
        }
    }

    // C −= sums, where belongs(row, column)
    template <typename Belongs>
    __device__ void subtract(Scalar* C, int down, int across, Belongs belongs) const {
        const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < Strips; i++)
#pragma unroll
            for (int j = 0; j < Columns; j++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int row = down + i * 16 + g + h * 8, column = across + j * 8 + 2 * t;
                    auto& c = *reinterpret_cast<Pair<Scalar>*>(C + row * SUM_PITCH + column);
                    if (belongs(row, column)) c.x = minus(c.x, sum[i][j][2 * h]);
                    if (belongs(row, column + 1)) c.y = minus(c.y, sum[i][j][2 * h + 1]);
                }
    }
};

// C −= L U, or C −= L Lᵀ, for the tile of C at a row and a column of A; L begins at column `inner`, U at row `above`.
// memory: UPDATE_EDGE rows of L and of C, and N rows of U or UPDATE_EDGE rows of L     allowed(): whether C may be written
template <int N, bool Symmetric, typename Scalar, typename Allowed>
__device__ __forceinline__ void update_tile(Scalar* A, long long ld, int inner, int above, int row, int rows, int column,
                                            int columns, unsigned char* memory, Allowed allowed) {
    constexpr int SPAN = UPDATE_EDGE / UPDATE_SIDE;
    Scalar *C = reinterpret_cast<Scalar*>(memory), *L = C + UPDATE_EDGE * SUM_PITCH, *U = L + UPDATE_EDGE * LEFT_PITCH<N>;
    const bool wide = (reinterpret_cast<unsigned long long>(A) | ld * sizeof(Scalar)) % PIECE_BYTES == 0;
    load_slab<N, LEFT_PITCH<N>>(L, A + row * ld + inner, ld, rows, N, wide);
    if (Symmetric) load_slab<N, LEFT_PITCH<N>>(U, A + column * ld + inner, ld, columns, N, wide);
    else load_slab<UPDATE_EDGE, RIGHT_PITCH<Scalar>>(U, A + above * ld + column, ld, N, columns, wide);
    A += row * ld + column;
    load_slab<UPDATE_EDGE, SUM_PITCH>(C, A, ld, rows, columns, wide);
    copies_arrived<1>();
    __syncthreads();
    const int warp = threadIdx.x / WARP, down = warp / UPDATE_SIDE * SPAN, across = warp % UPDATE_SIDE * SPAN;
    const bool works = down < rows && across < columns;
    UpdateSums<SPAN / 16, SPAN / 8, Scalar> product;
    if (works) product.template add<N, Symmetric>(L, U, down, across);
    copies_arrived<0>();
    __syncthreads();
    if (!allowed()) return;
    if (works) product.subtract(C, down, across, [&](int i, int j) { return !Symmetric || column + j <= row + i; });
    __syncthreads();
    if (wide) store_pieces<PIECE_BYTES / sizeof(Scalar)>(A, ld, C, rows, columns);
    else store_pieces<1>(A, ld, C, rows, columns);
}

// LU, info, table, m, n: as in systems/lu_panel.cuh     inner: the first column of L
// C: rows from inner + N on, columns from there on before `stop`, in tiles_down × tiles_across tiles of each matrix
// Shared memory: see update_tile.
template <typename Scalar, int N, bool Symmetric>
__global__ __launch_bounds__(UPDATE_THREADS, 16 / sizeof(Scalar))
void lu_update(Scalar* LU, const int* info, const long long* table, int m, int n, int inner, int stop, int tiles_down,
               int tiles_across) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int area = tiles_down * tiles_across, tile = blockIdx.x % area;
    const Place p(table, m, n, blockIdx.x / area);
    const int row = inner + N + tile / tiles_across * UPDATE_EDGE, column = inner + N + tile % tiles_across * UPDATE_EDGE;
    stop = min(stop, p.n);
    if (row >= p.m || column >= stop || Symmetric && column > row) return;
    const int verdict = info[p.index];  // waited for with what is copied
    update_tile<N, Symmetric>(LU + p.target, static_cast<long long>(p.n), inner, inner, row, min(UPDATE_EDGE, p.m - row), column,
                              min(UPDATE_EDGE, stop - column), memory,
                              [=] { return verdict == 0 || !Symmetric && verdict != NOT_FINITE; });
}

}  // namespace systems
