// batched/product_triangles.cuh — W_b with W_bᵀ W_b = Σ_l P_lᵀ P_l, P_l = F_l S_l or F_l S_lᵀ over the links of segment b,
// as accurate as a QR of the stack of all P_l, which is never formed: singular values of W are those of the stack to a
// small multiple of ε ‖P‖. One thread block a segment.
//
//     G₁ = Σ P̃ᵀP̃ of every other eight rows,   Π G₁ Πᵀ ≈ R₁ᵀR₁  by pivots above δ²,  √s beyond  (s = δ² max G₁)
//     G₂ = Σ QᵀQ,  Q = F (S Π R₁⁻¹),          G₂ = R₂ᵀR₂,        W = R₂ R₁ Πᵀ
//
// A Gram matrix loses √ε; preconditioned by R₁, that is √ε δ, and pivots make R₁ a diagonal times a well-conditioned
// matrix, so that its explicit inverse is as good as a substitution. Where G₂ shows directions that half of the rows have
// missed, all of them are taken. In float32, G₁ of all rows in double precision is accurate enough by itself.
// As Cholesky-QR with a shifted preconditioner: Fukaya et al., SIAM J. Sci. Comput. 42 (2020).
#pragma once
#include "block/cholesky.cuh"
#include "block/gram_of_products.cuh"
#include "block/pivoted_sweep.cuh"
#include "thread/range.cuh"
#include "warp/factor_tiles.cuh"

constexpr double GRAM_LEAST = 1e-14;            // δ²
constexpr double ROUNDING_LEAST = 4 * 2.220446049250313e-16;
constexpr double SECOND_SHIFT = 32 * 2.220446049250313e-16;  // of G₂'s diagonal: more than its rounding errors
constexpr double MISSED = 100;                  // diagonal of G₂ that tells of missed directions; 1 if all rows were taken
constexpr double TINY = 0x1p-600;               // of G₁'s diagonal: smaller squares may have underflown
constexpr int RESCALING = 540;                  // binary digits by which F is scaled where squares over- or underflow

template <int N>
struct ProductMemory {                          // shared
    static constexpr int SQUARE = N * N, STRIPS = N / 8, TILE = 2 * WARP;
    static constexpr int INVERSE = STRIPS * (STRIPS + 1) / 2 * TILE;
    double first[SQUARE], second[SQUARE];       // S or G;  Y, the next S or R₂
    double inverse[INVERSE];  // Π R₁⁻¹ in tiles 8 × 8 as read: (2t, g), (2t + 1, g)
    double scale[N];                            // diagonal of R₁⁻¹ beyond the rank
    typename PivotedSweep<N>::Memory sweep;

    static __device__ int inverse_entry(int row, int column) {
        const int above = row / 8, strip = column / 8, lane = column % 8 * 4 + row % 8 / 2;
        return (strip * (strip + 1) / 2 + above) * TILE + 2 * lane + row % 2;
    }
    __device__ double2 inverse_pair(int above, int strip, int lane) const {
        return *reinterpret_cast<const double2*>(inverse + (strip * (strip + 1) / 2 + above) * TILE + 2 * lane);
    }
};

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

// G₁ of the segment: of all rows, or of every other eight of triangular F.
template <int N, typename Real>
__device__ void gram_of_rows(GramTiles<N>& G, LinkQueue<Real>& queue, ProductMemory<N>& memory, const LinkList* lists,
                             int count, int columns, bool every, double scale) {
    constexpr int WARPS = LINK_THREADS / WARP;
    const int warp = threadIdx.x / WARP;
    Real* const stage[2] = {reinterpret_cast<Real*>(memory.first), reinterpret_cast<Real*>(memory.second)};
    G.clear();
    for (int start = 0;; start += LINK_THREADS) {
        const int links = queue.fill(lists, count, blockIdx.x, start);
        if (links <= 0) return;
        const auto all = [&](int l) { return every || queue.link[l].full(); };
        const auto first_octet = [&](int l) {   // rows of triangles differ in length
            return all(l) ? warp : 2 * (l / 2 % 2 ? WARPS - 1 - warp : warp) + l % 2;
        };
        RowStream<Real> rows;
        copy_square<N>(stage[0], queue.link[0], columns, nullptr);
        rows.open(queue.link[0], first_octet(0));
        for (int l = 0; l < links; l++) {
            copies_issued();
            copies_arrived<0>();
            __syncthreads();                    // S is there, and nobody reads the one before
            if (l + 1 < links) copy_square<N>(stage[(l + 1) % 2], queue.link[l + 1], columns, nullptr);
            const Link<Real> link = queue.link[l];
            const Real* S = stage[l % 2];
            const int second = all(l) ? second_octet<N>(warp) : -1;
            const auto products = [&](const auto& reader) {
#pragma unroll 1
                for (int octet = first_octet(l); octet >= 0; octet = octet == second ? -1 : second)
                    add_octet(G, reader, link, octet, rows, scale, [&] {
                        if (octet != second && second >= 0) rows.open(link, second);
                        else if (l + 1 < links) rows.open(queue.link[l + 1], first_octet(l + 1));
                    });
            };
            if (link.turned()) products(FactorReader<N, true, Real>(S));
            else products(FactorReader<N, false, Real>(S));
        }
    }
}

