// systems/warp/substitute.cuh — T x = b or Tᵀ x = b for a triangle in shared memory, an unknown a lane.
//
// Called by whole warps.
#pragma once

#include "common/thread/field.cuh"

namespace systems {
using namespace common;

// value     of this lane's unknown: of b; returns x, NaN where the diagonal has a zero
// triangle  n × n of at most N × N, rows Pitch apart; Unit: its diagonal counts as ones
template <int N, int Pitch, bool Forward, bool Unit, bool Transposed, typename Scalar>
__device__ Scalar substitute(Scalar value, const Scalar* triangle, int n) {
    const int lane = threadIdx.x % WARP, own = min(lane, n - 1);
    const Scalar diagonal = triangle[own * (Pitch + 1)], *factors = triangle + own * (Transposed ? 1 : Pitch);
    Divisor<Scalar> divided(diagonal);
    if (!(magnitude(diagonal) > 0)) divided.inverse = not_a_number<Scalar>();
#pragma unroll
    for (int step = 0; step < N; step++) {
        const int k = Forward ? step : N - 1 - step;
        if (k >= n) continue;
        if (!Unit) value = lane == k ? divided(value) : value;
        const Scalar known = of_lane<WARP>(value, k), factor = factors[k * (Transposed ? Pitch : 1)];
        if (Forward ? lane > k : lane < k) value = less_product(value, factor, known);
    }
    return value;
}

}  // namespace systems
