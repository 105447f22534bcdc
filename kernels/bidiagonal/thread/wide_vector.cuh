// 16 bytes of numbers to compute with: registers, or the memory at an address aligned so. Copies without a sum: common/thread/wide.cuh.
// Called by bidiagonal/block/bidiagonal_rows.cuh.
#pragma once

namespace bidiagonal {

template <typename Real>
struct alignas(16) WideVector {
    static constexpr int WIDE = 16 / sizeof(Real);
    Real e[WIDE];

    __device__ static WideVector& at(Real* memory) { return *reinterpret_cast<WideVector*>(memory); }

    // this ← this + f x
    __device__ void add(Real f, WideVector x) {
#pragma unroll
        for (int i = 0; i < WIDE; i++) e[i] = fma(f, x.e[i], e[i]);
    }

    // this ← this + x y, entry by entry
    __device__ void add_products(const WideVector& x, WideVector y) {
#pragma unroll
        for (int i = 0; i < WIDE; i++) e[i] = fma(x.e[i], y.e[i], e[i]);
    }

    __device__ Real total() const {
        Real sum = e[0];
#pragma unroll
        for (int i = 1; i < WIDE; i++) sum += e[i];
        return sum;
    }
};

}  // namespace bidiagonal
