// studies/small_block_cycles.cuh — LU and QR of registers/small_block.cuh with a watch, for apps/studies/panels.py.
//
//     cycles   problems × ((panels + 2) STEP_PARTS + 1): what loading takes, each panel by parts, what storing takes, all
#pragma once
#include "common/thread/stopwatch.cuh"
#include "registers/small_block.cuh"

namespace studies {
using namespace common;
using namespace registers;

template <int Panels>
__device__ Stopwatch<STEP_PARTS> watch_of_block(long long* cycles) {
    return Stopwatch<STEP_PARTS>(cycles + ((Panels + 2) * STEP_PARTS + 1LL) * blockIdx.x);
}

// A, LU   problems × N × N
template <typename Scalar, int N, int P, int Q>
__global__ __launch_bounds__(P * Q)
void block_lu_cycles(const Scalar* A, Scalar* LU, int* info, long long* cycles) {
    auto watch = watch_of_block<(N + Q - 1) / Q>(cycles);
    lu_of_block<N, P, Q>(A, LU, info, watch);
}

// A, QR   problems × M × N     tau   problems × min(M, N)
template <typename Scalar, int M, int N, int P, int Q>
__global__ __launch_bounds__(P * Q)
void block_qr_cycles(const Scalar* A, Scalar* QR, Scalar* tau, int* info, long long* cycles) {
    auto watch = watch_of_block<((M < N ? M : N) + Q - 1) / Q>(cycles);
    qr_of_block<M, N, P, Q>(A, QR, tau, info, watch);
}

}  // namespace studies
