// qr/block/column_steps.cuh — Householder steps on a block of Rows rows, Columns columns a thread, all in registers.
//
// The rows of R that are finished lie elsewhere ("slots"). A step of a *stacked* column j annihilates the whole block
// against slot j:  H [R_jt; x_t] for every column t > j. A step of an *own* column takes its pivot from the block itself:
// row 0 of the registers, which becomes slot j while the others move up by one, so that the pivot is row 0 again.
// Own and stacked steps differ by that Shift alone.
//
// Several columns a thread because a reflector, read from shared memory at 128 bytes a clock, must serve 4 multiply-adds
// a float64 to keep up with them: one column a thread ran at a quarter of the speed.
// r: a thread's entries of slot j   active: which of its columns take part
#pragma once
#include "common/thread/householder.cuh"
#include "common/thread/wide.cuh"

namespace qr {
using namespace common;

constexpr int SUMS = 4;  // independent sums of a dot product

// Σ v_i x_{i + Shift}
template <int Rows, int Shift, typename Real>
__device__ Real dot(const Real (&v)[Rows], const Real (&x)[Rows]) {
    Real sum[SUMS] = {};
#pragma unroll
    for (int i = 0; i + Shift < Rows; i++) sum[i % SUMS] += v[i] * x[i + Shift];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// x_i = x_{i + Shift} - factor v_i
template <int Rows, int Shift, typename Real>
__device__ void subtract(const Real (&v)[Rows], Real (&x)[Rows], Real factor) {
#pragma unroll
    for (int i = 0; i < Rows; i++) x[i] = (i + Shift < Rows ? x[i + Shift] : Real(0)) - factor * v[i];
}

// Columns First … Columns of a thread meet the reflection of the pivot column, which its owner holds in column First; the
// owner's column becomes v. u: the pivot column, in every thread   r: slot j, in and out   alpha: the owner's r
template <int First, int Shift, int Rows, int Columns, typename Real>
__device__ void eliminate(Real (&x)[Columns][Rows], Real (&r)[Columns], const bool (&active)[Columns], bool owner,
                          const Real (&u)[Rows], Real alpha) {
    const Householder<Real> h = householder(alpha, dot<Rows, 0>(u, u));
    Real d[Columns];
#pragma unroll
    for (int q = First; q < Columns; q++) d[q] = dot<Rows, Shift>(u, x[q]);
#pragma unroll
    for (int q = First; q < Columns; q++) {
        const Real sum = fma(h.scale, d[q], r[q]);
        r[q] = fma(-h.tau, sum, r[q]);
        if (active[q]) subtract<Rows, Shift>(u, x[q], h.product * sum);
    }
    if (owner) {
        r[First] = h.beta;
#pragma unroll
        for (int i = 0; i < Rows; i++) x[First][i] = h.scale * u[i];
    }
}

// The way back, for Q: columns of a block of Q's rows meet H_j, v scaled; r is S_jt, see qr/householder_qr.cuh.
// For an own column, Shift, the slot's row comes in at the top of the block.
template <int First, int Shift, int Rows, int Columns, typename Real>
__device__ void restore(Real (&x)[Columns][Rows], Real (&r)[Columns], const bool (&active)[Columns], const Real* reflector,
                        Real tau) {
    Real v[Rows], d[Columns];
    read_wide(v, reflector);
#pragma unroll
    for (int q = First; q < Columns; q++) d[q] = dot<Rows, 0>(v, x[q]);
#pragma unroll
    for (int q = First; q < Columns; q++) {
        const Real w = tau * (r[q] + d[q]);
        r[q] -= w;
        if (!active[q]) continue;
        subtract<Rows, 0>(v, x[q], w);
        if (Shift) {
#pragma unroll
            for (int i = Rows - 1; i > 0; i--) x[q][i] = x[q][i - 1];
            x[q][0] = r[q];
        }
    }
}

}  // namespace qr
