// systems/finite_copy.cuh — copies of the matrices, and which of them hold NaN or Inf. `pieces` blocks a matrix.
#pragma once

#include "common/thread/field.cuh"
#include "systems/thread/place.cuh"

namespace systems {
using namespace common;

// A, target, table, m, n: as in systems/lu_register.cuh     info: matrices; NOT_FINITE where not finite, else as it was
template <typename Scalar, int Threads>
__global__ __launch_bounds__(Threads)
void finite_copy(const Scalar* __restrict__ A, Scalar* __restrict__ target, int* info, const long long* table, int m, int n, int pieces) {
    const Place p(table, m, n, blockIdx.x / pieces);
    const long long entries = static_cast<long long>(p.m) * p.n, step = static_cast<long long>(pieces) * Threads;
    bool finite = true;
    for (long long e = blockIdx.x % pieces * Threads + threadIdx.x; e < entries; e += step) {
        const Scalar x = A[p.source + e];
        finite = finite && is_finite(x);
        target[p.target + e] = x;
    }
    if (!finite) info[p.index] = NOT_FINITE;
}

}  // namespace systems
