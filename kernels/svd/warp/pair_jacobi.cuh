// svd/warp/pair_jacobi.cuh — Jacobi on the Gram matrix G of two blocks of eight columns: the rotations of one visit, as one matrix J.
//
//     for m = 0 … 7, for all a at once:   G ← Rᵀ G R,  J ← J R,   R turns columns (a, 8 + (a XOR m)) orthogonal
//
// Pairs within the blocks are met the same way, with the bits of a column's number in another order (`Label`). A lane holds
// the 2 × 2 entries of G where two pairs meet, twice, and as many of J, so that nothing but angles travels in a step.
// Two-sided Jacobi is as accurate as one-sided where columns are nearly orthogonal up to scaling (Demmel & Veselić 1992).
// Called by all lanes of a warp together.
#pragma once

#include "common/thread/constants.cuh"
#include "common/thread/jacobi_rotation.cuh"

namespace svd {
using namespace common;

constexpr int SIDE = 8, PAIR_COLUMNS = 2 * SIDE;             // columns of a block, and of two
constexpr int ALONG = WARP / SIDE, SLOTS = SIDE / ALONG;     // lanes that share a row of pairs, pairs of it a lane
constexpr int PAIR_PITCH = PAIR_COLUMNS + SIDE;              // between rows of G and J: no bank is asked for twice

// Shared memory of a warp: G, then J, row-major.
template <typename Real>
struct PairScratch {
    Real entry[PAIR_COLUMNS * PAIR_PITCH];
};

// Column a of either side where the sides differ in bit 3 − Label of the number.
template <int Label>
__device__ int labelled(int side, int a) {
    constexpr int LOW = SIDE >> Label;
    return a / LOW * 2 * LOW + side * LOW + a % LOW;
}

// Squares of cosines: what is not turned, and what leaves less than rounding behind, as do sines of such squares.
template <typename Real>
struct Limits { Real oblique, rough; };

// What the rotations were: whether there was one, and one that leaves more than rounding behind when others follow.
struct Turned {
    bool any, rough;
    __device__ Turned& operator|=(const Turned& other) {
        any |= other.any, rough |= other.rough;
        return *this;
    }
};

template <typename Real>
struct PairState {
    int a, b[SLOTS];                                         // slot s: pairs a and b[s], in the first the same half of all
    Real G[SLOTS][2][2], J[SLOTS][2][2];

    __device__ PairState() : a(threadIdx.x % WARP / ALONG), b{a / ALONG * ALONG + int(threadIdx.x % ALONG), b[0] ^ ALONG} {
#pragma unroll
        for (int s = 0; s < SLOTS; s++)
#pragma unroll
            for (int p = 0; p < 2; p++)
#pragma unroll
                for (int q = 0; q < 2; q++) J[s][p][q] = SIDE * p + a == SIDE * q + b[s];
    }

    // Calls visit(place in scratch, G's or J's entry) with pairs (b, b XOR m).
    template <int Label, bool OfJ, typename Visit>
    __device__ void each(int m, Visit visit) {
#pragma unroll
        for (int s = 0; s < SLOTS; s++)
#pragma unroll
            for (int p = 0; p < 2; p++)
#pragma unroll
                for (int q = 0; q < 2; q++) {
                    const int other = b[s], column = labelled<Label>(q, q ? other ^ m : other);
                    const int row = OfJ ? SIDE * p + a : labelled<Label>(p, p ? a ^ m : a);
                    visit(row * PAIR_PITCH + column, OfJ ? J[s][p][q] : G[s][p][q]);
                }
    }

    // G and J from the pairs of one label, m = Steps − 1, to those of another, m = 0.
    template <int From, int Steps, int To>
    __device__ void relabel(PairScratch<Real>& scratch) {
        relabel_one<From, Steps, To, false>(scratch);
        relabel_one<From, Steps, To, true>(scratch);
    }

    // Steps m = 0 … Steps − 1.
    template <int Steps>
    __device__ Turned steps(const Limits<Real>& limits) {
        Turned turned = {};
#pragma unroll
        for (int m = 0; m < Steps; m++) {
            turned |= turn(limits);
            if (m + 1 < Steps) exchange(m ^ (m + 1));
        }
        return turned;
    }

