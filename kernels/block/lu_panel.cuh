// block/lu_panel.cuh — LU with partial pivoting of a panel whose rows lie in the registers of a block's first warps.
//
//     P X = L U,   X: rows × N, a row in one thread, Slots rows a thread
//
// As warp/eliminate.cuh with warps that meet once a column: each has put its candidate's row into shared memory by then, and
// all look for the largest candidate themselves. What they read is written again two columns later.
// Called by all threads of those warps; results stay in their registers.
#pragma once

#include "block/meet.cuh"
#include "warp/pivot.cuh"

template <typename Scalar, int N, int Warps>
struct PanelExchange {
    alignas(16) Scalar rows[2][Warps][N];
    Scalar candidates[2][Warps];
    Divisor<Scalar> divisors[2][Warps];
    int positions[2][Warps];
};

// x, position, first, steps, record: as in warp/eliminate.cuh; record is called by every thread     warps: of them, at most Warps
template <int Slots, int N, int Warps, typename Scalar, typename Record>
__device__ void eliminate_panel_rows(Scalar (&x)[Slots][N], int (&position)[Slots], int first, int steps,
                                     int warps, PanelExchange<Scalar, N, Warps>& exchange, Record record) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    PivotSearch<WARP, Slots, Scalar> search;
    search.begin(x, 0, position, first);
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (k >= steps) break;
        const int turn = k % 2, owner = search.settle(x, k, position, first + k);
        if (owner < 0) {
            if (lane == 0) exchange.positions[turn][warp] = -1;
        } else if (lane == owner) {
#pragma unroll
            for (int s = 0; s < Slots; s++)
                if (position[s] == search.at) {
                    exchange.candidates[turn][warp] = x[s][k];
#pragma unroll
                    for (int j = k + 1; j < N; j++) exchange.rows[turn][warp][j] = x[s][j];
                }
            exchange.divisors[turn][warp] = search.by_candidate, exchange.positions[turn][warp] = search.at;
        }
        meet(warps);
        const Scalar candidate[1][1] = {{exchange.candidates[turn][min(lane, warps - 1)]}};
        const int there[1] = {lane < warps ? exchange.positions[turn][lane] : -1};
        PivotSearch<WARP, 1, Scalar> contest;
        contest.begin(candidate, 0, there, first + k);
        const int winner = contest.settle(candidate, 0, there, first + k);
        const int chosen = exchange.positions[turn][winner];
        const Divisor<Scalar> divided = exchange.divisors[turn][winner];
        const Scalar* row = exchange.rows[turn][winner];
        record(k, chosen, !(magnitude(divided.inverse) > 0));
        Scalar multiplier[Slots];
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            const bool is_pivot = position[s] == chosen, below = position[s] >= first + k && !is_pivot;
            multiplier[s] = below ? divided(x[s][k]) : Scalar();
            if (below) x[s][k] = multiplier[s];
            position[s] = is_pivot ? first + k : position[s] == first + k ? chosen : position[s];
        }
#pragma unroll
        for (int j = k + 1; j < N; j++) {
            const Scalar u = row[j];
#pragma unroll
            for (int s = 0; s < Slots; s++) x[s][j] = less_product(x[s][j], multiplier[s], u);
            if (j == k + 1) search.begin(x, j, position, j < steps ? first + j : NOWHERE);
        }
    }
}
