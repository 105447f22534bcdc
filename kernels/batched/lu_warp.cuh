// batched/lu_warp.cuh — P_b A_b = L_b U_b for matrices of at most 32 rows and few columns, one warp each, several a block.
//
// A row is a lane's, all its columns in registers, by a loop over columns (warp/eliminate_columns.cuh): 32² run through a sixth of the
// instructions of batched/lu_register.cuh, whose columns are unrolled, and meet no other warp. Shared memory turns rows into lanes
// and back, and holds what leaves the registers: L in place of A, and U.
#pragma once

#include "block/row_copies.cuh"
#include "thread/place.cuh"
#include "thread/wide.cuh"
#include "warp/eliminate_columns.cuh"

// Shared memory of a warp.
template <typename Scalar, int N>
struct LUStage {
    static constexpr int PITCH = N + 4, KEPT = WARP * PITCH;
    alignas(16) Scalar entries[KEPT + N * N];  // rows PITCH apart, then those of U from the diagonal on, N apart
    int ordered[WARP];
};

constexpr int TOGETHER = 8;  // rows that leave at once

// A, LU, pivots, info, table, m, n, count: as in batched/lu_register.cuh, m ≤ WARP, n ≤ N ≤ WARP
template <typename Scalar, int N, int Warps>
__global__ __launch_bounds__(Warps * WARP, 1)
void lu_warp(const Scalar* A, Scalar* LU, int* pivots, int* info, const long long* table, int m, int n, long long count) {
    using Stage = LUStage<Scalar, N>;
    constexpr int PITCH = Stage::PITCH, KEPT = Stage::KEPT;
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
    Scalar x[1][N];
    read_wide(x[0], stage.entries + min(lane, p.m - 1) * PITCH);
    bool is_row[1] = {lane < p.m};
    int verdict = 0;
    Moved moved(0);
    __syncwarp();  // lanes beyond the last row have read it before L is written
    const auto vanishes = [&](int k) { verdict = verdict ? verdict : k + 1; };
    const auto leaves = [&](int, int k, Scalar l) { stage.entries[lane * PITCH + k] = l; };
    const PanelPivots found = eliminate_columns<false>(x, is_row, moved, 0, steps, stage.entries + KEPT, N, vanishes, leaves);
    if (lane < steps) stage.ordered[lane] = found.row * PITCH, pivots[lane] = found.before;
    if (is_row[0]) stage.ordered[moved.position] = lane * PITCH;
    __syncwarp();
    bool finite = true;
    // rows `first` … before `end`, so many together as long as there are; of pivots, with U from the diagonal on. Returns the first one left
    const auto leave = [&](auto together, bool pivot, int first, int end) {
#pragma unroll 1
        for (; first + together.value <= end; first += together.value) {
            Scalar x[together.value], *target = LU + first * p.n + lane;
            const int* ordered = stage.ordered + first;
            const int mine = min(lane, p.n - 1) - first, kept = KEPT + first * N + mine;
#pragma unroll
            for (int r = 0; r < together.value; r++) x[r] = stage.entries[pivot && mine >= r ? kept + r * (N - 1) : ordered[r] + first + mine];
#pragma unroll
            for (int r = 0; r < together.value; r++, target += p.n) {
                finite &= is_finite(x[r]);
                if (lane < p.n) *target = x[r];
            }
        }
        return first;
    };
    const int left = leave(Number<TOGETHER>(), true, 0, steps);
    leave(Number<1>(), true, left, steps);
    leave(Number<1>(), false, steps, p.m);
    if (__any_sync(EVERY_LANE, !finite)) {  // what is NaN or Inf in A is so in its place in LU too, which may as well have overflowed
        const int entries = p.m * p.n;
        finite = true;
        for (int e = lane; e < entries; e += WARP) finite &= is_finite(A[e]);
        if (__any_sync(EVERY_LANE, !finite)) {
            verdict = NOT_FINITE;
            __syncwarp();
            for (int e = lane; e < entries; e += WARP) LU[e] = not_a_number<Scalar>();
            if (lane < steps) pivots[lane] = lane;
        }
    }
    if (lane == 0) info[p.index] = verdict;
}
