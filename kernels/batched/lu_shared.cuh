// batched/lu_shared.cuh — P_b A_b = L_b U_b for matrices that fit in shared memory; one block a matrix.
//
// Panel columns at a time: the first warps eliminate them in their registers, one where it can hold them without a barrier
// (warp/eliminate.cuh), else as many as have a row a lane (block/lu_panel.cuh); all warps solve for the panel's rows of U, a column a thread, and update the columns of the next panel on the tensor cores
// (warp/rank_update.cuh); then the first warps eliminate that panel while the others update what is behind it. Rows never
// move: `rows` says where the row at a position lies, and rows are read in order when they leave. Memory sees A and LU once.
#pragma once

#include "block/lu_panel.cuh"
#include "thread/copy.cuh"
#include "thread/place.cuh"
#include "thread/wide.cuh"
#include "warp/eliminate.cuh"
#include "warp/rank_update.cuh"

constexpr int ALONE = 2;  // rows a lane of a warp that has a panel to itself, at most

// How many warps eliminate so many rows.
__device__ inline int panel_warps(int rows) { return rows <= ALONE * WARP ? 1 : (rows + WARP - 1) / WARP; }

// The panel of columns first …, by those warps, each lane with Held rows.
// rows, ordered: where the row at each position lies, before and afterwards (from `first` on)
// unit: Panel × Panel, its rows of L above   pivots: of this matrix   verdict: see thread/place.cuh
template <int Panel, int Held, int Slots, typename Scalar>
__device__ void factor_rows(Scalar* A, const int* rows, int* ordered, Scalar* unit, int* pivots, int m, int first, int width,
                            PanelExchange<Scalar, Panel, Slots>& exchange, int& verdict) {
    Scalar x[Held][Panel];
    int position[Held], row[Held];
#pragma unroll
    for (int h = 0; h < Held; h++) {
        const int at = first + h * WARP + threadIdx.x;
        position[h] = at < m ? at : -1;
        row[h] = rows[min(at, m - 1)];
        if constexpr (Field<Scalar>::COMPLEX)
#pragma unroll
            for (int c = 0; c < Panel; c++) x[h][c] = A[row[h] + first + c];
        else read_wide(x[h], A + row[h] + first);
    }
    const auto record = [&](int k, int pivot, bool zero) {
        if (threadIdx.x == 0) pivots[first + k] = pivot;
        if (zero && verdict == 0) verdict = first + k + 1;
    };
    const int warps = panel_warps(m - first);
    if (Held > 1 || warps == 1) eliminate<WARP>(x, position, first, width, width, record);
    else if constexpr (Slots > ALONE) eliminate_panel_rows<Held>(x, position, first, width, warps, exchange, record);
#pragma unroll
    for (int h = 0; h < Held; h++) {
        if (position[h] < 0) continue;
        ordered[position[h]] = row[h];
#pragma unroll
        for (int c = 0; c < Panel; c++) {
            if (c < width) A[row[h] + first + c] = x[h][c];
            if (position[h] < first + Panel) unit[(position[h] - first) * Panel + c] = x[h][c];
        }
    }
}

