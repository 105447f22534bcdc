// registers/block/cyclic_matrix.cuh — a matrix dealt out in turns to a grid of P × Q threads, in their registers.
//
//     entry (i, j) belongs to thread (i mod P, j mod Q)
//
// P × Q is the 2D cyclic layout, P × 1 the 1D row cyclic one, 1 × Q the 1D column cyclic one: Anderson, Sheffield & Keutzer
// (2012), section V.A. Columns are walked through in panels of Q, so that registers have numbers that the compiler knows.
// Called by all P · Q threads of a block; threads that share columns are neighbours.
#pragma once
#include "common/warp/part_sums.cuh"
#include "registers/thread/reflection.cuh"

namespace registers {
using namespace common;

// What a step needs of the others: a column and a row of the matrix, by turns in two places, so that a step has one barrier.
template <typename Scalar, int M, int W, int P, int Q>
struct CyclicLines {
    using Real = typename Field<Scalar>::Real;
    static constexpr int PARTS = P > WARP ? P / WARP : 1;  // warps that share a column
    Scalar column[2][(M + P - 1) / P * P], row[2][(W + Q - 1) / Q * Q], parts[PARTS][(W + Q - 1) / Q * Q];
    Real norms[PARTS][Q], bound[2];
    int exponents[2], broken;
};

template <typename Scalar, int M, int W, int P, int Q>
struct CyclicMatrix {
    using Real = typename Field<Scalar>::Real;
    using Lines = CyclicLines<Scalar, M, W, P, Q>;
    static constexpr int HEIGHT = (M + P - 1) / P, WIDTH = (W + Q - 1) / Q, THREADS = P * Q;
    static_assert(THREADS % WARP == 0 && (P & (P - 1)) == 0, "whole warps, and parts of them");
    Scalar x[HEIGHT][WIDTH];
    int first_row, first_column;

    __device__ CyclicMatrix() : first_row(threadIdx.x % P), first_column(threadIdx.x / P) {
#pragma unroll
        for (int i = 0; i < HEIGHT; i++)
#pragma unroll
            for (int j = 0; j < WIDTH; j++) x[i][j] = Scalar();
    }
    __device__ int row(int i) const { return first_row + i * P; }
    __device__ int column(int j) const { return first_column + j * Q; }

    // Whether slot (i, j) holds an entry of the first Rows rows and of columns First … First + N − 1: of most slots the
    // compiler knows.
    template <int First, int N, int Rows>
    __device__ bool holds(int i, int j) const {
        const bool above = (i + 1) * P <= Rows || row(i) < Rows;
        return above && (j * Q >= First || column(j) >= First) && ((j + 1) * Q <= First + N || column(j) < First + N);
    }

    // Columns First … First + N − 1 from A, rows of N entries; says whether this thread's are finite. Nothing looks at an
    // entry before all have been asked for.
    template <int First, int N>
    __device__ bool load(const Scalar* A) {
        A += first_row * N + first_column - First;
#pragma unroll
        for (int i = 0; i < HEIGHT; i++)
#pragma unroll
            for (int j = First / Q; j < WIDTH; j++)
                if (holds<First, N, M>(i, j)) x[i][j] = A[i * P * N + j * Q];
        bool finite = true;
#pragma unroll
        for (int i = 0; i < HEIGHT; i++)
#pragma unroll
            for (int j = First / Q; j < WIDTH; j++) finite = finite && (is_finite(x[i][j]) || !holds<First, N, M>(i, j));
        return finite;
    }

    // The first `Rows` rows of the same columns to out.
    template <int First, int N, int Rows>
    __device__ void store(Scalar* out) const {
        out += first_row * N + first_column - First;
#pragma unroll
        for (int i = 0; i < HEIGHT; i++)
#pragma unroll
            for (int j = First / Q; j < WIDTH; j++)
                if (holds<First, N, Rows>(i, j)) out[i * P * N + j * Q] = x[i][j];
    }

    // Of the rows and columns k of a panel: the slots of rows from the first of them to the last.
    static __device__ constexpr int first_slot(int panel) { return panel * Q / P; }
    static __device__ constexpr int last_slot(int panel) { return min(HEIGHT, (panel * Q + Q - 1) / P + 1) - 1; }

    // Column k = panel · Q + c in slots from … to, and of row k the columns from First on, to all threads.
    template <int First>
    __device__ void publish(Lines& lines, int panel, int c, int k, int from, int to) const {
        if (first_column == c)
#pragma unroll
            for (int i = from; i <= to; i++) lines.column[k % 2][row(i)] = x[i][panel];
#pragma unroll
        for (int i = first_slot(panel); i <= last_slot(panel); i++)
            if (row(i) == k)
#pragma unroll
                for (int j = First > 0 ? First / Q : panel; j < WIDTH; j++) lines.row[k % 2][column(j)] = x[i][j];
        __syncthreads();
    }

    // Multiplies columns First … Last − 1 by the power of two that makes squares safe; its exponent, negated, in every thread.
    template <int First, int Last>
    __device__ int make_safe(int& shared_exponent) {
        int largest = -Range<Real>::BIAS;
        if (threadIdx.x == 0) shared_exponent = largest;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < HEIGHT; i++)
#pragma unroll
            for (int j = First / Q; j < WIDTH; j++)
                if (column(j) >= First && column(j) < Last) largest = max(largest, exponent_of(x[i][j]));
        atomicMax(&shared_exponent, largest);
        __syncthreads();
        const int shift = safe_shift<Real>(shared_exponent);
        if (shift) scale_by<First, Last>(-shift, false);
        return shift;
    }

    // Columns First … Last − 1 times 2^exponent; Upper: only on and above the diagonal.
    template <int First, int Last>
    __device__ void scale_by(int exponent, bool upper) {
#pragma unroll
        for (int i = 0; i < HEIGHT; i++)
#pragma unroll
            for (int j = First / Q; j < WIDTH; j++)
                if (column(j) >= First && column(j) < Last && (!upper || row(i) <= column(j))) {
                    if constexpr (Field<Scalar>::COMPLEX)
                        x[i][j] = {scalbn(x[i][j].re, exponent), scalbn(x[i][j].im, exponent)};
                    else x[i][j] = scalbn(x[i][j], exponent);
                }
    }
};

}  // namespace registers
