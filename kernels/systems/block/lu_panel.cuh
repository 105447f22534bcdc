// systems/block/lu_panel.cuh — LU with partial pivoting of a panel whose rows lie in the registers of some warps of a block.
//
//     P X = L U,   X: rows × N, a row in one thread, Slots rows a thread
//
// Pivoting is logical: rows never move. Each warp puts the row of its candidate for the next pivot into shared memory, with the
// inverse of its pivot; once all have met, the largest is the pivot's. What updates make of that row in its registers afterwards
// matters to nobody, so that a column takes rows as they are: x_k ← x_k / pivot, x_j ← x_j − x_k u_j, and all that is chosen row
// by row is who may be a pivot. A warp waits for each of its instructions in turn, so that a column has no branch but for ties
// and for pivots whose inverse is no normal number.
// Called by all threads of those warps.
#pragma once

#include "systems/block/meet.cuh"
#include "systems/thread/anew.cuh"
#include "systems/warp/moved_rows.cuh"
#include "systems/warp/pivot.cuh"

namespace systems {

// A warp's candidate: 1 / pivot, if `divides`, and where its row stood at first.
template <typename Scalar>
struct alignas(16) Candidate {
    Scalar inverse;
    unsigned key;  // systems/warp/pivot.cuh; 0: none
    int row;
};

// All of it at once: the compiler would wait for the key before it asked for the inverse.
template <typename Scalar>
__device__ Candidate<Scalar> read_candidate(const Candidate<Scalar>& from) {
    Candidate<Scalar> to;
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof to / 16); i++) {
        const int4 piece = reinterpret_cast<const int4*>(&from)[i];
        memcpy(reinterpret_cast<char*>(&to) + 16 * i, &piece, 16);
    }
    return to;
}

// Kept: columns after which rows are written again, two at least
template <typename Scalar, int N, int Warps, int Kept>
struct PanelExchange {
    alignas(16) Scalar rows[Kept][Warps][N];  // of every warp's candidate for pivot k in number k mod Kept
    Candidate<Scalar> candidates[2][Warps];
};

constexpr int FEW = 4;  // warps, of which each thread looks at every candidate itself

// The search of a warp among its rows, begun as soon as their column is up to date, while the other columns are not.
template <int Slots, typename Scalar>
struct RowSearch {
    Scalar inverse;
    unsigned key, among;  // the largest; lanes that hold it
    int slot;             // of the lane's candidate
    bool tied;            // the same in the whole warp: keys do not tell which

    // live: all bits of rows that may be pivots, no bit of others
    template <int N>
    __device__ void begin(const Scalar (&x)[Slots][N], int k, const unsigned (&live)[Slots]) {
        unsigned own = pivot_key(x[0][k]) & live[0];
        bool twice = false;
        slot = 0;
#pragma unroll
        for (int s = 1; s < Slots; s++) {
            const unsigned other = pivot_key(x[s][k]) & live[s];
            twice = other == own || (twice && other < own);
            if (other > own) own = other, slot = s;
        }
        key = __reduce_max_sync(EVERY_LANE, own);
        inverse = by_now(reciprocal(entry(x, k)));  // while that is on its way
        const bool holds = own == key && own != 0;
        among = __ballot_sync(EVERY_LANE, holds);
        tied = (among & (among - 1)) != 0;
        if constexpr (Slots > 1) tied |= __ballot_sync(EVERY_LANE, holds && twice) != 0;
    }

