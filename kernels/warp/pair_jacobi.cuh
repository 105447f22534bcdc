// warp/pair_jacobi.cuh — Jacobi on the Gram matrix G of two blocks of four columns: the rotations of one visit, as one matrix J.
//
//     for m = 0 … 3, for all a at once:   G ← Rᵀ G R,  J ← J R,   R turns columns (a, 4 + (a XOR m)) orthogonal
//
// Pairs within the blocks are met the same way, with the bits of a column's number in another order (`Label`). A lane holds
// the 2 × 2 entries of G where two pairs meet, so that nothing but angles travels in a step; half of the lanes hold J likewise.
// Two-sided Jacobi is as accurate as one-sided where columns are nearly orthogonal up to scaling (Demmel & Veselić 1992).
// Called by all lanes of a warp together.
#pragma once

#include "thread/constants.cuh"
#include "thread/jacobi_rotation.cuh"

constexpr int SIDE = 4, PAIR_COLUMNS = 2 * SIDE;             // columns of a block, and of two
constexpr int PAIR_PITCH = PAIR_COLUMNS + SIDE;              // between rows of G and J: no bank is asked for twice

// Shared memory of a warp: G, row-major, and then J.
template <typename Real>
struct PairScratch {
    Real gram[PAIR_COLUMNS * PAIR_PITCH], turn[PAIR_COLUMNS * PAIR_PITCH];
};

// Column a of either side where the sides differ in bit 2 − Label of the number.
template <int Label>
__device__ int labelled(int side, int a) {
    return Label == 0 ? SIDE * side + a : Label == 1 ? a / 2 * SIDE + 2 * side + a % 2 : 2 * a + side;
}

template <typename Real>
struct PairState {
    bool turns;                                              // whether this lane holds a part of J
    int a, b;
    Real v[2][2];

    __device__ PairState() : turns(threadIdx.x % WARP >= WARP / 2), a(threadIdx.x % (WARP / 2) / SIDE), b(threadIdx.x % SIDE) {}

    // Calls visit(G's or J's entry, v's) with pairs (b, b XOR m).
    template <int Label, typename Visit>
    __device__ void each(PairScratch<Real>& scratch, int m, Visit visit) {
#pragma unroll
        for (int p = 0; p < 2; p++)
#pragma unroll
            for (int q = 0; q < 2; q++) {
                const int row = turns ? SIDE * p + a : labelled<Label>(p, p ? a ^ m : a);
                const int column = labelled<Label>(q, q ? b ^ m : b);
                visit((turns ? scratch.turn : scratch.gram)[row * PAIR_PITCH + column], v[p][q]);
            }
    }

    // Steps m = 0 … Steps − 1; returns whether this lane turned something.
    template <int Steps>
    __device__ bool steps(Real tolerance) {
        const int lane = threadIdx.x % WARP, diagonal = SIDE + 1;
        bool turned = false;
#pragma unroll
        for (int m = 0; m < Steps; m++) {
            const bool turn = !turns && a == b && cosine(v[0][0], v[1][1], v[0][1]) > tolerance;
            Angle<Real> rotation = jacobi_angle(v[0][0], v[1][1], v[0][1]);
            rotation.c = turn ? rotation.c : Real(1), rotation.s = turn ? rotation.s : Real(0);
            turned |= turn;
            const Real c = __shfl_sync(EVERY_LANE, rotation.c, diagonal * b), s = __shfl_sync(EVERY_LANE, rotation.s, diagonal * b);
            Real rc = __shfl_sync(EVERY_LANE, rotation.c, diagonal * a), rs = __shfl_sync(EVERY_LANE, rotation.s, diagonal * a);
            rc = turns ? Real(1) : rc, rs = turns ? Real(0) : rs;
            Real w[2][2];
#pragma unroll
            for (int p = 0; p < 2; p++) w[p][0] = fma(c, v[p][0], -s * v[p][1]), w[p][1] = fma(s, v[p][0], c * v[p][1]);
#pragma unroll
            for (int q = 0; q < 2; q++) v[0][q] = fma(rc, w[0][q], -rs * w[1][q]), v[1][q] = fma(rs, w[0][q], rc * w[1][q]);
            if (m + 1 < Steps) {
                const int x = m ^ (m + 1), up = turns ? 0 : SIDE * x;
                v[0][1] = __shfl_sync(EVERY_LANE, v[0][1], lane ^ x);
                v[1][0] = __shfl_sync(EVERY_LANE, v[1][0], lane ^ up);
                v[1][1] = __shfl_sync(EVERY_LANE, v[1][1], lane ^ up ^ x);
            }
        }
        return turned;
    }

    // The same, from shared memory and back; J = I before, whatever is there, if `fresh` (Label 0).
    template <int Label = 0, int Steps = SIDE>
    __device__ bool turn(PairScratch<Real>& scratch, Real tolerance, bool fresh = false) {
        each<Label>(scratch, 0, [](const Real& entry, Real& x) { x = entry; });
        if (fresh && turns) {
            v[0][0] = v[1][1] = a == b, v[0][1] = v[1][0] = 0;
        }
        __syncwarp();
        const bool turned = steps<Steps>(tolerance);
        each<Label>(scratch, Steps - 1, [](Real& entry, const Real& x) { entry = x; });
        __syncwarp();
        return turned;
    }
};

// Whether any pair that would be met is less orthogonal than tolerance.
template <typename Real>
__device__ bool any_oblique(const PairScratch<Real>& scratch, Real tolerance, bool within) {
    const int lane = threadIdx.x % WARP, a = lane % (WARP / 2) / SIDE, b = lane % SIDE;
    const bool inside = lane >= WARP / 2;
    const int i = inside && a > b ? SIDE + a : a, j = inside && a < b ? b : SIDE + b;
    const Real* G = scratch.gram;
    const Real found = cosine(G[i * (PAIR_PITCH + 1)], G[j * (PAIR_PITCH + 1)], G[i * PAIR_PITCH + j]);
    return __any_sync(EVERY_LANE, (!inside || (within && a != b)) && found > tolerance);
}

// J from G, both in scratch; pairs of the two blocks, and within them if `within`. False where all are orthogonal.
template <typename Real>
__device__ bool pair_jacobi(PairScratch<Real>& scratch, Real tolerance, bool within) {
    if (!any_oblique(scratch, tolerance, within)) return false;
    PairState<Real> state;
    bool turned = false;
    if (within) {
        for (int e = threadIdx.x % WARP; e < PAIR_COLUMNS * PAIR_COLUMNS; e += WARP)
            scratch.turn[e / PAIR_COLUMNS * PAIR_PITCH + e % PAIR_COLUMNS] = e % (PAIR_COLUMNS + 1) == 0;
        __syncwarp();
        turned |= state.template turn<1, SIDE / 2>(scratch, tolerance);
        turned |= state.template turn<2, 1>(scratch, tolerance);
    }
    turned |= state.turn(scratch, tolerance, !within);
    return __any_sync(EVERY_LANE, turned);
}
