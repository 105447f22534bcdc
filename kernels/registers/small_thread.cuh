// registers/small_thread.cuh — one problem a thread: nothing pivoted, A in registers, traffic A once in and results once out.
//
// Anderson, Sheffield & Keutzer (2012), section IV. Each warp takes 32 problems.
//     info   problems: 0; the step (one-based) that broke down, see registers/thread/small_matrix.cuh; NOT_FINITE for NaN or Inf in A
#pragma once
#include "common/thread/verdicts.cuh"
#include "registers/thread/small_matrix.cuh"
#include "registers/warp/small_exchange.cuh"

namespace registers {
using namespace common;

// The 32 problems of this warp.
template <typename Scalar, int Warps>
struct Share {
    SmallExchange<Scalar>& exchange;
    long long first;
    int count;

    __device__ Share(SmallExchange<Scalar> (&memory)[Warps], long long problems) : exchange(memory[threadIdx.x / WARP]) {
        first = (static_cast<long long>(blockIdx.x) * Warps + threadIdx.x / WARP) * WARP;
        count = static_cast<int>(max(0LL, min(static_cast<long long>(WARP), problems - first)));
    }
    template <typename Number>
    __device__ void tell(Number* numbers, Number mine) const {
        if (static_cast<int>(threadIdx.x % WARP) < count) numbers[first + threadIdx.x % WARP] = mine;
    }
};

// A, LU   problems × N × N
template <typename Scalar, int N, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void thread_lu(const Scalar* A, Scalar* LU, int* info, long long problems) {
    __shared__ SmallExchange<Scalar> memory[Warps];
    const Share<Scalar, Warps> share(memory, problems);
    Scalar x[N][N];
    const bool finite = share.exchange.template load<N, N, 0>(A + share.first * N * N, share.count, x);
    const int broken = factor_lu<N>(x);
    share.exchange.template store<N, N, 0>(LU + share.first * N * N, share.count, x);
    share.tell(info, finite ? broken : NOT_FINITE);
}

// A, L   problems × N × N, lower triangles of A are read
template <typename Scalar, int N, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void thread_cholesky(const Scalar* A, Scalar* L, int* info, long long problems) {
    __shared__ SmallExchange<Scalar> memory[Warps];
    const Share<Scalar, Warps> share(memory, problems);
    Scalar x[N][N];
    share.exchange.template load<N, N, 0>(A + share.first * N * N, share.count, x);
    bool finite = true;
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int j = 0; j <= i; j++) finite = finite && is_finite(x[i][j]);
    const int broken = factor_cholesky<N>(x);
    share.exchange.template store<N, N, 0>(L + share.first * N * N, share.count, x);
    share.tell(info, finite ? broken : NOT_FINITE);
}

// A, QR   problems × M × N     tau   problems × min(M, N)
template <typename Scalar, int M, int N, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void thread_qr(const Scalar* A, Scalar* QR, Scalar* tau, int* info, long long problems) {
    using Real = typename Field<Scalar>::Real;
    constexpr int STEPS = M < N ? M : N;
    __shared__ SmallExchange<Scalar> memory[Warps];
    const Share<Scalar, Warps> share(memory, problems);
    Scalar x[M][N], t[1][STEPS];
    const bool finite = share.exchange.template load<M, N, 0>(A + share.first * M * N, share.count, x);
    const int shift = make_safe<0, N>(x);
    factor_qr<M, N>(x, t);
    if (shift) {
        const Real factor = power_of_two<Real>(shift);
#pragma unroll
        for (int i = 0; i < STEPS; i++)
#pragma unroll
            for (int j = i; j < N; j++) x[i][j] = stretched(x[i][j], factor);
    }
    share.exchange.template store<M, N, 0>(QR + share.first * M * N, share.count, x);
    share.exchange.template store<1, STEPS, 0>(tau + share.first * STEPS, share.count, t);
    share.tell(info, finite ? 0 : NOT_FINITE);
}

// A   problems × N × N     b, X   problems × N × K     Jordan: by Gauss-Jordan elimination, else by LU
template <typename Scalar, int N, int K, bool Jordan, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void thread_solve(const Scalar* A, const Scalar* b, Scalar* X, int* info, long long problems) {
    __shared__ SmallExchange<Scalar> memory[Warps];
    const Share<Scalar, Warps> share(memory, problems);
    Scalar x[N][N + K];
    const bool finite = share.exchange.template load<N, N, 0>(A + share.first * N * N, share.count, x);
    share.exchange.template load<N, K, N>(b + share.first * N * K, share.count, x);
    int broken;
    if constexpr (Jordan) {
        broken = gauss_jordan<N>(x);
    } else {
        broken = factor_lu<N>(x);
        substitute<N, N>(x);
    }
    share.exchange.template store<N, K, N>(X + share.first * N * K, share.count, x);
    share.tell(info, finite ? broken : NOT_FINITE);
}

// A   problems × M × N, M ≥ N     b   problems × M × K     X   problems × N × K     condition   problems: a bound
template <typename Scalar, int M, int N, int K, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void thread_least_squares(const Scalar* A, const Scalar* b, Scalar* X, typename Field<Scalar>::Real* condition,
                          long long problems) {
    using Real = typename Field<Scalar>::Real;
    __shared__ SmallExchange<Scalar> memory[Warps];
    const Share<Scalar, Warps> share(memory, problems);
    Scalar x[M][N + K], tau[1][N];
    share.exchange.template load<M, N, 0>(A + share.first * M * N, share.count, x);
    share.exchange.template load<M, K, N>(b + share.first * M * K, share.count, x);
    const int shift = make_safe<N, N + K>(x) - make_safe<0, N>(x);
    factor_qr<M, N>(x, tau);
    const Real bound = condition_bound<M, N>(x);
    substitute<M, N>(x);
    if (shift)
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int c = N; c < N + K; c++) {
                if constexpr (Field<Scalar>::COMPLEX) x[i][c] = {scalbn(x[i][c].re, shift), scalbn(x[i][c].im, shift)};
                else x[i][c] = scalbn(x[i][c], shift);
            }
    share.exchange.template store<N, K, N>(X + share.first * N * K, share.count, x);
    share.tell(condition, bound);
}

}  // namespace registers
