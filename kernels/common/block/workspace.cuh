// common/block/workspace.cuh — what the stages of a thread block that decomposes one matrix share, and the matrix scaled into it.
//
// Called by svd/block/svd_stages.cuh and qr/pivoted_qr.cuh; the workspace lies in shared memory, or in global memory for large
// matrices.
#pragma once

#include "common/thread/constants.cuh"
#include "common/thread/jacobi_rotation.cuh"
#include "common/thread/power_of_two.cuh"

namespace common {

// What the stages share: W and small arrays, in one piece of memory.
template <typename Real>
struct Workspace {
    Real* W;         // column-major, k columns of leading dimension ld: first W, then R, L, [U_L Σ; V_L], U
    int ld;
    Real *tau, *tau2, *diagonal, *norms, *exact;         // k each; norms padded to whole blocks
    int *pivot, *pivot0, *order;                         // k each
    int *rank, *exponent, *rows, *flag;                  // one each; rows: those of the square (or tall) matrix in W now
};

// Lines that a warp waits for together: of device memory, of shared memory.
struct FewLines { static constexpr int FAR = 4, NEAR = 1; };
struct ManyLines { static constexpr int FAR = 8, NEAR = 4; };   // where registers are many
constexpr int SMALL_ARRAYS = 5, INDEX_ARRAYS = 3, SCALARS = 4, PADDING = 32;

// the leading dimension: odd, so that rows are read without bank conflicts
__host__ __device__ inline int leading_dimension(int longer, int k, bool both) { return (both ? max(longer, 2 * k) : longer) | 1; }

__host__ __device__ inline long long workspace_bytes(int real_bytes, int longer, int k, bool both) {
    long long reals = static_cast<long long>(leading_dimension(longer, k, both)) * k + SMALL_ARRAYS * (k + PADDING);
    return (reals * real_bytes + (INDEX_ARRAYS * (k + PADDING) + SCALARS) * sizeof(int) + 15) / 16 * 16;
}

template <typename Real>
__device__ Workspace<Real> workspace(void* memory, int longer, int k, bool both) {
    Workspace<Real> w;
    int step = k + PADDING;
    w.ld = leading_dimension(longer, k, both);
    w.W = static_cast<Real*>(memory);
    w.tau = w.W + static_cast<long long>(w.ld) * k;
    w.tau2 = w.tau + step, w.diagonal = w.tau2 + step, w.norms = w.diagonal + step, w.exact = w.norms + step;
    w.pivot = reinterpret_cast<int*>(w.exact + step);
    w.pivot0 = w.pivot + step, w.order = w.pivot0 + step, w.rank = w.order + step;
    w.exponent = w.rank + 1, w.rows = w.rank + 2, w.flag = w.rank + 3;
    return w;
}

// write(line, i, read(line, i)) for 0 ≤ i < length of `lines` lines, a warp a line, some of a warp's together.
template <int Together, typename Read, typename Write>
__device__ __forceinline__ void by_lines(int lines, int length, Read read, Write write) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (int line0 = warp; line0 < lines; line0 += Together * warps)
        for (int i = lane; i < length; i += WARP) {
            decltype(read(0, 0)) x[Together];
#pragma unroll
            for (int h = 0; h < Together; h++)
                if (line0 + h * warps < lines) x[h] = read(line0 + h * warps, i);
#pragma unroll
            for (int h = 0; h < Together; h++)
                if (line0 + h * warps < lines) write(line0 + h * warps, i, x[h]);
        }
}

// W ← A or Aᵀ, scaled by a power of two so that its largest entry is just below 2^scaled_exponent. False for NaN and Inf.
//     A   m × n, row-major     W   column-major     exponents   one int a warp, shared     exponent   in every thread
template <typename Lines = FewLines, typename Real>
__device__ bool load_scaled(const Real* A, int m, int n, bool transposed, Real* W, long long ld, int* exponents, int& exponent) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    auto largest = bits_of_size(Real(0));
    bool finite = true;
    by_lines<Lines::FAR>(m, n, [&](int i, int j) { return A[static_cast<long long>(i) * n + j]; }, [&](int i, int j, Real a) {
        finite &= fabs(a) <= Floating<Real>::largest;
        largest = max(largest, bits_of_size(a));
        W[transposed ? i * ld + j : j * ld + i] = a;
    });
    exponent = __reduce_max_sync(EVERY_LANE, exponent_of(widened(size_of_bits(largest))));
    if (lane == 0) exponents[warp] = exponent;
    if (__syncthreads_or(!finite)) return false;
    for (int i = 0; i < warps; i++) exponent = max(exponent, exponents[i]);
    exponent = exponent == NO_EXPONENT ? 0 : Floating<Real>::scaled_exponent - exponent;
    const PowerOfTwo scale(exponent);
    by_lines<Lines::NEAR>(transposed ? m : n, transposed ? n : m, [&](int j, int i) { return W[j * ld + i]; },
             [&](int j, int i, Real x) { W[j * ld + i] = scale(x); });
    __syncthreads();
    return true;
}

}  // namespace common
