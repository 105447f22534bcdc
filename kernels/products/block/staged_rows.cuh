// products/block/staged_rows.cuh — rows of a matrix on their way to shared memory, as long as the compiler knows them.
//
// Called by all threads of a block; everything has arrived when copies_arrived (common/thread/copy.cuh) and a barrier say so.
#pragma once
#include "products/thread/copy_pieces.cuh"

namespace products {

constexpr int WIDEST_COPY = 16;  // bytes
constexpr int UNROLLED = 8, UNROLLED_ROWS = 32;  // copies of a thread behind one another, those of whole rows apart
constexpr int TURN_ROWS = 8, TURN_COLUMNS = 4;  // that a warp turns at a time: whole sectors read, no bank asked for twice

// The most entries of a copy that divide all of the lengths.
template <typename Entry>
__host__ __device__ constexpr int copy_entries(int length, int lead, int pitch) {
    int entries = WIDEST_COPY / sizeof(Entry);
    while (length % entries || lead % entries || pitch % entries) entries /= 2;
    return entries;
}

// threadIdx.x, asked for anew: what follows from it takes no registers from one slab to the next.
__device__ __forceinline__ int fresh_thread() {
#ifdef __CUDA_ARCH__
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
#else
    return threadIdx.x;
#endif
}

// As stage_rows, Each entries at a time, of which source, Lead, Pitch and length are multiples. A thread's copies are whole rows
// apart.
template <int Each, int Threads, int Rows, int Length, int Lead, int Pitch, bool FewerRows, bool Shorter, typename Entry>
__device__ __forceinline__ void stage_by(Entry* target, const Entry* source, int rows, int length) {
    constexpr int PIECES = Length / Each, TOGETHER = PIECES < Threads ? Threads / PIECES : 1, ACROSS = PIECES < Threads ? PIECES : Threads;
    const int thread = fresh_thread(), first = thread / ACROSS, piece = thread - first * ACROSS, left = rows - first;
    if (first >= TOGETHER) return;
    const CopyPlace<Entry> place(target + first * Pitch + piece * Each, source + first * Lead + piece * Each);
#pragma unroll
    for (int across = 0; across < PIECES; across += ACROSS) {
        if (across + ACROSS > PIECES && piece >= PIECES - across) break;
        const bool inside = !Shorter || (across + piece) * Each < length;
#pragma unroll UNROLLED_ROWS
        for (int i = 0; i < Rows; i += TOGETHER)
            if (i + TOGETHER <= Rows || first < Rows - i)
                place.template copy<Each>(i * Pitch + across * Each, i * Lead + across * Each, inside && (!FewerRows || i < left));
    }
}

// target[i · Pitch + j] = source[i · Lead + j] for i < rows, j < length, zeros for other i < Rows, j < Length, whatever the
// alignment.   target is a multiple of 16 bytes
// FewerRows, Shorter: whether rows may be less than Rows, length than Length
template <int Threads, int Rows, int Length, int Lead, int Pitch, bool FewerRows, bool Shorter, typename Entry>
__device__ __forceinline__ void stage_rows(Entry* target, const Entry* source, int rows, int length) {
    constexpr int EACH = copy_entries<Entry>(Length, Lead, Pitch);
    if (EACH == 1 || reinterpret_cast<unsigned long long>(source) % (EACH * sizeof(Entry)) == 0)
        stage_by<EACH, Threads, Rows, Length, Lead, Pitch, FewerRows, Shorter>(target, source, rows, length);
    else
        stage_by<1, Threads, Rows, Length, Lead, Pitch, FewerRows, Shorter>(target, source, rows, length);
}

// target[i · Pitch + j] = source[j · Lead + i] for i < rows, j < columns, zeros for other i < Rows, j < Columns, whatever the
// alignment.
template <int Threads, int Rows, int Columns, int Lead, int Pitch, typename Entry>
__device__ __forceinline__ void stage_turned(Entry* target, const Entry* source, int rows, int columns) {
    constexpr int ACROSS = (Rows + TURN_ROWS - 1) / TURN_ROWS, DOWN = (Columns + TURN_COLUMNS - 1) / TURN_COLUMNS;
#pragma unroll UNROLLED
    for (int e = threadIdx.x; e < ACROSS * DOWN * TURN_ROWS * TURN_COLUMNS; e += Threads) {
        const int patch = e / (TURN_ROWS * TURN_COLUMNS), i = patch % ACROSS * TURN_ROWS + e % TURN_ROWS;
        const int j = patch / ACROSS * TURN_COLUMNS + e / TURN_ROWS % TURN_COLUMNS;
        if (i < Rows && j < Columns)
            copy_leading<sizeof(Entry)>(target + i * Pitch + j, source + j * Lead + i, i < rows && j < columns ? sizeof(Entry) : 0);
    }
}

// `count` ≤ Count entries behind one another; target lies `skew` entries behind a multiple of 16 bytes, as source does. What of
// the first 16 bytes lies before source is copied too. Copies of lengths that only the program knows are 25 instructions each: the
// last entries, fewer than 16 bytes, go one by one.
template <int Threads, int Count, typename Entry>
__device__ __forceinline__ void stage_run(Entry* target, const Entry* source, int count, int skew) {
    constexpr int EACH = WIDEST_COPY / sizeof(Entry), NEXT = Threads * EACH;
    static_assert(EACH <= Threads, "a thread for each of the last entries");
    const int thread = fresh_thread(), begin = thread * EACH;
    target -= skew, source -= skew, count += skew;
    const CopyPlace<Entry> place(target + begin, source + begin);
    const int whole = count / EACH * EACH;
#pragma unroll UNROLLED
    for (int at = 0; at < Count + EACH - 1; at += NEXT)
        if (begin < whole - at) place.template copy<EACH>(at, at, true);
    if (thread < count - whole) copy_leading<sizeof(Entry)>(target + whole + thread, source + whole + thread, sizeof(Entry));
}

}  // namespace products
