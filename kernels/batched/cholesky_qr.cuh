// batched/cholesky_qr.cuh — Q_b R_b = A_b, A_b tall, its columns few and independent, by Cholesky factors; one block a matrix.
//
//     G = QᵀQ = TᵀT,   Q ← Q T⁻¹,   R ← T R,   from Q = A, R = I on until Q is orthonormal
//
// (CholeskyQR2 and its shifted form: Fukaya et al. 2020.) A pivot that rounding has eaten up waits for the next pass
// (block/cholesky.cuh), so that only columns that depend on one another to the last bit fail. All arithmetic is in float64: a float32
// matrix has no condition that its Gram matrix could not resolve, and is done after one pass as a rule.
// Where T = I + F is almost I, a float64 Q stays as it is and F is told: who multiplies Q has less to divide by T.
// Slabs of rows stream by: a warp divides 16 rows by T in its registers, since sums of the tensor cores are factors of the next
// product, and adds its share of G from the slab in shared memory (block/tall_gram.cuh).
#pragma once
#include "block/cholesky.cuh"
#include "block/reduce.cuh"
#include "block/tall_gram.cuh"
#include "warp/row_tile.cuh"

constexpr int QR_WARPS = 6, QR_THREADS = QR_WARPS * WARP;
constexpr int SLAB_ROWS = QR_WARPS * TILE_ROWS;
constexpr int BLOCK_ENTRIES = STRIP * STRIP;
constexpr int MOST_PASSES = 6;
constexpr double ONE_MORE_PASS = 0.25;                      // ‖G − I‖_F² up to here is gone after it: eigenvalues from ½ to 3⁄2
constexpr double FIRST_ORDER = 2e-8;                        // their squares are rounding

// Entries of G − I that are as good as zero.
template <typename Real> constexpr double ORTHONORMAL = sizeof(Real) == sizeof(double) ? 8 * 2.2e-16 : 1e-7;
// And of those whose fourth powers are rounding (block/divide_vectors.cuh), float64 alone: float32 is orthonormal before.
template <typename Real> constexpr double ALMOST = sizeof(Real) == sizeof(double) ? 1e-5 : 0;

template <int Strips>
struct QRMemory {
    static constexpr int N = (Strips + 1) / 2 * PANEL_ROWS, LD = N + DEPTH_STEP, BLOCKS = Strips * (Strips + 1) / 2;
    static_assert(N * LD <= Strips * STRIP * SLAB_ROWS, "G fits in the slab");
    double slab[Strips * STRIP * SLAB_ROWS];                // see block/tall_gram.cuh; or G and T, column-major
    double triangle[BLOCKS * BLOCK_ENTRIES];                // −T_ij, T_jj⁻¹ in the order of a lane's factors
    double diagonal[N], parts[QR_WARPS];
};

// Block number `block` of the upper triangle, by columns.
struct UpperBlock {
    int i, j;
    __device__ explicit UpperBlock(int block) : j(0) {
        while ((j + 1) * (j + 2) / 2 <= block) j++;
        i = block - j * (j + 1) / 2;
    }
};

// X ← X T⁻¹ for 16 rows.
template <int Strips>
__device__ __forceinline__ void divide(double (&x)[Strips][4], const double* triangle) {
    const double* mine = triangle + 2 * (threadIdx.x % WARP);
#pragma unroll
    for (int i = 0; i < Strips; i++) {
        const double2 inverse = *reinterpret_cast<const double2*>(mine + (i * (i + 1) / 2 + i) * BLOCK_ENTRIES);
        double y[4] = {}, left[4];
        multiply_tile(y, x[i], inverse.x, inverse.y);
        as_factor(left, y);
#pragma unroll
        for (int e = 0; e < 4; e++) x[i][e] = y[e];
#pragma unroll
        for (int j = i + 1; j < Strips; j++) {
            const double2 factor = *reinterpret_cast<const double2*>(mine + (j * (j + 1) / 2 + i) * BLOCK_ENTRIES);
            multiply_tile(x[j], left, factor.x, factor.y);
        }
    }
}

