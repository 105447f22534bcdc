// One-sided Jacobi on 2·Columns columns held in the registers of a warp, rows spread over its lanes.
//
//     for s = 1 … 2·Columns − 1, for all i < i XOR s at once:   rotate columns (i, i XOR s) orthogonal
//
// Steps s < Columns stay within each half, steps s ≥ Columns pair the halves. XOR pairing needs no data movement, and the
// dot products of a step are summed over the lanes together (common/warp/reduce_many.cuh); lanes i·32/Columns … compute rotation i.
// With Rows > DotRows, the rows past DotRows only follow the rotations: they accumulate the right vectors.
// Called by svd/block/jacobi_sweep.cuh, one warp a pair of column blocks; the columns change in place.
#pragma once

#include "common/thread/jacobi_rotation.cuh"
#include "common/warp/reduce_many.cuh"

namespace svd {
using namespace common;

constexpr int QUICK_COLUMNS = 4;                           // with more of them its registers cost more than its steps save: measured

__host__ __device__ constexpr int highest_bit(int s) { return s < 2 ? s : 2 * highest_bit(s / 2); }

// pair p of step s joins columns i and i ^ s: i is the p-th index without the highest bit of s
template <int Step>
__device__ int first_of_pair(int p) {
    constexpr int BIT = highest_bit(Step);
    return (p & (BIT - 1)) | ((p & ~(BIT - 1)) << 1);
}

// left_norms, right_norms   squared norms of either half, in shared memory
// angles                    Columns slots of this warp in shared memory
// Returns whether any pair was turned, the same in every lane.
template <int Step, int Rows, int DotRows, int Columns, typename Real>
__device__ bool jacobi_step(Real (&X)[2 * Columns][Rows], Real* left_norms, Real* right_norms, Angle<Real>* angles,
                            Real tolerance) {
    constexpr int SHARE = WARP / Columns;                 // lanes that work out one rotation
    Real dots[Columns];
#pragma unroll
    for (int p = 0; p < Columns; p++) {
        const int i = first_of_pair<Step>(p), j = i ^ Step;
        dots[p] = 0;
#pragma unroll
        for (int r = 0; r < DotRows; r++) dots[p] = fma(X[i][r], X[j][r], dots[p]);
    }
    Real gamma = sum_each<Columns>(dots);
    int lane = threadIdx.x % WARP, pair = lane / SHARE;
    int i = first_of_pair<Step>(pair), j = i ^ Step;
    Real* norm_i = i < Columns ? left_norms + i : right_norms + (i - Columns);
    Real* norm_j = j < Columns ? left_norms + j : right_norms + (j - Columns);
    Real alpha = *norm_i, beta = *norm_j;
    bool turn = cosine(alpha, beta, gamma) > tolerance;
    if (!__any_sync(EVERY_LANE, turn)) return false;
    __syncwarp();                                          // all have read the norms
    if (lane % SHARE == 0) {
        Rotation<Real> rotation = {1, 0, 0};
        if (turn) rotation = Columns <= QUICK_COLUMNS ? quick_rotation(alpha, beta, gamma) : jacobi_rotation(alpha, beta, gamma);
        *norm_i = fmax(alpha - rotation.t * gamma, Floating<Real>::epsilon * alpha);
        *norm_j = fmax(beta + rotation.t * gamma, Floating<Real>::epsilon * beta);
        angles[pair] = {rotation.c, rotation.s};
    }
    __syncwarp();
#pragma unroll
    for (int p = 0; p < Columns; p++) {
        const int i = first_of_pair<Step>(p), j = i ^ Step;
        Angle<Real> angle = angles[p];
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            Real x = X[i][r], y = X[j][r];
            X[i][r] = fma(angle.c, x, -angle.s * y);
            X[j][r] = fma(angle.s, x, angle.c * y);
        }
    }
    __syncwarp();
    return true;
}

template <int Step, int End, int Rows, int DotRows, int Columns, typename Real>
__device__ bool jacobi_steps(Real (&X)[2 * Columns][Rows], Real* left_norms, Real* right_norms, Angle<Real>* angles,
                             Real tolerance) {
    if constexpr (Step < End) {
        bool turned = jacobi_step<Step, Rows, DotRows, Columns>(X, left_norms, right_norms, angles, tolerance);
        return jacobi_steps<Step + 1, End, Rows, DotRows, Columns>(X, left_norms, right_norms, angles, tolerance) || turned;
    }
    return false;
}

// all pairs of the 2·Columns columns, or only those that join the two halves
template <int Rows, int DotRows, int Columns, typename Real>
__device__ bool jacobi_columns(Real (&X)[2 * Columns][Rows], Real* left_norms, Real* right_norms, Angle<Real>* angles,
                               Real tolerance, bool within) {
    bool turned = false;
    if (within) turned = jacobi_steps<1, Columns, Rows, DotRows, Columns>(X, left_norms, right_norms, angles, tolerance);
    return jacobi_steps<Columns, 2 * Columns, Rows, DotRows, Columns>(X, left_norms, right_norms, angles, tolerance) || turned;
}

}  // namespace svd
