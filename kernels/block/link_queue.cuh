// block/link_queue.cuh — the factors F_l, S_l of one segment's links, from a few lists, and S_l on its way to shared memory.
//
// Called by the whole block of LINK_THREADS threads.
#pragma once
#include "thread/copy.cuh"
#include "warp/crossed_square.cuh"

constexpr int LINK_THREADS = 128;

// One list as the host describes it, 64 bits a field: addresses of the buffers, (links,) numbers and (segments + 1,) `first`
struct LinkList {
    const void *F, *S;
    const long long *F_offsets, *F_rows, *F_columns, *S_offsets, *first;
    long long flags;                            // sum of the following
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

// The next LINK_THREADS links of a segment.
template <typename Real>
struct LinkQueue {
    Link<Real> link[LINK_THREADS];

    // Reads those from number `start` on and returns how many they are.
    __device__ int fill(const LinkList* lists, int count, int segment, int start) {
        __syncthreads();                        // all have used the last ones
        int before = 0, mine = start + static_cast<int>(threadIdx.x);
        for (int i = 0; i < count; i++) {
            const LinkList& list = lists[i];
            const long long first = list.first[segment];
            const int here = static_cast<int>(list.first[segment + 1] - first), at = mine - before;
            if (at >= 0 && at < here)
                link[threadIdx.x] = {static_cast<const Real*>(list.F) + list.F_offsets[first + at],
                                     static_cast<const Real*>(list.S) + list.S_offsets[first + at],
                                     static_cast<int>(list.F_rows[first + at]),
                                     static_cast<int>(list.F_columns[first + at]), static_cast<int>(list.flags)};
            before += here;
        }
        __syncthreads();
        return min(before - start, LINK_THREADS);
    }
};

// square(a, b) = S(a, b) of the rows × columns of S, zero beyond; where `place` is given, index `columns` of the product
// goes to its place: a if turned, else b.
template <int N, typename Real>
__device__ void copy_square(Real* square, const Link<Real>& link, int columns, const int* place) {
    const int height = link.turned() ? columns : link.inner, width = link.turned() ? link.inner : columns;
    constexpr int EACH = 16 / sizeof(Real), PIECES = N / EACH, PERIOD = 8;    // turn_of repeats after so many rows
    const bool whole = width % EACH == 0 && reinterpret_cast<unsigned long long>(link.S) % 16 == 0;
    if (sizeof(Real) == sizeof(double) && whole && (!place || link.turned())) {
        constexpr int STEP = LINK_THREADS / PIECES;
        const int b = threadIdx.x % PIECES * EACH, first = threadIdx.x / PIECES, end = b < width ? height : 0;
        const Real* source = link.S + first * width + b;
#pragma unroll 4
        for (int a = first; a < N; a += STEP, source += STEP * width) {
            Real* target = square + square_entry<N>(place ? place[a] : a, b);
            copy_piece(static_cast<unsigned>(__cvta_generic_to_shared(target)), source, a < end);
        }
        return;
    }
    constexpr int STEP = LINK_THREADS / N, TURNS = PERIOD / STEP;
    const int b = threadIdx.x % N, first = threadIdx.x / N, end = b < width ? height : 0;
    const int column = place && !link.turned() ? place[b] : b, *to = link.turned() ? place : nullptr;
    const Real* source = link.S + first * width + b;
    int entry[TURNS];
#pragma unroll
    for (int i = 0; i < TURNS; i++) entry[i] = square_entry<N>(first + i * STEP, column);
#pragma unroll 2
    for (int a0 = 0; a0 < N; a0 += PERIOD)
#pragma unroll
        for (int i = 0; i < TURNS; i++, source += STEP * width) {
            const int a = a0 + first + i * STEP;
            copy_async(square + (to ? square_entry<N>(to[a], column) : entry[i] + a0 * N), source, a < end);
        }
}