// Q ← `from`, divided by T if `turn`; returns this warp's part of QᵀQ, if asked for.
template <typename Real, int Strips>
__device__ TallGram<Strips, QR_WARPS> pass(const Real* from, Real* Q, int m, int n, QRMemory<Strips>& memory, bool turn, bool gram) {
    const int row = threadIdx.x / WARP * TILE_ROWS;
    TallGram<Strips, QR_WARPS> product;
    RowTile<Real, Strips> tile;
    tile.load(from, row, m, n);
    for (int row0 = 0; row0 < m; row0 += SLAB_ROWS) {
        double x[Strips][4];
        tile.widen(x);
        if (turn) {
            divide(x, memory.triangle);
            tile.store(Q, x, row0 + row, m, n);
        }
        if (gram) __syncthreads();                          // all are done with the slab before
        if (gram) product.store(memory.slab, x, row);
        tile.load(from, row0 + SLAB_ROWS + row, m, n);
        if (!gram) continue;
        __syncthreads();
        product.add(memory.slab, min(SLAB_ROWS, m - row0));
    }
    return product;
}

// The parts as G's upper triangle, in place of the slab. Returns, the same in every thread, how far G is from I.
struct Departure { bool none, tiny, almost, small; };

template <typename Real, int Strips>
__device__ Departure gather_gram(const TallGram<Strips, QR_WARPS>& product, QRMemory<Strips>& memory, int n) {
    constexpr int N = QRMemory<Strips>::N, LD = QRMemory<Strips>::LD;
    bool any = false, second = false, third = false;
    double squares = 0;
    __syncthreads();                                        // all are done with the slab
    for (int e = threadIdx.x; e < N * LD; e += QR_THREADS) memory.slab[e] = 0;
    for (int i = threadIdx.x; i < N; i += QR_THREADS) memory.diagonal[i] = 0;
    __syncthreads();
    product.each([&](int i, int c, double sum) {
        if (i > c || c >= n) return;
        const double apart = fabs(sum - (i == c));
        any |= !(apart <= ORTHONORMAL<Real>), second |= !(apart <= FIRST_ORDER), third |= !(apart <= ALMOST<Real>);
        squares += (i == c ? 1 : 2) * apart * apart;
        memory.slab[c * LD + i] = sum;
        if (i == c) memory.diagonal[c] = sum;
    });
    squares = block_sum<QR_WARPS>(squares, memory.parts);
    any = __syncthreads_or(any), second = __syncthreads_or(second), third = __syncthreads_or(third);
    return {!any, !second, !third, squares <= ONE_MORE_PASS};
}

// R's upper triangle, block by block, row-major, in place of T's factors.
template <typename Real, int Strips>
__device__ void fetch_triangle(const Real* R, int n, QRMemory<Strips>& memory) {
    constexpr int BLOCKS = QRMemory<Strips>::BLOCKS, EACH = (BLOCKS + QR_WARPS - 1) / QR_WARPS;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    typename RowTile<Real, Strips>::Two part[EACH];         // all on their way together
#pragma unroll
    for (int q = 0; q < EACH; q++) {
        const UpperBlock b(min(warp + q * QR_WARPS, BLOCKS - 1));
        const int row = b.i * STRIP + g, column = b.j * STRIP + 2 * t;
        part[q] = {0, 0};
        if (row < n && column < n) part[q] = *reinterpret_cast<const typename RowTile<Real, Strips>::Two*>(R + row * n + column);
    }
#pragma unroll
    for (int q = 0; q < EACH; q++) {
        double* target = memory.triangle + min(warp + q * QR_WARPS, BLOCKS - 1) * BLOCK_ENTRIES + 2 * lane;
        target[0] = part[q].x, target[1] = part[q].y;
    }
    __syncthreads();
}

// R ← T R, or T itself at first; T in place of the slab, its factors no longer needed.
template <typename Real, int Strips>
__device__ void multiply_triangle(Real* R, int n, QRMemory<Strips>& memory, bool first) {
    constexpr int LD = QRMemory<Strips>::LD, BLOCKS = QRMemory<Strips>::BLOCKS;
    const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    if (!first) fetch_triangle(R, n, memory);
    for (int block = threadIdx.x / WARP; block < BLOCKS; block += QR_WARPS) {
        const UpperBlock b(block);
        double sum[2] = {};
        if (first)
            for (int h = 0; h < 2; h++) sum[h] = memory.slab[(b.j * STRIP + 2 * t + h) * LD + b.i * STRIP + g];
        else
            for (int l = b.i * STRIP + t; l < (b.j + 1) * STRIP; l += DEPTH_STEP)
                multiply_strip(sum, memory.slab[l * LD + b.i * STRIP + g],
                               memory.triangle[b.j * (b.j + 1) / 2 * BLOCK_ENTRIES + l * STRIP + g]);
        for (int h = 0; h < 2; h++) {
            const int row = b.i * STRIP + g, column = b.j * STRIP + 2 * t + h;
            if (row >= n || column >= n) continue;
            R[row * n + column] = sum[h];
            if (first && b.i < b.j) R[column * n + row] = 0;
        }
    }
    __syncthreads();                                        // all are done with R in place of the factors
}

