// systems/warp/eliminate_columns.cuh — LU with partial pivoting of a panel whose rows lie in the registers of one warp, a column at a time.
//
//     P X = L U,   X: rows × N, a row in one lane, Slots rows a lane
//
// Pivoting is logical: rows never move. A loop over columns that the instruction caches hold: registers move on by a column a step, and
// what is done leaves them. One reduction finds a pivot and whose it is, by keys of leading bits of a magnitude and the place of its row;
// where those bits leave several candidates, or 1 / pivot may be no normal number, the warp looks again. A pivot's row goes to shared
// memory, and from there to all lanes while the next pivot is looked for; but for the entry that decides on that one, which lanes hand
// on. What updates make of the row in its registers afterwards matters to nobody.
// Registers that columns have left hold the rows of −L⁻¹, which rows of U need: updates are the same for both,
//
//     x_j ← x_j − l u_j,   y_j ← y_j − l y'_j,   y_k ← l,   y' and u the pivot's.
//
// Called by whole warps.
#pragma once

#include "common/thread/each_number.cuh"
#include "systems/thread/anew.cuh"
#include "systems/warp/moved_rows.cuh"
#include "systems/warp/pivot.cuh"

namespace systems {
using namespace common;

constexpr int FEWER = 8;  // columns after which fewer registers take part

// x         Slots × N entries a lane; afterwards, without Inverse, the first are of the columns behind the pivots', the others nothing
// live      whether a row takes part; afterwards whether it does and is no pivot
// first     the position of the first pivot, and of the row at place 0, lane 0's first; WARP places a slot. steps of them, at most N and
//           WARP, since a pivot is a lane's to remember
// Inverse   whether −L⁻¹ is wanted; else registers that columns have left do not take part
// kept      where up to N entries of every pivot go, `apart` from those before, 16-byte aligned: U's k-th row from the diagonal on, and,
//           with Inverse, last the k entries of −L⁻¹ left of it
// vanishes  vanishes(k), in every lane, where the k-th pivot is zero
// leaves    leaves(s, k, the entry of L in column k of row s); from a pivot's diagonal on it is anything
template <bool Inverse, int Slots, int N, typename Scalar, typename Vanishes, typename Leaves>
__device__ PanelPivots eliminate_columns(Scalar (&x)[Slots][N], bool (&live)[Slots], Moved& moved, int first, int steps, Scalar* kept, int apart,
                                         Vanishes vanishes, Leaves leaves) {
    using Real = typename Field<Scalar>::Real;
    constexpr unsigned PLACES = Slots * WARP;  // keys that differ by less do not tell which is larger
    static_assert((Slots & (Slots - 1)) == 0 && N >= 2 && (N <= WARP || !Inverse), "places are bits of a key");
    constexpr int EACH = sizeof(Scalar) < 16 ? 16 / sizeof(Scalar) : 1;
    struct alignas(16) Piece { Scalar entry[EACH]; };
    const int lane = anew(threadIdx.x % WARP);
    unsigned open[Slots];                      // the bits that magnitudes have of keys; none of rows that cannot be pivots
#pragma unroll
    for (int s = 0; s < Slots; s++) open[s] = live[s] ? MAGNITUDE_BITS & ~(PLACES - 1) : 0u;
    PanelPivots pivots = {first, first, 0};
    unsigned best, keys[Slots];
    int slot;                                  // of the lane's candidate
    Scalar candidate, inverse;
    const auto entry = [&](int j) {            // of the lane's candidate
        Scalar found = x[0][j];
        if constexpr (Slots == 2) {            // both read, or x would lie in memory for one of them to be read
            const Scalar other = x[1][j];
            found = slot == 1 ? other : found;
        } else {
#pragma unroll
            for (int s = 1; s < Slots; s++)
                if (slot == s) found = x[s][j];
        }
        return found;
    };
    const auto search = [&] {                  // among entries of the column that is next
        unsigned own = 0;
        candidate = x[0][0], slot = 0;
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            keys[s] = (leading_bits(x[s][0]) & open[s]) | (s * WARP + lane);
            if (s > 0 && keys[s] > own) slot = s, candidate = x[s][0];
            own = s > 0 ? max(own, keys[s]) : keys[s];
        }
        best = __reduce_max_sync(EVERY_LANE, own);
        inverse = plain_inverse(candidate);    // while that is on its way
    };
    const auto close = [&] {                   // whether a row of the lane is not the best, and its key is as good
        bool any = false;
#pragma unroll
        for (int s = 0; s < Slots; s++) any |= best - keys[s] - 1 < PLACES - 1;
        return any;
    };
    Scalar by, next;                           // what divides; the pivot row's entry of the column that is next
    int place;                                 // of the pivot's row
    Piece* row = reinterpret_cast<Piece*>(kept);  // where it goes
    const auto keep = [&](auto width) {        // the row at `place`
#pragma unroll
        for (int s = 0; s < Slots; s++)
#pragma unroll
            for (int j = 0; j < width.value; j += EACH) {
                Piece piece;
#pragma unroll
                for (int e = 0; e < EACH; e++) piece.entry[e] = x[s][j + e];
                if (place == s * WARP + lane) row[j / EACH] = piece;
            }
    };
    const auto decide = [&](auto width, int k) {
        Real largest = 0;
        int at = NOWHERE;
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            const Real size = magnitude(x[s][0]);
            const int here = moved.of(first + s * WARP + lane);
            if (open[s] && (at == NOWHERE || size > largest || (size == largest && here < at))) largest = size, at = here, slot = s;
        }
        const int least = pivot_position<WARP>(largest, at);
        const int from = WARP - 1 - __clz(__ballot_sync(EVERY_LANE, at == least));
        place = __shfl_sync(EVERY_LANE, slot, from) * WARP + from;
        __syncwarp();                          // another row was kept before
        keep(width);
        next = of_lane<WARP>(entry(1), from), by = one<Scalar>();
        const Divisor<Scalar> divided(of_lane<WARP>(entry(0), from));
        if (!(magnitude(divided.inverse) > 0)) vanishes(k);
#pragma unroll
        for (int s = 0; s < Slots; s++) x[s][0] = divided(x[s][0]);
    };
    // Columns k … before `end`, in the leading `width` registers: a pivot is proposed, decided on where that is none, the next column
    // comes up to date and the search for its pivot begins, the others meanwhile.
    const auto eliminate = [&](auto width, int k, int end) {
#pragma unroll 1
        for (; k < end; k++, row += apart / EACH) {
            place = best % PLACES;
            by = of_lane<WARP>(inverse, place % WARP), next = of_lane<WARP>(entry(1), place % WARP);
            keep(width);
            if (__builtin_expect(__any_sync(EVERY_LANE, close() | !divides<Real>(best)), false)) decide(width, k);
            Scalar multiplier[Slots];
#pragma unroll
            for (int s = 0; s < Slots; s++) {
                multiplier[s] = times(x[s][0], by);
                x[s][0] = less_product(x[s][1], multiplier[s], next);
                if (place == s * WARP + lane) open[s] = 0u;
            }
            search();
            __syncwarp();
#pragma unroll
            for (int j = 0; j < width.value; j += EACH) {
                const Piece u = row[j / EACH];
#pragma unroll
                for (int e = 0; e < EACH; e++)
                    if (j + e > 1)
#pragma unroll
                        for (int s = 0; s < Slots; s++) x[s][j + e - 1] = less_product(x[s][j + e], multiplier[s], u.entry[e]);
            }
#pragma unroll
            for (int s = 0; s < Slots; s++) x[s][width.value - 1] = multiplier[s], leaves(s, k, multiplier[s]);
            const int before = moved.interchange(first + place, first + k);
            if (lane == k) pivots = {first + place, before, 0};
        }
    };
    search();
    if constexpr (Inverse) eliminate(Number<N>(), 0, steps);
    else
        each_number<0, (N < WARP ? N : WARP) / FEWER>([&](auto done) {
            constexpr int FIRST = decltype(done)::value * FEWER;
            eliminate(Number<N - FIRST>(), FIRST, min(steps, FIRST + FEWER));
        });
#pragma unroll
    for (int s = 0; s < Slots; s++) live[s] = open[s] != 0;
    return pivots;
}

}  // namespace systems
