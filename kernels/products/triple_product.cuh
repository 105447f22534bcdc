// products/triple_product.cuh — out_b = A_b B_b C_bᵀ of a ragged batch; one block a matrix, or a tile of out of at most
// Rows rows.
//
// A warp takes 16 rows. W = A B stays in its registers as the tensor cores leave it and enters the second product so
// (products/warp/strip_pairs.cuh).
// B and C lie in shared memory as in memory, with pitches that keep reads free of bank conflicts; every entry of B is read
// from memory once, those of A by one warp. All arithmetic is float64, whatever the precision of the storage.
#pragma once
#include "common/thread/constants.cuh"
#include "common/thread/copy.cuh"
#include "common/thread/tiling.cuh"
#include "products/warp/strip_pairs.cuh"

namespace products {
using namespace common;

constexpr int WARP_ROWS = 16, PIECE_BYTES = 16;  // rows of a warp; bytes copied at once
constexpr int B_PADDING = PIECE_BYTES, C_PADDING = 64;  // bytes added to a row
constexpr int DEPTH = 64;                    // inner indices of A that a warp holds
constexpr int GROUP = 4;                     // strips of out that a warp makes at a time

__host__ __device__ constexpr int whole(int size, int step) { return (size + step - 1) / step * step; }

// target[i][k] = X[i][k] for i < rows, k < columns; zero up to `height` rows and `width` columns.
template <int Pitch, int Warps, typename Real>
__device__ void load_rows(Real* target, const Real* X, int rows, int columns, int height, int width) {
    constexpr int PIECE = PIECE_BYTES / sizeof(Real);
    const int lane = threadIdx.x % WARP;
    if (columns % PIECE == 0 && reinterpret_cast<unsigned long long>(X) % PIECE_BYTES == 0) {
        const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(target));
        for (int i = threadIdx.x / WARP; i < height; i += Warps)
            for (int k = lane * PIECE; k < width; k += WARP * PIECE) {
                const bool valid = i < rows && k < columns;
                const Real* source = X + (valid ? static_cast<long long>(i) * columns + k : 0);
                copy_piece(address + (i * Pitch + k) * sizeof(Real), source, valid);
            }
        return;
    }
    for (int i = threadIdx.x / WARP; i < height; i += Warps)
        for (int k = lane; k < width; k += WARP) {
            const bool valid = i < rows && k < columns;
            copy_async(target + i * Pitch + k, X + (valid ? static_cast<long long>(i) * columns + k : 0), valid);
        }
}

// pair = X[k], X[k + 1], zero from k = columns on; `even`: they are read together
__device__ inline void load_pair(double (&pair)[2], const double* X, int k, int columns, bool even) {
    if (even) {
        const double2 x = k < columns ? *reinterpret_cast<const double2*>(X + k) : double2();
        pair[0] = x.x, pair[1] = x.y;
        return;
    }
    for (int h = 0; h < 2; h++) pair[h] = k + h < columns ? X[k + h] : 0.0;
}

__device__ inline void load_pair(double (&pair)[2], const float* X, int k, int columns, bool) {
    for (int h = 0; h < 2; h++) pair[h] = k + h < columns ? X[k + h] : 0.0f;
}

__device__ inline double2 two(const double* X) { return *reinterpret_cast<const double2*>(X); }
__device__ inline double2 two(const float* X) { return {X[0], X[1]}; }

// W = A B for this warp's rows: W[j][half][e] at row line + 8 half, column 8 j + 2 quad + e.
template <int Inner, typename Real>
struct RowsProduct {
    static constexpr int STRIPS = Inner / STRIP, STEPS = (Inner < DEPTH ? Inner : DEPTH) / STRIP;
    double W[STRIPS][2][2] = {};
    double a[STEPS][2][2];  // inner indices base + 8 step + 2 quad + h, rows line + 8 half: a[step][half][h]

