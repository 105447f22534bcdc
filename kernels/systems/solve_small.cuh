// systems/solve_small.cuh — x_b = U_b⁻¹ L_b⁻¹ P_b b_b, or L_b⁻ᵀ L_b⁻¹ b_b, one right-hand side and at most 32 unknowns; a warp a matrix.
//
// The factor is read once, all of it at a time, into the warp's part of shared memory; an unknown is a lane's.
#pragma once

#include "common/thread/copy.cuh"
#include "systems/thread/place.cuh"
#include "systems/warp/substitute.cuh"

namespace systems {
using namespace common;

// Entries between rows of a factor in shared memory: odd, so that rows lie in different banks.
__host__ __device__ constexpr int small_pitch(int n) { return n | 1; }

// F, pivots, B, X, table, n: as in systems/solve_triangles.cuh, n ≤ N, one column     count  matrices
// Shared memory: Warps · N rows of small_pitch(N) entries.
template <typename Scalar, int N, int Warps, bool Symmetric>
__global__ __launch_bounds__(Warps * WARP)
void solve_small(const Scalar* F, const int* pivots, const Scalar* B, Scalar* X, const long long* table, int n, long long count) {
    constexpr int PITCH = small_pitch(N);
    extern __shared__ __align__(16) unsigned char memory[];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const long long b = static_cast<long long>(blockIdx.x) * Warps + warp;
    if (b >= count) return;
    Place p;
    if (table) p = Place(table, 0, 0, b), n = p.n;
    else p.source = b * n * n, p.target = p.pivots = b * n;
    Scalar* triangle = reinterpret_cast<Scalar*>(memory) + warp * N * PITCH;
    F += p.source + lane;
#pragma unroll 4
    for (int i = 0; i < n; i++)
        if (lane < (Symmetric ? i + 1 : n)) copy_async(triangle + i * PITCH + lane, F + i * n, true);
    copies_issued();
    int row = lane;
    if (!Symmetric) {
        const int pivot = lane < n ? pivots[p.pivots + lane] : lane;
        for (int k = n - 1; k >= 0; k--) {
            const int other = __shfl_sync(EVERY_LANE, pivot, k);
            row = row == k ? other : row == other ? k : row;
        }
    }
    Scalar x = lane < n ? B[p.target + row] : Scalar();
    copies_arrived<0>();
    __syncwarp();
    x = substitute<N, PITCH, true, !Symmetric, false>(x, triangle, n);
    x = substitute<N, PITCH, false, false, Symmetric>(x, triangle, n);
    if (lane < n) X[p.target + lane] = x;
}

}  // namespace systems
