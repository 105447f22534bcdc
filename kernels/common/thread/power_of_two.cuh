// Scaling by powers of two, exact for denormal numbers too, also where the compiler flushes those of float to zero.
// Called by one thread.
#pragma once

namespace common {

__device__ inline double widened(double x) { return x; }
__device__ inline double widened(float x) {
    double y;
    asm("cvt.f64.f32 %0, %1;" : "=d"(y) : "f"(x));
    return y;
}

__device__ inline void narrow(double x, double& y) { y = x; }
__device__ inline void narrow(float x, float& y) { y = x; }
__device__ inline void narrow(double x, float& y) { asm("cvt.rn.f32.f64 %0, %1;" : "=f"(y) : "d"(x)); }

// |x| so that numbers are compared as they are, and back: of float as a whole number, or denormal ones would be zeros.
__device__ inline unsigned bits_of_size(float x) { return __float_as_uint(x) << 1 >> 1; }
__device__ inline double bits_of_size(double x) { return fabs(x); }
__device__ inline float size_of_bits(unsigned x) { return __uint_as_float(x); }
__device__ inline double size_of_bits(double x) { return x; }

// 2^exponent in two factors, since the power alone may overflow
struct PowerOfTwo {
    double one, other;
    __device__ explicit PowerOfTwo(int exponent) : one(scalbn(1.0, exponent / 2)), other(scalbn(1.0, exponent - exponent / 2)) {}
    template <typename Real>
    __device__ Real operator()(Real x) const {
        Real y;
        narrow(widened(x) * one * other, y);
        return y;
    }
};

constexpr int NO_EXPONENT = -1 << 20;                      // of zero

// e with 2^(e−1) ≤ |x| < 2^e
__device__ inline int exponent_of(double x) {
    int exponent = NO_EXPONENT;
    if (x != 0) frexp(x, &exponent);
    return exponent;
}

}  // namespace common
