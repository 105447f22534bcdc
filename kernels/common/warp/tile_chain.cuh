// common/warp/tile_chain.cuh — products of 16×8 tiles on the tensor cores, each of which may be the left factor of the next.
//
//     C += A B,   A: 16×8,  B: 8×8,  C: 16×8
//
// Lane (g, t) = (lane / 4, lane % 4) holds of A and of C, in this order, (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1):
// the instruction's inner index is permuted, so that sums are factors without any exchange. Of B it holds (2t, g), (2t + 1, g).
// float64: mma, 16×8×8 on sm_90 and later, 8×8×4 before. float32: three products of TF32 parts, x = high + low, which keeps
// the precision (Ootomo & Yokota 2022); the tensor cores truncate sums, so callers keep those short. Complex ones: by their parts.
// Called by whole warps; every lane holds its part.
#pragma once
#include "common/thread/constants.cuh"
#include "common/thread/field.cuh"

namespace common {

__device__ inline void multiply_tile(double (&c)[4], const double (&a)[4], double b0, double b1) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[2]), "d"(a[1]), "d"(a[3]), "d"(b0), "d"(b1));
#else
#pragma unroll
    for (int half = 0; half < 4; half += 2)
#pragma unroll
        for (int k = 0; k < 2; k++)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(c[half]), "+d"(c[half + 1]) : "d"(a[half + k]), "d"(k ? b1 : b0));
#endif
}

// a ← x, to be the left factor of several products. The float64 instruction wants entries 1 and 2 of a lane in exchanged registers:
// the compiler moves all four for every product, 8 moves each (588 for 45 products), unless they come out of an operation,
// here with a 0 that it does not know.
template <typename Real>
__device__ __forceinline__ void as_factor(Real (&a)[4], const Real (&x)[4]) {
    int zero = 0;
    if constexpr (sizeof(Real) == sizeof(double)) asm("mov.u32 %0, %%ctaid.x;" : "=r"(zero));
    zero >>= 31;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        if constexpr (sizeof(Real) == sizeof(double)) a[e] = __hiloint2double(__double2hiint(x[e]) ^ zero, __double2loint(x[e]) ^ zero);
        else a[e] = x[e];
    }
}

// C += A B,  A: 16×4,  B: 4×8, of inner indices 2t or 2t + 1: of A the lane holds (g, ·), (g + 8, ·), of B (·, g).
__device__ inline void multiply_half_tile(double (&c)[4], double a0, double a1, double b) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3]) : "d"(a0), "d"(a1), "d"(b));
#else
#pragma unroll
    for (int half = 0; half < 4; half += 2)
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(c[half]), "+d"(c[half + 1]) : "d"(half ? a1 : a0), "d"(b));
#endif
}

// x = high + low to 22 bits, each with the 11 bits of TF32; the hardware drops what low has beyond.
struct Tf32Parts {
    unsigned high, low;
    __device__ explicit Tf32Parts(float x) {
        constexpr unsigned DROPPED = 13;
        high = (__float_as_uint(x) + (1u << (DROPPED - 1))) & ~0u << DROPPED;
        low = __float_as_uint(x - __uint_as_float(high));
    }
};

__device__ inline void multiply_tf32(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a2), "r"(a1), "r"(a3), "r"(b0), "r"(b1));
}

__device__ inline void multiply_tile(float (&c)[4], const float (&a)[4], float b0, float b1) {
    const Tf32Parts a_0(a[0]), a_1(a[1]), a_2(a[2]), a_3(a[3]), b_0(b0), b_1(b1);
    multiply_tf32(c, a_0.low, a_1.low, a_2.low, a_3.low, b_0.high, b_1.high);
    multiply_tf32(c, a_0.high, a_1.high, a_2.high, a_3.high, b_0.low, b_1.low);
    multiply_tf32(c, a_0.high, a_1.high, a_2.high, a_3.high, b_0.high, b_1.high);
}

template <typename Real>
__device__ void multiply_tile(Complex<Real> (&c)[4], const Complex<Real> (&a)[4], Complex<Real> b0, Complex<Real> b1) {
    Real re[4], im[4], a_re[4], a_im[4];
#pragma unroll
    for (int e = 0; e < 4; e++) re[e] = c[e].re, im[e] = c[e].im, a_re[e] = a[e].re, a_im[e] = a[e].im;
    multiply_tile(re, a_re, b0.re, b1.re);
    multiply_tile(im, a_re, b0.im, b1.im);
    multiply_tile(re, a_im, -b0.im, -b1.im);
    multiply_tile(im, a_im, b0.re, b1.re);
#pragma unroll
    for (int e = 0; e < 4; e++) c[e] = {re[e], im[e]};
}

}  // namespace common
