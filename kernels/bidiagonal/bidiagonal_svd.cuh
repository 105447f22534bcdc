// B_b = X_b diag(s_b) Y_bᵀ for bidiagonal matrices, by the implicit QR algorithm: one thread block a matrix.
//
// Rotations come from one thread, one sweep after another (bidiagonal/block/bidiagonal_sweep.cuh): a chain of dependent operations.
// Meanwhile all warps but its own apply the sweep before to Xᵀ and Yᵀ, a column a thread, whose entries of each row are read and
// written once a sweep.
// Entries that leave the range are no concern: B is multiplied by a power of two.
#pragma once
#include "bidiagonal/block/bidiagonal_scale.cuh"
#include "bidiagonal/block/bidiagonal_sweep.cuh"
#include "common/thread/verdicts.cuh"

namespace bidiagonal {
using namespace common;

// rows first … last of M (n columns, `pitch` apart) meet the rotations number `which` of a sweep; column c
template <typename Real>
__device__ void apply_turns(const Sweep& sweep, const Real* turns, int which, Real* M, int pitch, int c) {
    Real carried = M[sweep.row(sweep.first) * pitch + c];
    for (int i = sweep.first; i < sweep.last; i++) {
        const Real *t = turns + 4 * (i - sweep.first) + 2 * which, next = M[sweep.row(i + 1) * pitch + c];
        M[sweep.row(i) * pitch + c] = fma(t[0], carried, t[1] * next);
        carried = fma(t[0], next, -t[1] * carried);
    }
    M[sweep.row(sweep.last) * pitch + c] = carried;
}

// What the block shares of one matrix.   memory: n (10 + InShared · 2 pitch) entries and n integers, pitch = n | 1
template <typename Real>
struct BidiagonalSvd {
    const int n, pitch;
    Real *const d, *const e, *const turns, *const X, *const Y;  // turns: two sweeps; X, Y transposed
    int* const places;

    __device__ BidiagonalSvd(int n, Real* shared, Real* workspace)
        : n(n), pitch(n | 1), d(shared), e(d + n), turns(e + n), X(workspace ? workspace : turns + 8 * n), Y(X + n * pitch),
          places(reinterpret_cast<int*>(workspace ? turns + 8 * n : Y + n * pitch)) {}

    // Returns whether all values were found within `most` sweeps.
    __device__ bool iterate(int most, Sweep* plans) {
        const int member = int(threadIdx.x) - WARP, members = blockDim.x - WARP;
        BidiagonalSweeps<Real> sweeps(d, e, n);
        for (int k = 0; k <= most; k++) {
            if (threadIdx.x == 0) plans[k % 2] = sweeps.next(turns + k % 2 * 4 * n);
            if (k && member >= 0)
                for (int c = member; c < 2 * n; c += members) {
                    const Sweep& sweep = plans[(k + 1) % 2];
                    const bool second = c >= n;  // the right rotations first: of Y, or of X where the sweep is backward
                    apply_turns(sweep, turns + (k + 1) % 2 * 4 * n, second, second == sweep.backward ? Y : X, pitch, c % n);
                }
            __syncthreads();
            if (!plans[k % 2].some) return true;
        }
        return false;
    }

    // places[k]: how many values come before value k
    __device__ void sort() const {
        for (int k = threadIdx.x; k < n; k += blockDim.x) {
            int before = 0;
            for (int l = 0; l < n; l++) before += fabs(d[l]) > fabs(d[k]) || (fabs(d[l]) == fabs(d[k]) && l < k);
            places[k] = before;
        }
        __syncthreads();
    }
};

// d, s: matrices × n   e: matrices × (n − 1)   X, Y: matrices × n × n   info: sweeps, or a failure, by index; worst: its least
// table: where d, e, s, X (and Y) begin, n, index   workspace: matrices × stride entries, or null
template <typename Real, int Threads>
__global__ __launch_bounds__(Threads)
void bidiagonal_svd(const Real* d, const Real* e, Real* s, Real* X, Real* Y, int* info, int* worst, const long long* table,
                    Real* workspace, long long stride, int most) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int scratch[2];
    __shared__ Sweep plans[2];
    const long long* row = table + 6LL * blockIdx.x;
    BidiagonalSvd<Real> svd(int(row[4]), reinterpret_cast<Real*>(memory), workspace ? workspace + blockIdx.x * stride : nullptr);
    const int n = svd.n;
    const BidiagonalScale found = scale_bidiagonal<false>(d + row[0], e + row[1], n, svd.d, scratch);
    for (int i = threadIdx.x; i < n * n; i += blockDim.x)
        svd.X[i / n * svd.pitch + i % n] = svd.Y[i / n * svd.pitch + i % n] = i / n == i % n;
    __syncthreads();
    const bool converged = found.finite && svd.iterate(most * n, plans);
    const int failure = !found.finite ? NOT_FINITE : converged ? 0 : NOT_CONVERGED;
    svd.sort();
    const PowerOfTwo unscaled(found.exponent);
    const Real nan = Floating<Real>::largest * Real(0) / Real(0);
    for (int k = threadIdx.x; k < n; k += blockDim.x)
        s[row[2] + (failure ? k : svd.places[k])] = failure ? nan : unscaled(fabs(svd.d[k]));
    for (int t = threadIdx.x; t < n * n; t += blockDim.x) {
        const int i = t / n, k = t % n;
        const long long to = row[3] + static_cast<long long>(i) * n + (failure ? k : svd.places[k]);
        X[to] = failure ? nan : svd.X[k * svd.pitch + i];
        Y[to] = failure ? nan : copysign(Real(1), svd.d[k]) * svd.Y[k * svd.pitch + i];
    }
    if (threadIdx.x == 0) {
        info[row[5]] = failure;
        if (failure) atomicMin(worst, failure);
    }
}

}  // namespace bidiagonal
