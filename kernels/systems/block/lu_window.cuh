// systems/block/lu_window.cuh — P A = L U of columns in shared memory, a panel of them at a time.
//
// The first warps eliminate a panel in their registers, as many as it takes (systems/block/lu_panel.cuh; one, systems/warp/eliminate_columns.cuh);
// the others bring columns further right up to date. Whoever needs rows of U multiplies by inverses of
// L's diagonal blocks (systems/warp/solve_turned.cuh) first. Rows never move: `rows` says where the row at a position lies.
// Called by whole warps of systems/lu_shared.cuh; L and U of a panel stay in shared memory, rows of U right of it go to LU.
#pragma once

#include "common/thread/pair.cuh"
#include "common/thread/wide.cuh"
#include "systems/block/lu_panel.cuh"
#include "systems/thread/anew.cuh"
#include "systems/warp/eliminate_columns.cuh"
#include "systems/warp/solve_turned.cuh"

namespace systems {
using namespace common;

constexpr int STRIP_ROWS = 16;  // that a warp updates at once, or twice as many

// How many warps eliminate so many rows, Held a lane.
template <int Held>
__device__ int panel_warps(int rows) { return (rows + Held * WARP - 1) / (Held * WARP); }

// What others need of a panel: the rows of its pivots, and for rows of U the inverses of L's diagonal blocks.
template <typename Scalar, int Panel, int Team>
struct KnownPanel {
    static constexpr int PITCH = TURNED_PITCH<Panel>;
    PanelExchange<Scalar, Panel, Team, Panel> exchange;
    alignas(16) Scalar inverses[Panel * PITCH];  // of L's diagonal blocks, L below them
    int warps[Panel];                            // of the pivots

    // Of the k-th pivot, by columns of the panel from k on.
    __device__ const Scalar* row(int k) const { return exchange.rows[k][Team > 1 ? warps[k] : 0] - k; }

