// systems/warp/eliminate.cuh — LU with partial pivoting of a few columns held by lanes, rows never moving.
//
//     P X = L U,   X: rows × N, a row in the registers of one lane, Slots rows a lane, Lanes lanes a matrix
//
// Pivoting is logical: a row keeps its place in the registers and knows its position in the matrix with all interchanges
// done. The next pivot is looked for as soon as its column is up to date, while the other columns still are not; meanwhile
// every lane divides by its own candidate, so that nobody waits for a division once the pivot is known.
// Haidar, Abdelfattah, Zounon, Tomov & Dongarra (2018), "A guide for achieving high performance with very small matrices".
// Called by whole warps, WARP / Lanes matrices at once.
#pragma once

#include "systems/warp/pivot.cuh"

namespace systems {

// x         Slots × N entries a lane; L below the diagonal and U afterwards
// position  where each row stands, −1 for none; afterwards where it ends
// first     the position of the first pivot; steps of them, `most` of the matrix with the most steps of the warp
// record    record(k, position of the k-th pivot row before the interchange, whether the pivot is zero), in every lane
// Pivots    columns in which pivots are looked for, the first; 0: all. Others, right-hand sides, are taken along.
template <int Lanes, int Pivots = 0, int Slots, int N, typename Scalar, typename Record>
__device__ void eliminate(Scalar (&x)[Slots][N], int (&position)[Slots], int first, int steps, int most, Record record) {
    PivotSearch<Lanes, Slots, Scalar> search;
    const auto least = [&](int k) { return k < steps ? first + k : NOWHERE; };  // position of a candidate for pivot k
    search.begin(x, 0, position, least(0));
#pragma unroll
    for (int k = 0; k < (Pivots ? Pivots : N); k++) {
        if (k >= most) break;
        const bool live = k < steps;
        const int from = search.settle(x, k, position, least(k)), chosen = of_lane<Lanes>(search.at, from);
        bool is_best[Slots], is_pivot[Slots];  // of the lane, of the matrix: the first is known before the pivot is
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            is_best[s] = position[s] == search.at;
            is_pivot[s] = is_best[s] && static_cast<int>(threadIdx.x) % Lanes == from;
        }
        const auto pivot_row = [&](int j) {
            Scalar mine = x[0][j];
#pragma unroll
            for (int s = 1; s < Slots; s++)
                if (is_best[s]) mine = x[s][j];
            return of_lane<Lanes>(mine, from);
        };
        const Divisor<Scalar> divided = of_lane<Lanes>(search.by_candidate, from);
        if (live) record(k, chosen, !(magnitude(divided.inverse) > 0));
        Scalar multiplier[Slots];
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            const bool below = live && position[s] >= first + k && !is_pivot[s];
            multiplier[s] = below ? divided(x[s][k]) : Scalar();
            if (below) x[s][k] = multiplier[s];
            if (live) position[s] = is_pivot[s] ? first + k : position[s] == first + k ? chosen : position[s];
        }
#pragma unroll
        for (int j = k + 1; j < N; j++) {
            const Scalar u = pivot_row(j);
#pragma unroll
            for (int s = 0; s < Slots; s++) x[s][j] = less_chosen(x[s][j], multiplier[s], u);
            if (j == k + 1 && j < (Pivots ? Pivots : N)) search.begin(x, j, position, least(j));
        }
    }
}

}  // namespace systems
