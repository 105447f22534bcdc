// batched/cholesky_qr.cuh — Q_b R_b = A_b, A_b tall, its columns few and independent, by Cholesky factors; one block a matrix.
//
//     G = QᵀQ = TᵀT,   Q ← Q T⁻¹,   R ← T R,   from Q = A, R = I on until Q is orthonormal
//
// (CholeskyQR2 and its shifted form: Fukaya et al. 2020.) A pivot that rounding has eaten up waits for the next pass
// (block/cholesky.cuh), so that only columns that depend on one another to the last bit fail. All arithmetic is in float64: a float32
// matrix has no condition that its Gram matrix could not resolve, and is done after one pass as a rule.
// Slabs of rows stream by: a warp divides 16 rows by T in its registers, since sums of the tensor cores are factors of the next
// product, and adds its share of G from the slab in shared memory.
#pragma once
#include "block/cholesky.cuh"
#include "block/reduce.cuh"
#include "warp/tile_chain.cuh"

constexpr int QR_WARPS = 6, QR_THREADS = QR_WARPS * WARP;
constexpr int SHARE = 3;                                    // strips of columns, either way, of a warp's part of G
constexpr int TILE_ROWS = 16, SLAB_ROWS = QR_WARPS * TILE_ROWS, SLAB_PITCH = SLAB_ROWS + DEPTH_STEP;
constexpr int BLOCK_ENTRIES = STRIP * STRIP;
constexpr int MOST_PASSES = 6;
constexpr double ONE_MORE_PASS = 0.25;                      // ‖G − I‖_F² up to here is gone after it: eigenvalues from ½ to 3⁄2
constexpr double FIRST_ORDER = 2e-8;                        // their squares are rounding

// Entries of G − I that are as good as zero.
template <typename Real> constexpr double ORTHONORMAL = sizeof(Real) == sizeof(double) ? 8 * 2.2e-16 : 1e-7;

