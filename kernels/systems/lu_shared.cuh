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

// One matrix on its way through a block; every stage is called by all of its threads, unless it says otherwise.
template <typename Scalar, int Panel, int Held, int Team, int Warps, int Resident, int Window>
struct SharedLU {
    static_assert(Team < Warps, "others update while a panel is eliminated");
    static_assert(Window % TURNED_COLUMNS == 0 && Window % Panel == 0, "windows end with a panel");
    static constexpr int THREADS = Warps * WARP;
    static constexpr int STRIPS = Field<Scalar>::COMPLEX ? 1 : 2;  // that are updated together, as registers allow
    using Known = KnownPanel<Scalar, Panel, Team>;

    const Place p;
    const Scalar* A;
    Scalar *LU, *X;     // X: in shared memory, `pitch` entries between rows
    int* pivots;
    int pitch, span;    // span: columns of a window, or all
    Known* panels;      // the last two
    int *rows, *ordered, *behind;  // where rows lie in X: at every position before a panel, after it; of L behind a window
    long long ld;
    int lane, role, steps;
    int begin = 0, verdict = 0;    // begin: first column of the window
    bool finite = true;            // all that leaves, of this thread

    __device__ __forceinline__ SharedLU(const Scalar* A_, Scalar* LU_, int* pivots_, const long long* table, int m, int n, int pitch_,
                                        unsigned char* memory)
        : p(table, m, n, blockIdx.x) {
        pitch = Window > 0 ? Window + WINDOW_SPREAD : pitch_;
        span = Window > 0 ? Window : p.n;
        panels = reinterpret_cast<Known*>(memory);
        X = reinterpret_cast<Scalar*>(panels + 2);
        rows = reinterpret_cast<int*>(X + rows_held(p.m) * pitch), ordered = rows + p.m, behind = ordered + p.m;
        A = A_ + p.source, LU = LU_ + p.target, pivots = pivots_ + p.pivots;
        ld = p.n, lane = threadIdx.x % WARP, steps = p.steps();
    }

    // Shared memory: two KnownPanels; m rows, or of what remains behind a window two where they are more; then 2 m numbers, and
    // with a window one for each of those rows.
    __host__ __device__ static constexpr int rows_held(int m) { return Window > 0 && 2 * (m - Window) > m ? 2 * (m - Window) : m; }
    __host__ __device__ static constexpr int bytes(int m, int pitch) {
        return 2 * sizeof(Known) + rows_held(m) * pitch * sizeof(Scalar) + (2 * m + (Window > 0 ? rows_held(m) : 0)) * sizeof(int);
    }

    // The first panel's columns are there afterwards, the others of the first window on their way.
    __device__ __forceinline__ void load() {
        copy_columns(X, pitch, A, ld, p.m, 0, min(p.n, Panel), threadIdx.x, THREADS);
        copies_issued();
        role = warp_role<Warps, Resident>();
        const int leading = panel_warps<Held>(p.m);
        if (role >= leading) load_rest(role - leading, Warps - leading);  // they have nothing else to do during the first panel
        copies_issued();
        for (int i = threadIdx.x; i < p.m; i += THREADS) ordered[i] = i * pitch;
        copies_arrived<1>();
        __syncthreads();
    }

    // By warp `number` of so many.
    __device__ __forceinline__ void load_rest(int number, int others) {
        copy_columns(X, pitch, A, ld, p.m, min(p.n, Panel), min(p.n, span), number * WARP + lane, others * WARP);
        if constexpr (Window > 0)  // what comes behind the window shall be near when its turn comes
            for (int i = number; i < p.m; i += others)
                if (Window + lane * (LINE_BYTES / sizeof(Scalar)) < p.n) prefetch(A + i * ld + Window + lane * (LINE_BYTES / sizeof(Scalar)));
    }

    // All panels of the columns begin … before `stop`.
    __device__ __forceinline__ void eliminate_window(int stop) {
        const int limit = begin + pitch;
        // anew: ptxas 13.0 takes min(min(a, −b), c) for min(min(a, b), c), which it makes of this and the loops up to it
        const int last = anew(min(steps, stop));
        for (int first = begin - Panel; first < last; first += Panel) {  // the panel at `first` is known, if there is one
            const int warp = anew(role), next = first + Panel, end = min(next, last), width = end - first, team = next < last ? panel_warps<Held>(p.m - next) : 0;
            const auto& known = panels[first / Panel & 1];
            int* const before = rows;
            rows = ordered, ordered = before;
            if (warp < team) lead(known, first, width, stop, limit, warp);
            else if (first >= begin) follow(known, first, width, end, last, stop, limit, warp - team, Warps - team);
            if (first >= 0) {
                __syncthreads();
            } else {  // the rest of the columns has come meanwhile
                copies_arrived<0>();
                __syncthreads();
            }
        }
    }

