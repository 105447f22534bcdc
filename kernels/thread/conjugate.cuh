// thread/conjugate.cuh — what complex numbers have that real ones have too: conjugates, squares, real parts.
#pragma once
#include "thread/field.cuh"

template <typename Real>
__device__ Real conjugate(Real x) { return x; }
template <typename Real>
__device__ Complex<Real> conjugate(Complex<Real> x) { return {x.re, -x.im}; }

template <typename Real>
__device__ Real real_part(Real x) { return x; }
template <typename Real>
__device__ Real real_part(Complex<Real> x) { return x.re; }

// total + |x|²
template <typename Real>
__device__ Real plus_square(Real total, Real x) { return fma(x, x, total); }
template <typename Real>
__device__ Real plus_square(Real total, Complex<Real> x) { return fma(x.im, x.im, fma(x.re, x.re, total)); }

// total + conj(a) b
template <typename Real>
__device__ Real plus_dot(Real total, Real a, Real b) { return fma(a, b, total); }
template <typename Real>
__device__ Complex<Real> plus_dot(Complex<Real> total, Complex<Real> a, Complex<Real> b) {
    return {fma(a.im, b.im, fma(a.re, b.re, total.re)), fma(-a.im, b.re, fma(a.re, b.im, total.im))};
}

// x r for real r
template <typename Real>
__device__ Real stretched(Real x, Real r) { return x * r; }
template <typename Real>
__device__ Complex<Real> stretched(Complex<Real> x, Real r) { return {x.re * r, x.im * r}; }

// r as a number of the field
template <typename Scalar>
__device__ Scalar from_real(typename Field<Scalar>::Real r) {
    if constexpr (Field<Scalar>::COMPLEX) return {r, 0};
    else return r;
}

template <typename Real>
__device__ Real plus(Real a, Real b) { return a + b; }
template <typename Real>
__device__ Complex<Real> plus(Complex<Real> a, Complex<Real> b) { return {a.re + b.re, a.im + b.im}; }