// The factors that divide() reads, from T in place of the slab: those on the diagonal by substitution, a lane a column.
template <int Strips>
__device__ void invert_blocks(QRMemory<Strips>& memory) {
    constexpr int LD = QRMemory<Strips>::LD;
    const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    for (int j = threadIdx.x / WARP; j < Strips; j += QR_WARPS) {
        const double* T = memory.slab + j * STRIP * (LD + 1);
        const double pivot = T[lane % STRIP * (LD + 1)], inverse = pivot > 0 ? 1 / pivot : 0.0;
        double x[STRIP];
#pragma unroll
        for (int i = STRIP - 1; i >= 0; i--) {
            x[i] = i == lane;
#pragma unroll
            for (int l = STRIP - 1; l > i; l--) x[i] = fma(-T[l * LD + i], x[l], x[i]);
            x[i] *= __shfl_sync(EVERY_LANE, inverse, i);
        }
        double* target = memory.triangle + (j * (j + 1) / 2 + j) * BLOCK_ENTRIES;
#pragma unroll
        for (int i = 0; i < STRIP; i++)
            if (lane < STRIP) target[lane * STRIP + i] = x[i];
    }
    for (int block = threadIdx.x / WARP; block < QRMemory<Strips>::BLOCKS; block += QR_WARPS) {
        const UpperBlock b(block);
        if (b.i == b.j) continue;
        const double* T = memory.slab + b.j * STRIP * LD + b.i * STRIP;
        for (int h = 0; h < 2; h++) memory.triangle[block * BLOCK_ENTRIES + 2 * lane + h] = -T[g * LD + 2 * t + h];
    }
}

// T in place of G: to first order where that is enough.
template <int Strips>
__device__ void factor_gram(QRMemory<Strips>& memory, int n, bool tiny) {
    constexpr int N = QRMemory<Strips>::N, LD = QRMemory<Strips>::LD;
    if (!tiny) return cholesky<N, LD, QR_WARPS, true>(memory.slab, memory.diagonal, n);
    for (int i = threadIdx.x; i < n; i += QR_THREADS) memory.slab[i * (LD + 1)] = (1 + memory.diagonal[i]) / 2;
    __syncthreads();
}

// F = T − I of T in place of the slab, or 0.
template <int Strips>
__device__ void write_rest(double* F, int n, const QRMemory<Strips>& memory, bool none) {
    F += blockIdx.x * 1LL * n * n;
    for (int e = threadIdx.x; e < n * n; e += QR_THREADS) {
        const int i = e / n, c = e % n;
        F[e] = none || i > c ? 0.0 : memory.slab[c * QRMemory<Strips>::LD + i] - (i == c);
    }
}

// A, Q: batch × m × n, n even   R, F: batch × n × n, F of float64 alone; Q (I + F)⁻¹ is orthonormal, else Q and R are NaN
template <typename Real, int Strips>
__global__ __launch_bounds__(QR_THREADS, 2)
void cholesky_qr(const Real* A, Real* Q, Real* R, double* F, int m, int n) {
    extern __shared__ __align__(16) unsigned char bytes[];
    auto& memory = *reinterpret_cast<QRMemory<Strips>*>(bytes);
    const long long b = blockIdx.x;
    A += b * m * n, Q += b * m * n, R += b * n * n;
    enum { MORE, LAST, LEFT } then = MORE;                  // one pass without a look at what comes of it; or none
    for (int count = 0; then != LEFT; count++) {
        const auto product = pass<Real>(count > 1 ? Q : A, Q, m, n, memory, count > 0, then == MORE);
        if (then == LAST) break;
        const Departure departure = gather_gram<Real>(product, memory, n);
        if (count > 0 && departure.none) break;
        if (count == MOST_PASSES) {
            const Real nan = Floating<Real>::largest * Real(0) / Real(0);
            for (int e = threadIdx.x; e < n * n; e += QR_THREADS) R[e] = nan;
            for (int e = threadIdx.x; e < m * n; e += QR_THREADS) Q[e] = nan;
            break;
        }
        then = count > 0 && departure.almost ? LEFT : departure.small ? LAST : MORE;
        factor_gram(memory, n, departure.tiny);
        multiply_triangle(R, n, memory, count == 0);
        if (then != LEFT) invert_blocks(memory);
        __syncthreads();
    }
    if constexpr (sizeof(Real) == sizeof(double)) write_rest(F, n, memory, then != LEFT);
}
