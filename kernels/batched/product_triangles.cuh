// batched/product_triangles.cuh — W_bᵀ W_b = Σ_l P_lᵀ P_l, P_l = F_l S_l or F_l S_lᵀ, over the links l of segment b; as
// accurate as a QR of the stack of all P_l, which is never formed. One thread block a segment.
//
//     G₁ = Σ PᵀP of every other eight rows,    Π G₁ Πᵀ = R₁ᵀR₁  by pivots above s = δ² max G₁,  √s beyond
//     G₂ = Σ QᵀQ,  Q = F (S Π R₁⁻¹),           G₂ = R₂ᵀR₂,       W = R₂ R₁ Πᵀ
//
// A Gram matrix loses √ε; preconditioned by R₁, that is √ε δ. Pivots make R₁ a diagonal times a well-conditioned matrix,
// so that its explicit inverse is as good as a substitution. Where G₂ shows directions that half of the rows have missed,
// all of them are taken. In float32, G₁ of all rows in double precision is accurate enough by itself.
// Cholesky QR with a shifted preconditioner: Fukaya et al., SIAM J. Sci. Comput. 42 (2020).
#pragma once
#include "block/cholesky.cuh"
#include "block/product_passes.cuh"
#include "thread/range.cuh"

constexpr double GRAM_LEAST = 1e-14;            // δ²
constexpr double ROUNDING_LEAST = 4 * 2.220446049250313e-16;
constexpr double SECOND_SHIFT = 32 * 2.220446049250313e-16;  // of G₂'s diagonal: more than its rounding errors
constexpr double MISSED = 100;                  // diagonal of G₂ that tells of missed directions; 1 if all rows were taken
constexpr double TINY = 0x1p-600;               // of G₁'s diagonal: smaller squares may have underflown
constexpr int RESCALING = 540;                  // binary digits by which F is scaled where squares over- or underflow

// The largest diagonal entry of G in shared memory, to 20 bits; NaN or infinite where one is.
template <int N>
__device__ double largest_diagonal(const double* G) {
    unsigned most = 0;                          // numbers ≥ 0, infinity and NaN are ordered as their bits
    for (int j = threadIdx.x % WARP; j < N; j += WARP)
        most = max(most, static_cast<unsigned>(__double2hiint(G[square_entry<N>(j, j)])) & ~(1u << 31));
    return __hiloint2double(__reduce_max_sync(EVERY_LANE, most), 0);
}

// e with x 4^−e in (¼, 1]
__device__ inline int half_exponent(double x) { return (exponent_of(x) + 1) >> 1; }

// W = R₁ Πᵀ of G in memory.first into its place, Π R₁⁻¹ and the rest of its diagonal into shared memory; the rank.
// The sweep is of 4^−e G; F has been scaled by 2^shift.
template <int N, bool Inverse, typename Real>
__device__ int factor_gram(ProductMemory<N>& memory, Real* W, int columns, int e, int shift, double least) {
    PivotedSweep<N> sweep(memory.sweep);
    const PowerOfTwo down(-2 * e), up(e - shift), back(-e);
    sweep.load([&](int i, int j) { return down(memory.first[square_entry<N>(i, j)]); });
    const auto store = [&](int row, int column, double x) {
        if (row < columns && column < columns) narrow(up(x), W[row * columns + column]);
    };
    if constexpr (Inverse) {
        __syncthreads();
        for (int i = threadIdx.x; i < N * (N + 8) / 2; i += SWEEP_THREADS) memory.inverse[i] = 0;
    }
    const int rank = sweep.run(least, [&](int k, int j, double z, bool before, bool pivot) {
        store(k, j, before ? 0 : z);
        if constexpr (Inverse)
            if (before || pivot)
                memory.inverse[memory.inverse_entry(before ? sweep.place : k, k)] = back(pivot ? 1 / z : z);
    });
    sweep.place_the_rest(rank);
    __syncthreads();
    const double root = Inverse ? sqrt(least) : 0;
    for (int i = threadIdx.x; i < N * N; i += SWEEP_THREADS) {
        const int row = i / N, column = i % N;
        if (row >= rank) store(row, column, memory.sweep.place[column] == row ? root : 0);
    }
    if constexpr (Inverse) {
        if (sweep.part == 0) memory.scale[sweep.place] = sweep.place < rank ? 0 : back(1 / root);
        if (sweep.part < sweep.PARTS && sweep.place < rank)
#pragma unroll
            for (int i = 0; i < sweep.ROWS; i++) {
                const int to = memory.sweep.place[sweep.part * sweep.ROWS + i];
                if (to >= rank) memory.inverse[memory.inverse_entry(sweep.place, to)] = back(sweep.a[i] / root);
            }
    }
    __syncthreads();
    return rank;
}

