// qr/block/product_factors.cuh — the triangles of qr/product_triangles.cuh: R₁ and its inverse, R₂, W.
//
//     Π G₁ Πᵀ = R₁ᵀR₁  by pivots above δ² max G₁, beyond them a diagonal;     G₂ = R₂ᵀR₂;     W = R₂ R₁ Πᵀ
//
// Rounding errors of G₂ are relative to its diagonal D², and those of column k of W are ε D_k (R₁)_kk / ρ_k, ρ_k² the
// pivots of D⁻¹ G₂ D⁻¹: where they matter, the sample that G₁ is made of has missed too much. Called by the whole block.
#pragma once
#include "common/block/cholesky.cuh"
#include "common/thread/power_of_two.cuh"
#include "qr/block/product_passes.cuh"

namespace qr {
using namespace common;

constexpr double EPSILON = 2.220446049250313e-16;
constexpr double GRAM_LEAST = 4e-15;            // δ²
constexpr double ROUNDING_LEAST = 64 * EPSILON; // its root is an ε of float32
constexpr double SECOND_LEAST = 96 * EPSILON;   // of G₂'s diagonal: more than rounding errors, and what cholesky puts there
constexpr double SECOND_ROOT = 1.46e-7;         // √SECOND_LEAST
constexpr double MISSED = 8;                    // of a column's error: tells of missed directions; 1 if there are none
constexpr double LOST = MISSED * SECOND_ROOT / (256 * EPSILON);   // of a column that was no pivot: it may lose 256 ε ‖W‖

// Numbers ≥ 0, infinity and NaN are ordered as their bits; the leading ones are 20 of the fraction.
__device__ inline unsigned leading_bits(double x) { return static_cast<unsigned>(__double2hiint(x)) & ~(1u << 31); }
__device__ inline double most_of_warp(unsigned bits) {
    return __hiloint2double(__reduce_max_sync(EVERY_LANE, bits), 0);
}

// The largest diagonal entry of G in shared memory, rounded down.
template <int N>
__device__ double largest_diagonal(const double* G) {
    unsigned most = 0;
    for (int j = threadIdx.x % WARP; j < N; j += WARP) most = max(most, leading_bits(G[square_entry<N>(j, j)]));
    return most_of_warp(most);
}

// W = R₁ Πᵀ of memory.gram() into its place, Π R₁⁻¹ and the order of its columns into shared memory.
// The sweep is of 4^−e G; F has been scaled by 2^shift.
template <int N>
__device__ void first_factor(ProductMemory<N, double>& memory, double* W, int columns, int e, int shift) {
    constexpr int THREADS = ProductMemory<N, double>::THREADS;
    using Triangle = RightTriangle<N>;
    PivotedSweep<N, THREADS> sweep(memory.sweep);
    const PowerOfTwo down(-2 * e), up(e - shift), back(-e);
    sweep.load([&](int i, int j) { return down(memory.gram()[square_entry<N>(i, j)]); });
    const auto store = [&](int row, int column, double x) {
        if (row < columns && column < columns) W[row * columns + column] = up(x);
    };
    double* const inverse = memory.inverse.entries;
    for (int i = threadIdx.x; i < Triangle::ENTRIES; i += THREADS) inverse[i] = 0;
    const int rank = sweep.run(GRAM_LEAST, [&](int k, int j, double z, bool before, bool pivot) {
        store(k, j, before ? 0 : z);
        if (before || pivot) inverse[Triangle::entry(before ? sweep.place : k, k)] = back(pivot ? 1 / z : z);
        if (pivot) memory.first_diagonal[k] = z;
    });
    sweep.place_the_rest(rank);
    __syncthreads();
    const double root = sqrt(GRAM_LEAST);
    for (int i = threadIdx.x; i < N * N; i += THREADS) {
        const int row = i / N, column = i % N;
        if (row >= rank) store(row, column, memory.sweep.place[column] == row ? root : 0);
    }
    if (sweep.part == 0) {
        memory.order[sweep.place] = sweep.own;
        if (sweep.place >= rank) {
            inverse[Triangle::entry(sweep.place, sweep.place)] = back(1 / root);
            memory.first_diagonal[sweep.place] = root;
        }
    }
    if (sweep.place < rank)
#pragma unroll
        for (int i = 0; i < sweep.ROWS; i++) {
            const int to = memory.sweep.place[sweep.part * sweep.ROWS + i];
            if (to >= rank) inverse[Triangle::entry(sweep.place, to)] = back(sweep.a[i] / root);
        }
    __syncthreads();
}

// Leading dimension of a triangle by columns.
template <int N>
constexpr int TRIANGLE_LD = N + 4;

// R(row, column) ← upper triangle of G, diagonal + shift, by columns, zero below. They may overlap.
template <int N, int Threads>
__device__ void copy_triangle(double* R, const double* G, double shift) {
    constexpr int EACH = N * N / Threads;
    double g[EACH];
    const int row = threadIdx.x % N;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int column = threadIdx.x / N + i * (Threads / N);
        g[i] = row <= column ? G[square_entry<N>(row, column)] + (row == column ? shift : 0) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EACH; i++) R[(threadIdx.x / N + i * (Threads / N)) * TRIANGLE_LD<N> + row] = g[i];
}

