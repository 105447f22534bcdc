// covariance/thread/decay.cuh — √s and 2^(−t) for one thread, without branches: what covariances decay by.
//
// In double precision by the hardware's 20 bits and one step of third order, and by a polynomial: 5 and 15 operations of
// the FP64 pipe, so that writing the values, not computing them, is the bound.
#pragma once

namespace covariance {

// s moved into [least normal number, most], s ≥ 0; most a positive normal number.
__device__ inline float within(float s, float most) { return fminf(s, most); }
__device__ inline double within(double s, double most) {  // by the upper words: positive numbers are ordered as their bits
    const int high = min(max(__double2hiint(s), 0x00100000), __double2hiint(most));
    return __hiloint2double(high, __double2loint(s));
}

// √s to an ulp for s as `within` returns it.
__device__ inline float root(float s) {
    float r;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(s));
    return r;
}
__device__ inline double root(double s) {
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(s));
    const double g = s * y, e = fma(-g, y, 1.0);
    return fma(g * e, fma(0.375, e, 0.5), g);
}

// 2^(−f) − 1 by powers of f from the highest, interpolated in Chebyshev nodes of [−½, ½]: error 2e-17. In constant memory:
// an operand there costs nothing, a literal two instructions, a tenth of the time.
constexpr int DECAY_TERMS = 11;
__constant__ double DECAY[DECAY_TERMS] = {
    -0x1.e9d3fe3952179p-32, 0x1.e6063f7217bc6p-28, -0x1.b524fae627834p-24, 0x1.62bfd47773353p-20,
    -0x1.ffcbfc670dcd4p-17, 0x1.430913096fd9fp-13, -0x1.5d87fe78a5276p-10, 0x1.3b2ab6fba1ddap-7,
    -0x1.c6b08d704a0c2p-5, 0x1.ebfbdff82c598p-3, -0x1.62e42fefa39efp-1,
};

// 2^(−r·rate) for 0 ≤ r·rate ≤ 1020 (float: 125), normal numbers until there; relative error ε (1 + r·rate), exactly 1 at 0.
__device__ inline float decay(float r, float rate) {
    float value;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(-r * rate));
    return value;
}
__device__ inline double decay(double r, double rate) {
    constexpr double TO_INTEGER = 0x1.8p52;                          // n + this: n rounded, in the lower word
    const double shifted = fma(r, rate, TO_INTEGER);
    const double f = fma(r, rate, TO_INTEGER - shifted);             // in [−½, ½]
    double q = DECAY[0];
#pragma unroll
    for (int k = 1; k < DECAY_TERMS; k++) q = fma(q, f, DECAY[k]);
    q = fma(q, f, 1.0);
    return __hiloint2double(__double2hiint(q) - (__double2loint(shifted) << 20), __double2loint(q));
}

}  // namespace covariance
