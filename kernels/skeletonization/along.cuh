// skeletonization/along.cuh — entries of stacks picked along an axis, zero where an index is none of it:
//     pick_rows:     out[b][i][j] = a[b][which[b][i]][j]
//     pick_columns:  out[b][i][j] = a[b][i][which[b][j]]
// As many lanes a row of `out` as its length asks for, up to a warp.
#pragma once
#include "common/thread/constants.cuh"
#include "skeletonization/thread/index.cuh"

namespace skeletonization {
using namespace common;

template <int Bytes> struct WordOf;
template <> struct WordOf<1> { using Type = unsigned char; };
template <> struct WordOf<4> { using Type = unsigned int; };
template <> struct WordOf<8> { using Type = unsigned long long; };
template <int Bytes> using Word = typename WordOf<Bytes>::Type;  // an entry of any type of that size

// The row of `out` that this thread has entries of, and its first one; 2^shift lanes have one.
struct Share {
    long long line;
    int first, step;

    __device__ Share(int threads, int shift)
        : line((static_cast<long long>(blockIdx.x) * threads + threadIdx.x) >> shift), first(threadIdx.x & ((1 << shift) - 1)), step(1 << shift) {}
};

// a: count × m × n, matrices `apart` entries from one to the next   which: count × k   lines: count · k   out: count × k × n
template <int Bytes, bool Wide, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void pick_rows(const Word<Bytes>* a, long long apart, const Index<Wide>* which, long long lines, int m, int k, int n, int shift,
               Word<Bytes>* out) {
    const Share share(Warps * WARP, shift);
    if (share.line >= lines) return;
    const Index<Wide> row = which[share.line];
    const bool known = row >= 0 && row < m;
    if (known) a += share.line / k * apart + static_cast<long long>(row) * n;
    out += share.line * n;
    for (int j = share.first; j < n; j += share.step) out[j] = known ? a[j] : 0;
}

// a as above   which: count × k   lines: count · height, height ≤ m   out: count × height × k
template <int Bytes, bool Wide, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void pick_columns(const Word<Bytes>* a, long long apart, const Index<Wide>* which, long long lines, int height, int n, int k, int shift,
                  Word<Bytes>* out) {
    const Share share(Warps * WARP, shift);
    if (share.line >= lines) return;
    const long long b = share.line / height;
    a += b * apart + (share.line - b * height) * n;
    which += b * k;
    out += share.line * k;
    for (int j = share.first; j < k; j += share.step) {
        const Index<Wide> column = which[j];
        out[j] = column >= 0 && column < n ? a[column] : 0;
    }
}

}  // namespace skeletonization
