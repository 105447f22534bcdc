// batched/lu_shared.cuh — P_b A_b = L_b U_b for matrices that fit in shared memory; one block a matrix.
//
// Panel columns at a time. The first warps eliminate them in their registers, one where it can hold them without a barrier
// (warp/eliminate.cuh), else as many as have a row a lane (block/lu_panel.cuh); before, they bring these columns up to date
// behind the panel before, while the other warps do so with the columns further right: one barrier a panel. Whoever needs rows
// of U solves for them (warp/solve_turned.cuh) and multiplies at once. Rows never move: `rows` says where the row at a position
// lies. A row leaves as soon as it is final; memory sees A and LU once.
#pragma once

#include "block/lu_panel.cuh"
#include "thread/copy.cuh"
#include "thread/pair.cuh"
#include "thread/place.cuh"
#include "thread/wide.cuh"
#include "warp/eliminate.cuh"
#include "warp/solve_turned.cuh"

constexpr int ALONE = 2;        // rows a lane of a warp that has a panel to itself, at most
constexpr int STRIP_ROWS = 16;  // that a warp updates at once, or twice as many

// How many warps eliminate so many rows.
__device__ inline int panel_warps(int rows) { return rows <= ALONE * WARP ? 1 : (rows + WARP - 1) / WARP; }

// The panel of columns first …, by those warps, each lane with Held rows.
// rows, ordered: where the row at each position lies, before and afterwards (from `first` on)
// unit: its rows of L above, below the diagonal, as warp/solve_turned.cuh wants them
// pivots: of this matrix   verdict: see thread/place.cuh
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
        if constexpr (Field<Scalar>::COMPLEX) {
#pragma unroll
            for (int c = 0; c < Panel; c++) x[h][c] = A[row[h] + first + c];
        } else read_wide(x[h], A + row[h] + first);
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
            const int k = position[h] - first;
            if (k < width) unit[k * TURNED_PITCH<Panel> + c] = x[h][c];
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

// u = rows of U at positions first …, turned, of columns column …; those before `end` go to LU, where there is one.
// width: rows of the panel   pitch, ld: entries between rows of X and of LU
template <int Panel, typename Scalar>
__device__ void solve_columns(Scalar (&u)[Panel / TURNED_ROWS][4], const Scalar* X, const int* rows, const Scalar* unit, int first,
                              int width, int column, int end, int pitch, Scalar* LU, long long ld) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    const auto each = [&](auto visit) {
#pragma unroll
        for (int b = 0; b < Panel / TURNED_ROWS; b++)
#pragma unroll
            for (int e = 0; e < 4; e++) visit(u[b][e], b * TURNED_ROWS + 2 * t + e % 2, column + g + e / 2 * 8);
    };
    each([&](Scalar& x, int k, int j) { x = X[rows[first + min(k, width - 1)] + min(j, pitch - 1)]; });
    solve_turned<Panel>(u, unit);
    if (LU) each([&](Scalar x, int k, int j) { if (k < width && j < end) LU[(first + k) * ld + j] = x; });
}

// X −= L u for the rows at positions row … before m, at most Strips · STRIP_ROWS of them, and `tiles` times 8 columns. All is read
// before any is written, or each strip would wait for the one before.
template <int Panel, int Strips, typename Scalar>
__device__ void update_strips(Scalar* X, const int* rows, int row, int m, int first, int column, int tiles,
                              const Scalar (&u)[Panel / TURNED_ROWS][4]) {
    constexpr int BLOCKS = Panel / TURNED_ROWS, HALVES = 2 * Strips, HALF = STRIP_ROWS / 2;
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    Scalar* own[HALVES];
    Scalar left[Strips][BLOCKS][4];
#pragma unroll
    for (int h = 0; h < HALVES; h++) own[h] = X + rows[min(row + g + HALF * h, m - 1)] + 2 * t;
#pragma unroll
    for (int h = 0; h < HALVES; h++)
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const auto l = *reinterpret_cast<const Pair<Scalar>*>(own[h] + first + b * TURNED_ROWS);
            left[h / 2][b][h % 2 * 2] = l.x, left[h / 2][b][h % 2 * 2 + 1] = l.y;
        }
#pragma unroll
    for (int tile = 0; tile < 2; tile++) {
        if (tile >= tiles) break;
        Pair<Scalar> c[HALVES];
        Scalar sum[Strips][4] = {};
#pragma unroll
        for (int h = 0; h < HALVES; h++) c[h] = *reinterpret_cast<const Pair<Scalar>*>(own[h] + column + tile * 8);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
#pragma unroll
            for (int s = 0; s < Strips; s++) multiply_tile(sum[s], left[s][b], u[b][2 * tile], u[b][2 * tile + 1]);
#pragma unroll
        for (int h = 0; h < HALVES; h++) {
            const Scalar(&less)[4] = sum[h / 2];
            const Pair<Scalar> rest = {minus(c[h].x, less[h % 2 * 2]), minus(c[h].y, less[h % 2 * 2 + 1])};
            if (row + g + HALF * h < m) *reinterpret_cast<Pair<Scalar>*>(own[h] + column + tile * 8) = rest;
        }
    }
}

