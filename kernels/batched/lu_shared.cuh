// batched/lu_shared.cuh — P_b A_b = L_b U_b for matrices that fit in shared memory, or half of whose columns do; one block a matrix.
//
// Panel columns at a time (block/lu_window.cuh): the first warps bring a panel's columns up to date behind the panel before and
// eliminate them, while the others do so with the columns further right: one barrier a panel. With a window, that many columns
// are finished before the others come (block/lu_advance.cuh): these cost neither memory nor an update a panel until then, and more
// blocks are resident, whose chains of latencies overlap. A row leaves as soon as it is final; memory sees A and LU once.
#pragma once

#include "block/lu_advance.cuh"
#include "block/lu_window.cuh"
#include "block/warp_roles.cuh"
#include "thread/anew.cuh"
#include "thread/copy.cuh"
#include "thread/place.cuh"
#include "thread/prefetch.cuh"

// A, LU, pivots, info, table, m, n: as in batched/lu_register.cuh, m ≤ Team · Held · WARP
// Held, Team    rows a lane of a panel, and warps that share one, at most; Team < Warps, so that there are others meanwhile
// Resident      blocks that a multiprocessor shall hold, which decides on the registers of a thread
// Window, pitch entries between rows in shared memory: Window + WINDOW_SPREAD for n ≤ 2 Window, or no Window (0) and a multiple
//               of 4, at least n rounded up to a multiple of 16
// Shared memory: m rows of those, of what remains behind a window two where they are more; 2 Panel · TURNED_PITCH<Panel> entries;
// then 2 m numbers and one for each of the rows.
template <typename Scalar, int Panel, int Held, int Team, int Warps, int Resident, int Window>
__global__ __launch_bounds__(Warps * WARP, Resident)
void lu_shared(const Scalar* A, Scalar* LU, int* pivots, int* info, const long long* table, int m, int n, int pitch) {
    static_assert(Team < Warps, "others update while a panel is eliminated");
    static_assert(Window % TURNED_COLUMNS == 0 && Window % Panel == 0, "windows end with a panel");
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ PanelExchange<Scalar, Panel, Team> exchange;
    const Place p(table, m, n, blockIdx.x);
    constexpr int UNIT = Panel * TURNED_PITCH<Panel>;
    constexpr int STRIPS = Field<Scalar>::COMPLEX ? 1 : Held > 1 ? 4 : 2;  // as registers allow
    if constexpr (Window > 0) pitch = Window + WINDOW_SPREAD;
    const int span = Window > 0 ? Window : p.n, places = Window > 0 ? max(p.m, 2 * (p.m - Window)) : p.m;
    Scalar *units = reinterpret_cast<Scalar*>(memory), *X = units + 2 * UNIT;
    int *rows = reinterpret_cast<int*>(X + places * pitch), *ordered = rows + p.m, *behind = ordered + p.m;
    A += p.source, LU += p.target, pivots += p.pivots;
    const long long ld = p.n;
    const int lane = threadIdx.x % WARP, steps = p.steps();
    const auto each_entry = [&](bool later, auto visit) {  // of the thread, in the first panel's columns or behind them
        if (later)
            for (int i = threadIdx.x / WARP; i < p.m; i += Warps)
                for (int j = Panel + lane; j < min(p.n, span); j += WARP) visit(i, j);
        else
            for (int i = threadIdx.x / Panel; i < p.m; i += Warps * WARP / Panel)
                if (threadIdx.x % Panel < p.n) visit(i, threadIdx.x % Panel);
    };
    bool finite = true;  // and without a branch, or each read would wait for the one before
    const auto load = [&](int i, int j) { copy_async(X + i * pitch + j, A + i * ld + j, true); };
    const auto look = [&](int i, int j) { finite &= is_finite(X[i * pitch + j]); };
    each_entry(false, load);
    copies_issued();
    each_entry(true, load);
    copies_issued();
    if constexpr (Window > 0)  // the others shall be near when their turn comes
        for (int i = threadIdx.x / WARP; i < p.m; i += Warps)
            if (Window + lane * (LINE_BYTES / sizeof(Scalar)) < p.n) prefetch(A + i * ld + Window + lane * (LINE_BYTES / sizeof(Scalar)));
    for (int i = threadIdx.x; i < p.m; i += Warps * WARP) ordered[i] = i * pitch;
    copies_arrived<1>();
    each_entry(false, look);
    const int role = warp_role<Warps, Resident>();  // and the first panel's columns are there
    int verdict = 0, begin = 0;
    // of panel p: units + p % 2 · UNIT; rows before it, ordered afterwards
    const auto factor = [&](int first, int warp) {
        factor_panel<Panel, Held, Team == 1, Team>(p.m - first, X, rows, ordered, units + first / Panel % 2 * UNIT, pivots, p.m, first,
                                                   min(Panel, steps - first), warp, exchange, verdict);
    };
    const auto leave = [&](int i, int end) {  // columns before `end` of the row at position i
        const int at = rows[i], lane = anew(threadIdx.x % WARP);
        if constexpr (Window > 0)
            if (begin > 0)
                for (int j = lane; j < Window; j += WARP) LU[i * ld + j] = X[behind[(at + Window) / pitch] + j];
        for (int j = begin + lane; j < end; j += WARP) LU[i * ld + j] = X[at + j];
    };
    for (;; begin += span) {
        const int stop = min(p.n, begin + span), last = min(steps, stop), limit = begin + pitch;
        for (int first = begin - Panel; first < last; first += Panel) {  // the panel at `first` is known, if there is one
            const int warp = anew(role), next = first + Panel, end = min(next, last), width = end - first, team = next < last ? panel_warps<Held>(p.m - next) : 0;
            const Scalar* unit = units + (first / Panel & 1) * UNIT;
            int* const before = rows;
            rows = ordered, ordered = before;
            if (warp < team) {
                if (first >= begin) {
                    Scalar u[Panel / TURNED_ROWS][4];
                    solve_columns<Panel>(u, X, rows, unit, first, width, next, min(next + Panel, stop), limit, warp == 0 ? LU : nullptr, ld);
                    const int row0 = next + warp * Held * WARP;  // of the warp in the panel
                    for (int row = row0; row < min(p.m, row0 + Held * WARP); row += STRIPS * STRIP_ROWS)
                        update_strips<Panel, STRIPS>(X, rows, row, p.m, first, next, Panel / TURNED_ROWS, u);
                    __syncwarp();
                }
                factor(next, warp);
            } else if (first >= begin) {
                const int others = Warps - team, number = warp - team;
                update_share<Panel>(X, rows, unit, first, width, p.m, next < last ? next + Panel : end, stop, limit, number, others, LU, ld);
                for (int k = first + number; k < end; k += others) {
                    leave(k, end);
                    if (Window > 0 && lane == 0) ordered[k] = rows[k];  // final in both
                }
            }
            if (first >= 0) {
                __syncthreads();
            } else {  // the rest of the columns has come meanwhile
                copies_arrived<0>();
                each_entry(true, look);
                finite = __syncthreads_and(finite);
                if (!finite) break;
            }
        }
        if (!finite || stop == p.n) break;
        if constexpr (Window > 0) {
            finite = advance_window<Window, Warps>(A, LU, X, rows, ordered, behind, p.m, p.n, role);
            if (!finite) break;
        }
    }
    for (int i = role + (finite ? steps : 0); i < p.m; i += Warps) {
        if (finite) leave(i, p.n);
        else
            for (int j = lane; j < p.n; j += WARP) LU[i * ld + j] = not_a_number<Scalar>();
    }
    if (!finite)
        for (int k = threadIdx.x; k < steps; k += blockDim.x) pivots[k] = k;
    if (role == 0 && lane == 0) info[p.index] = finite ? verdict : NOT_FINITE;
}
