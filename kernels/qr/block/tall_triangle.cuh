// qr/block/tall_triangle.cuh — T of the Gram matrix of a tall A, TᵀT = AᵀA: division by T, its product with R, whether A T⁻¹ is orthonormal.
//
// Rows are divided in registers (common/warp/tile_chain.cuh), block by block of T = D (D⁻¹ T), D its blocks on the diagonal: T's rows are
// divided by D first. Called by qr/cholesky_qr.cuh, by the whole block of Warps warps but where a warp divides rows of its own.
#pragma once
#include "common/block/cholesky.cuh"
#include "common/thread/field.cuh"
#include "qr/block/tall_gram.cuh"

namespace qr {
using namespace common;

constexpr int BLOCK_ENTRIES = STRIP * STRIP;
constexpr double SURE = 1e-6;                               // entries of QᵀQ − I by a bound, a thousand times what is there

template <int Strips, int Warps>
struct QRMemory {
    static constexpr int SLAB_ROWS = Warps * TILE_ROWS;
    static constexpr int N = (Strips + 1) / 2 * PANEL_ROWS, LD = N + DEPTH_STEP, BLOCKS = Strips * (Strips + 1) / 2;
    static constexpr int SLAB = Strips * STRIP * SLAB_ROWS;
    double slab[SLAB > N * LD ? SLAB : N * LD];             // see qr/block/tall_gram.cuh; or G and T, column-major
    double triangle[BLOCKS * BLOCK_ENTRIES];                // −T_ii⁻¹ T_ij, T_jj⁻¹ in the order of a lane's factors
    double diagonal[N], parts[Warps];
};

// Block number `block` of the upper triangle of MOST_STRIPS strips, by columns: that many columns begin behind block 0, not behind it.
struct UpperBlock {
    static constexpr int MOST_STRIPS = 10;
    int i, j;
    __device__ explicit UpperBlock(int block) : j(0) {
#pragma unroll
        for (int column = 1; column < MOST_STRIPS; column++) j += block >= column * (column + 1) / 2;
        i = block - j * (j + 1) / 2;
    }
};

// Whether a row of blocks is divided by that on the diagonal beforehand, so that no product waits for a quotient. A quotient's error is not
// made good by the columns that follow then: the condition of eight columns times float64's rounding, still nothing to float32.
template <typename Real> constexpr bool ROWS_DIVIDED = sizeof(Real) == sizeof(float);

// X ← X T⁻¹ for 16 rows.
template <typename Real, int Strips>
__device__ __forceinline__ void divide(double (&x)[Strips][4], const double* triangle) {
    const double* mine = triangle + 2 * (threadIdx.x % WARP);
#pragma unroll
    for (int i = 0; i < Strips; i++) {
        double given[4], quotient[4] = {}, left[4];
        as_factor(given, x[i]);
        const double2 inverse = *reinterpret_cast<const double2*>(mine + (i * (i + 1) / 2 + i) * BLOCK_ENTRIES);
        if constexpr (!ROWS_DIVIDED<Real>) multiply_tile(quotient, given, inverse.x, inverse.y), as_factor(left, quotient);
#pragma unroll
        for (int j = i + 1; j < Strips; j++) {
            const double2 factor = *reinterpret_cast<const double2*>(mine + (j * (j + 1) / 2 + i) * BLOCK_ENTRIES);
            multiply_tile(x[j], ROWS_DIVIDED<Real> ? given : left, factor.x, factor.y);
        }
        if constexpr (ROWS_DIVIDED<Real>) multiply_tile(quotient, given, inverse.x, inverse.y);
#pragma unroll
        for (int e = 0; e < 4; e++) x[i][e] = quotient[e];
    }
}

// R's upper triangle, block by block, row-major, in place of T's factors.
template <typename Real, int Strips, int Warps>
__device__ void fetch_triangle(const Real* R, int n, QRMemory<Strips, Warps>& memory) {
    constexpr int BLOCKS = QRMemory<Strips, Warps>::BLOCKS, EACH = (BLOCKS + Warps - 1) / Warps;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    typename RowTile<Real, Strips>::Two part[EACH];         // all on their way together
#pragma unroll
    for (int q = 0; q < EACH; q++) {
        const UpperBlock b(min(warp + q * Warps, BLOCKS - 1));
        const int row = b.i * STRIP + g, column = b.j * STRIP + 2 * t;
        part[q] = {0, 0};
        if (row < n && column < n) part[q] = *reinterpret_cast<const typename RowTile<Real, Strips>::Two*>(R + row * n + column);
    }
#pragma unroll
    for (int q = 0; q < EACH; q++) {
        double* target = memory.triangle + min(warp + q * Warps, BLOCKS - 1) * BLOCK_ENTRIES + 2 * lane;
        target[0] = part[q].x, target[1] = part[q].y;
    }
    __syncthreads();
}

// R ← T `before`, upper triangular, or T itself where that is null; T in place of the slab, its factors no longer needed. first: R has no zeros yet
template <typename Real, int Strips, int Warps>
__device__ void multiply_triangle(const Real* before, Real* R, int n, QRMemory<Strips, Warps>& memory, bool first) {
    using Two = typename RowTile<Real, Strips>::Two;
    constexpr int LD = QRMemory<Strips, Warps>::LD, BLOCKS = QRMemory<Strips, Warps>::BLOCKS;
    const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    if (before) fetch_triangle(before, n, memory);
    for (int block = threadIdx.x / WARP; block < BLOCKS; block += Warps) {
        const UpperBlock b(block);
        double sum[2] = {};
        if (!before)
            for (int h = 0; h < 2; h++) sum[h] = memory.slab[(b.j * STRIP + 2 * t + h) * LD + b.i * STRIP + g];
        else
            for (int l = b.i * STRIP + t; l < (b.j + 1) * STRIP; l += DEPTH_STEP)
                multiply_strip(sum, memory.slab[l * LD + b.i * STRIP + g],
                               memory.triangle[b.j * (b.j + 1) / 2 * BLOCK_ENTRIES + l * STRIP + g]);
        const int row = b.i * STRIP + g, column = b.j * STRIP + 2 * t, below = b.j * STRIP + g;
        Two two;
        narrow(sum[0], two.x), narrow(sum[1], two.y);
        if (row < n && column < n) *reinterpret_cast<Two*>(R + row * n + column) = two;
        if (first && b.i < b.j && below < n) *reinterpret_cast<Two*>(R + below * n + b.i * STRIP + 2 * t) = {0, 0};
    }
    __syncthreads();                                        // all are done with R in place of the factors
}

// The factors that divide() reads, from T in place of the slab: those on the diagonal by substitution, a lane a column, then the others.
template <typename Real, int Strips, int Warps>
__device__ void invert_blocks(QRMemory<Strips, Warps>& memory) {
    constexpr int LD = QRMemory<Strips, Warps>::LD;
    static_assert(Strips <= WARP / STRIP * Warps, "all at once");
    const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4, c = lane % STRIP, j = lane / STRIP * Warps + threadIdx.x / WARP;
    const double* diagonal = memory.slab + min(j, Strips - 1) * STRIP * (LD + 1);
    const double pivot = diagonal[c * (LD + 1)], near = reciprocal(pivot), own = pivot > 0 ? near : 0.0;
    double x[STRIP];
#pragma unroll
    for (int i = STRIP - 1; i >= 0; i--) {
        x[i] = i == c;
#pragma unroll
        for (int l = STRIP - 1; l > i; l--) x[i] = fma(-diagonal[l * LD + i], x[l], x[i]);
        x[i] *= __shfl_sync(EVERY_LANE, own, i, STRIP);
    }
    if (j < Strips) write_wide(memory.triangle + (j * (j + 1) / 2 + j) * BLOCK_ENTRIES + c * STRIP, x);
    if constexpr (ROWS_DIVIDED<Real>) __syncthreads();
    for (int block = threadIdx.x / WARP; block < QRMemory<Strips, Warps>::BLOCKS; block += Warps) {
        const UpperBlock b(block);
        if (b.i == b.j) continue;
        const double *T = memory.slab + b.j * STRIP * LD + b.i * STRIP, *inverse = memory.triangle + (b.i * (b.i + 1) / 2 + b.i) * BLOCK_ENTRIES;
        double product[2] = {-T[g * LD + 2 * t], -T[g * LD + 2 * t + 1]};
        if constexpr (ROWS_DIVIDED<Real>) {
            product[0] = product[1] = 0;
#pragma unroll
            for (int l = t; l < t + STRIP; l += DEPTH_STEP) multiply_strip(product, -T[g * LD + l], inverse[l * STRIP + g]);
        }
        for (int h = 0; h < 2; h++) memory.triangle[block * BLOCK_ENTRIES + 2 * lane + h] = product[h];
    }
}

// X = T⁻¹, or I, upper triangular, from T's factors.
template <typename Real, int Strips, int Warps>
__device__ void write_inverse(Real* X, int n, const QRMemory<Strips, Warps>& memory, bool identity) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    for (int row0 = threadIdx.x / WARP * TILE_ROWS; row0 < n; row0 += Warps * TILE_ROWS) {
        double x[Strips][4];
#pragma unroll
        for (int i = 0; i < Strips; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) x[i][e] = row0 + g + e / 2 * STRIP == i * STRIP + 2 * t + e % 2;
        if (!identity) divide<Real>(x, memory.triangle);
        RowTile<Real, Strips>::store(X, x, row0, n, n);
    }
}

