// common/thread/householder.cuh — the reflection H = I - τ [1; v] [1; v]ᵀ with H [α; u] = [β; 0] and v = s u.
#pragma once
#include "common/thread/constants.cuh"
#include "common/thread/range.cuh"

namespace common {

// 1 / √x and 1 / x for normal x, to a few units in the last place and without branches: the hardware's 20 bits and one
// step of third order, or its 23 bits and one of Newton's. Every step of a factorization waits for them; the library's
// took a third of its time. Errors of one sign would add up: a reflection is as orthogonal as its root is exact.
__device__ inline double inverse_sqrt(double x) {
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double e = fma(-x * y, y, 1.0);
    return fma(y * e, fma(0.375, e, 0.5), y);
}
__device__ inline double inverse(double x) {
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double e = fma(-x, y, 1.0);
    return fma(y, fma(e, e, e), y);
}
__device__ inline float inverse_sqrt(float x) {
    const float y = rsqrtf(x), e = fmaf(-x * y, y, 1.0f);
    return fmaf(0.5f * y, e, y);
}
__device__ inline float inverse(float x) { return 1 / x; }

template <typename Real>
struct Householder {
    Real beta, scale, tau, product, inverse;  // β, s, τ, τ s, 1/τ
};

// From α and σ² = ‖u‖². No cancellation: β has the sign that α has not. For u = 0 the reflection is v = 0, τ = 2, so that
// τ = 2 / (1 + ‖v‖²) always and whoever has v can do without τ. τ s = ±1 / √(α² + σ²) is known before s.
template <typename Real>
__device__ Householder<Real> householder(Real alpha, Real sigma2) {
    const bool none = sigma2 < Range<Real>::NEGLIGIBLE;
    const Real square = none ? Real(1) : fma(alpha, alpha, sigma2), root = inverse_sqrt(square);
    const Real size = fabs(alpha) * root, tau = 1 + size, product = copysign(root, alpha), inverted = inverse(tau);
    if (none) return {-alpha, Real(0), Real(2), Real(0), Real(0.5)};
    return {-square * product, product * inverted, tau, product, inverted};
}

}  // namespace common