// W ← R of memory.gram() + a multiple of its largest entry `most`, more than rounding errors.
template <int N>
__device__ void only_factor(ProductMemory<N, float>& memory, float* W, int columns, double most) {
    constexpr int THREADS = ProductMemory<N, float>::THREADS;
    double *const R = memory.square[0], *const diagonal = memory.sweep.column;
    static_assert(N * TRIANGLE_LD<N> <= 2 * N * N, "it lies over both squares");
    copy_triangle<N, THREADS>(R, memory.gram(), ROUNDING_LEAST * most);
    if (threadIdx.x < N) diagonal[threadIdx.x] = most;
    __syncthreads();
    cholesky<N, TRIANGLE_LD<N>, THREADS / WARP>(R, diagonal);
    for (int i = threadIdx.x; i < columns * columns; i += THREADS) {
        const int row = i / columns, column = i % columns;
        narrow(row <= column ? R[column * TRIANGLE_LD<N> + row] : 0, W[i]);
    }
}

// R₂ of memory.gram() by columns, over the inverse, whose time is over, and more.
template <int N>
struct SecondFactor {
    using Memory = ProductMemory<N, double>;
    static constexpr int LD = TRIANGLE_LD<N>, THREADS = Memory::THREADS;
    static_assert(N * LD <= RightTriangle<N>::ENTRIES + Memory::SQUARE, "it lies over both");

    // Returns whether W will be as accurate as it should.
    static __device__ bool make(Memory& memory) {
        double* const R = memory.inverse.entries;
        const int j = threadIdx.x % N;
        const double g = memory.gram()[square_entry<N>(j, j)], size = sqrt(g) * memory.first_diagonal[j];
        copy_triangle<N, THREADS>(R, memory.gram(), 0);
        memory.column[j] = g;
        __syncthreads();
        cholesky<N, LD, THREADS / WARP>(R, memory.column);
        const double r = R[j * LD + j];
        const bool sound = __syncthreads_and(r * r >= SECOND_LEAST * g);
        const double error = sound ? g > 0 ? sqrt(g) / r * size : 0 : by_pivots(memory, size);
        if (threadIdx.x < N) memory.column[j] = error, memory.first_diagonal[j] = size;
        __syncthreads();
        return most_of(memory.column) <= MISSED * most_of(memory.first_diagonal);
    }

    // Where columns of Q are nearly parallel: of G₂ with a unit diagonal. Returns the error of the thread's column.
    static __device__ double by_pivots(Memory& memory, double size) {
        double* const R = memory.inverse.entries;
        PivotedSweep<N, THREADS> sweep(memory.sweep);
        const int j = sweep.own;
        const double d = sqrt(memory.gram()[square_entry<N>(j, j)]);
        if (sweep.part == 0) memory.column[j] = d > 0 ? 1 / d : 0;
        __syncthreads();
        sweep.load([&](int i, int k) {
            return memory.gram()[square_entry<N>(i, k)] * memory.column[i] * memory.column[k];
        });
        double error = LOST * size;
        const int rank = sweep.run(SECOND_LEAST, [&](int k, int, double z, bool before, bool pivot) {
            R[j * LD + k] = before ? 0 : z * d;
            if (pivot) error = size / z;
        });
        if (sweep.part == 0)
            for (int k = rank; k < N; k++) R[j * LD + k] = 0;
        return error;
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
            for (int e = 0; e < 4; e++) r[e] = R[(k + 2 * quad + e % 2) * LD + row0 + line + e / 2 * 8];
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

}  // namespace qr