    // The next panel by the first warps: up to date behind the panel at `first`, and eliminated.
    __device__ __forceinline__ void lead(const Known& known, int first, int width, int stop, int limit, int warp) {
        const int next = first + Panel;
        if (first >= begin) {
            Scalar u[Panel / TURNED_ROWS][4];
            solve_columns<Panel>(u, X, rows, known.inverses, first, width, next, min(next + Panel, stop), limit, warp == 0 ? LU : nullptr, ld, finite);
            const int row0 = next + warp * Held * WARP;  // of the warp in the panel
            for (int row = row0; row < min(p.m, row0 + Held * WARP); row += STRIPS * STRIP_ROWS)
                update_strips<Panel, STRIPS>(X, rows, row, p.m, first, next, Panel / TURNED_ROWS, u);
            __syncwarp();
        }
        factor_panel<Panel, Held, Team == 1, Team>(p.m - next, X, rows, ordered, panels[next / Panel % 2], pivots, p.m, next,
                                                   min(Panel, steps - next), warp, verdict);
    }

    // Behind the panel at `first`, by warp `number` of so many: columns further right, and its rows of L and U leave.
    __device__ __forceinline__ void follow(const Known& known, int first, int width, int end, int last, int stop, int limit, int number, int others) {
        const int next = first + Panel;
        update_share<Panel>(X, rows, known.inverses, first, width, p.m, next < last ? next + Panel : end, stop, limit, number, others, LU, ld, finite);
        leave(first + number, others, end, end, [](int k) { return k; }, [&](int k) { return static_cast<int>(known.row(k - first) - first - X); });
        if constexpr (Window > 0)
            if (stop < p.n) keep_inverses(known, first, end, number, others);
    }

    // systems/block/lu_advance.cuh wants inverses; where no window follows, U is there that others read.
    __device__ __forceinline__ void keep_inverses(const Known& known, int first, int end, int number, int others) {
        __syncwarp();  // L has left
        for (int k = first + number; k < end; k += others) {
            if (lane == 0) ordered[k] = rows[k];
            if (lane < Panel) X[rows[k] + first + lane] = known.inverses[(k - first) * known.PITCH + lane];
        }
    }

    // By one warp: columns before `end` of the rows at positions i, i + apart, … before `stop`; from diagonal(k) on as those at
    // X + row(k).
    template <typename Diagonal, typename Row>
    __device__ __forceinline__ void leave(int i, int apart, int stop, int end, Diagonal diagonal, Row row) {
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
    }

    // The rows of L below U.
    __device__ __forceinline__ void leave_rest() {
        leave(role + steps, Warps, p.m, p.n, [&](int) { return p.n; }, [&](int) { return 0; });
    }

    // What is NaN or Inf in A is so in its place in LU too, which may as well have overflowed.
    __device__ __forceinline__ void refuse_unless_finite() {
        if (__syncthreads_and(finite)) return;
        const int entries = p.m * p.n;
        finite = true;
        for (int e = threadIdx.x; e < entries; e += THREADS) finite &= is_finite(A[e]);
        if (__syncthreads_and(finite)) return;
        verdict = NOT_FINITE;
        for (int e = threadIdx.x; e < entries; e += THREADS) LU[e] = not_a_number<Scalar>();
        for (int k = threadIdx.x; k < steps; k += THREADS) pivots[k] = k;
    }
};

// A, LU, pivots, info, found, table, m, n: as in systems/lu_register.cuh, m ≤ Team · Held · WARP
// Held, Team    rows a lane of a panel, and warps that share one, at most; Team < Warps, so that there are others meanwhile
// Resident      blocks that a multiprocessor shall hold, which decides on the registers of a thread
// Window, pitch entries between rows in shared memory: Window + WINDOW_SPREAD for n ≤ 2 Window, or no Window (0) and a multiple
//               of 4, at least n rounded up to a multiple of 16; m > Window
// Shared memory: SharedLU::bytes
template <typename Scalar, int Panel, int Held, int Team, int Warps, int Resident, int Window>
__global__ __launch_bounds__(Warps * WARP, Resident)
void lu_shared(const Scalar* A, Scalar* LU, int* pivots, int* info, int* found, const long long* table, int m, int n, int pitch) {
    extern __shared__ __align__(16) unsigned char memory[];
    SharedLU<Scalar, Panel, Held, Team, Warps, Resident, Window> lu(A, LU, pivots, table, m, n, pitch, memory);
    lu.load();
    for (;; lu.begin += lu.span) {
        const int stop = min(lu.p.n, lu.begin + lu.span);
        lu.eliminate_window(stop);
        if (stop == lu.p.n) break;
        if constexpr (Window > 0)
            advance_window<Window, Warps>(lu.A, lu.LU, lu.X, lu.rows, lu.ordered, lu.behind, lu.p.m, lu.p.n, lu.role, lu.finite);
    }
    lu.leave_rest();
    lu.refuse_unless_finite();
    if (lu.role == 0 && lu.lane == 0) info[lu.p.index] = lu.verdict, tell(found, lu.verdict);
}

}  // namespace systems
