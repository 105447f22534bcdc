// registers/small_block.cuh — one problem a block: nothing pivoted, A dealt out to P × Q threads (registers/block/cyclic_matrix.cuh).
//
// Anderson, Sheffield & Keutzer (2012), section V. Traffic: A and b in once, results out once.
//     info   problems: 0; the step (one-based) that broke down, see registers/thread/small_matrix.cuh; NOT_FINITE for NaN or Inf in A
#pragma once
#include "common/thread/verdicts.cuh"
#include "registers/block/cyclic_factor.cuh"

namespace registers {
using namespace common;

// The least broken step of all threads, none being 0.
__device__ inline int least_broken(int mine, bool finite, int& shared) {
    if (threadIdx.x == 0) shared = 0x7fffffff;
    const bool all = __syncthreads_and(finite);
    if (mine) atomicMin(&shared, mine);
    __syncthreads();
    return !all ? NOT_FINITE : shared == 0x7fffffff ? 0 : shared;
}

// The work of block_lu and block_qr, the first and the last row of the watch being what loading and storing take.
template <int N, int P, int Q, typename Scalar, typename Watch>
__device__ __forceinline__ void lu_of_block(const Scalar* A, Scalar* LU, int* info, Watch& watch) {
    __shared__ CyclicLines<Scalar, N, N, P, Q> lines;
    const long long at = static_cast<long long>(blockIdx.x) * N * N;
    CyclicMatrix<Scalar, N, N, P, Q> a;
    const bool finite = a.template load<0, N>(A + at);
    watch.part(PUBLISH);
    watch.panel();
    const int broken = least_broken(cyclic_eliminate<N, false>(a, lines, watch), finite, lines.broken);
    a.template store<0, N, N>(LU + at);
    if (threadIdx.x == 0) info[blockIdx.x] = broken;
    watch.part(PUBLISH);
    watch.panel();
    watch.finish();
}

template <int M, int N, int P, int Q, typename Scalar, typename Watch>
__device__ __forceinline__ void qr_of_block(const Scalar* A, Scalar* QR, Scalar* tau, int* info, Watch& watch) {
    __shared__ CyclicLines<Scalar, M, N, P, Q> lines;
    const long long at = static_cast<long long>(blockIdx.x) * M * N;
    CyclicMatrix<Scalar, M, N, P, Q> a;
    const bool finite = a.template load<0, N>(A + at);
    const int shift = a.template make_safe<0, N>(lines.exponents[0]);
    watch.part(PUBLISH);
    watch.panel();
    cyclic_qr<N>(a, lines, tau + static_cast<long long>(blockIdx.x) * min(M, N), watch);
    if (shift) a.template scale_by<0, N>(shift, true);
    a.template store<0, N, M>(QR + at);
    const bool all = __syncthreads_and(finite);
    if (threadIdx.x == 0) info[blockIdx.x] = all ? 0 : NOT_FINITE;
    watch.part(PUBLISH);
    watch.panel();
    watch.finish();
}

// A, LU   problems × N × N
template <typename Scalar, int N, int P, int Q>
__global__ __launch_bounds__(P * Q)
void block_lu(const Scalar* A, Scalar* LU, int* info) {
    const NoWatch watch = {};
    lu_of_block<N, P, Q>(A, LU, info, watch);
}

// A, QR   problems × M × N     tau   problems × min(M, N)
template <typename Scalar, int M, int N, int P, int Q>
__global__ __launch_bounds__(P * Q)
void block_qr(const Scalar* A, Scalar* QR, Scalar* tau, int* info) {
    const NoWatch watch = {};
    qr_of_block<M, N, P, Q>(A, QR, tau, info, watch);
}

// A   problems × N × N     b, X   problems × N × K     Jordan: by Gauss-Jordan elimination, else by LU
template <typename Scalar, int N, int K, bool Jordan, int P, int Q>
__global__ __launch_bounds__(P * Q)
void block_solve(const Scalar* A, const Scalar* b, Scalar* X, int* info) {
    __shared__ CyclicLines<Scalar, N, N + K, P, Q> lines;
    CyclicMatrix<Scalar, N, N + K, P, Q> a;
    const bool finite = a.template load<0, N>(A + static_cast<long long>(blockIdx.x) * N * N);
    a.template load<N, K>(b + static_cast<long long>(blockIdx.x) * N * K);
    const int broken = least_broken(cyclic_eliminate<N, Jordan>(a, lines), finite, lines.broken);
    if constexpr (!Jordan) cyclic_substitute<N>(a, lines);
    a.template store<N, K, N>(X + static_cast<long long>(blockIdx.x) * N * K);
    if (threadIdx.x == 0) info[blockIdx.x] = broken;
}

// A   problems × M × N, M ≥ N     b   problems × M × K     X   problems × N × K     condition   problems: a bound
template <typename Scalar, int M, int N, int K, int P, int Q>
__global__ __launch_bounds__(P * Q)
void block_least_squares(const Scalar* A, const Scalar* b, Scalar* X, typename Field<Scalar>::Real* condition) {
    __shared__ CyclicLines<Scalar, M, N + K, P, Q> lines;
    CyclicMatrix<Scalar, M, N + K, P, Q> a;
    a.template load<0, N>(A + static_cast<long long>(blockIdx.x) * M * N);
    a.template load<N, K>(b + static_cast<long long>(blockIdx.x) * M * K);
    const int of_b = a.template make_safe<N, N + K>(lines.exponents[1]);
    const int shift = of_b - a.template make_safe<0, N>(lines.exponents[0]);
    cyclic_qr<N>(a, lines, static_cast<Scalar*>(nullptr));
    const auto bound = cyclic_substitute<N>(a, lines);
    if (shift) a.template scale_by<N, N + K>(shift, false);
    a.template store<N, K, N>(X + static_cast<long long>(blockIdx.x) * N * K);
    if (threadIdx.x == 0) condition[blockIdx.x] = bound;
}

}  // namespace registers
