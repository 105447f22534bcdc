// products/thread/multiply_add.cuh — x + a b, real and complex.
#pragma once
#include "common/thread/field.cuh"

namespace products {
using namespace common;

template <typename Real>
__device__ Real multiply_add(Real x, Real a, Real b) { return fma(a, b, x); }
template <typename Real>
__device__ Complex<Real> multiply_add(Complex<Real> x, Complex<Real> a, Complex<Real> b) {
    return {fma(-a.im, b.im, fma(a.re, b.re, x.re)), fma(a.im, b.re, fma(a.re, b.im, x.im))};
}

template <typename Real>
__device__ bool is_zero(Real x) { return x == Real(0); }
template <typename Real>
__device__ bool is_zero(Complex<Real> x) { return x.re == Real(0) && x.im == Real(0); }

// α sum + β c, where c is read only if β ≠ 0
template <typename Scalar>
__device__ Scalar scaled_sum(Scalar alpha, Scalar sum, Scalar beta, const Scalar* c) {
    const Scalar scaled = times(alpha, sum);
    return is_zero(beta) ? scaled : multiply_add(scaled, beta, *c);
}

}  // namespace products
