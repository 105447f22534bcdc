// systems/lu_shared.cuh — P_b A_b = L_b U_b for matrices that fit in shared memory, or half of whose columns do; one block a matrix.
//
// Panel columns at a time (systems/block/lu_window.cuh): the first warps bring a panel's columns up to date behind the panel before and
// eliminate them, while the others do so with the columns further right: one barrier a panel. With a window, that many columns
// are finished before the others come (systems/block/lu_advance.cuh): these cost neither memory nor an update a panel until then, and more
// blocks are resident, whose chains of latencies overlap. A row leaves as soon as it is final; memory sees A and LU once. Whether A
// is finite shows as its factors leave.
#pragma once

#include "common/thread/prefetch.cuh"
#include "systems/block/lu_advance.cuh"
#include "systems/block/lu_window.cuh"
#include "systems/block/row_copies.cuh"
#include "systems/block/warp_roles.cuh"
#include "systems/thread/anew.cuh"
#include "systems/thread/place.cuh"

namespace systems {
using namespace common;

// A, LU, pivots, info, table, m, n: as in systems/lu_register.cuh, m ≤ Team · Held · WARP
// Held, Team    rows a lane of a panel, and warps that share one, at most; Team < Warps, so that there are others meanwhile
// Resident      blocks that a multiprocessor shall hold, which decides on the registers of a thread
// Window, pitch entries between rows in shared memory: Window + WINDOW_SPREAD for n ≤ 2 Window, or no Window (0) and a multiple
//               of 4, at least n rounded up to a multiple of 16; m > Window
// Shared memory: two KnownPanels; m rows of those, of what remains behind a window two where they are more; then 2 m numbers,
// and with a window one for each of the rows.
template <typename Scalar, int Panel, int Held, int Team, int Warps, int Resident, int Window>
__global__ __launch_bounds__(Warps * WARP, Resident)
void lu_shared(const Scalar* A, Scalar* LU, int* pivots, int* info, const long long* table, int m, int n, int pitch) {
    static_assert(Team < Warps, "others update while a panel is eliminated");
    static_assert(Window % TURNED_COLUMNS == 0 && Window % Panel == 0, "windows end with a panel");
    extern __shared__ __align__(16) unsigned char memory[];
    const Place p(table, m, n, blockIdx.x);
    constexpr int STRIPS = Field<Scalar>::COMPLEX ? 1 : 2;  // as registers allow
    if constexpr (Window > 0) pitch = Window + WINDOW_SPREAD;
    const int span = Window > 0 ? Window : p.n, places = Window > 0 ? max(p.m, 2 * (p.m - Window)) : p.m;
    auto* const panels = reinterpret_cast<KnownPanel<Scalar, Panel, Team>*>(memory);  // the last two
    Scalar* X = reinterpret_cast<Scalar*>(panels + 2);
    int *rows = reinterpret_cast<int*>(X + places * pitch), *ordered = rows + p.m, *behind = ordered + p.m;
    A += p.source, LU += p.target, pivots += p.pivots;
    const long long ld = p.n;
    const int lane = threadIdx.x % WARP, steps = p.steps();
    constexpr int THREADS = Warps * WARP;
    copy_columns(X, pitch, A, ld, p.m, 0, min(p.n, Panel), threadIdx.x, THREADS);
    copies_issued();
    const int role = warp_role<Warps, Resident>(), leading = panel_warps<Held>(p.m);
    if (role >= leading) {  // the others have nothing else to do during the first panel
        const int number = role - leading, others = Warps - leading;
        copy_columns(X, pitch, A, ld, p.m, min(p.n, Panel), min(p.n, span), number * WARP + lane, others * WARP);
        if constexpr (Window > 0)  // what comes behind the window shall be near when its turn comes
            for (int i = number; i < p.m; i += others)
                if (Window + lane * (LINE_BYTES / sizeof(Scalar)) < p.n) prefetch(A + i * ld + Window + lane * (LINE_BYTES / sizeof(Scalar)));
    }
    copies_issued();
    for (int i = threadIdx.x; i < p.m; i += THREADS) ordered[i] = i * pitch;
    copies_arrived<1>();
    __syncthreads();  // the first panel's columns are there
    int verdict = 0, begin = 0;
    bool finite = true;  // all that leaves, of this thread
    // rows before the panel, ordered afterwards
    const auto factor = [&](int first, int warp) {
        factor_panel<Panel, Held, Team == 1, Team>(p.m - first, X, rows, ordered, panels[first / Panel % 2], pivots, p.m, first,
                                                   min(Panel, steps - first), warp, verdict);
    };
    // columns before `end` of the rows at positions i, i + apart, … before `stop`; from diagonal(k) on as those at X + row(k)
    const auto leave = [&](int i, int apart, int stop, int end, auto diagonal, auto row) {
        constexpr int TOGETHER = 4;  // rows that are on their way at once
        const int lane = anew(threadIdx.x % WARP);
        for (; i < stop; i += TOGETHER * apart) {
            int first_window[TOGETHER], left[TOGETHER], right[TOGETHER], turn[TOGETHER];  // where they lie in X
#pragma unroll
            for (int r = 0; r < TOGETHER; r++) {
                const int k = i + r * apart < stop ? i + r * apart : i, at = rows[k];  // none of another warp's
                first_window[r] = left[r] = at, right[r] = row(k), turn[r] = diagonal(k);
                if constexpr (Window > 0)
                    if (begin > 0) first_window[r] = behind[(at + Window) / pitch];
            }
#pragma unroll 1
            for (int j = lane; j < end; j += WARP) {
                Scalar x[TOGETHER], *target = LU + i * ld + j;
#pragma unroll
                for (int r = 0; r < TOGETHER; r++) x[r] = X[(Window > 0 && j < begin ? first_window[r] : j < turn[r] ? left[r] : right[r]) + j];
#pragma unroll
                for (int r = 0; r < TOGETHER; r++, target += apart * ld)
                    if (i + r * apart < stop) finite &= is_finite(x[r]), *target = x[r];
            }
        }
    };
    for (;; begin += span) {
        const int stop = min(p.n, begin + span), limit = begin + pitch;
        // anew: ptxas 13.0 takes min(min(a, −b), c) for min(min(a, b), c), which it makes of this and the loops up to it
        const int last = anew(min(steps, stop));
        for (int first = begin - Panel; first < last; first += Panel) {  // the panel at `first` is known, if there is one
            const int warp = anew(role), next = first + Panel, end = min(next, last), width = end - first, team = next < last ? panel_warps<Held>(p.m - next) : 0;
            const auto& known = panels[first / Panel & 1];
            int* const before = rows;
            rows = ordered, ordered = before;
            if (warp < team) {
                if (first >= begin) {
                    Scalar u[Panel / TURNED_ROWS][4];
                    solve_columns<Panel>(u, X, rows, known.inverses, first, width, next, min(next + Panel, stop), limit, warp == 0 ? LU : nullptr, ld, finite);
                    const int row0 = next + warp * Held * WARP;  // of the warp in the panel
                    for (int row = row0; row < min(p.m, row0 + Held * WARP); row += STRIPS * STRIP_ROWS)
                        update_strips<Panel, STRIPS>(X, rows, row, p.m, first, next, Panel / TURNED_ROWS, u);
                    __syncwarp();
                }
                factor(next, warp);
            } else if (first >= begin) {
                const int others = Warps - team, number = warp - team;
                update_share<Panel>(X, rows, known.inverses, first, width, p.m, next < last ? next + Panel : end, stop, limit, number, others, LU, ld, finite);
                leave(first + number, others, end, end, [](int k) { return k; }, [&](int k) { return static_cast<int>(known.row(k - first) - first - X); });
                if constexpr (Window > 0)
                    if (stop < p.n) {  // systems/block/lu_advance.cuh wants inverses; where no window follows, U is there that others read
                        __syncwarp();  // L has left
                        for (int k = first + number; k < end; k += others) {
                            if (lane == 0) ordered[k] = rows[k];
                            if (lane < Panel) X[rows[k] + first + lane] = known.inverses[(k - first) * known.PITCH + lane];
                        }
                    }
            }
            if (first >= 0) {
                __syncthreads();
            } else {  // the rest of the columns has come meanwhile
                copies_arrived<0>();
                __syncthreads();
            }
        }
        if (stop == p.n) break;
        if constexpr (Window > 0) advance_window<Window, Warps>(A, LU, X, rows, ordered, behind, p.m, p.n, role, finite);
    }
    leave(role + steps, Warps, p.m, p.n, [&](int) { return p.n; }, [&](int) { return 0; });
    if (!__syncthreads_and(finite)) {  // what is NaN or Inf in A is so in its place in LU too, which may as well have overflowed
        const int entries = p.m * p.n;
        finite = true;
        for (int e = threadIdx.x; e < entries; e += THREADS) finite &= is_finite(A[e]);
        if (!__syncthreads_and(finite)) {
            verdict = NOT_FINITE;
            for (int e = threadIdx.x; e < entries; e += THREADS) LU[e] = not_a_number<Scalar>();
            for (int k = threadIdx.x; k < steps; k += THREADS) pivots[k] = k;
        }
    }
    if (role == 0 && lane == 0) info[p.index] = verdict;
}

}  // namespace systems