  private:
    template <int From, int Steps, int To, bool OfJ>
    __device__ void relabel_one(PairScratch<Real>& scratch) {
        __syncwarp();
        each<From, OfJ>(Steps - 1, [&](int place, const Real& x) { scratch.entry[place] = x; });
        __syncwarp();
        each<To, OfJ>(0, [&](int place, Real& x) { x = scratch.entry[place]; });
    }

    // All pairs that are there now.
    __device__ __forceinline__ Turned turn(const Limits<Real>& limits) {
        const Real alpha = G[0][0][0], beta = G[0][1][1], gamma = G[0][0][1];
        Angle<Real> angle = quick_angle(alpha, beta, gamma);
        bool exceeds[2];
        quick_cosine(alpha, beta, gamma, {limits.oblique, limits.rough}, exceeds);
        const bool turns = (a == b[0]) & exceeds[0], rough = turns & (exceeds[1] | (angle.s * angle.s > limits.rough));
        angle.c = turns ? angle.c : Real(1), angle.s = turns ? angle.s : Real(0);
        const int own = a * ALONG + a % ALONG;               // the lane where pair a meets itself
        const Real rc = __shfl_sync(EVERY_LANE, angle.c, own), rs = __shfl_sync(EVERY_LANE, angle.s, own);
#pragma unroll
        for (int s = 0; s < SLOTS; s++) {
            const int from = b[s] * ALONG + b[s] % ALONG;
            const Real c = __shfl_sync(EVERY_LANE, angle.c, from), sine = __shfl_sync(EVERY_LANE, angle.s, from);
            Real w[2][2];
#pragma unroll
            for (int p = 0; p < 2; p++) {
                w[p][0] = fma(c, G[s][p][0], -sine * G[s][p][1]), w[p][1] = fma(sine, G[s][p][0], c * G[s][p][1]);
                const Real x = J[s][p][0];
                J[s][p][0] = fma(c, x, -sine * J[s][p][1]), J[s][p][1] = fma(sine, x, c * J[s][p][1]);
            }
#pragma unroll
            for (int q = 0; q < 2; q++) G[s][0][q] = fma(rc, w[0][q], -rs * w[1][q]), G[s][1][q] = fma(rs, w[0][q], rc * w[1][q]);
        }
        return {turns, rough};
    }

    // From pairs (b, b XOR m) to (b, b XOR m XOR x).
    __device__ __forceinline__ void exchange(int x) {
        const int lane = threadIdx.x % WARP, beside = lane ^ x % ALONG, below = lane ^ x * ALONG, across = beside ^ x * ALONG;
        Real next[SLOTS][5];
#pragma unroll
        for (int s = 0; s < SLOTS; s++) {
            const int from = s ^ x / ALONG;
            next[s][0] = __shfl_sync(EVERY_LANE, G[from][0][1], beside);
            next[s][1] = __shfl_sync(EVERY_LANE, G[from][1][0], below);
            next[s][2] = __shfl_sync(EVERY_LANE, G[s][1][1], across);
            next[s][3] = __shfl_sync(EVERY_LANE, J[from][0][1], beside);
            next[s][4] = __shfl_sync(EVERY_LANE, J[from][1][1], beside);
        }
#pragma unroll
        for (int s = 0; s < SLOTS; s++)
            G[s][0][1] = next[s][0], G[s][1][0] = next[s][1], G[s][1][1] = next[s][2], J[s][0][1] = next[s][3], J[s][1][1] = next[s][4];
    }
};

// Pairs within the blocks, from G in scratch; then G and J as for the pairs between them.
template <typename Real>
__device__ Turned turn_within(PairState<Real>& state, PairScratch<Real>& scratch, const Limits<Real>& limits) {
    state.template each<1, false>(0, [&](int place, Real& x) { x = scratch.entry[place]; });
    state.template each<1, true>(0, [&](int place, Real& x) { x = place / PAIR_PITCH == place % PAIR_PITCH; });
    Turned turned = state.template steps<SIDE / 2>(limits);
    state.template relabel<1, SIDE / 2, 2>(scratch);
    turned |= state.template steps<SIDE / 4>(limits);
    state.template relabel<2, SIDE / 4, 3>(scratch);
    turned |= state.template steps<1>(limits);
    state.template relabel<3, 1, 0>(scratch);
    return turned;
}

}  // namespace svd
