// solvers/small_factors.cuh — of lower triangular factors L_b, many and small, stored by rows: w_b = L_b⁻ᵀ e_last, and
// whether K_b = L_b L_bᵀ is singular to rounding. A warp each.
#pragma once
#include "common/thread/constants.cuh"

namespace solvers {
using namespace common;

// L: count × m × m   out: count × m. Growing: of one L alone the row of each of its leading parts, m in all:
// w_b = its leading (b + 1) × (b + 1) part to the power of −ᵀ times e_last, one behind the other
template <typename Real, int Threads, bool Growing>
__global__ __launch_bounds__(Threads)
void last_rows(const Real* L, Real* out, int m, int count) {
    const long long thread = static_cast<long long>(blockIdx.x) * Threads + threadIdx.x, b = thread / WARP;
    const int lane = threadIdx.x % WARP;
    if (b >= count) return;
    const int size = Growing ? static_cast<int>(b) + 1 : m;
    if (!Growing) L += b * m * m;
    out += Growing ? b * (b + 1) / 2 : b * m;
    for (int k = lane; k < size; k += WARP) out[k] = k == size - 1;
    for (int j = size - 1; j >= 0; j--) {
        const Real* row = L + static_cast<long long>(j) * m;
        __syncwarp();
        const Real w = out[j] / row[j];
        __syncwarp();                                       // all have read what one of them replaces
        for (int k = lane; k <= j; k += WARP) out[k] = k == j ? w : out[k] - row[k] * w;
    }
}

// K, L: count × m × m   bad: count, whether some L_ii² is not above least · K_ii, as where it is NaN
template <typename Real, int Threads>
__global__ __launch_bounds__(Threads)
void find_singular(const Real* K, const Real* L, bool* bad, int m, int count, Real least) {
    const long long thread = static_cast<long long>(blockIdx.x) * Threads + threadIdx.x, b = thread / WARP;
    const int lane = threadIdx.x % WARP;
    if (b >= count) return;
    bool found = false;
    for (int i = lane; i < m; i += WARP) {
        const long long place = b * m * m + static_cast<long long>(i) * (m + 1);
        found |= !(L[place] * L[place] > least * K[place]);
    }
    found = __any_sync(EVERY_LANE, found);
    if (lane == 0) bad[b] = found;
}

}  // namespace solvers
