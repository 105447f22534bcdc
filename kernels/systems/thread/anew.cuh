// Numbers that the compiler is told less of than it knows.
#pragma once

#include "common/thread/field.cuh"

namespace systems {
using namespace common;

// A number from which all that follows is worked out again: it cannot be kept in registers from one round of a loop to the next.
__device__ __forceinline__ int anew(int x) {
    asm volatile("" : "+r"(x));
    return x;
}

// One that is worked out here, and not behind a later branch.
__device__ __forceinline__ float by_now(float x) {
    asm volatile("" : "+f"(x));
    return x;
}
__device__ __forceinline__ double by_now(double x) {
    asm volatile("" : "+d"(x));
    return x;
}
template <typename Real>
__device__ __forceinline__ Complex<Real> by_now(Complex<Real> x) { return {by_now(x.re), by_now(x.im)}; }

}  // namespace systems
