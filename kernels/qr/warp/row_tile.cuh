// qr/warp/row_tile.cuh — 16 rows of a tall matrix, all of its columns, on their way to and from the order of common/warp/tile_chain.cuh.
//
// Entries are as they lie in memory, two together, so that the next rows wait in as few registers as they can.
// Called by qr/cholesky_qr.cuh, by whole warps; every lane holds its part.
#pragma once
#include "common/thread/constants.cuh"
#include "common/thread/power_of_two.cuh"
#include "common/warp/tile_product.cuh"

namespace qr {
using namespace common;

constexpr int TILE_ROWS = 2 * STRIP;

// TILE_ROWS rows of an m × n matrix, n even, the last column in the last of Strips strips; zeros outside.
template <typename Real, int Strips>
struct RowTile {
    struct alignas(2 * sizeof(Real)) Two { Real x, y; };
    Two part[2][Strips];

    // Row h of a lane's two: calls visit(strip, whether its column is inside, place), a strip but the last always inside.
    template <typename Visit>
    __device__ static void along(int row, int n, Visit visit) {
#pragma unroll
        for (int i = 0; i < Strips; i++) {
            const int column = i * STRIP + 2 * (threadIdx.x % 4);
            visit(i, i + 1 < Strips || column < n, static_cast<long long>(row) * n + column);
        }
    }
    __device__ static int row_of(int h) { return threadIdx.x % WARP / 4 + h * STRIP; }

    __device__ void load(const Real* A, int row0, int m, int n) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = row0 + row_of(h);
            along(row, n, [&](int i, bool inside, long long at) {
                part[h][i] = row < m && inside ? *reinterpret_cast<const Two*>(A + at) : Two{0, 0};
            });
        }
    }
    // A branch a row, not an entry, so that its conversions overlap.
    __device__ static void store(Real* Q, const double (&x)[Strips][4], int row0, int m, int n) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = row0 + row_of(h);
            if (row >= m) continue;
            along(row, n, [&](int i, bool inside, long long at) {
                Two two;
                narrow(x[i][2 * h], two.x), narrow(x[i][2 * h + 1], two.y);
                if (inside) *reinterpret_cast<Two*>(Q + at) = two;
            });
        }
    }
    __device__ void widen(double (&x)[Strips][4]) const {
#pragma unroll
        for (int i = 0; i < Strips; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) x[i][2 * h] = part[h][i].x, x[i][2 * h + 1] = part[h][i].y;
    }
};

}  // namespace qr