template <int Strips>
struct QRMemory {
    static constexpr int N = (Strips + 1) / 2 * PANEL_ROWS, LD = N + DEPTH_STEP, BLOCKS = Strips * (Strips + 1) / 2;
    static_assert(Strips <= 3 * SHARE && N * LD <= Strips * STRIP * SLAB_PITCH, "G fits in the slab, a warp a part of it");
    double slab[Strips * STRIP * SLAB_PITCH];               // column-major; or G and T, column-major
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

// 16 rows of a matrix in the order of warp/tile_chain.cuh; zeros outside.
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
__device__ TileProduct<double, SHARE, SHARE> pass(const Real* from, Real* Q, int m, int n, QRMemory<Strips>& memory, bool turn, bool gram) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    const UpperBlock share(warp);
    const int rows = min(SHARE, Strips - SHARE * share.i), columns = min(SHARE, Strips - SHARE * share.j);
    constexpr int STEP = SHARE * STRIP * SLAB_PITCH;
    TileProduct<double, SHARE, SHARE> product;
    RowTile<Real, Strips> tile;
    tile.load(from, warp * TILE_ROWS, m, n);
    for (int row0 = 0; row0 < m; row0 += SLAB_ROWS) {
        double x[Strips][4];
        tile.widen(x);
        if (turn) {
            divide(x, memory.triangle);
            tile.store(Q, x, row0 + warp * TILE_ROWS, m, n);
        }
        if (gram) __syncthreads();                          // all are done with the slab before
        if (gram)
#pragma unroll
        for (int i = 0; i < Strips; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                memory.slab[(i * STRIP + 2 * t + e % 2) * SLAB_PITCH + warp * TILE_ROWS + g + e / 2 * STRIP] = x[i][e];
        tile.load(from, row0 + SLAB_ROWS + warp * TILE_ROWS, m, n);
        if (gram) __syncthreads();
        const auto add = [&](int depth) {
            product.template add<SLAB_ROWS, SLAB_PITCH>(memory.slab + share.i * STEP, memory.slab + share.j * STEP, STRIP, STRIP, depth, rows, columns);
        };
        if (!gram || columns <= 0) continue;
        if (row0 + SLAB_ROWS <= m) add(SLAB_ROWS);          // no step asks whether it is the last
        else add(m - row0);
    }
    return product;
}

// The parts as G's upper triangle, in place of the slab. Returns, the same in every thread, how far G is from I.
struct Departure { bool none, tiny, small; };

template <typename Real, int Strips>
__device__ Departure gather_gram(const TileProduct<double, SHARE, SHARE>& product, QRMemory<Strips>& memory, int n) {
    constexpr int N = QRMemory<Strips>::N, LD = QRMemory<Strips>::LD;
    const UpperBlock share(threadIdx.x / WARP);
    bool any = false, second = false;
    double squares = 0;
    __syncthreads();                                        // all are done with the slab
    for (int e = threadIdx.x; e < N * LD; e += QR_THREADS) memory.slab[e] = 0;
    for (int i = threadIdx.x; i < N; i += QR_THREADS) memory.diagonal[i] = 0;
    __syncthreads();
    product.each(share.i * SHARE * STRIP, share.j * SHARE * STRIP, STRIP, STRIP, [&](int i, int c, double sum) {
        if (i > c || c >= n) return;
        const double apart = fabs(sum - (i == c));
        any |= !(apart <= ORTHONORMAL<Real>), second |= !(apart <= FIRST_ORDER), squares += (i == c ? 1 : 2) * apart * apart;
        memory.slab[c * LD + i] = sum;
        if (i == c) memory.diagonal[c] = sum;
    });
    squares = block_sum<QR_WARPS>(squares, memory.parts);
    any = __syncthreads_or(any), second = __syncthreads_or(second);
    return {!any, !second, squares <= ONE_MORE_PASS};
}

// R ← T R, or T itself at first; T in place of the slab.
template <typename Real, int Strips>
__device__ void multiply_triangle(Real* R, int n, const QRMemory<Strips>& memory, bool first) {
    constexpr int LD = QRMemory<Strips>::LD, BLOCKS = QRMemory<Strips>::BLOCKS, EACH = (BLOCKS + QR_WARPS - 1) / QR_WARPS;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    double sum[EACH][2] = {};
#pragma unroll
    for (int q = 0; q < EACH; q++) {
        const UpperBlock b(min(warp + q * QR_WARPS, BLOCKS - 1));
        if (first)
            for (int h = 0; h < 2; h++) sum[q][h] = memory.slab[(b.j * STRIP + 2 * t + h) * LD + b.i * STRIP + g];
        else
            for (int l = b.i * STRIP + t; l < (b.j + 1) * STRIP; l += DEPTH_STEP)
                multiply_strip(sum[q], memory.slab[l * LD + b.i * STRIP + g],
                               l < n && b.j * STRIP + g < n ? double(R[l * n + b.j * STRIP + g]) : 0.0);
    }
    __syncthreads();                                        // all have read R
#pragma unroll
    for (int q = 0; q < EACH; q++) {
        const UpperBlock b(min(warp + q * QR_WARPS, BLOCKS - 1));
        for (int h = 0; h < 2; h++) {
            const int row = b.i * STRIP + g, column = b.j * STRIP + 2 * t + h;
            if (row >= n || column >= n) continue;
            R[row * n + column] = sum[q][h];
            if (first && b.i < b.j) R[column * n + row] = 0;
        }
    }
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

// A, Q: batch × m × n, n even   R: batch × n × n; both NaN where Q would not be orthonormal in the end
template <typename Real, int Strips>
__global__ __launch_bounds__(QR_THREADS, 2)
void cholesky_qr(const Real* A, Real* Q, Real* R, int m, int n) {
    extern __shared__ __align__(16) unsigned char bytes[];
    auto& memory = *reinterpret_cast<QRMemory<Strips>*>(bytes);
    const long long b = blockIdx.x;
    A += b * m * n, Q += b * m * n, R += b * n * n;
    bool last = false;
    for (int count = 0;; count++) {
        const auto product = pass<Real>(count > 1 ? Q : A, Q, m, n, memory, count > 0, !last);
        if (last) return;
        const Departure departure = gather_gram<Real>(product, memory, n);
        if (count > 0 && departure.none) return;
        if (count == MOST_PASSES) break;
        last = departure.small;
        factor_gram(memory, n, departure.tiny);
        multiply_triangle(R, n, memory, count == 0);
        invert_blocks(memory);
        __syncthreads();
    }
    const Real nan = Floating<Real>::largest * Real(0) / Real(0);
    for (int e = threadIdx.x; e < n * n; e += QR_THREADS) R[e] = nan;
    for (int e = threadIdx.x; e < m * n; e += QR_THREADS) Q[e] = nan;
}
