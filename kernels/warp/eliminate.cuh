// warp/eliminate.cuh — LU with partial pivoting of a few columns held by lanes, rows never moving.
//
//     P X = L U,   X: rows × N, a row in the registers of one lane, Slots rows a lane, Lanes lanes a matrix
//
// Pivoting is logical: a row keeps its place in the registers and knows its position in the matrix with all interchanges
// done. The next pivot is looked for as soon as its column is up to date, while the other columns still are not; meanwhile
// every lane divides by its own candidate, so that nobody waits for a division once the pivot is known.
// Haidar, Abdelfattah, Zounon, Tomov & Dongarra (2018), "A guide for achieving high performance with very small matrices".
// Called by whole warps, WARP / Lanes matrices at once.
#pragma once

#include "thread/field.cuh"
#include "warp/pivot.cuh"

// x         Slots × N entries a lane; L below the diagonal and U afterwards
// position  where each row stands, −1 for none; afterwards where it ends
// first     the position of the first pivot; steps of them, `most` of the matrix with the most steps of the warp
// record    record(k, position of the k-th pivot row before the interchange, whether the pivot is zero), in every lane
template <int Lanes, int Slots, int N, typename Scalar, typename Record>
__device__ void eliminate(Scalar (&x)[Slots][N], int (&position)[Slots], int first, int steps, int most, Record record) {
    using Real = typename Field<Scalar>::Real;
    int at, pivot, owner;         // this lane's candidate; the pivot, and the lane that has it
    Divisor<Scalar> by_candidate;
    const auto search = [&](int k) {
        Real largest = 0;
        Scalar candidate = Scalar();
        at = NOWHERE;
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            const Real size = magnitude(x[s][k]);
            const bool open = position[s] >= first + k && k < steps;
            if (open && (at == NOWHERE || size > largest || (size == largest && position[s] < at)))
                largest = size, at = position[s], candidate = x[s][k];
        }
        pivot = pivot_position<Lanes>(largest, at);
        unsigned having = __ballot_sync(EVERY_LANE, at == pivot && pivot != NOWHERE);
        if constexpr (Lanes < WARP) having = having >> threadIdx.x % WARP / Lanes * Lanes & ((1u << Lanes) - 1);
        owner = __ffs(having) - 1;
        by_candidate = Divisor<Scalar>(candidate);
    };
    search(0);
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (k >= most) break;
        const bool live = k < steps;
        const int from = owner, chosen = pivot;
        bool is_pivot[Slots];
#pragma unroll
        for (int s = 0; s < Slots; s++) is_pivot[s] = position[s] == chosen;
        const auto pivot_row = [&](int j) {
            Scalar mine = x[0][j];
#pragma unroll
            for (int s = 1; s < Slots; s++)
                if (is_pivot[s]) mine = x[s][j];
            return of_lane<Lanes>(mine, from);
        };
        const Divisor<Scalar> divided = of_lane<Lanes>(by_candidate, from);
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
            for (int s = 0; s < Slots; s++) x[s][j] = less_product(x[s][j], multiplier[s], u);
            if (j == k + 1) search(j);
        }
    }
}
