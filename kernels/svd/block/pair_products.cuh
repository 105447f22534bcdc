// Products of block Jacobi's panel pair X = [X_I X_J], rows × 2 Width in device memory (svd/block/jacobi_panels.cuh):
//
//     G = Xᵀ X, upper triangle,    X ← X + X E,   E = J − I
//
// float64 runs on its tensor cores, float32 on those of TF32 with three terms (common/warp/tile_chain.cuh). Only the correction
// X E meets rounded operands: it fades as J tends to the identity, and X itself is added on the vector pipe.
// The rows of X are shared by the warps; in X E no warp waits for another. Called by svd/svd_gram.cuh, by the whole block.
#pragma once

#include "common/thread/copy.cuh"
#include "common/warp/tile_product.cuh"
#include "svd/block/jacobi_panels.cuh"
#include "svd/warp/line_product.cuh"

namespace svd {
using namespace common;

constexpr int PAIR_WARPS = 4, PAIR_THREADS = PAIR_WARPS * WARP;

// Shared memory of a pair: G and J, column-major of leading dimension LD (8 modulo 32 banks: fragments are read without
// conflicts); slabs of X while J is not there yet.
template <typename Real, int Width>
struct PairMemory {
    static constexpr int TILE = 2 * Width, LD = TILE + STRIP, DEPTH = 32, PITCH = DEPTH + 4;
    static constexpr int SQUARE = TILE * LD, SLAB = TILE * PITCH;
    static constexpr int REALS = 2 * SQUARE + 2 * TILE;   // and the diagonal and norms
    static_assert(2 * SLAB <= SQUARE, "two slabs lie where J will");
};

// slab[c][k] = X(row0 + k, c)
template <int Width>
__device__ void load_rows(double* slab, const PanelPair<Width, double>& X, int row0) {
    using Memory = PairMemory<double, Width>;
    constexpr int EACH = 16 / sizeof(double), UNITS = Memory::DEPTH / EACH;
#pragma unroll
    for (int e = threadIdx.x; e < Memory::TILE * UNITS; e += PAIR_THREADS) {
        int c = e / UNITS, k = e % UNITS * EACH;
        const double* source = X.has(c) ? X.column(c) + row0 + k : X.W;
        copy_piece(static_cast<unsigned>(__cvta_generic_to_shared(slab + c * Memory::PITCH + k)), source, X.has(c));
    }
}

// G(i, j) for i ≤ j; the caller synchronizes
template <int Width>
__device__ void gram(double* G, double* slabs, const PanelPair<Width, double>& X, int rows) {
    using Memory = PairMemory<double, Width>;
    constexpr int ACROSS = 2, STEP = ACROSS * STRIP;      // a square of 2 × 2 warps takes the strips by turns
    int warp = threadIdx.x / WARP, warp_row = warp / ACROSS, warp_column = warp % ACROSS;
    TileProduct<double, Memory::TILE / STEP, Memory::TILE / STEP> product;
    int count = rows / Memory::DEPTH;
    load_rows(slabs, X, 0);
    copies_issued();
    for (int slab = 0; slab < count; slab++) {
        if (slab + 1 < count) load_rows(slabs + (slab + 1) % 2 * Memory::SLAB, X, (slab + 1) * Memory::DEPTH);
        copies_issued();
        copies_arrived<1>();
        __syncthreads();
        const double* stage = slabs + slab % 2 * Memory::SLAB;
        product.template add<Memory::DEPTH, Memory::PITCH>(stage + warp_row * STRIP * Memory::PITCH,
                                                           stage + warp_column * STRIP * Memory::PITCH, STEP, STEP,
                                                           Memory::DEPTH, Memory::TILE, Memory::TILE);
        __syncthreads();
    }
    product.each(warp_row * STRIP, warp_column * STRIP, STEP, STEP,
                 [&](int i, int j, double sum) { if (i <= j) G[j * Memory::LD + i] = sum; });
}

// Float32: the triangle of tiles 16 × 8. Half of the warps takes the first and the last row of tiles, half the two between,
// ten tiles each; either half shares the rows of X.
struct Triangle {
    static constexpr int STRIPS = 8, TILE_ROWS = STRIPS / 2, TILES = 10;
    int half;
    __device__ constexpr int upper() const { return STRIPS - 2 * half; }                 // tiles in the upper of the two rows
    __device__ constexpr int row(int t) const { return t < upper() ? half : TILE_ROWS - 1 - half; }
    __device__ constexpr int strip(int t) const { return 2 * row(t) + (t < upper() ? t : t - upper()); }
};

template <int Half>
__device__ void add_tiles(LineSums<Triangle::TILES, float>& sum, const unsigned (&high)[Triangle::STRIPS][2],
                          const unsigned (&low)[Triangle::STRIPS][2]) {
    constexpr Triangle triangle = {Half};
    const auto add = [&](const unsigned (&x)[Triangle::STRIPS][2], const unsigned (&y)[Triangle::STRIPS][2]) {
#pragma unroll
        for (int t = 0; t < Triangle::TILES; t++) {
            const int a = 2 * triangle.row(t), b = triangle.strip(t);
            multiply_tf32(sum[t], x[a][0], x[a][1], x[a + 1][0], x[a + 1][1], y[b][0], y[b][1]);
        }
    };
    add(low, high);
    add(high, low);
    add(high, high);
}

// x[j] ← X(row0 + 2 t, 8 j + g) and the entry below it: in a product over rows their order is free
template <int Width>
__device__ void load_strips(float2 (&x)[Triangle::STRIPS], const PanelPair<Width, float>& X, int row0) {
    const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
#pragma unroll
    for (int j = 0; j < Triangle::STRIPS; j++) {
        const int c = j * STRIP + line;
        x[j] = X.has(c) ? *reinterpret_cast<const float2*>(X.column(c) + row0 + 2 * quad) : float2{0, 0};
    }
}

template <int Width>
__device__ void gram(float* G, float*, const PanelPair<Width, float>& X, int rows) {
    constexpr int LD = PairMemory<float, Width>::LD, SHARES = PAIR_WARPS / 2;
    static_assert(2 * Width == Triangle::STRIPS * STRIP, "panels of 32 columns");
    const int warp = threadIdx.x / WARP, share = warp / 2, line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
    const Triangle triangle = {warp % 2};
    LineSums<Triangle::TILES, float> sum = {};
    float2 x[Triangle::STRIPS];
    load_strips(x, X, share * STRIP);
    for (int row0 = share * STRIP; row0 < rows; row0 += SHARES * STRIP) {
        unsigned high[Triangle::STRIPS][2], low[Triangle::STRIPS][2];
#pragma unroll
        for (int j = 0; j < Triangle::STRIPS; j++) {
            const Tf32Parts first(x[j].x), second(x[j].y);
            high[j][0] = first.high, high[j][1] = second.high, low[j][0] = first.low, low[j][1] = second.low;
        }
        if (row0 + SHARES * STRIP < rows) load_strips(x, X, row0 + SHARES * STRIP);
        if (triangle.half == 0) add_tiles<0>(sum, high, low);
        else add_tiles<1>(sum, high, low);
    }
    for (int turn = 0; turn < SHARES; turn++) {
        if (turn > 0) __syncthreads();
        if (share != turn) continue;
#pragma unroll
        for (int t = 0; t < Triangle::TILES; t++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int i = (2 * triangle.row(t) + e / 2) * STRIP + line, j = triangle.strip(t) * STRIP + 2 * quad + e % 2;
                float* g = G + j * LD + i;
                *g = turn == 0 ? sum[t][e] : *g + sum[t][e];
            }
    }
}

// an entry of E where add_correction reads it, in float32 in two parts
__device__ inline void split_correction(double x, double& E, double&) { E = x; }
__device__ inline void split_correction(float x, float& E, float& low) {
    const Tf32Parts parts(x);
    E = __uint_as_float(parts.high), low = __uint_as_float(parts.low);
}

// J ← E = J − I in two parts
template <int Width, typename Real>
__device__ void correction_of(Real* J, Real* low) {
    using Memory = PairMemory<Real, Width>;
    for (int e = threadIdx.x; e < Memory::TILE * Memory::TILE; e += PAIR_THREADS) {
        int i = e % Memory::TILE, c = e / Memory::TILE, at = c * Memory::LD + i;
        split_correction(J[at] - Real(i == c), J[at], low[at]);
    }
}

// visit(X(row0 + g, 8 u + 2 t), u) for the strips u of columns of one panel
template <int Width, typename Real, typename Visit>
__device__ void each_strip(const PanelPair<Width, Real>& X, int panel, int row0, Visit visit) {
    if (panel == 1 && !X.paired) return;
    Real* entry = X.column(panel * Width) + row0 + line_entry(X.ld);
#pragma unroll
    for (int u = 0; u < Width / STRIP; u++, entry += STRIP * X.ld) visit(entry, panel * Width / STRIP + u);
}

// X ← X + X E for the first `rows` rows; no warp waits for another.   E, low   as split_correction leaves them
template <int Width, typename Real>
__device__ void add_correction(const Real* E, const Real* low, const PanelPair<Width, Real>& X, int rows) {
    constexpr int STRIPS = Width / STRIP, LD = PairMemory<Real, Width>::LD;
    for (int row0 = threadIdx.x / WARP * LINES; row0 < rows; row0 += PAIR_WARPS * LINES) {
        Lines<2 * STRIPS, Real> x = {};
#pragma unroll
        for (int panel = 0; panel < 2; panel++)
            each_strip(X, panel, row0, [&](const Real* entry, int u) {
#pragma unroll
                for (int e = 0; e < 4; e++) x.set(u, e, entry[line_step(X.ld, e)]);
            });
#pragma unroll
        for (int panel = 0; panel < 2; panel++) {
            LineSums<STRIPS, Real> y = {};
            add_product<LD, true>(y, x, E + panel * Width * LD, low + panel * Width * LD);
            each_strip(X, panel, row0, [&](Real* entry, int u) {
#pragma unroll
                for (int e = 0; e < 4; e++) entry[line_step(X.ld, e)] = x.get(u, e) + y[u % STRIPS][e];
            });
        }
    }
}

}  // namespace svd
