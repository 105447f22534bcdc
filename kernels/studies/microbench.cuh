// studies/microbench.cuh — the constants of a device, one kernel each: latencies by the clock of the multiprocessor, in
// cycles, rates by how long the host sees the kernel run.
//
// Anderson, Sheffield & Keutzer (2012), section II: chains of dependent operations for latencies, independent ones for
// rates. Nothing is computed that anybody needs; results are stored so that the compiler keeps the work.
#pragma once
#include "common/thread/householder.cuh"
#include "common/warp/tile_chain.cuh"

namespace studies {
using namespace common;

// cycles   one number: cycles of the steps in all
template <typename Body>
__device__ void timed(long long* cycles, Body body) {
    __syncthreads();
    const long long start = clock64();
    body();
    const long long stop = clock64();
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) *cycles = stop - start;
}

// How long a cycle is: nanoseconds and cycles of one wait. One thread.   found   2 numbers
__global__ void clock_ticks(long long* found, long long duration) {
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    const long long start = clock64();
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < duration);
    found[0] = now - begin, found[1] = clock64() - start;
}

__global__ void nothing() {}

// out = in, 16 bytes a thread and step, so many times: of long arrays by way of device memory, of short ones by way of the
// cache that all multiprocessors share, since their own is passed by.
__global__ void copy_rate(const float4* in, float4* out, long long count, int times) {
    const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (int pass = 0; pass < times; pass++)
        for (long long i = first; i < count; i += static_cast<long long>(gridDim.x) * blockDim.x) __stcg(out + i, __ldcg(in + i));
}

// next   a cycle through an array larger than any cache. One thread.
__global__ void global_latency(const unsigned* next, int steps, long long* cycles, unsigned* sink) {
    unsigned at = 0;
    timed(cycles, [&] {
        for (int i = 0; i < steps; i++) at = __ldcg(next + at);
        *sink = at;
    });
}

// The same through a cycle of any length, `warm` steps before the clock runs: later ones find what a cache has kept.
// Near: by way of the multiprocessor's own cache. One thread.
template <bool Near>
__global__ void chase_latency(const unsigned* next, int warm, int steps, long long* cycles, unsigned* sink) {
    const auto load = [](const unsigned* from) { return Near ? __ldca(from) : __ldcg(from); };
    unsigned at = 0;
    for (int i = 0; i < warm; i++) at = load(next + at);
    timed(cycles, [&] {
        for (int i = 0; i < steps; i++) at = load(next + at);
        *sink = at;
    });
}

// A number written, a barrier of the warp, another lane's read: what a step waits for. One warp.
__global__ void shared_latency(int steps, long long* cycles, unsigned* sink) {
    __shared__ volatile unsigned words[2][WARP];
    unsigned mine = threadIdx.x;
    timed(cycles, [&] {
        for (int i = 0; i < steps; i++) {
            words[i % 2][threadIdx.x] = mine;
            __syncwarp();
            mine = words[i % 2][(threadIdx.x + 1) % WARP] + 1;
        }
    });
    sink[threadIdx.x] = mine;
}

// Whole blocks read neighbouring words; the host knows how many: THREADS · steps · UNROLLED of 4 bytes a block.
template <int Threads, int Unrolled>
__global__ __launch_bounds__(Threads)
void shared_rate(int steps, float* sink) {
    __shared__ float words[Threads + Unrolled * WARP];
    for (int i = threadIdx.x; i < Threads + Unrolled * WARP; i += Threads) words[i] = static_cast<float>(i);
    __syncthreads();
    float sums[Unrolled] = {};
    const volatile float* mine = words + threadIdx.x;
    for (int i = 0; i < steps; i++)
#pragma unroll
        for (int u = 0; u < Unrolled; u++) sums[u] += mine[u * WARP];
    float sum = 0;
    for (int u = 0; u < Unrolled; u++) sum += sums[u];
    sink[blockIdx.x * Threads + threadIdx.x] = sum;
}

// One block of as many threads as launched.
__global__ void barrier_latency(int steps, long long* cycles) {
    timed(cycles, [&] {
        for (int i = 0; i < steps; i++) __syncthreads();
    });
}

// A chain of shuffles by one warp; Unrolled chains at once by many for the rate.
template <int Unrolled>
__global__ void shuffles(int steps, long long* cycles, unsigned* sink) {
    unsigned x[Unrolled];
#pragma unroll
    for (int u = 0; u < Unrolled; u++) x[u] = threadIdx.x + u;
    timed(cycles, [&] {
        for (int i = 0; i < steps; i++)
#pragma unroll
            for (int u = 0; u < Unrolled; u++) x[u] = __shfl_xor_sync(EVERY_LANE, x[u], i % WARP);
    });
    unsigned sum = 0;
    for (int u = 0; u < Unrolled; u++) sum += x[u];
    sink[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Unrolled chains of multiply-adds in every thread: 1 for the latency, several for the rate.
template <typename Real, int Unrolled>
__global__ void multiply_adds(int steps, Real factor, long long* cycles, Real* sink) {
    Real x[Unrolled];
#pragma unroll
    for (int u = 0; u < Unrolled; u++) x[u] = static_cast<Real>(threadIdx.x + u);
    timed(cycles, [&] {
        for (int i = 0; i < steps; i++)
#pragma unroll
            for (int u = 0; u < Unrolled; u++) x[u] = fma(x[u], factor, factor);
    });
    Real sum = 0;
    for (int u = 0; u < Unrolled; u++) sum += x[u];
    sink[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Chains of 1/√x as reflections take it, or of 1/x as eliminations do. One warp.
template <typename Real, bool Root>
__global__ void slow_latency(int steps, Real offset, long long* cycles, Real* sink) {
    Real x = static_cast<Real>(1 + threadIdx.x);
    timed(cycles, [&] {
        for (int i = 0; i < steps; i++) x = (Root ? inverse_sqrt(x) : Real(1) / x) + offset;
    });
    sink[threadIdx.x] = x;
}

// Products of 16 × 8 × 8 on the tensor cores, Unrolled sums at once; float32: one product of TF32.
template <typename Real, int Unrolled>
__global__ void tensor_core_products(int steps, Real factor, Real* sink) {
    Real c[Unrolled][4] = {};
    const Real a[4] = {factor, factor, factor, factor};
    for (int i = 0; i < steps; i++)
#pragma unroll
        for (int u = 0; u < Unrolled; u++) {
            if constexpr (sizeof(Real) == sizeof(double)) multiply_tile(c[u], a, factor, factor);
            else {
                const unsigned bits = __float_as_uint(factor);
                multiply_tf32(c[u], bits, bits, bits, bits, bits, bits);
            }
        }
    Real sum = 0;
    for (int u = 0; u < Unrolled; u++) sum += c[u][0] + c[u][1] + c[u][2] + c[u][3];
    sink[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

}  // namespace studies
