// warp/row_tile.cuh — 16 rows of a tall matrix, all of its columns, on their way to and from the order of warp/tile_chain.cuh.
//
// Entries are as they lie in memory, two together, so that the next rows wait in as few registers as they can.
// Called by batched/cholesky_qr.cuh, by whole warps; every lane holds its part.
#pragma once
#include "thread/constants.cuh"
#include "warp/tile_product.cuh"

constexpr int TILE_ROWS = 2 * STRIP;

// TILE_ROWS rows of an m × n matrix, n even and at most STRIP Strips; zeros outside.
template <typename Real, int Strips>
struct RowTile {
    struct alignas(2 * sizeof(Real)) Two { Real x, y; };
    Two part[2][Strips];

    template <typename Visit>
    __device__ static void each(int row0, int m, int n, Visit visit) {
        const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < Strips; i++) {
                const int row = row0 + g + h * STRIP, column = i * STRIP + 2 * t;
                visit(h, i, row < m && column < n, static_cast<long long>(row) * n + column);
            }
    }
    __device__ void load(const Real* A, int row0, int m, int n) {
        each(row0, m, n, [&](int h, int i, bool inside, long long at) {
            part[h][i] = inside ? *reinterpret_cast<const Two*>(A + at) : Two{0, 0};
        });
    }
    __device__ static void store(Real* Q, const double (&x)[Strips][4], int row0, int m, int n) {
        each(row0, m, n, [&](int h, int i, bool inside, long long at) {
            if (inside) *reinterpret_cast<Two*>(Q + at) = {Real(x[i][2 * h]), Real(x[i][2 * h + 1])};
        });
    }
    __device__ void widen(double (&x)[Strips][4]) const {
#pragma unroll
        for (int i = 0; i < Strips; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) x[i][2 * h] = part[h][i].x, x[i][2 * h + 1] = part[h][i].y;
    }
};
