// batched/lu_shared.cuh — P_b A_b = L_b U_b for matrices that fit in shared memory; one block a matrix.
//
// Panel columns at a time: one warp eliminates them in its registers (warp/eliminate.cuh), without a barrier, then all solve
// for the panel's rows of U, a column a thread, and update what remains on the tensor cores (warp/rank_update.cuh). Rows never
// move: `rows` says where the row at a position lies, and rows are read in order when they leave. Memory sees A and LU once.
#pragma once

#include "thread/copy.cuh"
#include "thread/place.cuh"
#include "warp/eliminate.cuh"
#include "warp/rank_update.cuh"

// The panel of columns first … by a whole warp, with as few slots as the rest of the rows needs.
// unit: Panel × Panel, its rows of L above   pivots: of this matrix   verdict: see thread/place.cuh
template <int Panel, int Slots, typename Scalar>
__device__ void factor_panel(Scalar* A, int* rows, Scalar* unit, int* pivots, int m, int first, int width, int& verdict) {
    constexpr int FEWER = (Slots + 1) / 2;
    if constexpr (FEWER < Slots)
        if (m - first <= FEWER * WARP) return factor_panel<Panel, FEWER>(A, rows, unit, pivots, m, first, width, verdict);
    const int lane = threadIdx.x % WARP;
    Scalar x[Slots][Panel];
    int position[Slots], row[Slots];
#pragma unroll
    for (int s = 0; s < Slots; s++) {
        const int at = first + s * WARP + lane;
        position[s] = at < m ? at : -1;
        row[s] = rows[min(at, m - 1)];
#pragma unroll
        for (int c = 0; c < Panel; c++) x[s][c] = A[row[s] + first + c];
    }
    eliminate<WARP>(x, position, first, width, width, [&](int k, int pivot, bool zero) {
        if (lane == 0) pivots[first + k] = pivot;
        if (zero && verdict == 0) verdict = first + k + 1;
    });
    __syncwarp();
#pragma unroll
    for (int s = 0; s < Slots; s++) {
        if (position[s] < 0) continue;
        rows[position[s]] = row[s];
#pragma unroll
        for (int c = 0; c < Panel; c++) {
            if (c < width) A[row[s] + first + c] = x[s][c];
            if (position[s] < first + Panel) unit[(position[s] - first) * Panel + c] = x[s][c];
        }
    }
}

// U's rows at positions first … first + width, in the columns behind the panel, by all threads.
template <int Panel, typename Scalar>
__device__ void solve_rows(Scalar* A, const int* rows, const Scalar* unit, int first, int width, int n) {
    for (int j = first + width + threadIdx.x; j < n; j += blockDim.x) {
        Scalar u[Panel];
#pragma unroll
        for (int c = 0; c < Panel; c++) u[c] = c < width ? A[rows[first + c] + j] : Scalar();
#pragma unroll
        for (int c = 0; c + 1 < Panel; c++)
#pragma unroll
            for (int d = c + 1; d < Panel; d++)
                if (d < width) u[d] = less_product(u[d], unit[d * Panel + c], u[c]);
#pragma unroll
        for (int c = 1; c < Panel; c++)
            if (c < width) A[rows[first + c] + j] = u[c];
    }
}

// What remains behind a whole panel, by all warps: strips of rows, each in as many parts as keep the warps busy.
template <int Panel, int Warps, typename Scalar>
__device__ void update_rest(Scalar* A, const int* rows, int first, int m, int n) {
    const int row0 = first + Panel, strips = (m - row0 + TILE_ROWS - 1) / TILE_ROWS;
    if (strips <= 0 || row0 >= n) return;
    const int tiles = (n - row0 + TILE_COLUMNS - 1) / TILE_COLUMNS, parts = min(tiles, (Warps + strips - 1) / strips);
    const int each = (tiles + parts - 1) / parts;
    for (int task = threadIdx.x / WARP; task < strips * parts; task += Warps) {
        const int row = row0 + task % strips * TILE_ROWS, tile = task / strips * each;
        update_strip<Panel>(A, rows, first, row, min(TILE_ROWS, m - row), first, row0 + tile * TILE_COLUMNS,
                            row0 + min(tile + each, tiles) * TILE_COLUMNS);
    }
}

// A, LU, pivots, info, table, m, n: as in batched/lu_register.cuh, m ≤ Slots · WARP
// Resident: blocks that a multiprocessor shall hold, which decides on the registers of a thread
// pitch   entries between rows in shared memory, even, at least n rounded up to a multiple of 16
// Shared memory: m · pitch + Panel² entries, then m numbers.
template <typename Scalar, int Panel, int Slots, int Warps, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void lu_shared(const Scalar* A, Scalar* LU, int* pivots, int* info, const long long* table, int m, int n, int pitch) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Place p(table, m, n, blockIdx.x);
    Scalar* unit = reinterpret_cast<Scalar*>(memory);
    Scalar* X = unit + Panel * Panel;
    int* rows = reinterpret_cast<int*>(X + p.m * pitch);
    A += p.source, LU += p.target, pivots += p.pivots;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int i = warp; i < p.m; i += Warps) {
        for (int j = lane; j < p.n; j += WARP) copy_async(X + i * pitch + j, A + static_cast<long long>(i) * p.n + j, true);
        if (lane == 0) rows[i] = i * pitch;
    }
    copies_issued();
    copies_arrived<0>();
    bool finite = true;
    for (int i = warp; i < p.m; i += Warps)
        for (int j = lane; j < p.n; j += WARP) finite = finite && is_finite(X[i * pitch + j]);
    finite = __syncthreads_and(finite);
    int verdict = finite ? 0 : NOT_FINITE;
    for (int first = 0; finite && first < p.steps(); first += Panel) {
        const int width = min(Panel, p.steps() - first);
        if (warp == 0) factor_panel<Panel, Slots>(X, rows, unit, pivots, p.m, first, width, verdict);
        __syncthreads();
        solve_rows<Panel>(X, rows, unit, first, width, p.n);
        __syncthreads();
        if (width == Panel) update_rest<Panel, Warps>(X, rows, first, p.m, p.n);
        __syncthreads();
    }
    for (int i = warp; i < p.m; i += Warps)
        for (int j = lane; j < p.n; j += WARP)
            LU[static_cast<long long>(i) * p.n + j] = finite ? X[rows[i] + j] : not_a_number<Scalar>();
    if (!finite)
        for (int k = threadIdx.x; k < p.steps(); k += blockDim.x) pivots[k] = k;
    if (threadIdx.x == 0) info[p.index] = verdict;
}
