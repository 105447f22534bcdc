// common/thread/range.cuh — where squares and their sums are safe from under- and overflow, per precision.
#pragma once

namespace common {

template <typename Real>
struct Range;

// Matrices whose largest entry lies in 2^LOW … 2^HIGH are computed with as they are, others are first multiplied by a
// power of two. Sums of squares below NEGLIGIBLE count as zero: they are less than ε² of the largest entry's square, and
// underflow may have spoilt them.
template <>
struct Range<double> {
    static constexpr int LOW = -300, HIGH = 400, BIAS = 1023;
    static constexpr double NEGLIGIBLE = 0x1p-900;
    // The exponent field of |x|: zero for zero and denormal numbers.
    static __device__ int exponent_field(double x) { return __double2hiint(x) >> 20 & 0x7ff; }
};

template <>
struct Range<float> {
    static constexpr int LOW = -10, HIGH = 40, BIAS = 127;
    static constexpr float NEGLIGIBLE = 0x1p-90f;
    static __device__ int exponent_field(float x) { return __float_as_int(x) >> 23 & 0xff; }
};

// 2^e for an exponent that a normal number can have.
template <typename Real>
__device__ Real power_of_two(int e) { return scalbn(Real(1), e); }

// The shift s such that 2^-s A is safe to compute with, from the exponent of A's largest entry: 0 where A is so already,
// and where it holds an infinity or NaN, which scaling must not hide.
template <typename Real>
__device__ int safe_shift(int largest) {
    const int limit = Range<Real>::BIAS - 1;
    if ((largest >= Range<Real>::LOW && largest <= Range<Real>::HIGH) || largest > Range<Real>::BIAS) return 0;
    return max(-limit, min(largest, limit));
}

}  // namespace common
