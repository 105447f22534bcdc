// common/thread/wide.cuh — registers to and from 16-byte aligned memory, 16 bytes at a time.
#pragma once
#include "common/thread/constants.cuh"

namespace common {

template <typename Real>
struct Wide;  // 16 bytes of them
template <> struct Wide<double> { using type = double2; };
template <> struct Wide<float> { using type = float4; };

template <int Count, typename Real>
__device__ void read_wide(Real (&v)[Count], const Real* source) {
    constexpr int EACH = 16 / sizeof(Real);
#pragma unroll
    for (int i = 0; i < Count; i += EACH) *reinterpret_cast<typename Wide<Real>::type*>(v + i) =
        *reinterpret_cast<const typename Wide<Real>::type*>(source + i);
}

template <int Count, typename Real>
__device__ void write_wide(Real* target, const Real (&v)[Count]) {
    constexpr int EACH = 16 / sizeof(Real);
#pragma unroll
    for (int i = 0; i < Count; i += EACH) *reinterpret_cast<typename Wide<Real>::type*>(target + i) =
        *reinterpret_cast<const typename Wide<Real>::type*>(v + i);
}

}  // namespace common