    // Afterwards `among` is one lane, or none.
    template <int N>
    __device__ void settle(const Scalar (&x)[Slots][N], int k, const unsigned (&live)[Slots], const int (&row)[Slots], const Moved& moved) {
        if (__builtin_expect(!tied, true)) return;
        using Real = typename Field<Scalar>::Real;
        Real largest = 0;
        int at = NOWHERE;
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            const Real size = magnitude(x[s][k]);
            const int here = moved.of(row[s]);
            if (live[s] && (at == NOWHERE || size > largest || (size == largest && here < at))) largest = size, at = here, slot = s;
        }
        const int pivot = pivot_position<WARP>(largest, at);
        among = __ballot_sync(EVERY_LANE, at == pivot && pivot != NOWHERE);
        inverse = reciprocal(entry(x, k));
    }

    // Of the lane's candidate.
    template <int N>
    __device__ Scalar entry(const Scalar (&x)[Slots][N], int k) const {
        Scalar found = x[0][k];
#pragma unroll
        for (int s = 1; s < Slots; s++)
            if (slot == s) found = x[s][k];
        return found;
    }
};

// The k-th pivot, entry number `column` of the rows of the warps that have met, and the warp that holds it.
template <int N, int Warps, int Kept, typename Scalar>
__device__ Candidate<Scalar> winning(const PanelExchange<Scalar, N, Warps, Kept>& exchange, int k, int column, int warps, const Moved& moved,
                                     int& winner) {
    const Candidate<Scalar>(&candidates)[Warps] = exchange.candidates[k % 2];
    const int lane = threadIdx.x % WARP, w = min(lane, warps - 1);
    Candidate<Scalar> best = read_candidate(candidates[0]);
    bool tied = false;
    winner = 0;
    if constexpr (Warps <= FEW) {
#pragma unroll
        for (int i = 1; i < Warps; i++) {
            Candidate<Scalar> other = read_candidate(candidates[i]);
            other.key = i < warps ? other.key : 0u;
            tied = other.key == best.key || (tied && other.key < best.key);
            if (other.key > best.key) best = other, winner = i;
        }
    } else {
        const unsigned own = lane < warps ? candidates[w].key : 0u, largest = __reduce_max_sync(EVERY_LANE, own);
        const unsigned among = __ballot_sync(EVERY_LANE, own == largest);
        tied = (among & (among - 1)) != 0, winner = __ffs(among) - 1;
        best = candidates[winner];
    }
    if (__builtin_expect(tied, false)) {
        using Real = typename Field<Scalar>::Real;
        const int at = moved.of(candidates[w].row);
        const bool some = lane < warps && candidates[w].key != 0;
        const int pivot = pivot_position<WARP>(some ? magnitude(exchange.rows[k % Kept][w][column]) : Real(0), some ? at : NOWHERE);
        winner = __ffs(__ballot_sync(EVERY_LANE, some && at == pivot)) - 1;
        best = candidates[winner];
    }
    return best;
}