// Behind a panel, columns `begin` … before n, by `warps` warps of which this is number `warp`: squares of STRIP_ROWS rows and
// TURNED_COLUMNS columns in equal shares; where a share enters other columns it solves for them.
template <int Panel, typename Scalar>
__device__ void update_share(Scalar* X, const int* rows, const Scalar* unit, int first, int width, int m, int n, int begin, int pitch,
                            int warp, int warps, Scalar* LU) {
    const int row0 = first + Panel, strips = max(1, (m - row0 + STRIP_ROWS - 1) / STRIP_ROWS);
    const int squares = strips * max(0, (n - begin + TURNED_COLUMNS - 1) / TURNED_COLUMNS);
    int square = squares * warp / warps, strip = square % strips, column = begin + square / strips * TURNED_COLUMNS;
    Scalar u[Panel / TURNED_ROWS][4];
    for (bool known = false; square < squares * (warp + 1) / warps; square++) {
        if (!known) solve_columns<Panel>(u, X, rows, unit, first, width, column, n, pitch, strip == 0 ? LU : nullptr, n);
        const int row = row0 + strip * STRIP_ROWS;
        if (row < m) update_strips<Panel, 1>(X, rows, row, m, first, column, column + 8 < n ? 2 : 1, u);
        known = ++strip < strips;
        if (!known) strip = 0, column += TURNED_COLUMNS;
    }
}

// A, LU, pivots, info, table, m, n: as in batched/lu_register.cuh, m ≤ Slots · WARP
// Slots < Warps, so that there are others while a panel is eliminated
// Resident: blocks that a multiprocessor shall hold, which decides on the registers of a thread
// pitch   entries between rows in shared memory, a multiple of 4, at least n rounded up to a multiple of 16
// Shared memory: m · pitch + 2 Panel · TURNED_PITCH<Panel> entries, then 2 m numbers.
template <typename Scalar, int Panel, int Slots, int Warps, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void lu_shared(const Scalar* A, Scalar* LU, int* pivots, int* info, const long long* table, int m, int n, int pitch) {
    static_assert(Slots < Warps, "others update while a panel is eliminated");
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ PanelExchange<Scalar, Panel, Slots> exchange;
    const Place p(table, m, n, blockIdx.x);
    constexpr int UNIT = Panel * TURNED_PITCH<Panel>;
    constexpr int STRIPS = Field<Scalar>::COMPLEX ? 1 : 2;  // as registers allow
    Scalar *units = reinterpret_cast<Scalar*>(memory), *X = units + 2 * UNIT;
    int *rows = reinterpret_cast<int*>(X + p.m * pitch), *ordered = rows + p.m;
    A += p.source, LU += p.target, pivots += p.pivots;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, steps = p.steps();
    const auto each_entry = [&](bool behind, auto visit) {  // of the thread, in the first panel's columns or behind them
        if (behind)
            for (int i = warp; i < p.m; i += Warps)
                for (int j = Panel + lane; j < p.n; j += WARP) visit(i, j);
        else
            for (int i = threadIdx.x / Panel; i < p.m; i += Warps * WARP / Panel)
                if (threadIdx.x % Panel < p.n) visit(i, threadIdx.x % Panel);
    };
    bool finite = true;  // and without a branch, or each read would wait for the one before
    const auto load = [&](int i, int j) { copy_async(X + i * pitch + j, A + static_cast<long long>(i) * p.n + j, true); };
    const auto look = [&](int i, int j) { finite &= is_finite(X[i * pitch + j]); };
    each_entry(false, load);
    copies_issued();
    each_entry(true, load);
    copies_issued();
    for (int i = threadIdx.x; i < p.m; i += Warps * WARP) ordered[i] = i * pitch;
    copies_arrived<1>();
    each_entry(false, look);
    __syncthreads();
    int verdict = 0;
    // of panel p: units + p % 2 · UNIT; rows before it, ordered afterwards
    const auto factor = [&](int first) {
        factor_panel<Panel, Slots>(X, rows, ordered, units + first / Panel % 2 * UNIT, pivots, p.m, first, min(Panel, steps - first),
                                   exchange, verdict);
    };
    for (int first = -Panel; first < steps; first += Panel) {  // the panel at `first` is known, if there is one
        const int next = first + Panel, end = min(next, steps), width = end - first, team = next < steps ? panel_warps(p.m - next) : 0;
        const Scalar* unit = units + (first / Panel & 1) * UNIT;
        int* const last = rows;
        rows = ordered, ordered = last;
        if (warp < team) {
            if (first >= 0) {
                Scalar u[Panel / TURNED_ROWS][4];
                solve_columns<Panel>(u, X, rows, unit, first, width, next, min(next + Panel, p.n), pitch, warp == 0 ? LU : nullptr, p.n);
                for (int row = next + warp * WARP; row < min(p.m, next + (team == 1 ? ALONE : warp + 1) * WARP); row += STRIPS * STRIP_ROWS)
                    update_strips<Panel, STRIPS>(X, rows, row, p.m, first, next, Panel / TURNED_ROWS, u);
                __syncwarp();
            }
            factor(next);
        } else if (first >= 0) {
            const int others = Warps - team, number = warp - team;
            update_share<Panel>(X, rows, unit, first, width, p.m, p.n, next < steps ? next + Panel : end, pitch, number, others, LU);
            for (int k = number; k < width; k += others)
                for (int j = lane; j < end; j += WARP) LU[static_cast<long long>(first + k) * p.n + j] = X[rows[first + k] + j];
        }
        if (first >= 0) {
            __syncthreads();
        } else {  // the rest of the matrix has come meanwhile
            copies_arrived<0>();
            each_entry(true, look);
            finite = __syncthreads_and(finite);
            if (!finite) break;
        }
    }
    for (int i = warp + (finite ? steps : 0); i < p.m; i += Warps)
        for (int j = lane; j < p.n; j += WARP)
            LU[static_cast<long long>(i) * p.n + j] = finite ? X[rows[i] + j] : not_a_number<Scalar>();
    if (!finite)
        for (int k = threadIdx.x; k < steps; k += blockDim.x) pivots[k] = k;
    if (threadIdx.x == 0) info[p.index] = finite ? verdict : NOT_FINITE;
}
