// common/warp/tile_product.cuh — a warp's part of C += A Bᵀ, A and B in shared memory with the inner index contiguous.
//
// A tile is cut into strips of 8 rows (of A) and 8 columns (rows of B); a grid of warps shares the strips cyclically, so
// that a matrix that fills the tile partly still occupies all warps. Strips outside the matrix are skipped.
// float64 runs on the tensor cores (mma, 16×8×4 on sm_90 and later, 8×8×4 before), float32 on the vector pipe.
#pragma once
#include "common/thread/constants.cuh"

namespace common {

constexpr int STRIP = 8;      // rows or columns of a strip
constexpr int DEPTH_STEP = 4; // inner indices of one tensor-core instruction, and of one 16-byte float32 load

// c += a bᵀ for one strip pair: lane holds a[lane / 4][lane % 4], b[lane / 4][lane % 4], c[lane / 4][2 (lane % 4) + 0, 1].
__device__ inline void multiply_strip(double (&c)[2], double a, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(c[0]), "+d"(c[1]) : "d"(a), "d"(b));
}

// The same for two strips of rows at once.
__device__ inline void multiply_strips(double (&c0)[2], double (&c1)[2], double a0, double a1, double b) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+d"(c0[0]), "+d"(c0[1]), "+d"(c1[0]), "+d"(c1[1]) : "d"(a0), "d"(a1), "d"(b));
#else
    multiply_strip(c0, a0, b);
    multiply_strip(c1, a1, b);
#endif
}

enum Side { BOTH_SIDES, LOWER_SIDE, UPPER_SIDE };  // of a tile on the diagonal, whose other strips are left out as far as all warps agree

// Strips × strips of accumulators; strip i of this warp begins at row (i · WarpRows + warp row) · STRIP of the tile.
template <typename Real, int RowStrips, int ColumnStrips>
struct TileProduct {
    Real sum[RowStrips][ColumnStrips][2] = {};

    // sum += A Bᵀ over Depth inner indices, of which `depth` count.   A: first row of this warp, rows `row_step` apart a
    // strip; B likewise; both with Pitch entries a row.   rows, columns: strips of this warp that lie in the matrix
    template <int Depth, int Pitch, int Side = BOTH_SIDES>
    __device__ void add(const Real* A, const Real* B, int row_step, int column_step, int depth, int rows, int columns) {
        const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
#pragma unroll
        for (int k = 0; k < Depth; k += DEPTH_STEP) {
            if (k >= depth) break;
            if constexpr (sizeof(Real) == sizeof(double)) add_tensor<Pitch, Side>(A + k, B + k, row_step, column_step, rows, columns, line, quad);
            else add_vector<Pitch, Side>(A + k, B + k, row_step, column_step, rows, columns, line, quad);
        }
    }

    // Calls store(row, column, value) for every entry this lane holds, rows and columns counted within the tile.
    template <typename Store>
    __device__ void each(int row0, int column0, int row_step, int column_step, Store store) const {
        const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < RowStrips; i++)
#pragma unroll
            for (int j = 0; j < ColumnStrips; j++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int column = sizeof(Real) == sizeof(double) ? 2 * quad + h : quad + 4 * h;
                    store(row0 + i * row_step + line, column0 + j * column_step + column, sum[i][j][h]);
                }
    }

  private:
    // whether strips of rows i … last meet strip j of columns, of a grid of as many warps each way
    template <int Side>
    static __device__ constexpr bool wanted(int i, int last, int j) { return Side == LOWER_SIDE ? j <= last : Side == UPPER_SIDE ? j >= i : true; }

    template <int Pitch, int Side>
    __device__ void add_tensor(const Real* A, const Real* B, int row_step, int column_step, int rows, int columns,
                               int line, int quad) {
        Real a[RowStrips], b[ColumnStrips];
#pragma unroll
        for (int i = 0; i < RowStrips; i++) a[i] = i < rows ? A[(i * row_step + line) * Pitch + quad] : Real(0);
#pragma unroll
        for (int j = 0; j < ColumnStrips; j++) b[j] = j < columns ? B[(j * column_step + line) * Pitch + quad] : Real(0);
#pragma unroll
        for (int i = 0; i + 1 < RowStrips; i += 2)
#pragma unroll
            for (int j = 0; j < ColumnStrips; j++)
                if (wanted<Side>(i, i + 1, j) && i < rows && j < columns) multiply_strips(sum[i][j], sum[i + 1][j], a[i], a[i + 1], b[j]);
        if constexpr (RowStrips % 2 == 1) {
#pragma unroll
            for (int j = 0; j < ColumnStrips; j++)
                if (wanted<Side>(RowStrips - 1, RowStrips - 1, j) && RowStrips - 1 < rows && j < columns) multiply_strip(sum[RowStrips - 1][j], a[RowStrips - 1], b[j]);
        }
    }

    template <int Pitch, int Side>
    __device__ void add_vector(const Real* A, const Real* B, int row_step, int column_step, int rows, int columns,
                               int line, int quad) {
        float4 a[RowStrips];
#pragma unroll
        for (int i = 0; i < RowStrips; i++)
            a[i] = i < rows ? *reinterpret_cast<const float4*>(A + (i * row_step + line) * Pitch) : float4();
#pragma unroll
        for (int j = 0; j < ColumnStrips; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                if (j >= columns) continue;
                const float4 b = *reinterpret_cast<const float4*>(B + (j * column_step + quad + 4 * h) * Pitch);
#pragma unroll
                for (int i = 0; i < RowStrips; i++)
                    if (wanted<Side>(i, i, j)) sum[i][j][h] += a[i].x * b.x + a[i].y * b.y + a[i].z * b.z + a[i].w * b.w;
            }
    }
};

}  // namespace common
