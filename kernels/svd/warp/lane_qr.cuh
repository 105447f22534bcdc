// Householder QR of small matrices, a column a lane, N lanes a matrix (32 / N matrices side by side in a warp):
//
//     H_{r−1} … H_0 W = R,   H_j = I − τ_j u_j u_jᵀ,   u_j = x − β e₁,  τ_j = 1 / (β (β − x₁)),  β = −sign(x₁) ‖x‖
//
// The column x of step j is the largest that remains (Pivoted), or column j. It goes through shared memory to all lanes; then
// every lane has its dot product by itself, ‖x‖² being the pivot lane's own. Registers shift up by a row at each step, so
// that the row in hand is always X[0] and no register is indexed at run time. Columns stay in their lanes: R has them in
// the caller's order, and the vectors need no permutation.
// Called by svd/svd_register.cuh, by all lanes of a warp together.
#pragma once

#include "common/thread/householder.cuh"
#include "common/thread/jacobi_rotation.cuh"
#include "common/warp/reduce.cuh"

namespace svd {
using namespace common;

// the lane of the group with the largest norm, and that norm
template <int N, typename Real>
__device__ int largest_lane(Real& norm) {
    int best = threadIdx.x % N;
#pragma unroll
    for (int distance = N / 2; distance > 0; distance /= 2) {
        Real other = __shfl_xor_sync(EVERY_LANE, norm, distance);
        int index = __shfl_xor_sync(EVERY_LANE, best, distance);
        if (other > norm || (other == norm && index < best)) norm = other, best = index;
    }
    return best;
}

template <int P, typename Real>
__device__ Real dot(const Real (&X)[P], const Real (&Y)[P]) {
    Real sum[2] = {};
#pragma unroll
    for (int i = 0; i < P; i++) sum[i % 2] = fma(X[i], Y[i], sum[i % 2]);
    return sum[0] + sum[1];
}

// X      this lane's column; zero afterwards
// U      reflector j from U[j·(P + 1)] on, in shared memory, zeros behind its P − j entries
// tau    N, in shared memory
// R      row j from R[j·(N + 1)] on, in shared memory; zero rows from the rank on
// Returns the rank, the same in all lanes of the group. steps   uniform over the warp
template <int P, int N, bool Pivoted, typename Real>
__device__ int lane_qr(Real (&X)[P], Real* U, Real* tau, Real* R, int steps) {
    int lane = threadIdx.x % N, rank = steps;
    Real norm = dot(X, X), exact = norm, floor = 0;
    bool done = false;
    for (int j = 0; j < steps; j++) {
        int pivot = j;
        if (Pivoted) {
            Real largest = done ? Real(-1) : norm;
            pivot = largest_lane<N>(largest);
            if (j == 0) floor = largest * Floating<Real>::negligible;
            if (!(largest > floor)) rank = min(rank, j);
        }
        Real* u = U + j * (P + 1);
        if (lane == pivot) {
#pragma unroll
            for (int i = 0; i < P; i++) u[i] = X[i];
            u[P] = 0;
        }
        __syncwarp();
        Real v[P];
#pragma unroll
        for (int i = 0; i < P; i++) v[i] = u[i];
        Real w = dot(v, X), square = __shfl_sync(EVERY_LANE, w, pivot, N);
        bool live = j < rank && square > Floating<Real>::vanishing;
        Real size = square * inverse_sqrt(square), beta = live ? -copysign(size, v[0]) : Real(0);
        Real t = live ? inverse(fma(fabs(v[0]), size, square)) : Real(0), factor = t * fma(-beta, X[0], w);
        Real r = j < rank ? fma(-factor, v[0] - beta, X[0]) : Real(0);
        bool own = lane == pivot;
        if (own) r = beta, done = true;
#pragma unroll
        for (int i = 1; i < P; i++) X[i - 1] = own ? Real(0) : fma(-factor, v[i], X[i]);
        X[P - 1] = 0;
        R[j * (N + 1) + lane] = r;
        __syncwarp();
        if (own) u[0] = v[0] - beta, tau[j] = t;
        if (Pivoted) {
            norm = fma(-r, r, norm);
            bool doubtful = !done && !(norm > exact * sqrt(Floating<Real>::epsilon));
            if (__any_sync(EVERY_LANE, doubtful)) {
                Real fresh = dot(X, X);
                if (doubtful) norm = exact = fresh;
            }
        }
    }
    __syncwarp();
    return rank;
}

// Y ← H_0 … H_{count−1} Y for the column Y of this lane; rows of Y before j meet the zeros behind reflector j − 1
template <int P, typename Real>
__device__ void lane_reflect(const Real* U, const Real* tau, int count, Real (&Y)[P]) {
    for (int j = count - 1; j >= 0; j--) {
        const Real* u = U + j * P;                         // u[i] is entry i − j of reflector j
        Real v[P];
#pragma unroll
        for (int i = 0; i < P; i++) v[i] = u[i];
        Real factor = tau[j] * dot(v, Y);
#pragma unroll
        for (int i = 0; i < P; i++) Y[i] = fma(-factor, v[i], Y[i]);
    }
}

}  // namespace svd
