// qr/block/link_queue.cuh — the factors F_l, S_l of one segment's links, from a few lists, and S_l on its way to shared memory.
//
// Called by the whole block of Threads threads.
#pragma once
#include "common/thread/copy.cuh"
#include "qr/warp/turned_square.cuh"

namespace qr {
using namespace common;

// One list as the host describes it, 64 bits a field: addresses of the buffers, (links,) numbers and (segments + 1,) `first`
struct LinkList {
    const void *F, *S;
    const long long *F_offsets, *F_rows, *F_columns, *S_offsets, *first;
    long long flags;                            // sum of the following
    __device__ int links(int segment) const { return static_cast<int>(first[segment + 1] - first[segment]); }
};
constexpr int TURNED = 1, FULL = 2;             // P = F Sᵀ, not F S;   F is not upper triangular

template <typename Real>
struct Link {
    const Real *F, *S;
    int rows, inner;                            // F: rows × inner, row by row
    int flags;
    __device__ bool turned() const { return flags & TURNED; }
    __device__ bool full() const { return flags & FULL; }
};

// The next links of a segment, one a thread.
template <typename Real, int Threads>
struct LinkQueue {
    Link<Real> link[Threads];

    // Reads those from number `start` on and returns how many they are.
    __device__ int fill(const LinkList* lists, int count, int segment, int start) {
        __syncthreads();                        // all have used the last ones
        int before = 0, mine = start + static_cast<int>(threadIdx.x);
        for (int i = 0; i < count; i++) {
            const LinkList& list = lists[i];
            const int here = list.links(segment);
            const long long l = list.first[segment] + mine - before;
            if (mine >= before && mine - before < here)
                link[threadIdx.x] = {static_cast<const Real*>(list.F) + list.F_offsets[l],
                                     static_cast<const Real*>(list.S) + list.S_offsets[l],
                                     static_cast<int>(list.F_rows[l]), static_cast<int>(list.F_columns[l]),
                                     static_cast<int>(list.flags)};
            before += here;
        }
        __syncthreads();
        return min(before - start, Threads);
    }
};

// square(a, b) = S(a, b), zero beyond: pieces of 16 bytes from row a0 and column b0 on. `order` says which row comes to a.
template <int N, int Threads, bool Whole, typename Real>
__device__ void copy_pieces(Real* square, const Real* S, int height, int width, const int* order, int a0, int b0) {
    constexpr int EACH = 16 / sizeof(Real), PIECES = N / EACH, STEP = Threads / PIECES, TURNS = TURNS_REPEAT / STEP;
    static_assert(Threads % PIECES == 0 && TURNS_REPEAT % STEP == 0, "whole rows at a time");
    const int b = threadIdx.x % PIECES * EACH, first = threadIdx.x / PIECES;
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(square));
    if (b < b0) return;
    unsigned entry[TURNS];
#pragma unroll
    for (int i = 0; i < TURNS; i++) entry[i] = target + square_entry<N, Real>(first + i * STEP, b) * sizeof(Real);
    const Real* const source = S + b;
#pragma unroll 2
    for (; a0 < N; a0 += TURNS_REPEAT)
#pragma unroll
        for (int i = 0; i < TURNS; i++) {
            const int a = a0 + first + i * STEP, row = order ? order[a] : a;
            const bool valid = Whole || (row < height && b < width);
            copy_piece(entry[i] + a0 * N * sizeof(Real), source + row * (Whole ? N : width), valid);
        }
}

// The same by single entries; `order` says which column comes to b, or which row to a if `rows`.
template <int N, int Threads, bool Whole, typename Real>
__device__ void copy_entries(Real* square, const Real* S, int height, int width, const int* order, bool rows) {
    constexpr int STEP = Threads / N, TURNS = TURNS_REPEAT / STEP;
    const int b = threadIdx.x % N, first = threadIdx.x / N, column = order && !rows ? order[b] : b;
    Real* entry[TURNS];
#pragma unroll
    for (int i = 0; i < TURNS; i++) entry[i] = square + square_entry<N, Real>(first + i * STEP, b);
    const Real* const source = S + column + (Whole ? first * N : 0);
#pragma unroll (Whole ? N / TURNS_REPEAT : 1)
    for (int a0 = 0; a0 < N; a0 += TURNS_REPEAT)
#pragma unroll
        for (int i = 0; i < TURNS; i++) {
            const int a = a0 + first + i * STEP, row = order && rows ? order[a] : a;
            if (Whole) copy_async(entry[i] + a0 * N, source + (a0 + i * STEP) * N, true);
            else copy_async(entry[i] + a0 * N, source + row * width, row < height && column < width);
        }
}

// The link's S into square(a, b), zero beyond its rows × columns; not needed are inner indices before `inner0`, a multiple
// of 16. `order`, where given, says which index of the product's columns comes to which: rows if turned, else columns.
template <int N, int Threads, typename Real>
__device__ void copy_square(Real* square, const Link<Real>& link, int columns, const int* order, int inner0) {
    const bool turned = link.turned();
    const int height = turned ? columns : link.inner, width = turned ? link.inner : columns;
    const bool pieces = reinterpret_cast<unsigned long long>(link.S) % 16 == 0 && width % (16 / sizeof(Real)) == 0;
    const bool whole = height == N && width == N;
    const int a0 = turned ? 0 : inner0, b0 = turned ? inner0 : 0;
    if (pieces && (turned || !order)) {
        if (whole) copy_pieces<N, Threads, true>(square, link.S, height, width, order, a0, b0);
        else copy_pieces<N, Threads, false>(square, link.S, height, width, order, a0, b0);
    } else if (whole && !(turned && order)) {
        copy_entries<N, Threads, true>(square, link.S, height, width, order, turned);
    } else {
        copy_entries<N, Threads, false>(square, link.S, height, width, order, turned);
    }
}

}  // namespace qr
