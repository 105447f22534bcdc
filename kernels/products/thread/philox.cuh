// Philox4x32-10: four random words from a counter of four words and a key of two, the same in any order and any batch.
//
//     ten rounds:  [c₀ c₁ c₂ c₃] ← [hi(M₁c₂) ^ c₁ ^ k₀,  lo(M₁c₂),  hi(M₀c₀) ^ c₃ ^ k₁,  lo(M₀c₀)],   k ← k + w
//
// Salmon, Moraes, Dror & Shaw (2011). Called by one thread. The twin is h2gpu/batched/products/gaussian.py.
#pragma once

namespace products {

constexpr int PHILOX_ROUNDS = 10;
constexpr unsigned PHILOX_FACTORS[2] = {0xD2511F53u, 0xCD9E8D57u}, PHILOX_WEYL[2] = {0x9E3779B9u, 0xBB67AE85u};

struct Words { unsigned w[4]; };

__device__ inline Words philox(Words c, unsigned k0, unsigned k1) {
#pragma unroll
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        unsigned high0 = __umulhi(PHILOX_FACTORS[0], c.w[0]), low0 = PHILOX_FACTORS[0] * c.w[0];
        unsigned high1 = __umulhi(PHILOX_FACTORS[1], c.w[2]), low1 = PHILOX_FACTORS[1] * c.w[2];
        c = {{high1 ^ c.w[1] ^ k0, low1, high0 ^ c.w[3] ^ k1, low0}};
        k0 += PHILOX_WEYL[0];
        k1 += PHILOX_WEYL[1];
    }
    return c;
}

// Of 53 bits, in (0, 1)
__device__ inline double open_uniform(unsigned high, unsigned low) {
    unsigned long long bits = (static_cast<unsigned long long>(high) << 32 | low) >> 11;
    return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

}  // namespace products
