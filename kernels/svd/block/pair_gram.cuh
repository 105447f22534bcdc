// svd/block/pair_gram.cuh — the Gram matrix of two blocks of eight columns of a panel in shared memory, by a warp on the tensor cores.
//
// The leading dimension is pair_pitch(rows): no bank is asked for twice, neither here, for four rows of eight columns one by one (float32:
// for eight rows in pairs), nor by svd/block/pair_sweep.cuh for sixteen rows, in pairs, of four columns.
// Called by svd/block/pair_sweep.cuh, by whole warps; the result lies in shared memory.
#pragma once

#include "common/warp/tile_chain.cuh"
#include "common/warp/tile_product.cuh"
#include "svd/block/jacobi_sweep.cuh"
#include "svd/warp/pair_jacobi.cuh"

namespace svd {
using namespace common;

constexpr int PARTS = 4;                                     // independent sums of a product
constexpr int ROWS = 4;                                      // that an instruction multiplies at once
constexpr int AT_ONCE = WARP / ROWS, FEWER = 2;               // rows of a lane whose products are under way together; where less is left

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

    template <bool All, int Rows>
    __device__ void add(const double (&x)[Rows], const double (&y)[Rows]) {
#pragma unroll
        for (int q = 0; q < Rows; q++) multiply_strip(products[0][q % PARTS], x[q], y[q]);
        if constexpr (!All) return;
#pragma unroll
        for (int q = 0; q < Rows; q++) {
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

    template <bool All, int Rows>
    __device__ void add(const float (&x)[Rows], const float (&y)[Rows]) {
        static_assert(Rows % 2 == 0, "two rows a product");
#pragma unroll
        for (int q = 0; q < Rows / 2; q++)
            multiply_tile(products[0][q % PARTS], {x[2 * q], x[2 * q + 1], y[2 * q], y[2 * q + 1]}, y[2 * q], y[2 * q + 1]);
        if constexpr (!All) return;
#pragma unroll
        for (int q = 0; q < Rows / 2; q++)
            multiply_tile(products[1][q % PARTS], {x[2 * q], x[2 * q + 1], y[2 * q], y[2 * q + 1]}, x[2 * q], x[2 * q + 1]);
    }
    __device__ float total(const float (&parts)[PARTS][4], int e) const { return (parts[0][e] + parts[1][e]) + (parts[2][e] + parts[3][e]); }
    __device__ float between(int h) const { return total(products[0], h); }
    __device__ float left(int h) const { return total(products[1], h); }
    __device__ float right(int h) const { return total(products[0], 2 + h); }
};

// This lane's rows of a column, of ROWS times as many: every fourth, or in float32 two together of every eight; zeros outside.
// inside(row): whether it is there
template <int Rows, typename Inside>
__device__ __forceinline__ void load_rows(double (&x)[Rows], const double* column, Inside inside) {
#pragma unroll
    for (int q = 0; q < Rows; q++) {
        const int row = threadIdx.x % ROWS + q * ROWS;
        x[q] = inside(row) ? column[row] : 0.0;
    }
}
template <int Rows, typename Inside>
__device__ __forceinline__ void load_rows(float (&x)[Rows], const float* column, Inside inside) {
#pragma unroll
    for (int q = 0; q < Rows; q += 2) {
        const int row = 2 * (threadIdx.x % ROWS) + q * ROWS;
        const RowPair<float> pair = inside(row) ? *reinterpret_cast<const RowPair<float>*>(column + row) : RowPair<float>{0, 0};
        x[q] = pair.x, x[q + 1] = inside(row + 1) ? pair.y : 0.0f;
    }
}

// Products of ROWS times Rows rows from row0 on, where x and y point.
template <int Rows, bool Whole, bool All, typename Real, typename Inside>
__device__ __forceinline__ void add_some(BlockSums<Real>& sums, const Real* x_column, const Real* y_column, int row0, Inside inside) {
    Real x[Rows], y[Rows];
    load_rows(x, x_column, [&](int row) { return Whole || inside(row0 + row, 0); });
    load_rows(y, y_column, [&](int row) { return Whole || inside(row0 + row, 1); });
    sums.template add<All>(x, y);
}

// Products of rows row0 … end, Rows times ROWS of them together, as long as these are Whole, or all of them, each entry asked for. Returns
// the first row left. No product asks whether its rows are there, or products would wait for one another: those that are not are zeros.
// x, y: this lane's columns   inside(row, side): whether there is such an entry
template <int Rows, bool Whole, bool All, typename Real, typename Inside>
__device__ __forceinline__ int add_rows(BlockSums<Real>& sums, const Real* x_column, const Real* y_column, int row0, int end, Inside inside) {
    constexpr int STEP = Rows * ROWS;
#pragma unroll 1
    for (; row0 < end && (!Whole || row0 + STEP <= end); row0 += STEP)
        add_some<Rows, Whole, All>(sums, x_column + row0, y_column + row0, row0, inside);
    return row0;
}

template <bool All, typename Real>
__device__ __forceinline__ void write_gram(const BlockSums<Real>& sums, Real* G) {
    const int lane = threadIdx.x % WARP, g = lane / ROWS, t = lane % ROWS;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        G[g * PAIR_PITCH + SIDE + 2 * t + h] = sums.between(h);
        if constexpr (!All) continue;
        G[(SIDE + 2 * t + h) * PAIR_PITCH + g] = sums.between(h);
        G[g * PAIR_PITCH + 2 * t + h] = sums.left(h);
        G[(SIDE + g) * PAIR_PITCH + SIDE + 2 * t + h] = sums.right(h);
    }
}

// Products of both blocks' columns with one another into the upper right of G; All: the rest of G too.
template <bool All, typename Real>
__device__ void gram_of_pair(const Panel<Real>& panel, int left, int right, Real* G) {
    const int g = threadIdx.x % WARP / ROWS, rows = panel.rows;
    const Real *x = panel.X + (left + g) * panel.ld, *y = panel.X + (right + g) * panel.ld;
    const auto inside = [&](int row, int side) { return (side ? right : left) + g < panel.columns && row < rows; };
    BlockSums<Real> sums;
    if (max(left, right) + SIDE > panel.columns) {
        add_rows<AT_ONCE, false, All>(sums, x, y, 0, rows, inside);
        return write_gram<All>(sums, G);
    }
    const auto add_rest = [&](int row0) {
        row0 = add_rows<AT_ONCE, true, All>(sums, x, y, row0, rows, inside);
        row0 = add_rows<FEWER, true, All>(sums, x, y, row0, rows, inside);
        add_rows<FEWER, false, All>(sums, x, y, row0, rows, inside);
    };
    constexpr int MANY = 2 * ROWS * AT_ONCE;
    if (rows >= MANY) {                                      // sums begin with a product then, not with zeros
        add_some<2 * AT_ONCE, true, All>(sums, x, y, 0, inside);
        if (rows > MANY) add_rest(MANY);
    } else add_rest(0);
    write_gram<All>(sums, G);
}

}  // namespace svd
