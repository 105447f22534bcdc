// batched/product_triangles.cuh — W_bᵀ W_b = Σ_l P_lᵀ P_l, P_l = F_l S_l or F_l S_lᵀ, over the links l of segment b; as
// accurate as a QR of the stack of all P_l, which is never formed. One thread block a segment.
//
//     G₁ = Σ PᵀP of a sample of the rows,      Π G₁ Πᵀ = R₁ᵀR₁  by pivots above s = δ² max G₁,  √s beyond
//     G₂ = Σ QᵀQ,  Q = F S Π R₁⁻¹,             G₂ = R₂ᵀR₂  by pivots,       W = R₂ R₁ Πᵀ
//
// A Gram matrix loses √ε; preconditioned by R₁, that is √ε δ. Pivots make R₁ a diagonal times a well-conditioned matrix,
// so that its explicit inverse is as good as a substitution. Rounding errors of G₂ are relative to its diagonal D², and
// those of column k of W are ε D_k (R₁)_kk / ρ_k, ρ_k² the pivots of D⁻¹ G₂ D⁻¹: where the sample has missed so much that this matters, all
// rows are taken. In float32, G₁ of all rows in double precision is accurate enough by itself.
// Cholesky QR with a shifted preconditioner: Fukaya et al., SIAM J. Sci. Comput. 42 (2020).
#pragma once
#include "block/product_passes.cuh"
#include "thread/power_of_two.cuh"
#include "thread/range.cuh"

constexpr int SAMPLED = 8;                      // links from which on a sample is taken
constexpr double GRAM_LEAST = 1e-14;            // δ²
constexpr double ROUNDING_LEAST = 4 * 2.220446049250313e-16;
constexpr double SECOND_LEAST = 256 * 2.220446049250313e-16; // of G₂'s diagonal: more than rounding errors leave of it
constexpr double MISSED = 8;                    // of a column's error: tells of missed directions; 1 if there are none
constexpr double LOST = MISSED / 1.9e-9;        // error of a column that was no pivot: 128 ε / √SECOND_LEAST of ‖W‖ is allowed
constexpr double TINY = 0x1p-600;               // of G₁'s diagonal: smaller squares may have underflown
constexpr int RESCALING = 540;                  // binary digits by which F is scaled where squares over- or underflow

// Numbers ≥ 0, infinity and NaN are ordered as their bits; the leading ones are 20 of the fraction.
__device__ inline unsigned leading_bits(double x) { return static_cast<unsigned>(__double2hiint(x)) & ~(1u << 31); }
__device__ inline double most_of_warp(unsigned bits) { return __hiloint2double(__reduce_max_sync(EVERY_LANE, bits), 0); }

// The largest diagonal entry of G in shared memory, rounded down.
template <int N>
__device__ double largest_diagonal(const double* G) {
    unsigned most = 0;
    for (int j = threadIdx.x % WARP; j < N; j += WARP) most = max(most, leading_bits(G[square_entry<N>(j, j)]));
    return most_of_warp(most);
}

// Whether a sample of the rows is enough to begin with.
__device__ inline bool many_links(const LinkList* lists, int count) {
    int links = 0;
    for (int i = 0; i < count; i++) links += lists[i].links(blockIdx.x);
    return links >= SAMPLED;
}

// e with x 4^−e in (¼, 1]
__device__ inline int half_exponent(double x) { return (exponent_of(x) + 1) >> 1; }

// W = R₁ Πᵀ of memory.gram() into its place, Π R₁⁻¹ and the order of its columns into shared memory.
// The sweep is of 4^−e G; F has been scaled by 2^shift.
template <int N, bool Inverse, typename Real>
__device__ void factor_gram(ProductMemory<N, Real>& memory, Real* W, int columns, int e, int shift, double least) {
    constexpr int THREADS = ProductMemory<N, Real>::THREADS;
    PivotedSweep<N, THREADS> sweep(memory.sweep);
    const PowerOfTwo down(-2 * e), up(e - shift), back(-e);
    sweep.load([&](int i, int j) { return down(memory.gram()[square_entry<N>(i, j)]); });
    const auto store = [&](int row, int column, double x) {
        if (row < columns && column < columns) narrow(up(x), W[row * columns + column]);
    };
    using Triangle = RightTriangle<N>;
    double* inverse = nullptr;
    if constexpr (Inverse) {
        inverse = memory.inverse.entries;
        for (int i = threadIdx.x; i < Triangle::ENTRIES; i += THREADS) inverse[i] = 0;
    }
    const int rank = sweep.run(least, [&](int k, int j, double z, bool before, bool pivot) {
        store(k, j, before ? 0 : z);
        if constexpr (Inverse) {
            if (before || pivot) inverse[Triangle::entry(before ? sweep.place : k, k)] = back(pivot ? 1 / z : z);
            if (pivot) memory.first_diagonal[k] = z;
        }
    });
    sweep.place_the_rest(rank);
    __syncthreads();
    const double root = Inverse ? sqrt(least) : 0;
    for (int i = threadIdx.x; i < N * N; i += THREADS) {
        const int row = i / N, column = i % N;
        if (row >= rank) store(row, column, memory.sweep.place[column] == row ? root : 0);
    }
    if constexpr (Inverse) {
        if (sweep.part == 0) {
            memory.order[sweep.place] = sweep.own;
            if (sweep.place >= rank) {
                inverse[Triangle::entry(sweep.place, sweep.place)] = back(1 / root);
                memory.first_diagonal[sweep.place] = root;
            }
        }
        if (sweep.part < sweep.PARTS && sweep.place < rank)
#pragma unroll
            for (int i = 0; i < sweep.ROWS; i++) {
                const int to = memory.sweep.place[sweep.part * sweep.ROWS + i];
                if (to >= rank) inverse[Triangle::entry(sweep.place, to)] = back(sweep.a[i] / root);
            }
    }
    __syncthreads();
}

