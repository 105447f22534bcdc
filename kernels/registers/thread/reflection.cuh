// registers/thread/reflection.cuh — LAPACK's reflection, real or complex: Hᴴ [α; u] = [β; 0], H = I − τ v vᴴ, v = [1; s u], β real.
//
// Anderson et al., LAPACK Users' Guide: xLARFG, without its loop of rescaling: callers scale whole matrices (common/thread/range.cuh).
#pragma once
#include "common/thread/householder.cuh"
#include "common/thread/power_of_two.cuh"
#include "registers/thread/conjugate.cuh"

namespace registers {
using namespace common;

template <typename Scalar>
struct Reflection {
    typename Field<Scalar>::Real beta;
    Scalar tau, scale;  // τ and s; both 0 where there is nothing to reflect
};

// below   ‖u‖²
template <typename Scalar, typename Real = typename Field<Scalar>::Real>
__device__ Reflection<Scalar> reflection(Scalar alpha, Real below) {
    Real off = below, square, imaginary = 0;
    const Real real = real_part(alpha);
    if constexpr (Field<Scalar>::COMPLEX) imaginary = alpha.im, off = fma(imaginary, imaginary, below);
    if (off < Range<Real>::NEGLIGIBLE) return {real, Scalar(), Scalar()};
    square = fma(real, real, off);
    const Real root = inverse_sqrt(square), signed_root = copysign(root, real), beta = -square * signed_root;
    const Real far = real - beta;  // Re(α − β), without cancellation
    if constexpr (Field<Scalar>::COMPLEX) {
        const Real shrink = inverse(fma(far, far, imaginary * imaginary));
        return {beta, {fma(fabs(real), root, Real(1)), imaginary * signed_root}, {far * shrink, -imaginary * shrink}};
    } else {
        return {beta, fma(fabs(real), root, Real(1)), inverse(far)};
    }
}

// The exponent that decides on scaling: that of the larger part; of a double as common has it.
using common::exponent_of;
template <typename Real>
__device__ int exponent_of(Real x) { return Range<Real>::exponent_field(x) - Range<Real>::BIAS; }
template <typename Real>
__device__ int exponent_of(Complex<Real> x) { return max(exponent_of(x.re), exponent_of(x.im)); }

}  // namespace registers
