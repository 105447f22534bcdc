// studies/bidiagonalize_cycles.cuh — the bidiagonal reductions with a watch, for apps/studies/gebrd.py.
//
//     cycles   matrices × (BIDIAGONAL_PARTS + 1): each part, all
#pragma once
#include "bidiagonal/bidiagonalize.cuh"
#include "bidiagonal/bidiagonalize_large.cuh"
#include "common/thread/stopwatch.cuh"

namespace studies {
using namespace common;
using namespace bidiagonal;

using BidiagonalWatch = Stopwatch<BIDIAGONAL_PARTS>;

template <typename Real, int Rows, int Columns, int Across, int Warps, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void bidiagonalize_cycles(const Real* A, Real* V, Real* U, Real* d, Real* e, Real* tau_v, Real* tau_u, const long long* table,
                          long long* cycles) {
    const BidiagonalWatch watch(cycles + (BIDIAGONAL_PARTS + 1LL) * blockIdx.x);
    bidiagonalize_tile<Rows, Columns, Across, Warps>(
        Bidiagonal<Real>(A, V, U, d, e, tau_v, tau_u, table + 7LL * blockIdx.x), watch);
}

template <typename Real, int Across, int Vectors, int Warps, int Resident, int Held>
__global__ __launch_bounds__(Warps * WARP, Resident)
void bidiagonalize_large_cycles(const Real* A, Real* V, Real* U, Real* d, Real* e, Real* tau_v, Real* tau_u,
                                const long long* table, Real* workspace, long long stride, long long* cycles) {
    const BidiagonalWatch watch(cycles + (BIDIAGONAL_PARTS + 1LL) * blockIdx.x);
    bidiagonalize_rows<Across, Vectors, Warps, Held, 1>(
        Bidiagonal<Real>(A, V, U, d, e, tau_v, tau_u, table + 7LL * blockIdx.x), workspace, stride, watch);
}

}  // namespace studies