// Y = S Π R₁⁻¹, a band of 16 rows a warp.   strips: of eight rows of R₁⁻¹ that are more than its diagonal
template <int N, bool Along>
__device__ void precondition(const ProductMemory<N>& memory, const FactorTiles<N>& Y, const double* S, int strips) {
    constexpr int STRIPS = N / 8, TOGETHER = 4;
    static_assert(STRIPS % TOGETHER == 0, "whole groups of strips");
    const FactorReader<N, Along, double> reader(S);
    const int lane = threadIdx.x % WARP, quad = lane % 4, row0 = threadIdx.x / WARP * 16;
#pragma unroll 1
    for (int j0 = 0; j0 < STRIPS; j0 += TOGETHER) {
        double y[TOGETHER][4];
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            reader.read(y[j], row0, 8 * (j0 + j));
            const double2 scale = *reinterpret_cast<const double2*>(memory.scale + 8 * (j0 + j) + 2 * quad);
#pragma unroll
            for (int e = 0; e < 4; e++) y[j][e] *= e % 2 ? scale.y : scale.x;
        }
        const auto add = [&](int k, int from) { // row k of tiles of R₁⁻¹, from strip j0 + from on
            double s[4];
            double2 x[TOGETHER];
            reader.read(s, row0, 8 * k);
#pragma unroll
            for (int j = 0; j < TOGETHER; j++)
                if (j >= from) x[j] = memory.inverse_pair(k, j0 + j, lane);
#pragma unroll
            for (int j = 0; j < TOGETHER; j++)
                if (j >= from) multiply_tile(y[j], s, x[j].x, x[j].y);
        };
#pragma unroll 1
        for (int k = 0; k < min(strips, j0); k++) add(k, 0);
#pragma unroll
        for (int k = 0; k < TOGETHER; k++)
            if (j0 + k < strips) add(j0 + k, k);
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) Y.write(y[j], row0, 8 * (j0 + j));
    }
}

// G₂ of the segment: G₁ of all rows with Y in the place of S.
template <int N>
__device__ void gram_of_preconditioned(GramTiles<N>& G, LinkQueue<double>& queue, ProductMemory<N>& memory,
                                       const LinkList* lists, int count, int columns, int rank, double scale) {
    const int warp = threadIdx.x / WARP, second = second_octet<N>(warp);
    const FactorTiles<N> Y = {reinterpret_cast<double2*>(memory.second)};
    double* const S = memory.first;
    G.clear();
    for (int start = 0;; start += LINK_THREADS) {
        const int links = queue.fill(lists, count, blockIdx.x, start);
        if (links <= 0) return;
        RowStream<double> rows;
        copy_square<N>(S, queue.link[0], columns, memory.sweep.place);
        rows.open(queue.link[0], warp);
        for (int l = 0; l < links; l++) {
            const Link<double> link = queue.link[l];
            copies_issued();
            copies_arrived<0>();
            __syncthreads();                    // S is there, and nobody reads the last Y
            if (warp * 16 < link.inner) {
                if (link.turned()) precondition<N, false>(memory, Y, S, (rank + 7) / 8);
                else precondition<N, true>(memory, Y, S, (rank + 7) / 8);
            }
            __syncthreads();
            if (l + 1 < links) copy_square<N>(S, queue.link[l + 1], columns, memory.sweep.place);
#pragma unroll 1
            for (int octet = warp; octet >= 0; octet = octet == second ? -1 : second)
                add_octet(G, Y, link, octet, rows, scale, [&] {
                    if (octet != second) rows.open(link, second);
                    else if (l + 1 < links) rows.open(queue.link[l + 1], warp);
                });
        }
    }
}

// W = R₁ Πᵀ into its place, Π R₁⁻¹ and the rest of its diagonal into shared memory, of G in memory.first; the rank.
// G ← 4^−e G for the sweep; F has been scaled by 2^shift.
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
            if (before || pivot) memory.inverse[memory.inverse_entry(before ? sweep.place : k, k)] = back(pivot ? 1 / z : z);
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
