// The plane rotation that makes two columns orthogonal, from their Gram matrix [α γ; γ β]:
//
//     ζ = (β − α) / 2γ,   t = sign(ζ) / (|ζ| + √(1 + ζ²)),   c = 1/√(1 + t²),   s = t c
//     [x y] ← [c x − s y,  s x + c y],   α ← α − t γ,   β ← β + t γ
//
// Rutishauser; Golub & Van Loan, section 8.5. The angle decides how fast Jacobi converges, c² + s² = 1 how accurate it
// is: so t comes from the approximate reciprocals of the hardware, refined once (40 bits), and c is exact to rounding.
// Called by one thread; nothing is shared.
#pragma once
#include "common/thread/constants.cuh"
#include "common/thread/power_of_two.cuh"

namespace common {

template <typename Real> struct Floating;

template <> struct Floating<double> {
    static constexpr double epsilon = 2.220446049250313e-16;
    static constexpr double largest = 1.7976931348623157e308;
    static constexpr double huge_cotangent = 1e150;   // ζ² does not overflow below
    static constexpr double negligible = 1e-290;      // squared norms below this times the largest are zero: still far from
                                                      // the denormals, 1e-145 times the matrix
    static constexpr double vanishing = 1e-290;       // squared norms of scaled columns below this are zero
    static constexpr int scaled_exponent = 0;         // entries are scaled to at most 2^this
};

template <> struct Floating<float> {
    static constexpr float epsilon = 1.1920929e-7f;
    static constexpr float largest = 3.4028235e38f;
    static constexpr float huge_cotangent = 1e18f;
    static constexpr float negligible = 1e-42f;
    static constexpr float vanishing = 1e-30f;
    static constexpr int scaled_exponent = 24;        // squares of entries 1e-21 times the largest are still normal numbers
};

__device__ inline float approximate_reciprocal(float x) { return __fdividef(1.0f, x); }
__device__ inline float approximate_rsqrt(float x) { return rsqrtf(x); }

__device__ inline double approximate_reciprocal(double x) {
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
}

__device__ inline double approximate_rsqrt(double x) {
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
}

__device__ inline float refined_reciprocal(float x) { return approximate_reciprocal(x); }
__device__ inline double refined_reciprocal(double x) {
    double y = approximate_reciprocal(x);
    return fma(y, fma(-x, y, 1.0), y);
}

__device__ inline float refined_rsqrt(float x) { return rsqrtf(x); }
__device__ inline double refined_rsqrt(double x) {
    double y = approximate_rsqrt(x), error = fma(-x * y, y, 1.0);
    return fma(0.5 * y, error, y);
}

// 1/√x to rounding for x in [1, 2]
__device__ inline float exact_rsqrt(float x) {
    float y = rsqrtf(x), error = fmaf(-x * y, y, 1.0f);
    return fmaf(0.5f * y, error, y);
}
__device__ inline double exact_rsqrt(double x) {
    double y = approximate_rsqrt(x), error = fma(-x * y, y, 1.0);
    y = fma(y, error * fma(0.375, error, 0.5), y);
    return fma(0.5 * y, fma(-x * y, y, 1.0), y);
}

// γ / √(α β), the cosine between two columns; 0 where one of them is zero
template <typename Real>
__device__ Real cosine(Real alpha, Real beta, Real gamma) {
    constexpr Real LEAST = Floating<Real>::vanishing;
    return alpha > LEAST && beta > LEAST ? fabs(gamma) * approximate_rsqrt(alpha) * approximate_rsqrt(beta) : Real(0);
}

template <typename Real>
struct Rotation { Real c, s, t; };

template <typename Real>
struct alignas(2 * sizeof(Real)) Angle { Real c, s; };

template <typename Real>
__device__ Rotation<Real> jacobi_rotation(Real alpha, Real beta, Real gamma) {
    Real zeta = (beta - alpha) * refined_reciprocal(2 * gamma), t;
    if (!(fabs(zeta) < Floating<Real>::huge_cotangent)) {
        t = beta == alpha ? Real(1) : gamma / (beta - alpha);
    } else {
        Real square = fma(zeta, zeta, Real(1));
        t = copysign(refined_reciprocal(fabs(zeta) + square * refined_rsqrt(square)), zeta);
    }
    Real c = exact_rsqrt(fma(t, t, Real(1)));
    return {c, t * c, t};
}

// A power of two that brings x ≠ 0 to [1, 2) or, where x is huge, a little below.
__device__ inline double reciprocal_power(double x) {
    constexpr int EXPONENT = 0x7ff00000, LARGEST = 0x7fe00000;   // of the high word
    return __hiloint2double(LARGEST - (__double2hiint(x) & EXPONENT), 0);
}

// 1/√x and 1/x as the hardware has them, without a look at denormals
__device__ inline double plain_rsqrt(double x) { return approximate_rsqrt(x); }
__device__ inline float plain_rsqrt(float x) {
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline float plain_reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// cosine() and jacobi_rotation() for chains of many, as short as they can be: no branches, the angle to float32's precision, which
// costs no convergence; c² + s² = 1 to rounding.

// Whether the cosine between two columns exceeds the root of each square: γ²/α is compared with β times these. Not where one is zero.
template <int Squares, typename Real>
__device__ void quick_cosine(Real alpha, Real beta, Real gamma, const Real (&squares)[Squares], bool (&exceeds)[Squares]) {
    constexpr Real LEAST = Floating<Real>::vanishing;
    const Real along = gamma * plain_rsqrt(alpha), square = along * along;
    const bool both = (alpha > LEAST) & (beta > LEAST);
#pragma unroll
    for (int i = 0; i < Squares; i++) exceeds[i] = both & (square > squares[i] * beta);
}

// About 1 / max(x, y), to an eighth, by the bits of numbers of which the larger is not zero.
__device__ inline double rough_reciprocal(double x, double y) {
    constexpr int ONE_SQUARED = 0x7fe00000;                  // of the high words
    return __hiloint2double(ONE_SQUARED - max(__double2hiint(x), __double2hiint(y)), 0);
}
__device__ inline float rough_reciprocal(float x, float y) {
    constexpr int ONE_SQUARED = 0x7f000000;
    return __int_as_float(ONE_SQUARED - max(__float_as_int(x), __float_as_int(y)));
}

// (x, y) / √(x² + y²) to rounding where that is about `near`, of which the hardware's 22 bits are refined.
__device__ inline Angle<float> direction_of(float x, float y, float near) {
    const float root = plain_rsqrt(near), half = 0.5f * fmaf(x, x, y * y), c = x * root, s = y * root;
    const float error = fmaf(half * -root, root, 0.5f);
    return {fmaf(c, error, c), fmaf(s, error, s)};
}
__device__ inline Angle<double> direction_of(double x, double y, float near) {
    const double square = fma(x, x, y * y), root = widened(plain_rsqrt(near)), error = fma(-square, root * root, 1.0);
    const double refined = fma(root * error, fma(0.375, error, 0.5), root);
    return {x * refined, y * refined};
}

// With d = β − α, h² = d² + 4 γ²:  c : s = 1 + |d| / h : ± 2 γ / h. Where γ is not negligible beside √(α β); any numbers elsewhere.
template <typename Real>
__device__ Angle<Real> quick_angle(Real alpha, Real beta, Real gamma) {
    constexpr unsigned SIGN = 1u << 31;
    const Real scale = rough_reciprocal(alpha, beta);
    float difference, half;
    narrow(scale * (beta - alpha), difference), narrow(scale * gamma, half);
    const float inverse = plain_rsqrt(fmaf(half * half, 4.0f, difference * difference)), product = 2 * half, twice = 2 * fabsf(difference);
    const float towards = __uint_as_float(__float_as_uint(product) ^ (__float_as_uint(difference) & SIGN));
    return direction_of(Real(fmaf(fabsf(difference), inverse, 1.0f)), Real(towards * inverse), fmaf(twice, inverse, 2.0f));
}

// jacobi_rotation() in the shortest way: float64's angles may lie beyond float32's range, float32's never do.
__device__ inline Rotation<double> quick_rotation(double alpha, double beta, double gamma) { return jacobi_rotation(alpha, beta, gamma); }
__device__ inline Rotation<float> quick_rotation(float alpha, float beta, float gamma) {
    const Angle<float> angle = quick_angle(alpha, beta, gamma);
    return {angle.c, angle.s, angle.s * approximate_reciprocal(angle.c)};
}

}  // namespace common
