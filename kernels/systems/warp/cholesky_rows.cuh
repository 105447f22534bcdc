// systems/warp/cholesky_rows.cuh — the first N columns of a Cholesky factor, rows held by lanes.
//
//     l_kk = √a_kk,   l_ik = a_ik / l_kk,   a_ij −= l_ik l_jk   for k < j ≤ i
//
// Row s · Lanes + lane is slot s of a lane, of which (s + 1) · Lanes entries count: static indices, so that what lies above the
// diagonal blocks takes neither registers nor time. Called by whole warps, WARP / Lanes matrices at once.
#pragma once

#include "common/thread/field.cuh"

namespace systems {
using namespace common;

// x      lower triangle, row s · Lanes + lane in slot s; L afterwards
// steps  rows of the matrix; `most` of the largest one of the warp
// Returns 0, or one-based the first pivot that is not positive, in every lane of the part.
template <int Lanes, int Slots, int N, typename Real>
__device__ int cholesky_rows(Real (&x)[Slots][N], int steps, int most) {
    int failed = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (k >= most) break;
        const Real pivot = of_lane<Lanes>(x[k / Lanes][k], k % Lanes), inverse = rsqrt(pivot), near = pivot * inverse;
        const Real root = fma(Real(0.5) * inverse, fma(-near, near, pivot), near);
        if (!(pivot > 0) && failed == 0 && k < steps) failed = k + 1;
#pragma unroll
        for (int s = k / Lanes; s < Slots; s++)
            x[s][k] = s == k / Lanes && threadIdx.x % Lanes == k % Lanes ? root : x[s][k] * inverse;
#pragma unroll
        for (int j = k + 1; j < N; j++) {
            const Real factor = of_lane<Lanes>(x[j / Lanes][k], j % Lanes);
#pragma unroll
            for (int s = j / Lanes; s < Slots; s++) x[s][j] = fma(-x[s][k], factor, x[s][j]);
        }
    }
    return failed;
}

}  // namespace systems