template <int Panel, int Slots, typename Scalar>
__device__ void factor_panel(Scalar* A, const int* rows, int* ordered, Scalar* unit, int* pivots, int m, int first, int width,
                             PanelExchange<Scalar, Panel, Slots>& exchange, int& verdict) {
    if constexpr (Slots > 1)
        if (m - first > WARP && m - first <= ALONE * WARP)
            return factor_rows<Panel, ALONE>(A, rows, ordered, unit, pivots, m, first, width, exchange, verdict);
    factor_rows<Panel, 1>(A, rows, ordered, unit, pivots, m, first, width, exchange, verdict);
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

// Behind a whole panel, columns `begin` … before `end`, by `warps` warps of which this is number `warp`: strips of rows, each
// in as many parts as keep the warps busy.
template <int Panel, typename Scalar>
__device__ void update_columns(Scalar* A, const int* rows, int first, int m, int begin, int end, int warp, int warps) {
    const int row0 = first + Panel, strips = (m - row0 + TILE_ROWS - 1) / TILE_ROWS;
    if (strips <= 0 || begin >= end) return;
    const int tiles = (end - begin + TILE_COLUMNS - 1) / TILE_COLUMNS, parts = min(tiles, (warps + strips - 1) / strips);
    const int each = (tiles + parts - 1) / parts;
    for (int task = warp; task < strips * parts; task += warps) {
        const int row = row0 + task % strips * TILE_ROWS, tile = task / strips * each;
        update_strip<Panel>(A, rows, first, row, min(TILE_ROWS, m - row), first, begin + tile * TILE_COLUMNS,
                            begin + min(tile + each, tiles) * TILE_COLUMNS);
    }
}

// A, LU, pivots, info, table, m, n: as in batched/lu_register.cuh, m ≤ Slots · WARP
// Slots < Warps, so that there are others while a panel is eliminated
// Resident: blocks that a multiprocessor shall hold, which decides on the registers of a thread
// pitch   entries between rows in shared memory, a multiple of 4, at least n rounded up to a multiple of 16
// Shared memory: m · pitch + Panel² entries, then 2 m numbers.
template <typename Scalar, int Panel, int Slots, int Warps, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void lu_shared(const Scalar* A, Scalar* LU, int* pivots, int* info, const long long* table, int m, int n, int pitch) {
    static_assert(Slots < Warps, "others update while a panel is eliminated");
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ PanelExchange<Scalar, Panel, Slots> exchange;
    const Place p(table, m, n, blockIdx.x);
    Scalar* unit = reinterpret_cast<Scalar*>(memory);
    Scalar* X = unit + Panel * Panel;
    int *rows = reinterpret_cast<int*>(X + p.m * pitch), *ordered = rows + p.m;
    A += p.source, LU += p.target, pivots += p.pivots;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, steps = p.steps();
    for (int i = warp; i < p.m; i += Warps) {
        for (int j = lane; j < p.n; j += WARP) copy_async(X + i * pitch + j, A + static_cast<long long>(i) * p.n + j, true);
        if (lane == 0) ordered[i] = i * pitch;
    }
    copies_issued();
    copies_arrived<0>();
    bool finite = true;  // and without a branch, or each read would wait for the one before
    for (int i = warp; i < p.m; i += Warps)
        for (int j = lane; j < p.n; j += WARP) finite &= is_finite(X[i * pitch + j]);
    finite = __syncthreads_and(finite);
    int verdict = finite ? 0 : NOT_FINITE;
    for (int first = 0; finite && first < steps; first += Panel) {
        const int width = min(Panel, steps - first), team = panel_warps(p.m - first), before = first - Panel;
        int* const last = rows;
        rows = ordered, ordered = last;  // of the panel before; where its rows are to be after this one
        if (warp < team) {
            factor_panel<Panel, Slots>(X, rows, ordered, unit, pivots, p.m, first, width, exchange, verdict);
        } else if (first > 0) {
            update_columns<Panel>(X, rows, before, p.m, first + Panel, p.n, warp - team, Warps - team);
        }
        for (int i = threadIdx.x; i < first; i += blockDim.x) ordered[i] = rows[i];
        __syncthreads();
        solve_rows<Panel>(X, ordered, unit, first, width, p.n);
        __syncthreads();
        if (first + Panel < steps)
            update_columns<Panel>(X, ordered, first, p.m, first + Panel, min(first + 2 * Panel, p.n), warp, Warps);
        __syncthreads();
    }
    for (int i = warp; i < p.m; i += Warps)
        for (int j = lane; j < p.n; j += WARP)
            LU[static_cast<long long>(i) * p.n + j] = finite ? X[ordered[i] + j] : not_a_number<Scalar>();
    if (!finite)
        for (int k = threadIdx.x; k < steps; k += blockDim.x) pivots[k] = k;
    if (threadIdx.x == 0) info[p.index] = verdict;
}
