// svd/warp/line_product.cuh — a warp multiplies 16 rows in its registers by a square matrix in shared memory: Y += X B.
//
// Rows lie in tiles as in common/warp/tile_chain.cuh, a tile every 8 columns ("strip"), and may be the factor of the next product.
// B is column-major of leading dimension Ld, 8 modulo 16: two entries are read at a time without bank conflicts.
// Called by all lanes of a warp together; every lane holds its part.
#pragma once

#include "common/warp/tile_chain.cuh"

namespace svd {
using namespace common;

constexpr int LINES = 16, LINE_STRIP = 8;                  // rows of a warp, columns of a tile

template <int Strips, typename Real>
using LineSums = Real[Strips][4];

// The left factor: entry e of strip u is (g + 8 (e / 2), 8 u + 2 t + e % 2)
template <int Strips, typename Real>
struct Lines;

template <int Strips>
struct Lines<Strips, double> {
    double x[Strips][4];
    __device__ void set(int u, int e, double value) { x[u][e] = value; }
    __device__ double get(int u, int e) const { return x[u][e]; }
};

template <int Strips>
struct Lines<Strips, float> {
    unsigned high[Strips][4], low[Strips][4];
    __device__ void set(int u, int e, float value) {
        const Tf32Parts x(value);
        high[u][e] = x.high, low[u][e] = x.low;
    }
    __device__ float get(int u, int e) const { return __uint_as_float(high[u][e]) + __uint_as_float(low[u][e]); }
};

// where a lane's entries of a tile begin in a column-major matrix, and how far entry e is from there
__device__ inline int line_entry(int ld) { return 2 * (threadIdx.x % 4) * ld + threadIdx.x % WARP / 4; }
__device__ inline int line_step(int ld, int e) { return e % 2 * ld + e / 2 * (LINES / 2); }
// where those of the right factor begin
__device__ inline int factor_entry(int ld) { return threadIdx.x % WARP / 4 * ld + 2 * (threadIdx.x % 4); }

// y: the columns of Count strips of B
// Split: B holds high parts already, and `low` the others
template <int Ld, bool Split, int Count, int Strips>
__device__ void add_product(LineSums<Count, double>& y, const Lines<Strips, double>& x, const double* B, const double*) {
    B += factor_entry(Ld);
#pragma unroll
    for (int u = 0; u < Strips; u++) {
        asm volatile("" ::: "memory");                     // loads stay beside their products, else they fill the registers
#pragma unroll
        for (int j = 0; j < Count; j++) {
            const double2 b = *reinterpret_cast<const double2*>(B + j * LINE_STRIP * Ld + u * LINE_STRIP);
            multiply_tile(y[j], x.x[u], b.x, b.y);
        }
    }
}

template <int Ld, bool Split, int Count, int Strips>
__device__ void add_product(LineSums<Count, float>& y, const Lines<Strips, float>& x, const float* B, const float* low) {
    B += factor_entry(Ld), low += factor_entry(Ld);
    const auto multiply = [&](float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        multiply_tf32(sum, a[0], a[1], a[2], a[3], b[0], b[1]);
    };
#pragma unroll
    for (int u = 0; u < Strips; u++) {
        asm volatile("" ::: "memory");                     // loads stay beside their products, else they fill the registers
#pragma unroll
        for (int j = 0; j < Count; j++) {
            const int at = j * LINE_STRIP * Ld + u * LINE_STRIP;
            const float2 b = *reinterpret_cast<const float2*>(B + at);
            unsigned high[2], rest[2];
            if constexpr (Split) {
                const float2 c = *reinterpret_cast<const float2*>(low + at);
                high[0] = __float_as_uint(b.x), high[1] = __float_as_uint(b.y);
                rest[0] = __float_as_uint(c.x), rest[1] = __float_as_uint(c.y);
            } else {
                const Tf32Parts first(b.x), second(b.y);
                high[0] = first.high, high[1] = second.high, rest[0] = first.low, rest[1] = second.low;
            }
            multiply(y[j], x.low[u], high);
            multiply(y[j], x.high[u], rest);
            multiply(y[j], x.high[u], high);
        }
    }
}

}  // namespace svd
