// systems/lu_warp.cuh — P_b A_b = L_b U_b for matrices of a few rows a lane and few columns, one warp each, several a block.
//
// All columns of a lane's rows are in registers, and come one after the other (systems/warp/eliminate_columns.cuh): nobody updates what lies
// behind a panel, and no warp meets another. Behind WARP pivots the rows that are left, one a lane then, change their lanes.
// Shared memory turns rows into lanes and back, and holds what leaves the registers: L in place of A, and U.
#pragma once

#include "common/thread/wide.cuh"
#include "systems/block/row_copies.cuh"
#include "systems/thread/place.cuh"
#include "systems/warp/eliminate_columns.cuh"

namespace systems {
using namespace common;

constexpr int TOGETHER = 8;  // rows that leave at once

// Shared memory of a warp.
template <typename Scalar, int N, int Slots>
struct LUStage {
    static constexpr int PITCH = N + 4, ROWS = Slots * WARP, REST = N > WARP ? N - WARP : 0;  // columns behind WARP pivots
    static constexpr int U = ROWS * PITCH, U_BEHIND = U + WARP * N;
    alignas(16) Scalar entries[U_BEHIND + WARP * REST];  // rows PITCH apart; those of U from the diagonal on, N apart and REST apart
    int ordered[ROWS];                                   // where the row at a position lies
};

// A, LU, pivots, info, found, table, m, n, count: as in systems/lu_register.cuh, m ≤ Slots · WARP, n ≤ N, a multiple of 16, ≤ Slots · WARP
template <typename Scalar, int N, int Slots, int Warps>
__global__ __launch_bounds__(Warps * WARP, 1)  // 1, or the compiler spares registers and waits for each read of a pivot's row
void lu_warp(const Scalar* A, Scalar* LU, int* pivots, int* info, int* found, const long long* table, int m, int n, long long count) {
    using Stage = LUStage<Scalar, N, Slots>;
    constexpr int PITCH = Stage::PITCH, REST = Stage::REST;
    static_assert(N <= Slots * WARP && Slots <= 2, "one row a lane behind WARP pivots");
    extern __shared__ __align__(16) unsigned char memory[];
    const int lane = threadIdx.x % WARP, warp = __reduce_max_sync(EVERY_LANE, threadIdx.x / WARP);  // known to be the same in all lanes
    const long long b = static_cast<long long>(blockIdx.x) * Warps + warp;
    if (b >= count) return;
    auto& stage = reinterpret_cast<Stage*>(memory)[warp];
    const Place p(table, m, n, b);
    const int steps = p.steps();
    A += p.source, LU += p.target, pivots += p.pivots;
    copy_columns(stage.entries, PITCH, A, p.n, p.m, 0, p.n, lane, WARP);
    copies_issued();
    copies_arrived<0>();
    __syncwarp();
    int verdict = 0;
    {
        Scalar x[Slots][N];
        bool is_row[Slots];
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            const int row = s * WARP + lane;
            is_row[s] = row < p.m;
            const Scalar* from = stage.entries + min(row, p.m - 1) * PITCH;
            if constexpr (Field<Scalar>::COMPLEX) {
#pragma unroll
                for (int j = 0; j < N; j++) x[s][j] = from[j];
            } else read_wide(x[s], from);
        }
        __syncwarp();  // lanes beyond the last row have read it before L is written
        Moved moved(0);
        const auto vanishes = [&](int k) { verdict = verdict ? verdict : k + 1; };
        const auto leaves = [&](int s, int k, Scalar l) { stage.entries[(s * WARP + lane) * PITCH + k] = l; };
        const PanelPivots found =
            eliminate_columns<false>(x, is_row, moved, 0, min(steps, WARP), stage.entries + Stage::U, N, vanishes, leaves);
        if (lane < steps) stage.ordered[lane] = found.row * PITCH, pivots[lane] = found.before;
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            Scalar* const row = stage.entries + (s * WARP + lane) * PITCH;
            if (is_row[s]) stage.ordered[s == 0 ? moved.position : s * WARP + lane] = (s * WARP + lane) * PITCH;
            if constexpr (REST > 0) {
                Scalar(&rest)[REST] = reinterpret_cast<Scalar(&)[REST]>(x[s]);
                if (is_row[s]) write_wide(row + WARP, rest);
            }
        }
        __syncwarp();
    }
    if constexpr (REST > 0)
        if (steps > WARP) {
            Scalar x[1][REST];
            bool is_row[1] = {WARP + lane < p.m};
            const int home = stage.ordered[is_row[0] ? WARP + lane : WARP] + WARP;
            read_wide(x[0], stage.entries + home);
            __syncwarp();
            Moved moved(WARP);
            const auto vanishes = [&](int k) { verdict = verdict ? verdict : WARP + k + 1; };
            const auto leaves = [&](int, int k, Scalar l) {
                if (WARP + lane < p.m) stage.entries[home + k] = l;
            };
            const PanelPivots found =
                eliminate_columns<false>(x, is_row, moved, WARP, steps - WARP, stage.entries + Stage::U_BEHIND, REST, vanishes, leaves);
            const int row = __shfl_sync(EVERY_LANE, home, found.row % WARP) - WARP;
            if (WARP + lane < steps) stage.ordered[WARP + lane] = row, pivots[WARP + lane] = found.before;
            if (is_row[0]) stage.ordered[moved.position] = home - WARP;
            __syncwarp();
        }
    bool finite = true;
    // rows `first` … before `end`, so many together as long as there are; U's row i from the diagonal on at u + width · i, or none of U.
    // Returns the first one left.
    const auto leave = [&](auto together, int u, int width, int first, int end) {
#pragma unroll 1
        for (; first + together.value <= end; first += together.value)
#pragma unroll
            for (int column = 0; column < N; column += WARP) {
                Scalar x[together.value], *target = LU + first * p.n + column + lane;
                const int* ordered = stage.ordered + first;
                const int own = min(column + lane, p.n - 1), right = own - first, from = u + first * width + right;
#pragma unroll
                for (int r = 0; r < together.value; r++) x[r] = stage.entries[width > 0 && right >= r ? from + r * (width - 1) : ordered[r] + own];
#pragma unroll
                for (int r = 0; r < together.value; r++, target += p.n) {
                    finite &= is_finite(x[r]);
                    if (column + lane < p.n) *target = x[r];
                }
            }
        return first;
    };
    const int half = min(steps, WARP), behind = Stage::U_BEHIND - WARP * REST;
    leave(Number<1>(), Stage::U, N, leave(Number<TOGETHER>(), Stage::U, N, 0, half), half);
    if constexpr (REST > 0) leave(Number<1>(), behind, REST, leave(Number<TOGETHER>(), behind, REST, half, steps), steps);
    leave(Number<1>(), 0, 0, steps, p.m);
    if (__any_sync(EVERY_LANE, !finite)) {  // what is NaN or Inf in A is so in its place in LU too, which may as well have overflowed
        const int entries = p.m * p.n;
        finite = true;
        for (int e = lane; e < entries; e += WARP) finite &= is_finite(A[e]);
        if (__any_sync(EVERY_LANE, !finite)) {
            verdict = NOT_FINITE;
            __syncwarp();
            for (int e = lane; e < entries; e += WARP) LU[e] = not_a_number<Scalar>();
            for (int k = lane; k < steps; k += WARP) pivots[k] = k;
        }
    }
    if (lane == 0) info[p.index] = verdict, tell(found, verdict);
}

}  // namespace systems
