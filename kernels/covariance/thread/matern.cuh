// covariance/thread/matern.cuh — Matérn covariances of smoothnesses without closed form, as types like those of covariance.cuh.
//
//     σ² G(z) e^(−z),   z = √(2ν) r/l,   G = 2^(1−ν)/Γ(ν) z^ν K_ν(z) e^z from a table        ν < 20
//     σ² exp(ν (log(1 + d/2) − d)) w^(−½) S(1/w),   w = (1 + z²/ν²)^½, d = w − 1            ν ≥ 20 (DLMF 10.41.4)
//     S(p) = 1 − (1 − p) T(p)
//
// h2gpu/covariance/matern_table.py explains and makes the table. Called by one thread; nothing is shared.
#pragma once
#include "common/thread/wide.cuh"
#include "covariance/thread/decay.cuh"

namespace covariance {
using namespace common;

// Bits of a number from the exponent's on: 2^Bits steps an octave, and the step of 1.
template <int Bits> __device__ inline int steps(double z) { return __double2hiint(z) >> (20 - Bits); }
template <int Bits> __device__ inline int steps(float z) { return __float_as_int(z) >> (23 - Bits); }
template <int Bits> __device__ constexpr int steps_of_one(double) { return 1023 << Bits; }
template <int Bits> __device__ constexpr int steps_of_one(float) { return 127 << Bits; }

// z without its exponent and first Bits digits: in [1, 1 + 2^−Bits)
template <int Bits>
__device__ inline double last_digits(double z) {
    return __hiloint2double((__double2hiint(z) & ((1 << (20 - Bits)) - 1)) | 0x3ff00000, __double2loint(z));
}
template <int Bits>
__device__ inline float last_digits(float z) {
    return __int_as_float((__float_as_int(z) & ((1 << (23 - Bits)) - 1)) | 0x3f800000);
}

// A function on [2^Lowest, 2^(Lowest + Octaves)) by polynomials on 2^Bits equal pieces of every octave.
template <int Bits, int Degree, int Lowest, int Octaves>
struct Pieces {
    static constexpr int entries = (Octaves << Bits) * (Degree + 1);

    template <typename Real>
    static __device__ bool below(Real z) { return steps<Bits>(z) < steps_of_one<Bits>(z) + Lowest * (1 << Bits); }

    // 2^Lowest ≤ z < 2^(Lowest + Octaves)   table: pieces × (Degree + 1), from the constant on, at a multiple of 16 bytes
    template <typename Real>
    static __device__ Real value(Real z, const Real* table) {
        constexpr Real MIDDLE = 1 + Real(0.5) / (1 << Bits);
        Real c[Degree + 1];
        read_wide(c, table + (steps<Bits>(z) - steps_of_one<Bits>(z) - Lowest * (1 << Bits)) * (Degree + 1));
        const Real u = last_digits<Bits>(z) - MIDDLE;
        Real sum = c[Degree];
#pragma unroll
        for (int k = Degree - 1; k >= 0; k--) sum = fma(sum, u, c[k]);
        return sum;
    }
};

// σ² G(z) 2^(−rate·r), and σ² (1 − c z^2ν) where z is below the table   p: rate, largest r², z/r, σ², c, 2ν, the distance's
template <typename Table, typename Distance>
struct MaternTable {
    static constexpr int dimension = Distance::dimension, parameters = 6 + Distance::parameters, table = Table::entries;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real* t) {
        const Real square = Distance::square(x, y, p + 6);
        const Real r = root(within(square, p[1])), z = r * p[2];
        if (Table::below(z)) return square > 0 && p[4] > 0 ? p[3] * (1 - p[4] * pow(z, p[5])) : p[3];
        return p[3] * Table::value(z, t) * decay(r, p[0]);
    }
};

// σ² exp(ν (log(1 + d/2) − d)) w^(−½) S(1/w)   p: (z/νr)², largest r², σ², ν, powers of T from the constant on, the distance's
template <int Degree, typename Distance>
struct MaternDebye {
    static constexpr int dimension = Distance::dimension, parameters = Degree + 5 + Distance::parameters, table = 0;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real*) {
        const Real xx = fmin(Distance::square(x, y, p + Degree + 5), p[1]) * p[0];
        const Real w = sqrt(1 + xx), d = xx / (1 + w), inverse = 1 / w;
        Real T = p[4 + Degree];
#pragma unroll
        for (int k = Degree - 1; k >= 0; k--) T = fma(T, inverse, p[4 + k]);
        return p[2] * exp(p[3] * (log1p(Real(0.5) * d) - d)) * sqrt(inverse) * (1 - d * inverse * T);
    }
};

}  // namespace covariance
