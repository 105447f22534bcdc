// common/thread/field.cuh — real and complex numbers under one spelling, for kernels that work on both.
//
// magnitude(x) is what LAPACK compares in the search for a pivot: |x|, or |Re x| + |Im x|.
#pragma once
#include "common/thread/constants.cuh"
#include "common/thread/jacobi_rotation.cuh"

namespace common {

template <typename Real>
struct alignas(2 * sizeof(Real)) Complex { Real re, im; };

template <typename Scalar> struct Field {
    using Real = Scalar;
    static constexpr bool COMPLEX = false;
};
template <typename Part> struct Field<Complex<Part>> {
    using Real = Part;
    static constexpr bool COMPLEX = true;
};

template <typename Real> constexpr Real SMALLEST_NORMAL = Real(0x1p-126);
template <> constexpr inline double SMALLEST_NORMAL<double> = 0x1p-1022;

__device__ inline float magnitude(float x) { return fabsf(x); }
__device__ inline double magnitude(double x) { return fabs(x); }
template <typename Real>
__device__ Real magnitude(Complex<Real> x) { return fabs(x.re) + fabs(x.im); }

// x < bound for x ≥ 0, bound a power of two: by leading bits alone, since comparisons of doubles take twice as long.
__device__ inline bool less(float x, float bound) { return x < bound; }
__device__ inline bool less(double x, double bound) { return __double2hiint(x) < __double2hiint(bound); }

template <typename Real>
__device__ Real times(Real a, Real b) { return a * b; }
template <typename Real>
__device__ Complex<Real> times(Complex<Real> a, Complex<Real> b) {
    return {fma(-a.im, b.im, a.re * b.re), fma(a.im, b.re, a.re * b.im)};
}

template <typename Real>
__device__ Real minus(Real a, Real b) { return a - b; }
template <typename Real>
__device__ Complex<Real> minus(Complex<Real> a, Complex<Real> b) { return {a.re - b.re, a.im - b.im}; }

template <typename Real>
__device__ Real plus(Real a, Real b) { return a + b; }
template <typename Real>
__device__ Complex<Real> plus(Complex<Real> a, Complex<Real> b) { return {a.re + b.re, a.im + b.im}; }

// x − a b
template <typename Real>
__device__ Real less_product(Real x, Real a, Real b) { return fma(-a, b, x); }
template <typename Real>
__device__ Complex<Real> less_product(Complex<Real> x, Complex<Real> a, Complex<Real> b) {
    return {fma(a.im, b.im, fma(-a.re, b.re, x.re)), fma(-a.im, b.re, fma(-a.re, b.im, x.im))};
}

// The same where a has been chosen among several: its sign would be an operation of its own.
template <typename Real>
__device__ Real less_chosen(Real x, Real a, Real b) { return fma(a, -b, x); }
template <typename Real>
__device__ Complex<Real> less_chosen(Complex<Real> x, Complex<Real> a, Complex<Real> b) { return less_product(x, a, b); }

// 1 / x to rounding where x and 1 / x are normal numbers: no branch that would keep the compiler from overlapping it with others.
template <typename Real>
__device__ Real reciprocal(Real x) {
    const Real near = refined_reciprocal(x);
    return fma(near, fma(-x, near, Real(1)), near);
}
template <typename Real>
__device__ Complex<Real> reciprocal(Complex<Real> x) {
    if (fabs(x.re) >= fabs(x.im)) {
        const Real ratio = x.im * reciprocal(x.re), inverse = reciprocal(fma(x.im, ratio, x.re));
        return {inverse, -ratio * inverse};
    }
    const Real ratio = x.re * reciprocal(x.im), inverse = reciprocal(fma(x.re, ratio, x.im));
    return {ratio * inverse, -inverse};
}

// Division of many numbers by one, by its reciprocal, which neither over- nor underflows; to zero by zero.
template <typename Scalar>
struct Divisor {
    using Real = typename Field<Scalar>::Real;
    Scalar inverse;
    Real scale;  // the divisor is multiplied by it first

    __device__ Divisor() {}
    __device__ explicit Divisor(Scalar pivot) {
        constexpr Real FAR = sizeof(Real) == sizeof(double) ? Real(0x1p100) : Real(0x1p60);
        constexpr Real TINY = 4 * SMALLEST_NORMAL<Real>, VAST = 1 / TINY;
        const Real size = magnitude(pivot);
        scale = less(size, TINY) ? FAR : less(size, VAST) ? Real(1) : 1 / FAR;
        if constexpr (Field<Scalar>::COMPLEX) pivot = {pivot.re * scale, pivot.im * scale};
        else pivot *= scale;
        inverse = reciprocal(pivot);
        if (!(size > 0)) inverse = Scalar();  // afterwards: no branch
    }

    __device__ Scalar operator()(Scalar x) const {
        const Scalar quotient = times(x, inverse);
        if constexpr (Field<Scalar>::COMPLEX) return {quotient.re * scale, quotient.im * scale};
        else return quotient * scale;
    }
};

// Whether x is neither NaN nor infinite.
__device__ inline bool is_finite(float x) { return fabsf(x) <= 3.40282347e38f; }
__device__ inline bool is_finite(double x) { return fabs(x) <= 1.7976931348623157e308; }
template <typename Real>
__device__ bool is_finite(Complex<Real> x) { return is_finite(x.re) && is_finite(x.im); }

template <typename Scalar>
__device__ Scalar not_a_number() {
    using Real = typename Field<Scalar>::Real;
    const Real nothing = static_cast<Real>(nan(""));
    if constexpr (Field<Scalar>::COMPLEX) return {nothing, nothing};
    else return nothing;
}

template <typename Scalar>
__device__ Scalar one() {
    if constexpr (Field<Scalar>::COMPLEX) return {1, 0};
    else return 1;
}

// x of lane `from` of this part of `Width` lanes, in each of them; called by whole warps.
template <int Width, typename Real>
__device__ Real of_lane(Real x, int from) { return __shfl_sync(EVERY_LANE, x, from, Width); }
template <int Width, typename Real>
__device__ Complex<Real> of_lane(Complex<Real> x, int from) {
    return {of_lane<Width>(x.re, from), of_lane<Width>(x.im, from)};
}

template <int Width, typename Scalar>
__device__ Divisor<Scalar> of_lane(const Divisor<Scalar>& divided, int from) {
    Divisor<Scalar> there;
    there.inverse = of_lane<Width>(divided.inverse, from), there.scale = of_lane<Width>(divided.scale, from);
    return there;
}

}  // namespace common
