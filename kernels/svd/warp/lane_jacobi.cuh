// One-sided Jacobi on small matrices, a column a lane, N lanes a matrix:
//
//     for r = 1 … N − 1:   lanes l and l XOR r turn their columns orthogonal (common/thread/jacobi_rotation.cuh)
//
// Each lane fetches its partner's column by shuffles, and both work out the same rotation. With Vectors, V follows along.
// Called by svd/svd_register.cuh, by all lanes of a warp together.
#pragma once

#include "svd/warp/lane_qr.cuh"

namespace svd {

// one sweep; returns whether this lane turned anything
template <int N, bool Vectors, typename Real>
__device__ bool lane_sweep(Real (&X)[N], Real (&V)[Vectors ? N : 1], Real tolerance) {
    int lane = threadIdx.x % N;
    Real norm = dot(X, X);
    bool turned = false;
    for (int r = 1; r < N; r++) {
        Real Y[N];
#pragma unroll
        for (int i = 0; i < N; i++) Y[i] = __shfl_xor_sync(EVERY_LANE, X[i], r);
        Real gamma = dot(X, Y), other = __shfl_xor_sync(EVERY_LANE, norm, r);
        bool first = lane < (lane ^ r);
        Real alpha = first ? norm : other, beta = first ? other : norm;
        bool turn = cosine(alpha, beta, gamma) > tolerance;
        if (!__any_sync(EVERY_LANE, turn)) continue;
        Rotation<Real> rotation = {1, 0, 0};
        if (turn) rotation = quick_rotation(alpha, beta, gamma), turned = true;
        Real s = first ? -rotation.s : rotation.s, t = first ? -rotation.t : rotation.t;
        norm = fmax(fma(t, gamma, norm), Floating<Real>::epsilon * norm);
#pragma unroll
        for (int i = 0; i < N; i++) X[i] = fma(rotation.c, X[i], s * Y[i]);
        if (Vectors) {
#pragma unroll
            for (int i = 0; i < (Vectors ? N : 1); i++) {
                Real y = __shfl_xor_sync(EVERY_LANE, V[i], r);
                V[i] = fma(rotation.c, V[i], s * y);
            }
        }
    }
    return turned;
}

}  // namespace svd