// By columns one after another, unrolled, or, where all pivots' rows are kept in `exchange`, by a loop that the instruction caches hold:
// then registers move on by a column a step, and what is done leaves them, L by `leaves`, the pivot's row from its diagonal on in
// `exchange`, and behind it that of −L⁻¹:
// see systems/warp/eliminate_columns.cuh.
// x         Slots × N entries a thread; afterwards L, and U of pivots, or nothing if all are kept
// position  where each row stands, −1 for none; afterwards where it ends, −1 for pivots if all are kept
// first     the position of the first pivot; steps of them
// warp      this one's number among `warps`, at most Warps
// vanishes  vanishes(k), in every thread, where the k-th pivot is zero
// leaves    leaves(s, k, the entry of L in column k of row s); from a pivot's diagonal on it is anything
template <int Slots, int N, int Warps, int Kept, typename Scalar, typename Vanishes, typename Leaves>
__device__ PanelPivots eliminate_panel(Scalar (&x)[Slots][N], int (&position)[Slots], int first, int steps, int warp, int warps,
                                       PanelExchange<Scalar, N, Warps, Kept>& exchange, Vanishes vanishes, Leaves leaves) {
    constexpr bool KEPT = Kept == N;  // and rolled
    constexpr int EACH = sizeof(Scalar) < 16 ? 16 / sizeof(Scalar) : 1;
    constexpr int ROUND = KEPT ? 1 : N;  // columns before registers move on
    struct alignas(16) Piece { Scalar entry[EACH]; };
    const int lane = threadIdx.x % WARP;
    unsigned live[Slots];
#pragma unroll
    for (int s = 0; s < Slots; s++) live[s] = position[s] >= 0 ? ~0u : 0u;
    Moved moved(first);
    PanelPivots pivots = {first, first, 0};
    int ended[Slots];
#pragma unroll
    for (int s = 0; s < Slots; s++) ended[s] = -1;
    RowSearch<Slots, Scalar> search;
    search.begin(x, 0, live);
    int begin = 0;
#pragma unroll 1
    do {  // by now x[s][j] is of column begin + j
#pragma unroll
        for (int c = 0; c < ROUND; c++) {
            const int k = begin + c;
            if (!KEPT && k >= steps) break;
            search.settle(x, c, live, position, moved);
            const bool holds = (search.among | (search.among == 0)) >> lane & 1;  // lane 0 where no row is left
            Piece* const target = reinterpret_cast<Piece*>(exchange.rows[k % Kept][warp]);
            int own = position[0];
#pragma unroll
            for (int s = 0; s < Slots; s++) {
                if (search.slot == s) own = position[s];
#pragma unroll
                for (int j = c / EACH * EACH; j < N; j += EACH) {
                    Piece piece;
#pragma unroll
                    for (int e = 0; e < EACH; e++) piece.entry[e] = x[s][j + e];
                    if (holds && search.slot == s) target[j / EACH] = piece;
                }
            }
            const int after = c + 1 < N ? c + 1 : c;
            int winner = 0;
            const bool several = Warps > 1 && warps > 1;
            if (holds) exchange.candidates[k % 2][warp] = {search.inverse, search.key, own};
            if (several) meet(warps);
            else __syncwarp();
            const Candidate<Scalar> pivot = several ? winning(exchange, k, c, warps, moved, winner) : read_candidate(exchange.candidates[k % 2][0]);
            const Scalar *row = exchange.rows[k % Kept][winner], next = row[after];  // of the pivot
            Scalar multiplier[Slots];
            if (__builtin_expect(divides<typename Field<Scalar>::Real>(pivot.key >> 1), true)) {
#pragma unroll
                for (int s = 0; s < Slots; s++) multiplier[s] = times(x[s][c], pivot.inverse);
            } else {
                const Divisor<Scalar> divided(row[c]);
                if (!(magnitude(divided.inverse) > 0)) vanishes(k);
#pragma unroll
                for (int s = 0; s < Slots; s++) multiplier[s] = divided(x[s][c]);
            }
#pragma unroll
            for (int s = 0; s < Slots; s++) {
                if (position[s] == pivot.row) live[s] = 0u, ended[s] = first + k;
                if (!KEPT && !live[s]) multiplier[s] = Scalar();
                else if (!KEPT) x[s][c] = multiplier[s];
            }
#pragma unroll
            for (int j = c + 1; j < N; j++) {
                const Scalar u = j == after ? next : row[j];
                const int to = KEPT ? j - 1 : j;
#pragma unroll
                for (int s = 0; s < Slots; s++) x[s][to] = KEPT ? less_product(x[s][j], multiplier[s], u) : less_chosen(x[s][j], multiplier[s], u);
                if (j == c + 1) search.begin(x, to, live);
            }
            if constexpr (KEPT) {
#pragma unroll
                for (int s = 0; s < Slots; s++) x[s][N - 1] = multiplier[s], leaves(s, k, multiplier[s]);
            }
            const int before = moved.interchange(pivot.row, first + k);  // while that search is under way
            if (lane == k) pivots = {pivot.row, before, winner};
        }
        begin += ROUND;
    } while (KEPT && begin < steps);
#pragma unroll
    for (int s = 0; s < Slots; s++) {
        const int there = moved.of(position[s]);
        position[s] = live[s] ? there : KEPT ? -1 : ended[s];
    }
    return pivots;
}

}  // namespace systems
