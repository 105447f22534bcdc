// Independent normal numbers, each from its place and the seed alone (Box & Muller 1958):
//
//     out(i, j) = √(−2 ln x) cos 2πy,   x, y uniform from Philox's words of counter (i, j)
//
//     out  rows × columns, row-major; float32 to the 11 bits of TF32     key0, key1   the seed
#pragma once

#include "common/warp/tile_chain.cuh"
#include "products/thread/philox.cuh"

namespace products {
using namespace common;

template <typename Real, int Threads>
__global__ __launch_bounds__(Threads)
void gaussian(Real* out, long long entries, int columns, unsigned key0, unsigned key1) {
    long long e = static_cast<long long>(blockIdx.x) * Threads + threadIdx.x;
    if (e >= entries) return;
    Words random = philox({{static_cast<unsigned>(e / columns), static_cast<unsigned>(e % columns), 0u, 0u}}, key0, key1);
    double x = open_uniform(random.w[0], random.w[1]), y = open_uniform(random.w[2], random.w[3]);
    const Real z = sqrt(-2 * log(x)) * cospi(2 * y);
    if constexpr (sizeof(Real) == sizeof(float)) out[e] = __uint_as_float(Tf32Parts(z).high);
    else out[e] = z;
}

}  // namespace products
