// systems/lu_determinant.cuh — det A_b = sign_b · exp(logarithm_b) from P A = L U; one warp a matrix.
//
//     sign = Π (−1)^[pivot_k ≠ k] u_kk / |u_kk|,   logarithm = Σ log |u_kk|;   0 and −∞ for a singular matrix
#pragma once

#include "common/warp/part_sums.cuh"
#include "systems/thread/place.cuh"

namespace systems {
using namespace common;

template <typename Real>
__device__ Real scaled(Real x, Real factor) { return x * factor; }
template <typename Real>
__device__ Complex<Real> scaled(Complex<Real> x, Real factor) { return {x.re * factor, x.im * factor}; }

// LU, pivots, table, n: as in systems/lu_register.cuh, of square matrices     determinant, or (null) sign and logarithm: matrices
template <typename Scalar, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void lu_determinant(const Scalar* LU, const int* pivots, Scalar* determinant, Scalar* sign,
                    typename Field<Scalar>::Real* logarithm, const long long* table, int n, long long count) {
    using Real = typename Field<Scalar>::Real;
    const int lane = threadIdx.x % WARP;
    const long long b = static_cast<long long>(blockIdx.x) * Warps + threadIdx.x / WARP;
    if (b >= count) return;
    const Place p(table, n, n, b);
    Scalar phase = one<Scalar>();
    Real sum = 0;
    for (int k = lane; k < p.n; k += WARP) {
        const Scalar u = LU[p.source + static_cast<long long>(k) * p.n + k];
        const bool swapped = pivots[p.pivots + k] != k;
        Real size;
        Scalar unit;
        if constexpr (Field<Scalar>::COMPLEX) {
            size = hypot(u.re, u.im);
            unit = size > 0 ? Scalar{u.re / size, u.im / size} : Scalar();
        } else {
            size = fabs(u);
            unit = u > 0 ? Real(1) : u < 0 ? Real(-1) : Real(0);
        }
        if (!is_finite(u)) unit = not_a_number<Scalar>();
        phase = times(phase, swapped ? minus(Scalar(), unit) : unit);
        sum += log(size);
    }
    sum = part_sum<1, WARP>(sum);
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) phase = times(phase, of_lane<WARP>(phase, lane ^ distance));
    if (lane > 0) return;
    if (determinant) determinant[p.index] = scaled(phase, exp(sum));
    else sign[p.index] = phase, logarithm[p.index] = sum;
}

}  // namespace systems
