// qr/cholesky_qr.cuh — Q_b R_b = A_b, A_b tall, its columns few and independent, by Cholesky factors; or Q_b alone; one block a matrix.
//
//     G = QᵀQ = TᵀT,   Q ← Q T⁻¹,   R ← T R,   from Q = A, R = I on until Q is orthonormal
//
// (CholeskyQR2 and its shifted form: Fukaya et al. 2020.) A pivot that rounding has eaten up waits for the next pass
// (common/block/cholesky.cuh), so that only columns that depend on one another to the last bit fail. All arithmetic is in float64: a float32
// matrix has no condition that its Gram matrix could not resolve, and is done after one pass as a rule; what comes of that is not
// looked at where T tells that it is orthonormal.
// Where T = I + F is almost I, a float64 Q stays as it is and F is told: who multiplies Q has less to divide by T. And where Q alone is
// asked for, it is told with the X = T⁻¹ that is missing, as soon as that is well conditioned.
// Slabs of rows stream by: a warp divides 16 rows by T in its registers, since sums of the tensor cores are factors of the next
// product, and adds its share of G from the slab in shared memory (qr/block/tall_gram.cuh).
#pragma once
#include "common/block/cholesky.cuh"
#include "common/block/reduce.cuh"
#include "qr/block/tall_triangle.cuh"

