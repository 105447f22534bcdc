// products/warp/tile_parts.cuh — C += A B for 16×8 tiles of float32, as common/warp/tile_chain.cuh has them, B taken apart beforehand.
//
//     a b = a₁ b₁ + (a₂ b₁ + a₁ b₂) + …,   x = x₁ + x₂ + …,   x₁ of 11 bits (TF32)
//
// FINE: three products of TF32. COARSE: those in parentheses are one product of BF16 of twice the inner length, which takes as long as
// one of TF32; its factors have 8 bits, a b is known to 2⁻¹⁹ at worst, sums of hundreds are as good as by float32's own arithmetic.
// SHORT: the same for b of no more than 11 bits, b₂ = 0. Ootomo & Yokota 2022.
// Called by whole warps; every lane holds its part.
#pragma once
#include "common/warp/tile_chain.cuh"

namespace products {
using namespace common;

__device__ __forceinline__ unsigned as_bf16(float x, float y) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
}

// C += A B + A' B' of BF16,  A: 16×8,  B: 8×8: of A the lane holds (g, ·), (g + 8, ·), of B (·, g), for inner indices 2t, 2t + 1.
__device__ __forceinline__ void multiply_bf16(float (&c)[4], const unsigned (&a)[2], unsigned b, const unsigned (&a_)[2], unsigned b_) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a_[0]), "r"(a_[1]), "r"(b), "r"(b_));
}

constexpr int FINE = 0, COARSE = 1, SHORT = 2;

// What a lane needs of two entries of B.
template <int Parts>
struct alignas(4 * sizeof(float)) RightParts {
    unsigned x, y, high, low;                                // BF16: the first parts of both, the second of both; FINE: the second of each

    __device__ __forceinline__ RightParts(float first, float second) {
        const Tf32Parts p(first), q(second);
        x = p.high, y = q.high, high = p.low, low = q.low;
        if (Parts == FINE) return;
        high = as_bf16(__uint_as_float(x), __uint_as_float(y)), low = as_bf16(__uint_as_float(p.low), __uint_as_float(q.low));
    }
};

template <>
struct alignas(2 * sizeof(float)) RightParts<SHORT> {
    float x, y;

    __device__ __forceinline__ RightParts(float first, float second) : x(first), y(second) {}
};

// A tile of A in parts.
template <int Parts>
struct LeftParts {
    unsigned x[4], high[2], low[2];                          // FINE: the second parts are in high and low

    LeftParts() = default;
    __device__ __forceinline__ LeftParts(float a, float b, float c, float d) {
        const Tf32Parts p[4] = {Tf32Parts(a), Tf32Parts(b), Tf32Parts(c), Tf32Parts(d)};
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const Tf32Parts &first = p[2 * h], &second = p[2 * h + 1];
            x[2 * h] = first.high, x[2 * h + 1] = second.high;
            high[h] = first.low, low[h] = second.low;
            if (Parts == FINE) continue;
            high[h] = as_bf16(__uint_as_float(first.high), __uint_as_float(second.high));
            low[h] = as_bf16(__uint_as_float(first.low), __uint_as_float(second.low));
        }
    }

    __device__ __forceinline__ void multiply(float (&sum)[4], const RightParts<FINE>& b) const {
        multiply_tf32(sum, high[0], low[0], high[1], low[1], b.x, b.y);
        multiply_tf32(sum, x[0], x[1], x[2], x[3], b.high, b.low);
        multiply_tf32(sum, x[0], x[1], x[2], x[3], b.x, b.y);
    }
    __device__ __forceinline__ void multiply(float (&sum)[4], const RightParts<COARSE>& b) const {
        multiply_bf16(sum, low, b.high, high, b.low);
        multiply_tf32(sum, x[0], x[1], x[2], x[3], b.x, b.y);
    }
    // and of the tiles next to them
    __device__ __forceinline__ void multiply(float (&sum)[4], const RightParts<SHORT>& b, const LeftParts& next, const RightParts<SHORT>& c) const {
        multiply_bf16(sum, low, as_bf16(b.x, b.y), next.low, as_bf16(c.x, c.y));
        multiply_tf32(sum, x[0], x[1], x[2], x[3], __float_as_uint(b.x), __float_as_uint(b.y));
        multiply_tf32(sum, next.x[0], next.x[1], next.x[2], next.x[3], __float_as_uint(c.x), __float_as_uint(c.y));
    }
};

}  // namespace products
