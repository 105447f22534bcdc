// products/warp/fringe_sums.cuh — the last rows and columns of C += op(A) op(B), too few for a tile of the tensor cores: on the vector pipe, from
// the factors that a warp has in its registers for its tiles. 129² is 8 × 16 tiles and a fringe of one, not 9 × 17.
//
// Lane (g, t) = (lane / 4, lane % 4) adds up what it holds of inner indices; the four of equal g are added at the end. Of a strip of
// columns that several warps have in common one takes the rows' entries, the next strip another, and so for the columns' entries.
#pragma once
#include "common/thread/constants.cuh"
#include "products/thread/multiply_add.cuh"

namespace products {
using namespace common;

constexpr int STRIP_LANES = 4;  // that hold other inner indices of the same row or column

// Rows, Columns: of the fringe   OwnTiles, OwnStrips: most tiles of rows and strips of columns of a warp
template <typename Real, int Rows, int Columns, int OwnTiles, int OwnStrips, int WarpRows, int WarpColumns>
struct FringeSums {
    static constexpr int TILES = (OwnTiles + WarpColumns - 1) / WarpColumns, STRIPS = (OwnStrips + WarpRows - 1) / WarpRows;
    static constexpr int PLACES_ROW = Rows ? Rows : 1, PLACES_COLUMN = Columns ? Columns : 1;  // no array is empty
    static constexpr int COUNT = Rows * STRIPS + 2 * Columns * TILES + Rows * Columns;
    Real rows[PLACES_ROW][STRIPS] = {}, columns[PLACES_COLUMN][TILES][2] = {}, corner[PLACES_ROW][PLACES_COLUMN] = {};

    // Whether a warp at (row, column) of the grid takes the rows' entries in its strip j, the columns' in its tile i, the corner.
    static __device__ bool takes_strip(int j, int row) { return Rows > 0 && j % WarpRows == row; }
    static __device__ bool takes_tile(int i, int column) { return Columns > 0 && i % WarpColumns == column; }
    static __device__ bool takes_corner(int row, int column) { return Rows > 0 && Columns > 0 && row == 0 && column == 0; }

    // + a b, of an inner index: a of the fringe's rows, b of a column in strip j
    __device__ __forceinline__ void add_rows(int j, const Real (&a)[PLACES_ROW], Real b) {
#pragma unroll
        for (int r = 0; r < Rows; r++) rows[r][j / WarpRows] = multiply_add(rows[r][j / WarpRows], a[r], b);
    }
    // a, below: of the lane's two rows in tile i; b: of the fringe's columns
    __device__ __forceinline__ void add_columns(int i, Real a, Real below, const Real (&b)[PLACES_COLUMN]) {
#pragma unroll
        for (int c = 0; c < Columns; c++) {
            Real(&sum)[2] = columns[c][i / WarpColumns];
            sum[0] = multiply_add(sum[0], a, b[c]), sum[1] = multiply_add(sum[1], below, b[c]);
        }
    }
    __device__ __forceinline__ void add_corner(const Real (&a)[PLACES_ROW], const Real (&b)[PLACES_COLUMN]) {
#pragma unroll
        for (int r = 0; r < Rows; r++)
#pragma unroll
            for (int c = 0; c < Columns; c++) corner[r][c] = multiply_add(corner[r][c], a[r], b[c]);
    }

    // The sum over the lanes of equal g, in all of them.
    static __device__ Real total(Real x) {
#pragma unroll
        for (int distance = STRIP_LANES / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(EVERY_LANE, x, distance);
        return x;
    }
};

}  // namespace products
