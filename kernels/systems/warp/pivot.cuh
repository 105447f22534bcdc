// systems/warp/pivot.cuh — the search for a pivot among the lanes of a warp, or of a part of it.
//
// The largest magnitude wins, among equals the least position, as in LAPACK. The leading 32 bits of a magnitude decide as a
// rule, by one reduction; only where they leave several candidates does the warp look at the rest, and at positions.
// Called by whole warps; every lane of a part holds the result.
#pragma once
#include "common/thread/field.cuh"

namespace systems {
using namespace common;

constexpr int NOWHERE = 0x7fffffff;  // position of a lane that has no candidate

__device__ inline bool of_largest(float x) {
    const unsigned bits = __float_as_uint(x);
    return bits == __reduce_max_sync(EVERY_LANE, bits);
}

__device__ inline bool of_largest(double x) {
    const unsigned high = __double2hiint(x);
    const bool among = high == __reduce_max_sync(EVERY_LANE, high);
    const unsigned low = among ? __double2loint(x) : 0u;
    return low == __reduce_max_sync(EVERY_LANE, low) && among;
}

// magnitude ≥ 0, zero where position is NOWHERE
template <int Lanes, typename Real>
__device__ int pivot_position(Real magnitude, int position) {
    if constexpr (Lanes == WARP) {
        return __reduce_min_sync(EVERY_LANE, of_largest(magnitude) ? position : NOWHERE);
    } else {
#pragma unroll
        for (int distance = Lanes / 2; distance > 0; distance /= 2) {
            const Real other = __shfl_xor_sync(EVERY_LANE, magnitude, distance);
            const int there = __shfl_xor_sync(EVERY_LANE, position, distance);
            if (other > magnitude || (other == magnitude && there < position)) magnitude = other, position = there;
        }
        return position;
    }
}

// The leading bits of a magnitude, and the sign before them, which is none of MAGNITUDE_BITS.
constexpr unsigned MAGNITUDE_BITS = 0x7fffffff;
__device__ inline unsigned leading_bits(float x) { return __float_as_uint(x); }
__device__ inline unsigned leading_bits(double x) { return static_cast<unsigned>(__double2hiint(x)); }
template <typename Real>
__device__ unsigned leading_bits(Complex<Real> x) { return leading_bits(magnitude(x)); }

// Keys order magnitudes as far as they go; 0 is less than any.
template <typename Scalar>
__device__ unsigned pivot_key(Scalar x) { return leading_bits(x) << 1 | 1; }

// Whether magnitudes of such bits have reciprocals to multiply by, both far from the ends of the exponents.
template <typename Real>
__device__ bool divides(unsigned bits) {
    constexpr unsigned EXPONENT = sizeof(Real) == sizeof(double) ? 20 : 23, LARGEST = sizeof(Real) == sizeof(double) ? 2046 : 254, FAR = 3;
    return bits - (FAR << EXPONENT) < LARGEST - 2 * FAR << EXPONENT;
}

// 1 / x to rounding for those.
__device__ inline float plain_inverse(float x) {
    const float near = plain_reciprocal(x);
    return fmaf(near, fmaf(-x, near, 1.0f), near);
}
template <typename Scalar>
__device__ Scalar plain_inverse(Scalar x) { return reciprocal(x); }

// The search for a pivot in column k of rows that lanes hold, begun early and settled late, so that work in between hides it.
template <int Lanes, int Slots, typename Scalar>
struct PivotSearch {
    using Real = typename Field<Scalar>::Real;
    int at;                        // this lane's candidate: its position
    Divisor<Scalar> by_candidate;  // nobody waits for a division once the pivot is known
    unsigned among;                // lanes of the part that may hold the pivot
    bool tied;                     // the same in the whole warp: keys do not tell which

    // x: Slots × N, rows of which those at positions from `least` on are candidates
    template <int N>
    __device__ void begin(const Scalar (&x)[Slots][N], int k, const int (&position)[Slots], int least) {
        if constexpr (Lanes == WARP) {
            Scalar candidate = x[0][k];
            at = position[0];
            unsigned own = at >= least ? pivot_key(candidate) : 0u;
            bool twice = false;
#pragma unroll
            for (int s = 1; s < Slots; s++) {
                const unsigned key = position[s] >= least ? pivot_key(x[s][k]) : 0u;
                twice = key == own || (twice && key < own);
                if (key > own) candidate = x[s][k], at = position[s], own = key;
            }
            const unsigned best = __reduce_max_sync(EVERY_LANE, own);
            by_candidate = Divisor<Scalar>(candidate);
            const bool holds = own == best && own != 0;
            among = __ballot_sync(EVERY_LANE, holds);
            tied = (among & (among - 1)) != 0;
            if constexpr (Slots > 1) tied |= __ballot_sync(EVERY_LANE, holds && twice) != 0;
        } else {
            compare(x, k, position, least);
            tied = false;
        }
    }

    // The lane of the part that holds the pivot, −1 for none.
    template <int N>
    __device__ int settle(const Scalar (&x)[Slots][N], int k, const int (&position)[Slots], int least) {
        if (__builtin_expect(tied, false)) compare(x, k, position, least);
        return WARP - 1 - __clz(among);  // the only one
    }

  private:
    template <int N>
    __device__ void compare(const Scalar (&x)[Slots][N], int k, const int (&position)[Slots], int least) {
        Real largest = 0;
        Scalar candidate = Scalar();
        at = NOWHERE;
#pragma unroll
        for (int s = 0; s < Slots; s++) {
            const Real size = magnitude(x[s][k]);
            if (position[s] >= least && (at == NOWHERE || size > largest || (size == largest && position[s] < at)))
                largest = size, at = position[s], candidate = x[s][k];
        }
        const int pivot = pivot_position<Lanes>(largest, at);
        among = __ballot_sync(EVERY_LANE, at == pivot && pivot != NOWHERE);
        if constexpr (Lanes < WARP) among = among >> threadIdx.x % WARP / Lanes * Lanes & ((1u << Lanes) - 1);
        if constexpr (Lanes < WARP || Slots > 1) by_candidate = Divisor<Scalar>(candidate);
    }
};

}  // namespace systems