namespace qr {
using namespace common;

constexpr int MOST_PASSES = 6;
constexpr double ONE_MORE_PASS = 0.25;                      // ‖G − I‖_F² up to here is gone after it: eigenvalues from ½ to 3⁄2
constexpr double FIRST_ORDER = 2e-8;                        // their squares are rounding

// Entries of G − I that are as good as zero.
template <typename Real> constexpr double ORTHONORMAL = sizeof(Real) == sizeof(double) ? 8 * 2.2e-16 : 1e-7;
// And of those whose fourth powers are rounding (svd/block/turn_vectors.cuh), float64 alone: float32 is orthonormal before.
template <typename Real> constexpr double ALMOST = sizeof(Real) == sizeof(double) ? 1e-5 : 0;

// Q ← `from`, divided by T if `turn`; returns this warp's part of QᵀQ, if asked for.
template <typename Real, int Strips, int Warps>
__device__ TallGram<Strips, Warps> pass(const Real* from, Real* Q, int m, int n, QRMemory<Strips, Warps>& memory, bool turn, bool gram) {
    constexpr int SLAB_ROWS = QRMemory<Strips, Warps>::SLAB_ROWS;
    const int row = threadIdx.x / WARP * TILE_ROWS;
    TallGram<Strips, Warps> product;
    RowTile<Real, Strips> tile;
    tile.load(from, row, m, n);
    for (int row0 = 0; row0 < m; row0 += SLAB_ROWS) {
        double x[Strips][4];
        tile.widen(x);
        if (turn) {
            divide<Real>(x, memory.triangle);
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

// The parts as G's upper triangle, in place of the slab. Returns, the same in every thread, how far G is from I: told to lanes such that
// the compiler knows them to stay together.
struct Departure { bool none, tiny, almost, small; };

template <typename Real, int Strips, int Warps>
__device__ Departure gather_gram(const TallGram<Strips, Warps>& product, QRMemory<Strips, Warps>& memory, int n) {
    constexpr int N = QRMemory<Strips, Warps>::N, LD = QRMemory<Strips, Warps>::LD;
    constexpr unsigned SMALL = 1u << 31;                    // a sign: no magnitude has it
    auto* const most = reinterpret_cast<unsigned*>(memory.triangle);
    unsigned high = 0;                                      // the leading bits of the largest; of NaN they are larger than any
    double squares = 0;
    __syncthreads();                                        // all are done with the slab
    for (int e = threadIdx.x; e < N * LD; e += Warps * WARP) memory.slab[e] = 0;
    for (int i = threadIdx.x; i < N; i += Warps * WARP) memory.diagonal[i] = 0;
    __syncthreads();
    product.each([&](int i, int c, double sum) {
        const bool inside = i <= c && c < n;
        const double apart = inside ? fabs(sum - (i == c)) : 0.0;
        high = max(high, static_cast<unsigned>(__double2hiint(apart)) & ~SMALL);
        squares = fma(i == c ? apart : 2 * apart, apart, squares);
        if (inside) memory.slab[c * LD + i] = sum;
        if (inside && i == c) memory.diagonal[c] = sum;
    });
    high = __reduce_max_sync(EVERY_LANE, high);
    if (threadIdx.x % WARP == 0) most[threadIdx.x / WARP] = high;
    squares = block_sum<Warps>(squares, memory.parts);
    const unsigned told = __reduce_max_sync(EVERY_LANE, most[threadIdx.x % Warps] | (squares <= ONE_MORE_PASS ? SMALL : 0u));
    const double apart = __hiloint2double(told & ~SMALL, 0);
    return {apart <= ORTHONORMAL<Real>, apart <= FIRST_ORDER, apart <= ALMOST<Real>, told >= SMALL};
}

// T in place of G: to first order where that is enough.
template <int Strips, int Warps>
__device__ void factor_gram(QRMemory<Strips, Warps>& memory, int n, bool tiny) {
    constexpr int N = QRMemory<Strips, Warps>::N, LD = QRMemory<Strips, Warps>::LD;
    if (!tiny) return cholesky<N, LD, Warps, true>(memory.slab, memory.diagonal, n);
    for (int i = threadIdx.x; i < n; i += Warps * WARP) memory.slab[i * (LD + 1)] = (1 + memory.diagonal[i]) / 2;
    __syncthreads();
}

// F = T − I of T in place of the slab, or 0.
template <int Strips, int Warps>
__device__ void write_rest(double* F, int n, const QRMemory<Strips, Warps>& memory, bool none) {
    F += blockIdx.x * 1LL * n * n;
    for (int e = threadIdx.x; e < n * n; e += Warps * WARP) {
        const int i = e / n, c = e % n;
        F[e] = none || i > c ? 0.0 : memory.slab[c * QRMemory<Strips, Warps>::LD + i] - (i == c);
    }
}

// Passes until Q is orthonormal, or will be times T⁻¹.   each(first): called when a T is in memory
// Returns what became of Q, the same in every thread: whether it is WHOLE, or T, in memory, is LEFT.
enum class Passes { FAILED, WHOLE, LEFT };

template <bool Basis, typename Real, int Strips, int Warps, typename Each>
__device__ __forceinline__ Passes orthonormalize(const Real* A, Real* Q, int m, int n, QRMemory<Strips, Warps>& memory, Each each) {
    enum { MORE, LAST, LEFT } then = MORE;                  // one pass without a look at what comes of it; or none
    for (int count = 0; then != LEFT; count++) {
        const auto product = pass<Real>(count > 1 ? Q : A, Q, m, n, memory, count > 0, then == MORE);
        if (then == LAST) return Passes::WHOLE;
        const Departure departure = gather_gram<Real>(product, memory, n);
        if (count > 0 && departure.none) return Passes::WHOLE;
        then = count > 0 && (Basis ? departure.small : departure.almost) ? LEFT : departure.small ? LAST : MORE;
        if (count == MOST_PASSES && then == MORE) return Passes::FAILED;
        factor_gram(memory, n, departure.tiny);
        each(count == 0);
        if (Basis || then != LEFT) invert_blocks<Real>(memory);
        __syncthreads();
        if constexpr (sizeof(Real) == sizeof(float))
            if (count == 0 && then == MORE && surely_orthonormal(m, n, memory)) then = LAST;
    }
    return Passes::LEFT;
}

template <int Threads, typename Real>
__device__ void fill(Real* entries, int count, Real x) {
    for (int e = threadIdx.x; e < count; e += Threads) entries[e] = x;
}

// A, Q: batch × m × n, n even   R, before, F: batch × n × n   Q (I + F)⁻¹ is orthonormal, F = 0 in float32, else Q and R are NaN
// before: upper triangular, or null for I: Q (I + F)⁻¹ R is A times it
template <typename Real, int Strips, int Warps>
__global__ __launch_bounds__(Warps * WARP, 2)
void cholesky_qr(const Real* A, Real* Q, Real* R, const Real* before, double* F, int m, int n) {
    extern __shared__ __align__(16) unsigned char bytes[];
    auto& memory = *reinterpret_cast<QRMemory<Strips, Warps>*>(bytes);
    const long long b = blockIdx.x;
    A += b * m * n, Q += b * m * n, R += b * n * n;
    if (before) before += b * n * n;
    const Passes then = orthonormalize<false>(A, Q, m, n, memory, [&](bool first) { multiply_triangle(first ? before : R, R, n, memory, first); });
    if (then == Passes::FAILED) {
        const Real nan = Floating<Real>::largest * Real(0) / Real(0);
        fill<Warps * WARP>(R, n * n, nan), fill<Warps * WARP>(Q, m * n, nan);
    }
    if constexpr (sizeof(Real) == sizeof(double)) write_rest(F, n, memory, then != Passes::LEFT);
}

// The same without R: Q X is orthonormal for X of condition √3 at most, or both are NaN.   X: batch × n × n, upper triangular
template <typename Real, int Strips, int Warps>
__global__ __launch_bounds__(Warps * WARP, 2)
void cholesky_basis(const Real* A, Real* Q, Real* X, int m, int n) {
    extern __shared__ __align__(16) unsigned char bytes[];
    auto& memory = *reinterpret_cast<QRMemory<Strips, Warps>*>(bytes);
    const long long b = blockIdx.x;
    A += b * m * n, Q += b * m * n, X += b * n * n;
    const Passes then = orthonormalize<true>(A, Q, m, n, memory, [](bool) {});
    if (then == Passes::FAILED) {
        const Real nan = Floating<Real>::largest * Real(0) / Real(0);
        fill<Warps * WARP>(X, n * n, nan), fill<Warps * WARP>(Q, m * n, nan);
    } else write_inverse(X, n, memory, then == Passes::WHOLE);
}

}  // namespace qr
