// registers/thread/small_matrix.cuh — factorizations of one matrix in one thread's registers, nothing pivoted, every loop unrolled.
//
//     A = L U     A = L Lᴴ     A = Q R     [A | b] → [I | A⁻¹ b]
//
// Anderson, Sheffield & Keutzer (2012), "A predictive model for solving small linear algebra problems in GPU registers",
// section IV. Called by single threads; the caller holds the result. Where a step is told, it is one-based: the first whose
// pivot is zero (not positive) or whose multipliers have lost half of the digits, 0 for none.
#pragma once
#include "registers/thread/reflection.cuh"

namespace registers {

// Multipliers beyond 1/√ε leave less than half of the digits.
template <typename Real> constexpr Real MULTIPLIER_LIMIT = Real(0x1p11);
template <> constexpr inline double MULTIPLIER_LIMIT<double> = 0x1p26;

// [L \ U] in place of the first N columns of x, L⁻¹ of the others. Returns the broken step.
template <int N, int W, typename Scalar>
__device__ int factor_lu(Scalar (&x)[N][W]) {
    using Real = typename Field<Scalar>::Real;
    int broken = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const Divisor<Scalar> divided(x[k][k]);
        Real largest = 0;
#pragma unroll
        for (int i = k + 1; i < N; i++) {
            x[i][k] = divided(x[i][k]);
            largest = fmax(largest, magnitude(x[i][k]));
#pragma unroll
            for (int j = k + 1; j < W; j++) x[i][j] = less_product(x[i][j], x[i][k], x[k][j]);
        }
        if (!broken && !(magnitude(x[k][k]) > 0 && largest <= MULTIPLIER_LIMIT<Real>)) broken = k + 1;
    }
    return broken;
}

// U⁻¹ of columns N … W − 1, U in the upper triangle of the first N.
template <int M, int N, int W, typename Scalar>
__device__ void substitute(Scalar (&x)[M][W]) {
#pragma unroll
    for (int k = N - 1; k >= 0; k--) {
        const Divisor<Scalar> divided(x[k][k]);
#pragma unroll
        for (int c = N; c < W; c++) {
            x[k][c] = divided(x[k][c]);
#pragma unroll
            for (int i = 0; i < k; i++) x[i][c] = less_product(x[i][c], x[i][k], x[k][c]);
        }
    }
}

// A⁻¹ b in place of b, columns N … W − 1; what is left of A means nothing. Returns the broken step.
template <int N, int W, typename Scalar>
__device__ int gauss_jordan(Scalar (&x)[N][W]) {
    using Real = typename Field<Scalar>::Real;
    int broken = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const Divisor<Scalar> divided(x[k][k]);
        Real largest = 0;
#pragma unroll
        for (int i = k + 1; i < N; i++) largest = fmax(largest, magnitude(divided(x[i][k])));
        if (!broken && !(magnitude(x[k][k]) > 0 && largest <= MULTIPLIER_LIMIT<Real>)) broken = k + 1;
#pragma unroll
        for (int j = k + 1; j < W; j++) {
            x[k][j] = divided(x[k][j]);
#pragma unroll
            for (int i = 0; i < N; i++)
                if (i != k) x[i][j] = less_product(x[i][j], x[i][k], x[k][j]);
        }
    }
    return broken;
}

// L in the lower triangle, which alone is read; zeros above. Returns the broken step.
template <int N, typename Scalar>
__device__ int factor_cholesky(Scalar (&x)[N][N]) {
    using Real = typename Field<Scalar>::Real;
    int broken = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const Real pivot = real_part(x[k][k]), root = sqrt(pivot), inverted = 1 / root;
        if (!broken && !(pivot > 0)) broken = k + 1;
        x[k][k] = from_real<Scalar>(root);
#pragma unroll
        for (int i = k + 1; i < N; i++) x[i][k] = stretched(x[i][k], inverted), x[k][i] = Scalar();
#pragma unroll
        for (int j = k + 1; j < N; j++)
#pragma unroll
            for (int i = j; i < N; i++) x[i][j] = less_product(x[i][j], x[i][k], conjugate(x[j][k]));
    }
    return broken;
}

// R on and above the diagonal of the first N columns, v below it, Qᴴ of the other columns.
template <int M, int N, int W, typename Scalar>
__device__ void factor_qr(Scalar (&x)[M][W], Scalar (&tau)[1][M < N ? M : N]) {
    using Real = typename Field<Scalar>::Real;
    constexpr int STEPS = M < N ? M : N;
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        Real below = 0;
#pragma unroll
        for (int i = k + 1; i < M; i++) below = plus_square(below, x[i][k]);
        const Reflection<Scalar> h = reflection(x[k][k], below);
        x[k][k] = from_real<Scalar>(h.beta);
        tau[0][k] = h.tau;
#pragma unroll
        for (int i = k + 1; i < M; i++) x[i][k] = times(x[i][k], h.scale);
#pragma unroll
        for (int j = k + 1; j < W; j++) {
            Scalar dot = x[k][j];
#pragma unroll
            for (int i = k + 1; i < M; i++) dot = plus_dot(dot, x[i][k], x[i][j]);
            dot = times(conjugate(h.tau), dot);
            x[k][j] = minus(x[k][j], dot);
#pragma unroll
            for (int i = k + 1; i < M; i++) x[i][j] = less_product(x[i][j], x[i][k], dot);
        }
    }
}

// A bound on the condition of R: ‖R‖_F ‖z‖ with M z = e, M the comparison matrix, because |R⁻¹| ≤ M⁻¹ entry by entry
// (Higham 2002, section 8.2). Inf or NaN where R is singular.
template <int M, int N, int W, typename Scalar>
__device__ typename Field<Scalar>::Real condition_bound(const Scalar (&x)[M][W]) {
    using Real = typename Field<Scalar>::Real;
    Real entries = 0, solutions = 0, z[N];
#pragma unroll
    for (int k = N - 1; k >= 0; k--) {
        Real sum = 1;
#pragma unroll
        for (int j = k + 1; j < N; j++) {
            sum = fma(magnitude(x[k][j]), z[j], sum);
            entries = plus_square(entries, x[k][j]);
        }
        z[k] = sum / magnitude(x[k][k]);
        entries = plus_square(entries, x[k][k]);
        solutions = fma(z[k], z[k], solutions);
    }
    return sqrt(entries) * sqrt(solutions);
}

// The power of two that brings columns FIRST … LAST − 1 into the range that is safe for squares, as its exponent.
template <int FIRST, int LAST, int M, int W, typename Scalar>
__device__ int make_safe(Scalar (&x)[M][W]) {
    using Real = typename Field<Scalar>::Real;
    int largest = -Range<Real>::BIAS;
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int j = FIRST; j < LAST; j++) largest = max(largest, exponent_of(x[i][j]));
    const int shift = safe_shift<Real>(largest);
    if (shift) {
        const Real factor = power_of_two<Real>(-shift);
#pragma unroll
        for (int i = 0; i < M; i++)
#pragma unroll
            for (int j = FIRST; j < LAST; j++) x[i][j] = stretched(x[i][j], factor);
    }
    return shift;
}

}  // namespace registers
