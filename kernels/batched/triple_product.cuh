// batched/triple_product.cuh — out_b = A_b B_b C_bᵀ of a ragged batch; one block a matrix, or a tile of out of at most
// Rows × Columns.
//
// All three operands lie in shared memory, the inner index contiguous (Bᵀ for the first product) and rows PITCH apart,
// as warp/tile_product.cuh reads them without bank conflicts. W = A B replaces A there, so every entry of B is read once
// and W never reaches memory.
#pragma once
#include "thread/constants.cuh"
#include "thread/copy.cuh"
#include "thread/tiling.cuh"
#include "warp/tile_product.cuh"

constexpr int WARP_ROWS = 2, WARP_COLUMNS = 4, TRIPLE_THREADS = WARP_ROWS * WARP_COLUMNS * WARP;
constexpr int ROW_STEP = WARP_ROWS * STRIP, COLUMN_STEP = WARP_COLUMNS * STRIP;
constexpr int PADDING = 4;  // entries added to a row
constexpr int RUN = 8;      // lanes along the contiguous direction of the operand that is turned

// target[i][k] = X[i][k] for i < rows, k < inner; zero up to `height` rows and the next DEPTH_STEP of k.
template <int Pitch, typename Real>
__device__ void load_rows(Real* target, const Real* X, int rows, int inner, int height) {
    const int depth = (inner + DEPTH_STEP - 1) / DEPTH_STEP * DEPTH_STEP;
    for (int i = threadIdx.x / WARP; i < height; i += TRIPLE_THREADS / WARP)
        for (int k = threadIdx.x % WARP; k < depth; k += WARP) {
            const bool valid = i < rows && k < inner;
            copy_async(target + i * Pitch + k, X + (valid ? static_cast<long long>(i) * inner + k : 0), valid);
        }
}

// target[j][k] = X[k][j] for j < columns, k < inner; zero likewise.
template <int Pitch, typename Real>
__device__ void load_turned(Real* target, const Real* X, int inner, int columns, int height) {
    const int depth = (inner + DEPTH_STEP - 1) / DEPTH_STEP * DEPTH_STEP;
    for (int j = threadIdx.x % RUN; j < height; j += RUN)
        for (int k = threadIdx.x / RUN; k < depth; k += TRIPLE_THREADS / RUN) {
            const bool valid = j < columns && k < inner;
            copy_async(target + j * Pitch + k, X + (valid ? static_cast<long long>(k) * columns + j : 0), valid);
        }
}

__host__ __device__ constexpr int pieces(int size, int step) { return (size + step - 1) / step; }

// A, B, C, out: buffers of all matrices   first, owner, each: thread/tiling.cuh
// table: 8 × batch: first entries of A_b, B_b, C_b, out_b, then rows of A_b, rows and columns of B_b, rows of C_b
// height, breadth: rows of A and of C in shared memory, multiples of STRIP that no tile exceeds
// shared memory: (height + Inner + breadth) × (Inner + PADDING), Inner the bound of B's sides
template <typename Real, int Rows, int Columns, int Inner>
__global__ __launch_bounds__(TRIPLE_THREADS)
void triple_product(const Real* A, const Real* B, const Real* C, Real* out, const long long* table, long long batch,
                    int height, int breadth, const long long* first, const int* owner, int each) {
    extern __shared__ __align__(16) unsigned char memory[];
    constexpr int PITCH = Inner + PADDING;
    Real *a = reinterpret_cast<Real*>(memory), *b = a + height * PITCH, *c = b + Inner * PITCH;
    const Tile tile = tile_of_block(first, owner, each);
    const long long* sizes = table + tile.matrix;
    const int p = sizes[4 * batch], m = sizes[5 * batch], n = sizes[6 * batch], q = sizes[7 * batch];
    const int across = max(1, (q + breadth - 1) / breadth), line = tile.index / across;
    const int row0 = line * height, column0 = (tile.index - line * across) * breadth;
    if (row0 >= p || q == 0) return;
    const int rows = min(height, p - row0), columns = min(breadth, q - column0);
    load_rows<PITCH>(a, A + sizes[0] + static_cast<long long>(row0) * m, rows, m, (rows + STRIP - 1) / STRIP * STRIP);
    load_turned<PITCH>(b, B + sizes[batch], m, n, (n + STRIP - 1) / STRIP * STRIP);
    copies_issued();
    load_rows<PITCH>(c, C + sizes[2 * batch] + static_cast<long long>(column0) * n, columns, n,
                     (columns + STRIP - 1) / STRIP * STRIP);
    copies_issued();

    const int warp = threadIdx.x / WARP, top = warp / WARP_COLUMNS * STRIP, left = warp % WARP_COLUMNS * STRIP;
    const int row_strips = pieces(rows - top, ROW_STEP);
    {
        TileProduct<Real, pieces(Rows, ROW_STEP), pieces(Inner, COLUMN_STEP)> W;
        copies_arrived<1>();
        __syncthreads();
        W.template add<Inner, PITCH>(a + top * PITCH, b + left * PITCH, ROW_STEP, COLUMN_STEP, m, row_strips,
                                     pieces(n - left, COLUMN_STEP));
        __syncthreads();  // A has been read by all
        const int depth = (n + DEPTH_STEP - 1) / DEPTH_STEP * DEPTH_STEP;
        W.each(top, left, ROW_STEP, COLUMN_STEP, [&](int i, int k, Real sum) {
            if (i < (rows + STRIP - 1) / STRIP * STRIP && k < depth) a[i * PITCH + k] = k < n ? sum : Real(0);
        });
    }
    copies_arrived<0>();
    __syncthreads();
    TileProduct<Real, pieces(Rows, ROW_STEP), pieces(Columns, COLUMN_STEP)> product;
    product.template add<Inner, PITCH>(a + top * PITCH, c + left * PITCH, ROW_STEP, COLUMN_STEP, n, row_strips,
                                       pieces(columns - left, COLUMN_STEP));
    out += sizes[3 * batch];
    product.each(row0 + top, column0 + left, ROW_STEP, COLUMN_STEP, [&](int i, int j, Real sum) {
        if (i < row0 + rows && j < column0 + columns) out[static_cast<long long>(i) * q + j] = sum;
    });
}
