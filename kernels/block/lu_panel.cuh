// block/lu_panel.cuh — LU with partial pivoting of a panel whose rows lie in the registers of some warps of a block.
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

constexpr int FEW = 4;  // warps, of which each thread looks at every candidate itself

// The warp whose candidate is the pivot, and its divisor; `first` is the position of pivot k.
template <int N, int Warps, typename Scalar>
__device__ int winning_warp(const PanelExchange<Scalar, N, Warps>& exchange, int turn, int first, int warps, Divisor<Scalar>& divided) {
    int winner = 0;
    if constexpr (Warps <= FEW) {
        Scalar best = exchange.candidates[turn][0];
        int at = exchange.positions[turn][0];
        divided = exchange.divisors[turn][0];
#pragma unroll
        for (int w = 1; w < Warps; w++) {
            const Scalar other = exchange.candidates[turn][w];
            const int there = w < warps ? exchange.positions[turn][w] : -1;
            const Divisor<Scalar> by_other = exchange.divisors[turn][w];
            const bool larger = magnitude(other) > magnitude(best), equal = magnitude(other) == magnitude(best);
            const bool wins = there >= 0 & (at < 0 | larger | (equal & there < at));
            best = wins ? other : best, at = wins ? there : at, winner = wins ? w : winner;
            divided.inverse = wins ? by_other.inverse : divided.inverse, divided.scale = wins ? by_other.scale : divided.scale;
        }
    } else {
        const int lane = threadIdx.x % WARP;
        const Scalar candidate[1][1] = {{exchange.candidates[turn][min(lane, warps - 1)]}};
        const int there[1] = {lane < warps ? exchange.positions[turn][lane] : -1};
        PivotSearch<WARP, 1, Scalar> contest;
        contest.begin(candidate, 0, there, first);
        winner = contest.settle(candidate, 0, there, first);
        divided = exchange.divisors[turn][winner];
    }
    return winner;
}

// x, position, first, steps, record: as in warp/eliminate.cuh; record is called by every thread
// warp: this one's number among `warps`, at most Warps
template <int Slots, int N, int Warps, typename Scalar, typename Record>
__device__ void eliminate_panel_rows(Scalar (&x)[Slots][N], int (&position)[Slots], int first, int steps, int warp,
                                     int warps, PanelExchange<Scalar, N, Warps>& exchange, Record record) {
    const int lane = threadIdx.x % WARP;
    PivotSearch<WARP, Slots, Scalar> search;
    search.begin(x, 0, position, first);
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (k >= steps) break;
        const int turn = k % 2;
        search.settle(x, k, position, first + k);
        if (search.among == 0) {
            if (lane == 0) exchange.positions[turn][warp] = -1;
        } else if (search.among >> lane & 1) {
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
        Divisor<Scalar> divided;
        const int winner = winning_warp(exchange, turn, first + k, warps, divided), chosen = exchange.positions[turn][winner];
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
            for (int s = 0; s < Slots; s++) x[s][j] = less_chosen(x[s][j], multiplier[s], u);
            if (j == k + 1) search.begin(x, j, position, j < steps ? first + j : NOWHERE);
        }
    }
}
