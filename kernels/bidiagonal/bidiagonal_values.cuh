// Singular values of bidiagonal matrices B_b by bisection, one a thread: Golub & Kahan 1965; Demmel & Kahan 1990.
//
// The tridiagonal matrix of zero diagonal and off-diagonals d_0, e_0, d_1, …, d_{n−1} has the eigenvalues ±σ_k. Of its leading
// minors at x,
//     p_{i+1} = −x p_i − b_i² p_{i−1},
// as many pairs differ in sign as eigenvalues are below x. Products, not quotients: one multiply-add after another, eight clocks
// an entry in place of sixty. b_i² is kept from zero, so that no two successive p are, and p is rescaled every few steps.
// A thread knows its rank k, so values come sorted; all threads make the same steps.
#pragma once
#include "bidiagonal/block/bidiagonal_scale.cuh"
#include "common/thread/jacobi_rotation.cuh"

namespace bidiagonal {
using namespace common;

constexpr int RESCALE = 8;                       // steps between: p stays within 2^±500
constexpr double LEAST_SQUARE = 0x1p-120;        // of an off-diagonal, where 1 bounds the values: a perturbation of 2^-60

// Values of B below x.   squares: 2 n − 1
__device__ inline int values_below(const double* squares, int n, double x) {
    double before = 1, p = -x;
    int changes = 1;                             // of the first minor: −x < 0
    for (int first = 0; first < 2 * n - 1; first += RESCALE) {
#pragma unroll
        for (int i = first; i < first + RESCALE; i++) {
            if (i >= 2 * n - 1) break;
            const double next = fma(-x, p, -squares[i] * before);
            changes += static_cast<unsigned>(__double2hiint(next) ^ __double2hiint(p)) >> 31;
            before = p, p = next;
        }
        const double scale = reciprocal_power(fmax(fabs(p), fabs(before)));
        before *= scale, p *= scale;
    }
    return changes - n;
}

// d: matrices × n   e: matrices × (n − 1)   s: matrices × n, as the table says: where d, e and s begin, n, index
// info: 0, or −1 for NaN and Inf, by index; worst: its least   halvings: of the interval that holds a value
template <typename Real, int Threads>
__global__ __launch_bounds__(Threads)
void bidiagonal_values(const Real* d, const Real* e, Real* s, int* info, int* worst, const long long* table, int halvings) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int scratch[2];
    const long long* row = table + 5LL * blockIdx.x;
    const int n = int(row[3]);
    double* squares = reinterpret_cast<double*>(memory);
    const BidiagonalScale found = scale_bidiagonal<true>(d + row[0], e + row[1], n, squares, scratch);
    for (int i = threadIdx.x; i < 2 * n - 1; i += Threads) squares[i] = fmax(squares[i] * squares[i], LEAST_SQUARE);
    __syncthreads();
    const PowerOfTwo unscaled(found.exponent);
    for (int k = threadIdx.x; k < n; k += Threads) {
        double low = 0, high = 1;                // the value with k larger ones
        for (int step = 0; step < halvings; step++) {
            const double middle = 0.5 * (low + high);
            if (values_below(squares, n, middle) > n - 1 - k) high = middle;
            else low = middle;
        }
        const Real value = static_cast<Real>(low > 0 ? 0.5 * (low + high) : 0.0);
        const Real nan = Floating<Real>::largest * Real(0) / Real(0);
        s[row[2] + k] = found.finite ? unscaled(value) : nan;
    }
    if (threadIdx.x == 0) {
        info[row[4]] = found.finite ? 0 : -1;
        if (!found.finite) atomicMin(worst, -1);
    }
}

}  // namespace bidiagonal
