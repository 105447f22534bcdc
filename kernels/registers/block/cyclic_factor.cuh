// registers/block/cyclic_factor.cuh — LU, Gauss-Jordan and QR of a cyclic matrix in registers, nothing pivoted, a barrier a step.
//
// Anderson, Sheffield & Keutzer (2012), section V.B, with fewer barriers: every thread computes the scale of a step itself
// from the published column, and dot products of QR are summed by shuffles among the P neighbours that share columns.
// Called by all threads of a block; each holds its entries of the result. A watch (common/thread/stopwatch.cuh) has a row a panel.
#pragma once
#include "common/thread/stopwatch.cuh"
#include "registers/block/cyclic_matrix.cuh"
#include "registers/thread/small_matrix.cuh"

namespace registers {
using namespace common;

// of a step; CLOCK: between two borders
enum StepPart { PUBLISH, PRODUCTS, REFLECTION, UPDATE, CLOCK, STEP_PARTS };

// [L \ U] of the first N columns, L⁻¹ of the others; Jordan: A⁻¹ of the others. Returns this thread's first broken step.
template <int N, bool Jordan, typename Scalar, int M, int W, int P, int Q, typename Watch = const NoWatch>
__device__ int cyclic_eliminate(CyclicMatrix<Scalar, M, W, P, Q>& a, CyclicLines<Scalar, M, W, P, Q>& lines, Watch& watch = {}) {
    using Real = typename Field<Scalar>::Real;
    using A = CyclicMatrix<Scalar, M, W, P, Q>;
    int broken = 0;
#pragma unroll
    for (int panel = 0; panel < (N + Q - 1) / Q; panel++) {
        // rows of slots before `first` lie above every pivot of this panel, those of slots after `last` below
        const int first = A::first_slot(panel), last = A::last_slot(panel), top = Jordan ? 0 : first;
        for (int c = 0; c < Q && panel * Q + c < N; c++) {
            const int k = panel * Q + c;
            a.template publish<0>(lines, panel, c, k, top, A::HEIGHT - 1);
            watch.part(PUBLISH);
            const Scalar *column = lines.column[k % 2], *row = lines.row[k % 2], pivot = column[k];
            const Divisor<Scalar> divided(pivot);
            Scalar u[A::WIDTH];
#pragma unroll
            for (int j = panel; j < A::WIDTH; j++) {
                u[j] = j > panel || a.column(j) > k ? row[a.column(j)] : Scalar();
                if (Jordan) u[j] = divided(u[j]);
            }
            Real largest = 0;
#pragma unroll
            for (int i = top; i < A::HEIGHT; i++) {
                const bool below = i > last || (i >= first && a.row(i) > k), here = i >= first && i <= last && a.row(i) == k;
                const Scalar raw = column[a.row(i)], quotient = divided(raw);
                if (below) largest = fmax(largest, magnitude(quotient));
                const Scalar l = Jordan ? (here ? Scalar() : raw) : below ? quotient : Scalar();
#pragma unroll
                for (int j = panel; j < A::WIDTH; j++) {
                    a.x[i][j] = less_product(a.x[i][j], l, u[j]);
                    if (Jordan && here && (j > panel || a.column(j) > k)) a.x[i][j] = u[j];
                }
                if (!Jordan && a.first_column == c && below) a.x[i][panel] = l;
            }
            if (!broken && !(magnitude(pivot) > 0 && largest <= MULTIPLIER_LIMIT<Real>)) broken = k + 1;
            watch.part(UPDATE);
            watch.part(CLOCK);
        }
        watch.panel();
    }
    return broken;
}

// Sums over the rows, for columns panel … of this thread and one number more; every thread of a column has them.
template <typename Scalar, int M, int W, int P, int Q, int WIDTH>
__device__ void sum_rows(CyclicLines<Scalar, M, W, P, Q>& lines, int panel, Scalar (&dots)[WIDTH],
                         typename Field<Scalar>::Real& norm) {
    constexpr int LANES = P < WARP ? P : WARP;
    norm = part_sum<1, LANES>(norm);
#pragma unroll
    for (int j = panel; j < WIDTH; j++) dots[j] = part_sum<1, LANES>(dots[j]);
    if constexpr (P > WARP) {
        const int part = threadIdx.x % P / WARP, first_column = threadIdx.x / P;
        if (threadIdx.x % WARP == 0) {
            lines.norms[part][first_column] = norm;
#pragma unroll
            for (int j = panel; j < WIDTH; j++) lines.parts[part][first_column + j * Q] = dots[j];
        }
        __syncthreads();
        norm = 0;
        for (int p = 0; p < P / WARP; p++) norm += lines.norms[p][first_column];
#pragma unroll
        for (int j = panel; j < WIDTH; j++) {
            dots[j] = lines.parts[0][first_column + j * Q];
            for (int p = 1; p < P / WARP; p++) dots[j] = plus(dots[j], lines.parts[p][first_column + j * Q]);
        }
    }
}

// R on and above the diagonal of the first N columns, v below it, Qᴴ of the others.   tau   min(M, N), or null
template <int N, typename Scalar, int M, int W, int P, int Q, typename Watch = const NoWatch>
__device__ void cyclic_qr(CyclicMatrix<Scalar, M, W, P, Q>& a, CyclicLines<Scalar, M, W, P, Q>& lines, Scalar* tau,
                          Watch& watch = {}) {
    using Real = typename Field<Scalar>::Real;
    using A = CyclicMatrix<Scalar, M, W, P, Q>;
    constexpr int STEPS = M < N ? M : N;
#pragma unroll
    for (int panel = 0; panel < (STEPS + Q - 1) / Q; panel++) {
        const int top = A::first_slot(panel), last = A::last_slot(panel);
        for (int c = 0; c < Q && panel * Q + c < STEPS; c++) {
            const int k = panel * Q + c;
            a.template publish<0>(lines, panel, c, k, top, A::HEIGHT - 1);
            watch.part(PUBLISH);
            const Scalar *column = lines.column[k % 2], *row = lines.row[k % 2];
            Scalar v[A::HEIGHT], dots[A::WIDTH];
            Real below = 0;
#pragma unroll
            for (int j = panel; j < A::WIDTH; j++) dots[j] = Scalar();
#pragma unroll
            for (int i = top; i < A::HEIGHT; i++) {
                v[i] = i > last || a.row(i) > k ? column[a.row(i)] : Scalar();
                below = plus_square(below, v[i]);
#pragma unroll
                for (int j = panel; j < A::WIDTH; j++) dots[j] = plus_dot(dots[j], v[i], a.x[i][j]);
            }
            sum_rows(lines, panel, dots, below);
            watch.part(PRODUCTS);
            const Reflection<Scalar> h = reflection(column[k], below);
#pragma unroll
            for (int j = panel; j < A::WIDTH; j++) {
                const Scalar dot = plus_dot(row[a.column(j)], h.scale, dots[j]);
                dots[j] = j > panel || a.column(j) > k ? times(conjugate(h.tau), dot) : Scalar();
            }
            watch.part(REFLECTION);
#pragma unroll
            for (int i = top; i < A::HEIGHT; i++) {
                const bool here = i <= last && a.row(i) == k;
                v[i] = here ? one<Scalar>() : times(v[i], h.scale);
#pragma unroll
                for (int j = panel; j < A::WIDTH; j++) a.x[i][j] = less_product(a.x[i][j], v[i], dots[j]);
                if (a.first_column == c && (i > last || a.row(i) >= k)) a.x[i][panel] = here ? from_real<Scalar>(h.beta) : v[i];
            }
            if (tau && threadIdx.x == 0) tau[k] = h.tau;
            watch.part(UPDATE);
            watch.part(CLOCK);
        }
        watch.panel();
    }
}

// U⁻¹ of columns N … W − 1, U in the upper triangle of the first N. Returns, in thread 0, the bound on the condition of U
// that registers/thread/small_matrix.cuh explains.
template <int N, typename Scalar, int M, int W, int P, int Q>
__device__ typename Field<Scalar>::Real cyclic_substitute(CyclicMatrix<Scalar, M, W, P, Q>& a,
                                                          CyclicLines<Scalar, M, W, P, Q>& lines) {
    using Real = typename Field<Scalar>::Real;
    using A = CyclicMatrix<Scalar, M, W, P, Q>;
    constexpr int SUMS = N / Q;  // registers that hold columns from N on
    Real sums[A::HEIGHT], entries = 0, solutions = 0;
#pragma unroll
    for (int i = 0; i < A::HEIGHT; i++) sums[i] = 1;
    __syncthreads();
#pragma unroll
    for (int panel = (N + Q - 1) / Q - 1; panel >= 0; panel--) {
        const int first = A::first_slot(panel), last = A::last_slot(panel);
        for (int c = min(Q, N - panel * Q) - 1; c >= 0; c--) {
            const int k = panel * Q + c;
#pragma unroll
            for (int i = first; i <= last; i++)
                if (a.row(i) == k && a.first_column == 0) lines.bound[k % 2] = sums[i];
            a.template publish<N>(lines, panel, c, k, 0, last);
            const Scalar *column = lines.column[k % 2], *row = lines.row[k % 2];
            const Divisor<Scalar> divided(column[k]);
            const Real z = lines.bound[k % 2] / magnitude(column[k]);
            solutions = fma(z, z, solutions);
            Scalar y[A::WIDTH];
#pragma unroll
            for (int j = SUMS; j < A::WIDTH; j++) y[j] = a.column(j) >= N ? divided(row[a.column(j)]) : Scalar();
#pragma unroll
            for (int i = 0; i <= last; i++) {  // U has nothing below
                const bool here = i >= first && a.row(i) == k;
                const Scalar entry = i < first || a.row(i) <= k ? column[a.row(i)] : Scalar(), l = here ? Scalar() : entry;
                sums[i] = fma(magnitude(l), z, sums[i]);
                entries = plus_square(entries, entry);
#pragma unroll
                for (int j = SUMS; j < A::WIDTH; j++) {
                    a.x[i][j] = less_product(a.x[i][j], l, y[j]);
                    if (here && a.column(j) >= N) a.x[i][j] = y[j];
                }
            }
        }
    }
    // every column of threads saw all of U: the first sums its rows
    Scalar none[1];
    sum_rows(lines, 1, none, entries);
    return sqrt(entries) * sqrt(solutions);
}

}  // namespace registers