    // By one warp, the inverses from what came about beside U's rows: see systems/warp/eliminate_columns.cuh. Inverses of more rows would grow
    // where L does not. below(i): L's row i.
    template <typename Below>
    __device__ void invert(Below below) {
        static_assert(WARP % Panel == 0, "a lane has entries of one column");
        const int lane = threadIdx.x % WARP, j = lane % Panel;
#pragma unroll
        for (int first = 0; first < Panel; first += WARP / Panel) {
            const int i = first + lane / Panel;
            const bool under = first >= TURNED_ROWS && j / TURNED_ROWS < first / TURNED_ROWS;
            const Scalar* beside = exchange.rows[i][Team > 1 ? warps[i] : 0] + (j < i ? Panel - i + j : 0);
            const Scalar x = *(under ? below(i) + j : beside);  // one read, since branches would come one after the other
            inverses[i * PITCH + j] = under ? x : j < i ? minus(Scalar(), x) : i == j ? one<Scalar>() : Scalar();
        }
    }
};

// The panel of columns first …, by those warps, of which this is number `warp`.
// rows, ordered: where the row at each position lies, before and afterwards (from `first` on)
// pivots: of this matrix   verdict: see systems/thread/place.cuh
// A: afterwards L; a pivot's row has anything from its diagonal on, and U is in `known`
template <int Panel, int Held, bool Alone, int Team, typename Scalar>
__device__ void factor_rows(Scalar* A, const int* rows, int* ordered, KnownPanel<Scalar, Panel, Team>& known, int* pivots, int m, int first,
                            int width, int warp, int& verdict) {
    Scalar x[Held][Panel];
    int position[Held], row[Held];
    const int lane = anew(threadIdx.x % WARP);
#pragma unroll
    for (int h = 0; h < Held; h++) {
        const int at = first + (warp * Held + h) * WARP + lane;
        position[h] = at < m ? at : -1;
        row[h] = rows[at < m ? at : first + warp * Held * WARP];  // none of another warp's
        if constexpr (Field<Scalar>::COMPLEX) {
#pragma unroll
            for (int c = 0; c < Panel; c++) x[h][c] = A[row[h] + first + c];
        } else read_wide(x[h], A + row[h] + first);
    }
    PanelPivots found = {first, first, 0};
    bool is_row[Held];
#pragma unroll
    for (int h = 0; h < Held; h++) is_row[h] = position[h] >= 0;
    const auto vanishes = [&](int k) { verdict = verdict ? verdict : first + k + 1; };
    const auto leaves = [&](int h, int k, Scalar l) {
        if (is_row[h]) A[row[h] + first + k] = l;
    };
    __syncwarp();  // lanes beyond the last row have read its warp's first, before L is written
    if constexpr (Alone) {
        Moved moved(first);
        found = eliminate_columns<true>(x, is_row, moved, first, width, known.exchange.rows[0][0], Team * Panel, vanishes, leaves);
#pragma unroll
        for (int h = 0; h < Held; h++) {
            const int there = moved.of(first + h * WARP + lane);
            position[h] = is_row[h] ? there : -1;
        }
    } else {
        found = eliminate_panel(x, position, first, width, warp, panel_warps<Held>(m - first), known.exchange, vanishes, leaves);
    }
    if (warp == 0 && lane < width) ordered[first + lane] = rows[found.row];
    if (warp == 0 && lane < width) pivots[first + lane] = found.before;
    if (warp == 0 && lane < Panel) known.warps[lane] = found.warp;
#pragma unroll
    for (int h = 0; h < Held; h++)
        if (position[h] >= 0) ordered[position[h]] = row[h];
    // A narrow panel of several warps is the last: nobody asks for inverses, and others may be writing L's last column yet.
    // width / Panel is 1 or 0; for a comparison ptxas 13.0 spills 12 bytes more in <float, 16, 2, 3, 6, 2, 96>.
    if (warp >= (Alone ? 1 : width / Panel)) return;
    __syncwarp();
    known.invert([&](int i) { return A + ordered[first + min(i, width - 1)] + first; });
}

// By a single warp if it can hold `count` rows, by fewer a lane where those suffice.
template <int Panel, int Held, bool Alone, int Team, typename... Rest>
__device__ void factor_panel(int count, Rest&&... rest) {
    if constexpr (Held > 1)
        if (count <= Held / 2 * WARP) return factor_panel<Panel, Held / 2, true, Team>(count, rest...);
    if constexpr (!Alone)
        if (count <= Held * WARP) return factor_rows<Panel, Held, true, Team>(rest...);
    factor_rows<Panel, Held, Alone, Team>(rest...);
}

// u = rows of U at positions first …, turned, of columns column …; those before `end` go to LU, where there is one, if they are
// `finite` or not.
// inverses, width: of the panel, and its rows   limit: columns of X   ld: entries between rows of LU
template <int Panel, typename Scalar>
__device__ void solve_columns(Scalar (&u)[Panel / TURNED_ROWS][4], const Scalar* X, const int* rows, const Scalar* inverses, int first,
                              int width, int column, int end, int limit, Scalar* LU, long long ld, bool& finite) {
    const int lane = anew(threadIdx.x % WARP), g = lane / 4, t = lane % 4;
    const auto each = [&](auto visit) {
#pragma unroll
        for (int b = 0; b < Panel / TURNED_ROWS; b++)
#pragma unroll
            for (int e = 0; e < 4; e++) visit(u[b][e], b * TURNED_ROWS + 2 * t + e % 2, column + g + e / 2 * 8);
    };
    each([&](Scalar& x, int k, int j) { x = X[rows[first + min(k, width - 1)] + min(j, limit - 1)]; });
    divide_turned<Panel>(u, [&](int i) { return inverses + i * TURNED_PITCH<Panel>; });
    if (LU)
        each([&](Scalar x, int k, int j) {
            if (k < width && j < end) finite &= is_finite(x), LU[(first + k) * ld + j] = x;
        });
}

// X −= L u for the rows at positions row … before m, at most Strips · STRIP_ROWS of them, and `tiles` times 8 columns. All is read
// before any is written, or each strip would wait for the one before.
template <int Panel, int Strips, typename Scalar>
__device__ void update_strips(Scalar* X, const int* rows, int row, int m, int first, int column, int tiles,
                              const Scalar (&u)[Panel / TURNED_ROWS][4]) {
    constexpr int BLOCKS = Panel / TURNED_ROWS, HALVES = 2 * Strips, HALF = STRIP_ROWS / 2;
    const int lane = anew(threadIdx.x % WARP), g = lane / 4, t = lane % 4;
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
        __syncwarp();  // lanes beyond the last row have read it
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

// Behind a panel, columns `begin` … before `end`, by `warps` warps of which this is number `warp`: squares of STRIP_ROWS rows and
// TURNED_COLUMNS columns in equal shares; where a share enters other columns it solves for them.
template <int Panel, typename Scalar>
__device__ void update_share(Scalar* X, const int* rows, const Scalar* inverses, int first, int width, int m, int begin, int end, int limit,
                             int warp, int warps, Scalar* LU, long long ld, bool& finite) {
    const int row0 = first + Panel, strips = max(1, (m - row0 + STRIP_ROWS - 1) / STRIP_ROWS);
    const int squares = strips * max(0, (end - begin + TURNED_COLUMNS - 1) / TURNED_COLUMNS), stop = squares * (warp + 1) / warps;
    int square = squares * warp / warps, strip = square % strips, column = begin + square / strips * TURNED_COLUMNS;
    Scalar u[Panel / TURNED_ROWS][4];
    for (bool known = false; square < stop; square++) {
        if (!known) solve_columns<Panel>(u, X, rows, inverses, first, width, column, end, limit, strip == 0 ? LU : nullptr, ld, finite);
        const int row = row0 + strip * STRIP_ROWS;
        if (row < m) update_strips<Panel, 1>(X, rows, row, m, first, column, column + 8 < end ? 2 : 1, u);
        known = ++strip < strips;
        if (!known) strip = 0, column += TURNED_COLUMNS;
    }
}

}  // namespace systems
