// block/lu_panel.cuh — LU with partial pivoting of a panel whose rows lie in the registers of a thread block.
//
//     P X = L U,   X: rows × N, a row in one thread, Slots rows a thread
//
// As warp/eliminate.cuh with warps that meet twice a column: once to compare their candidates for the pivot, once to read the
// pivot row, which its owner has put into shared memory.
// Called by all threads; results stay in their registers.
#pragma once

#include "thread/field.cuh"
#include "thread/wide.cuh"
#include "warp/pivot.cuh"

template <typename Scalar, int N, int Warps>
struct PanelExchange {
    typename Field<Scalar>::Real magnitudes[Warps];
    int positions[Warps];
    alignas(16) Scalar row[N];
    Divisor<Scalar> divided;
};

// x, position, record: as in warp/eliminate.cuh; record is called by every thread
template <int Slots, int N, int Warps, typename Scalar, typename Record>
__device__ void eliminate_panel_rows(Scalar (&x)[Slots][N], int (&position)[Slots], int first, int steps,
                                     PanelExchange<Scalar, N, Warps>& exchange, Record record) {
    using Real = typename Field<Scalar>::Real;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (k >= steps) break;
        Real largest = 0;
        Scalar candidate = Scalar();
        int at = NOWHERE;
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            const Real size = magnitude(x[s][k]);
            if (position[s] >= first + k && (at == NOWHERE || size > largest || (size == largest && position[s] < at)))
                largest = size, at = position[s], candidate = x[s][k];
        }
        const Divisor<Scalar> by_candidate(candidate);  // while warps are waited for
        const int best = pivot_position<WARP>(largest, at);
        if (at == best && (at != NOWHERE || lane == 0))
            exchange.magnitudes[warp] = largest, exchange.positions[warp] = at;
        __syncthreads();
        const bool some = lane < warps;
        const int chosen = pivot_position<WARP>(some ? exchange.magnitudes[lane] : Real(0), some ? exchange.positions[lane] : NOWHERE);
#pragma unroll
        for (int s = 0; s < Slots; s++)
            if (position[s] == chosen)
#pragma unroll
                for (int j = k + 1; j < N; j++) exchange.row[j] = x[s][j];
        if (at == chosen) exchange.divided = by_candidate;
        __syncthreads();
        const Divisor<Scalar> divided = exchange.divided;
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
            const Scalar u = exchange.row[j];
#pragma unroll
            for (int s = 0; s < Slots; s++) x[s][j] = less_product(x[s][j], multiplier[s], u);
        }
    }
}