// R₂ of memory.gram() by rows, over the inverse, whose time is over, and more.
template <int N>
struct SecondFactor {
    using Memory = ProductMemory<N, double>;
    static constexpr int LD = N + 4, THREADS = Memory::THREADS;
    static_assert(N * LD <= RightTriangle<N>::ENTRIES + Memory::SQUARE, "it lies over both");

    // Returns whether W will be as accurate as it should. Pivots are of G₂ with a unit diagonal.
    static __device__ bool make(Memory& memory) {
        double* const R = memory.inverse.entries;
        PivotedSweep<N, THREADS> sweep(memory.sweep);
        const int j = sweep.own;
        const double d = sqrt(memory.gram()[square_entry<N>(j, j)]), size = d * memory.first_diagonal[j];
        if (sweep.part == 0) memory.column[j] = d > 0 ? 1 / d : 0;
        __syncthreads();
        sweep.load([&](int i, int k) { return memory.gram()[square_entry<N>(i, k)] * memory.column[i] * memory.column[k]; });
        double error = LOST * size;
        const int rank = sweep.run(SECOND_LEAST, [&](int k, int, double z, bool before, bool pivot) {
            R[k * LD + j] = before ? 0 : z * d;
            if (pivot) error = size / z;
        });
        if (sweep.part == 0) {
            for (int k = rank; k < N; k++) R[k * LD + j] = 0;
            memory.column[j] = error, memory.first_diagonal[j] = size;
        }
        __syncthreads();
        return most_of(memory.column) <= MISSED * most_of(memory.first_diagonal);
    }
    static __device__ double most_of(const double* x) {
        unsigned most = 0;
        for (int k = threadIdx.x % WARP; k < N; k += WARP) most = max(most, leading_bits(x[k]));
        return most_of_warp(most);
    }

    // W ← R₂ W, columns × columns.
    static __device__ void multiply(Memory& memory, double* W, int columns) {
        double *const first = memory.gram(), *const R = memory.inverse.entries;
        for (int i = threadIdx.x; i < N * N; i += THREADS) {
            const int row = i / N, column = i % N;
            first[square_entry<N>(row, column)] = row < columns && column < columns ? W[row * columns + column] : 0;
        }
        __syncthreads();
        const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4, row0 = threadIdx.x / WARP * BAND;
        if (row0 >= columns) return;
        const RightReader<N, false, double> reader(first);
        double w[N / STEP][4] = {};
        for (int k = 0; k < columns; k += STEP) {
            double r[4];
#pragma unroll
            for (int e = 0; e < 4; e++) r[e] = R[(row0 + line + e / 2 * 8) * LD + k + 2 * quad + e % 2];
#pragma unroll
            for (int j = 0; j < N / STEP; j++) {
                double x[2];
                reader.read(x, k, STEP * j);
                multiply_tile(w[j], r, x[0], x[1]);
            }
        }
#pragma unroll
        for (int j = 0; j < N / STEP; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int row = row0 + line + e / 2 * 8, column = STEP * j + 2 * quad + e % 2;
                if (row < columns && column < columns) W[row * columns + column] = w[j][e];
            }
    }
};

// lists: `count` of them   buffer, offsets, sizes: W_b is sizes[b] × sizes[b], or has no rows where rows[b] is 0
// sizes and F's inner dimensions are at most N.   dynamic shared memory: ProductMemory, LinkQueue
template <typename Real, int N>
__global__ __launch_bounds__(2 * N, sizeof(Real) == sizeof(float) ? 3 : 2)
void product_triangles(const LinkList* lists, int count, Real* buffer, const long long* offsets, const long long* rows,
                       const long long* sizes) {
    extern __shared__ __align__(16) unsigned char bytes[];
    using Memory = ProductMemory<N, Real>;
    Memory& memory = *reinterpret_cast<Memory*>(bytes);
    auto& queue = *reinterpret_cast<LinkQueue<Real, Memory::THREADS>*>(bytes + sizeof(Memory));
    const int b = blockIdx.x, columns = static_cast<int>(sizes[b]);
    if (rows[b] == 0 || columns == 0) return;
    Real* W = buffer + offsets[b];
    GramShare<N> G;
    bool every = sizeof(Real) == sizeof(float) || !many_links(lists, count);
    for (int shift = 0;;) {
        const double scale = power_of_two<double>(shift);
        gram_of_links<N, false>(G, queue, memory, lists, count, columns, every, scale);
        const double most = largest_diagonal<N>(memory.gram());
        const bool sound = isfinite(most);
        if ((!sound || most <= TINY) && (!every || (shift == 0 && sizeof(Real) == sizeof(double)))) {
            shift = every ? sound ? RESCALING : -RESCALING : 0;
            every = true;
            continue;
        }
        if (!sound || most == 0) {              // 0 · most is NaN where the input is, or Inf
            for (int i = threadIdx.x; i < columns * columns; i += Memory::THREADS) W[i] = static_cast<Real>(0 * most);
            return;
        }
        const int e = half_exponent(most);
        if constexpr (sizeof(Real) == sizeof(float)) {
            factor_gram<N, false>(memory, W, columns, e, 0, ROUNDING_LEAST);
            return;
        } else {
            factor_gram<N, true>(memory, W, columns, e, shift, GRAM_LEAST);
            gram_of_links<N, true>(G, queue, memory, lists, count, columns, true, scale);
            const bool accurate = SecondFactor<N>::make(memory);
            if (!accurate && !every) {
                every = true;
                continue;
            }
            SecondFactor<N>::multiply(memory, W, columns);
            return;
        }
    }
}