// Whether A T⁻¹ will be orthonormal in float32, the same in every thread, for the T of A's own Gram matrix, D² its diagonal: rounding of G, of T
// and of the division is |E_ij| ≤ 2 (m + n) u D_i D_j, and |T⁻ᵀ E T⁻¹| ≤ 2 (m + n) u max_j ‖D T⁻¹ e_j‖₁². T is overwritten, in the slab.
template <int Strips, int Warps>
__device__ __noinline__ bool surely_orthonormal(int m, int n, QRMemory<Strips, Warps>& memory) {
    constexpr double ROUNDING = 1.2e-16;                    // u, a little more
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    for (int row0 = threadIdx.x / WARP * TILE_ROWS; row0 < n; row0 += Warps * TILE_ROWS) {
        double x[Strips][4], root[2];                       // 16 rows of D
        for (int h = 0; h < 2; h++) root[h] = sqrt(memory.diagonal[row0 + g + h * STRIP]);
#pragma unroll
        for (int i = 0; i < Strips; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) x[i][e] = row0 + g + e / 2 * STRIP == i * STRIP + 2 * t + e % 2 ? root[e / 2] : 0.0;
        divide<float>(x, memory.triangle);
#pragma unroll
        for (int i = 0; i < Strips; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                double sum = fabs(x[i][h]) + fabs(x[i][2 + h]);
                for (int apart = 4; apart < WARP; apart *= 2) sum += __shfl_xor_sync(EVERY_LANE, sum, apart);
                if (g == 0) memory.slab[row0 / TILE_ROWS * Strips * STRIP + i * STRIP + 2 * t + h] = sum;
            }
    }
    __syncthreads();
    bool sure = true;
    for (int c = threadIdx.x; c < n; c += Warps * WARP) {
        double sum = 0;
        for (int tile = 0; tile * TILE_ROWS < n; tile++) sum += memory.slab[tile * Strips * STRIP + c];
        sure &= memory.diagonal[c] > 0 && 2 * ROUNDING * (m + n) * sum * sum <= SURE;
    }
    return __reduce_max_sync(EVERY_LANE, __syncthreads_and(sure));  // told, for lanes to stay together
}

}  // namespace qr
