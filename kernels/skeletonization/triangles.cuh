// skeletonization/triangles.cuh — triangles L_b of order r_b in packed storage, row by row, and padded by the identity:
//     packed[first[b] + i (i + 1) / 2 + j] = L[b][i][j],   j ≤ i < r_b
// One warp a row, its lanes along it. Packed storage: Anderson et al. (1999), LAPACK Users' Guide, section 5.3.2, here by rows.
#pragma once
#include "common/thread/constants.cuh"

namespace skeletonization {
using namespace common;

// L: count × n × n   first, orders: count, no order above n   lines: count · n   packed: Σ r_b (r_b + 1) / 2
template <typename Real, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void pack_triangles(const Real* L, const long long* first, const long long* orders, long long lines, int n, Real* packed) {
    const long long line = static_cast<long long>(blockIdx.x) * Warps + threadIdx.x / WARP;
    if (line >= lines) return;
    const long long b = line / n, i = line - b * n;
    if (i >= orders[b]) return;
    L += line * n;
    packed += first[b] + i * (i + 1) / 2;
    for (int j = threadIdx.x % WARP; j <= i; j += WARP) packed[j] = L[j];
}

// as above; every entry of L is written, whose matrix c is L_b, b = which[c], or c without `which`
template <typename Real, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void unpack_triangles(const Real* packed, const long long* first, const long long* orders, const long long* which, long long lines, int n,
                      Real* L) {
    const long long line = static_cast<long long>(blockIdx.x) * Warps + threadIdx.x / WARP;
    if (line >= lines) return;
    const long long c = line / n, b = which ? which[c] : c, i = line - c * n;
    const bool real = i < orders[b];
    L += line * n;
    packed += first[b] + i * (i + 1) / 2;
    for (int j = threadIdx.x % WARP; j < n; j += WARP) L[j] = real && j <= i ? packed[j] : Real(i == j);
}

}  // namespace skeletonization
