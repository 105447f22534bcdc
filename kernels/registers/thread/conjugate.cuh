// registers/thread/conjugate.cuh — what complex numbers have that real ones have too: conjugates, squares, real parts.
#pragma once
#include "products/thread/multiply_add.cuh"

namespace registers {
using namespace products;

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
template <typename Scalar>
__device__ Scalar plus_dot(Scalar total, Scalar a, Scalar b) { return multiply_add(total, conjugate(a), b); }

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

}  // namespace registers
