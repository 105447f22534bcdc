// block/staged_rows.cuh — rows of a matrix on their way to shared memory, as long as the compiler knows them.
//
// Called by all threads of a block; everything has arrived when copies_arrived (thread/copy.cuh) and a barrier say so.
#pragma once
#include "thread/copy_pieces.cuh"

constexpr int WIDEST_COPY = 16;  // bytes
constexpr int UNROLLED = 8;      // copies of a thread behind one another
constexpr int TURN_ROWS = 8, TURN_COLUMNS = 4;  // that a warp turns at a time: whole sectors read, no bank asked for twice

// The most entries of a copy that divide all of the lengths.
template <typename Entry>
__host__ __device__ constexpr int copy_entries(int length, int lead, int pitch) {
    int entries = WIDEST_COPY / sizeof(Entry);
    while (length % entries || lead % entries || pitch % entries) entries /= 2;
    return entries;
}

// copy(i, piece) for i < rows ≤ Rows and every piece of a row, by turns of whole rows: places are then a step apart that the
// compiler knows.
template <int Threads, int Rows, int Pieces, typename Copy>
__device__ __forceinline__ void each_piece(int rows, Copy copy) {
    if constexpr (Pieces <= Threads) {
        constexpr int TOGETHER = Threads / Pieces;
        const int first = threadIdx.x / Pieces, piece = threadIdx.x - first * Pieces;
        if (first >= TOGETHER) return;
#pragma unroll UNROLLED
        for (int i = 0; i < Rows; i += TOGETHER)
            if (first + i < rows) copy(first + i, piece);
    } else {
#pragma unroll UNROLLED
        for (int at = threadIdx.x; at < Rows * Pieces; at += Threads)
            if (at / Pieces < rows) copy(at / Pieces, at % Pieces);
    }
}

// As stage_rows, Each entries at a time, of which source, Lead, Pitch and length are multiples.
template <int Each, int Threads, int Rows, int Length, int Lead, int Pitch, typename Entry>
__device__ __forceinline__ void stage_by(Entry* target, const Entry* source, int rows, int length) {
    constexpr int BYTES = Each * sizeof(Entry);
    each_piece<Threads, Rows, Length / Each>(rows, [&](int i, int piece) {
        const int j = piece * Each;
        if (j < length) copy_leading<BYTES>(target + i * Pitch + j, source + i * Lead + j, BYTES);
    });
}

// target[i · Pitch + j] = source[i · Lead + j] for i < rows ≤ Rows, j < length ≤ Length, whatever the alignment.   target is
// a multiple of 16 bytes
template <int Threads, int Rows, int Length, int Lead, int Pitch, typename Entry>
__device__ __forceinline__ void stage_rows(Entry* target, const Entry* source, int rows, int length) {
    constexpr int EACH = copy_entries<Entry>(Length, Lead, Pitch);
    if (EACH == 1 || reinterpret_cast<unsigned long long>(source) % (EACH * sizeof(Entry)) == 0)
        stage_by<EACH, Threads, Rows, Length, Lead, Pitch>(target, source, rows, length);
    else
        stage_by<1, Threads, Rows, Length, Lead, Pitch>(target, source, rows, length);
}

// target[i · Pitch + j] = source[j · Lead + i] for i < rows ≤ Rows, j < columns ≤ Columns, whatever the alignment.
template <int Threads, int Rows, int Columns, int Lead, int Pitch, typename Entry>
__device__ __forceinline__ void stage_turned(Entry* target, const Entry* source, int rows, int columns) {
    constexpr int ACROSS = (Rows + TURN_ROWS - 1) / TURN_ROWS, DOWN = (Columns + TURN_COLUMNS - 1) / TURN_COLUMNS;
#pragma unroll UNROLLED
    for (int e = threadIdx.x; e < ACROSS * DOWN * TURN_ROWS * TURN_COLUMNS; e += Threads) {
        const int patch = e / (TURN_ROWS * TURN_COLUMNS), i = patch % ACROSS * TURN_ROWS + e % TURN_ROWS;
        const int j = patch / ACROSS * TURN_COLUMNS + e / TURN_ROWS % TURN_COLUMNS;
        if (i < rows && j < columns) copy_leading<sizeof(Entry)>(target + i * Pitch + j, source + j * Lead + i, sizeof(Entry));
    }
}

// Rows of odd Lead in pieces of 16 bytes wherever they begin: target[i · Pitch + phase + j] = source[i · Lead + j] for
// i < rows ≤ Rows, j < length ≤ Length, where phase is what lies between the row's first entry and a multiple of 16 bytes before.
template <int Threads, int Rows, int Length, int Lead, int Pitch>
__device__ __forceinline__ void stage_lines(double* target, const double* source, int rows, int length) {
    constexpr int EACH = WIDEST_COPY / sizeof(double), PIECES = Length / EACH + 1;
    static_assert(Lead % EACH == 1 && Pitch % EACH == 0 && Pitch > Length, "phases by turns, pieces in their places");
    const int parity = static_cast<int>(reinterpret_cast<unsigned long long>(source) / sizeof(double) % EACH);
    each_piece<Threads, Rows, PIECES>(rows, [&](int i, int piece) {
        const int at = piece * EACH, phase = (parity + i) % EACH, left = length + phase - at;
        if (left > 0) copy_leading<WIDEST_COPY>(target + i * Pitch + at, source + i * Lead + at - phase, min(EACH, left) * int(sizeof(double)));
    });
}

// `count` ≤ Count entries behind one another; target lies `skew` entries behind a multiple of 16 bytes, as source does.
template <int Threads, int Count, typename Entry>
__device__ __forceinline__ void stage_run(Entry* target, const Entry* source, int count, int skew) {
    constexpr int EACH = WIDEST_COPY / sizeof(Entry);
    target -= skew, source -= skew, count += skew;
#pragma unroll UNROLLED
    for (int first = threadIdx.x * EACH; first < Count + EACH - 1; first += Threads * EACH)
        if (first < count) copy_leading<WIDEST_COPY>(target + first, source + first, min(EACH, count - first) * int(sizeof(Entry)));
}
