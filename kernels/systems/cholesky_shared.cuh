// systems/cholesky_shared.cuh — A_b = L_b L_bᵀ for matrices that fit in shared memory; one block a matrix.
//
// As systems/lu_shared.cuh without pivots: a warp factors a panel in its registers and writes it twice, the second time
// transposed above the diagonal, where the update finds it as it finds U. Of C only the tiles up to the diagonal are updated.
#pragma once

#include "common/thread/copy.cuh"
#include "systems/thread/place.cuh"
#include "systems/warp/cholesky_rows.cuh"
#include "systems/warp/rank_update.cuh"

namespace systems {
using namespace common;

// A matrix in shared memory, n · pitch entries, and behind it where its rows begin.
template <typename Real>
struct CholeskyMemory {
    Real* X;
    int* rows;
    __device__ CholeskyMemory(void* memory, int n, int pitch)
        : X(static_cast<Real*>(memory)), rows(reinterpret_cast<int*>(X + n * pitch)) {}
};

// The columns first … of L and the rows first … of Lᵀ, by a whole warp. Returns as cholesky_rows does.
template <int Panel, int Slots, typename Real>
__device__ int factor_columns(Real* X, int pitch, int n, int first, int width) {
    constexpr int FEWER = (Slots + 1) / 2;
    if constexpr (FEWER < Slots)
        if (n - first <= FEWER * WARP) return factor_columns<Panel, FEWER>(X, pitch, n, first, width);
    const int row0 = first + threadIdx.x % WARP;
    Real x[Slots][Panel];
#pragma unroll
    for (int s = 0; s < Slots; s++)
#pragma unroll
        for (int c = 0; c < Panel; c++) x[s][c] = X[min(row0 + s * WARP, n - 1) * pitch + first + c];
    const int failed = cholesky_rows<WARP>(x, width, width);
    __syncwarp();
#pragma unroll
    for (int s = 0; s < Slots; s++)
#pragma unroll
        for (int c = 0; c < Panel; c++) {
            const int row = row0 + s * WARP;
            if (row >= n || c >= width || row < first + c) continue;
            X[row * pitch + first + c] = X[(first + c) * pitch + row] = x[s][c];
        }
    return failed;
}

// A, L, info, found, table, n: as in systems/cholesky_register.cuh, n ≤ Slots · WARP     pitch, Resident: as in systems/lu_shared.cuh
// Shared memory: CholeskyMemory up to rows + n.
template <typename Real, int Panel, int Slots, int Warps, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void cholesky_shared(const Real* A, Real* L, int* info, int* found, const long long* table, int n, int pitch) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int failed;
    const Place p(table, n, n, blockIdx.x);
    n = p.n;
    const CholeskyMemory<Real> shared(memory, n, pitch);
    Real* X = shared.X;
    const int columns = (n + TILE_COLUMNS - 1) / TILE_COLUMNS * TILE_COLUMNS;
    int* rows = shared.rows;
    A += p.source, L += p.target;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int i = warp; i < n; i += Warps) {
        for (int j = lane; j <= i; j += WARP) copy_async(X + i * pitch + j, A + static_cast<long long>(i) * n + j, true);
        if (lane == 0) rows[i] = i * pitch;
    }
    copies_issued();
    copies_arrived<0>();
    bool finite = true;
    for (int i = warp; i < n; i += Warps)
        for (int j = lane; j <= i; j += WARP) finite &= is_finite(X[i * pitch + j]);
    int verdict = __syncthreads_and(finite) ? 0 : NOT_FINITE;
    for (int first = 0; verdict == 0 && first < n; first += Panel) {
        const int width = min(Panel, n - first), row0 = first + Panel;
        if (warp == 0) {
            const int there = factor_columns<Panel, Slots>(X, pitch, n, first, width);
            if (lane == 0) failed = there;
        }
        __syncthreads();
        if (failed != 0) verdict = first + failed;
        for (int row = row0 + warp * TILE_ROWS; row < n && verdict == 0; row += Warps * TILE_ROWS)
            update_strip<Panel>(X, rows, first, row, min(TILE_ROWS, n - row), first, row0, min(row + TILE_ROWS, columns));
        __syncthreads();
    }
    for (int i = warp; i < n; i += Warps)
        for (int j = lane; j < n; j += WARP)
            L[static_cast<long long>(i) * n + j] = j > i ? Real(0) : verdict == 0 ? X[i * pitch + j] : not_a_number<Real>();
    if (threadIdx.x == 0) info[p.index] = verdict, tell(found, verdict);
}

}  // namespace systems