    // A: this warp's first row, `rows` of them in the matrix   m: row length
    __device__ void load(const Real* A, int rows, int m, int base) {
        const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
        const bool even = m % 2 == 0 && reinterpret_cast<unsigned long long>(A) % PIECE_BYTES == 0;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = line + half * STRIP;
            const Real* X = A + (row < rows ? static_cast<long long>(row) * m : 0);
#pragma unroll
            for (int s = 0; s < STEPS; s++) load_pair(a[s][half], X, base + s * STRIP + 2 * quad, row < rows ? m : 0, even);
        }
    }

    // B: m × n with Pitch entries a row, zeros up to whole strips of rows
    template <int Pitch>
    __device__ void add(const Real* B, int m, int n, int base) {
        const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            if (base + s * STRIP >= m) break;
            const Real* row = B + (base + s * STRIP + 2 * quad) * Pitch + line;
#pragma unroll
            for (int j = 0; j < STRIPS; j++)
                if (j * STRIP < n) multiply_pair(W[j][0], W[j][1], a[s][0], a[s][1], {row[j * STRIP], row[Pitch + j * STRIP]});
        }
    }

    // Columns from n on are zero: what stood behind B's rows is not.
    __device__ void trim(int n) {
        const int quad = threadIdx.x % 4;
#pragma unroll
        for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                if (j * STRIP + 2 * quad + e >= n) W[j][0][e] = W[j][1][e] = 0;
    }

    // GROUP strips of columns of W Cᵀ.   C: their first row, Pitch entries a row, zeros up to whole strips of n
    template <int Pitch>
    __device__ void times(double (&sum)[GROUP][2][2], const Real* C, int n, int strips) const {
        const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
#pragma unroll
        for (int j = 0; j < STRIPS; j++) {
            if (j * STRIP >= n) break;
#pragma unroll
            for (int c = 0; c < GROUP; c++)
                if (c < strips) {
                    const double2 b = two(C + (c * STRIP + line) * Pitch + j * STRIP + 2 * quad);
                    multiply_pair(sum[c][0], sum[c][1], W[j][0], W[j][1], {b.x, b.y});
                }
        }
    }
};

// A, B, C, out: buffers of all matrices   first, owner, each: common/thread/tiling.cuh
// table: 8 × batch: first entries of A_b, B_b, C_b, out_b, then rows of A_b, rows and columns of B_b, rows of C_b
// height, breadth: rows of A and of C in a tile, multiples of STRIP, height at most Rows
// shared memory: Inner and breadth rows of Inner entries and of the padding, Inner the bound of B's sides
template <typename Real, int Rows, int Inner>
__global__ __launch_bounds__(Rows / WARP_ROWS * WARP)
void triple_product(const Real* A, const Real* B, const Real* C, Real* out, const long long* table, long long batch,
                    int height, int breadth, const long long* first, const int* owner, int each) {
    extern __shared__ __align__(16) unsigned char memory[];
    constexpr int WARPS = Rows / WARP_ROWS;
    constexpr int B_PITCH = Inner + B_PADDING / sizeof(Real), C_PITCH = Inner + C_PADDING / sizeof(Real);
    Real *b = reinterpret_cast<Real*>(memory), *c = b + Inner * B_PITCH;
    const Tile tile = tile_of_block(first, owner, each);
    const long long* sizes = table + tile.matrix;
    const int p = sizes[4 * batch], m = sizes[5 * batch], n = sizes[6 * batch], q = sizes[7 * batch];
    const int across = max(1, (q + breadth - 1) / breadth), down = tile.index / across;
    const int row0 = down * height, column0 = (tile.index - down * across) * breadth;
    if (row0 >= p || q == 0) return;
    const int columns = min(breadth, q - column0);
    load_rows<B_PITCH, WARPS>(b, B + sizes[batch], m, n, whole(m, STRIP), n);
    copies_issued();
    C += sizes[2 * batch] + static_cast<long long>(column0) * n;
    load_rows<C_PITCH, WARPS>(c, C, columns, n, columns, whole(n, STRIP));
    copies_issued();

    const int top = row0 + threadIdx.x / WARP * WARP_ROWS, rows = min(row0 + height, p) - top;
    RowsProduct<Inner, Real> product;
    A += sizes[0] + (rows > 0 ? static_cast<long long>(top) * m : 0);
    product.load(A, rows, m, 0);
    copies_arrived<1>();
    __syncthreads();
    product.template add<B_PITCH>(b, m, n, 0);
    for (int base = DEPTH; base < m; base += DEPTH) {
        product.load(A, rows, m, base);
        product.template add<B_PITCH>(b, m, n, base);
    }
    product.trim(n);
    copies_arrived<0>();
    __syncthreads();
    const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
    out += sizes[3 * batch] + static_cast<long long>(top) * q + column0;
    for (int left = 0; left < columns && rows > 0; left += GROUP * STRIP) {
        double sum[GROUP][2][2] = {};
        product.template times<C_PITCH>(sum, c + left * C_PITCH, n, (columns - left + STRIP - 1) / STRIP);
#pragma unroll
        for (int s = 0; s < GROUP; s++)
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int i = line + half * STRIP, j = left + s * STRIP + 2 * quad + e;
                    if (i < rows && j < columns) out[static_cast<long long>(i) * q + j] = static_cast<Real>(sum[s][half][e]);
                }
    }
}

}  // namespace products