// R₂ of G in memory.first, column by column, over memory.second and the inverse, whose time is over.
template <int N>
struct SecondFactor {
    static constexpr int LD = N + 4;
    static_assert(N * LD <= ProductMemory<N>::SQUARE + ProductMemory<N>::INVERSE, "it lies over both");

    static __device__ void make(ProductMemory<N>& memory) {
        double* const R = memory.second;
        for (int i = threadIdx.x; i < N * N; i += LINK_THREADS) {
            const int row = i % N, column = i / N;
            const double g = row <= column ? memory.first[square_entry<N>(row, column)] : 0;
            R[column * LD + row] = row == column ? g * (1 + SECOND_SHIFT) : g;
            if (row == column) memory.scale[row] = g;
        }
        __syncthreads();
        cholesky<N, LD, LINK_THREADS / WARP>(R, memory.scale);
    }

    // W ← R₂ W, columns × columns.
    static __device__ void multiply(ProductMemory<N>& memory, double* W, int columns) {
        double *const first = memory.first, *const R = memory.second;
        for (int i = threadIdx.x; i < N * N; i += LINK_THREADS) {
            const int row = i / N, column = i % N;
            first[square_entry<N>(row, column)] = row < columns && column < columns ? W[row * columns + column] : 0;
        }
        __syncthreads();
        const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4, row0 = threadIdx.x / WARP * 16;
        if (row0 >= columns) return;
        for (int j = 0; j < N / 8; j++) {
            double w[4] = {};
            for (int k = row0; k < N; k += 8) {
                double r[4];
#pragma unroll
                for (int e = 0; e < 4; e++) r[e] = R[(k + 2 * quad + e % 2) * LD + row0 + line + e / 2 * 8];
                multiply_tile(w, r, first[square_entry<N>(k + 2 * quad, 8 * j + line)],
                              first[square_entry<N>(k + 2 * quad + 1, 8 * j + line)]);
            }
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int row = row0 + line + e / 2 * 8, column = 8 * j + 2 * quad + e % 2;
                if (row < columns && column < columns) W[row * columns + column] = w[e];
            }
        }
    }
};

// lists: `count` of them   buffer, offsets, sizes: W_b is sizes[b] × sizes[b], or has no rows where rows[b] is 0
// sizes and F's inner dimensions are at most N.   dynamic shared memory: ProductMemory<N>, LinkQueue<Real>
template <typename Real, int N>
__global__ __launch_bounds__(LINK_THREADS, 2)
void product_triangles(const LinkList* lists, int count, Real* buffer, const long long* offsets, const long long* rows,
                       const long long* sizes) {
    extern __shared__ __align__(16) unsigned char bytes[];
    ProductMemory<N>& memory = *reinterpret_cast<ProductMemory<N>*>(bytes);
    LinkQueue<Real>& queue = *reinterpret_cast<LinkQueue<Real>*>(bytes + sizeof(ProductMemory<N>));
    const int b = blockIdx.x, columns = static_cast<int>(sizes[b]);
    if (rows[b] == 0 || columns == 0) return;
    Real* W = buffer + offsets[b];
    GramTiles<N> G;
    bool every = sizeof(Real) == sizeof(float);
    for (int shift = 0;;) {
        const double scale = power_of_two<double>(shift);
        gram_of_rows(G, queue, memory, lists, count, columns, every, scale);
        G.total(memory.first);
        __syncthreads();
        const double most = largest_diagonal<N>(memory.first);
        const bool sound = most <= Floating<double>::largest;
        if ((!sound || most <= TINY) && (!every || (shift == 0 && sizeof(Real) == sizeof(double)))) {
            shift = every ? sound ? RESCALING : -RESCALING : 0;
            every = true;
            continue;
        }
        if (!sound || most == 0) {              // 0 · most is NaN where the input is, or Inf
            for (int i = threadIdx.x; i < columns * columns; i += LINK_THREADS) W[i] = static_cast<Real>(0 * most);
            return;
        }
        const int e = half_exponent(most);
        if constexpr (sizeof(Real) == sizeof(float)) {
            factor_gram<N, false>(memory, W, columns, e, 0, ROUNDING_LEAST);
            return;
        } else {
            const int rank = factor_gram<N, true>(memory, W, columns, e, shift, GRAM_LEAST);
            gram_of_preconditioned(G, queue, memory, lists, count, columns, rank, scale);
            G.total(memory.first);
            __syncthreads();
            const double second = largest_diagonal<N>(memory.first);
            if (!every && !(second <= MISSED)) {
                every = true;
                continue;
            }
            SecondFactor<N>::make(memory);
            SecondFactor<N>::multiply(memory, W, columns);
            return;
        }
    }
}
