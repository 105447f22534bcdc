// products/warp/lane_product.cuh — a warp's part of C += op(A) op(B), both in shared memory, on the vector pipe, by tiles of 8 × 8.
// Edges: as products/warp/staged_product.cuh.
#pragma once
#include "common/thread/pair.cuh"
#include "products/thread/multiply_add.cuh"
#include "products/warp/share.cuh"

namespace products {
using namespace common;

// Any kind of number on the vector pipe.   A: op(A)_ik at i · PitchA + k, op(B)_kj at k · PitchB + j
template <typename Entry, int RowStrips, int Strips, int WarpRows, int WarpColumns, bool AllRows, int PitchA, int PitchB>
struct LaneProduct {
    static constexpr int STRIP = 8, CHUNK = 16 / sizeof(Entry), UNIT = CHUNK;
    static constexpr int OWN_ROWS = (RowStrips + WarpRows - 1) / WarpRows, OWN_STRIPS = (Strips + WarpColumns - 1) / WarpColumns;
    Entry sum[OWN_ROWS][OWN_STRIPS][2] = {};
    Share first;
    int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4, strips;

    __device__ LaneProduct(int warp, int rows) : first(warp, WarpRows, WarpColumns), strips((rows + STRIP - 1) / STRIP) {}

    template <int Depth>
    __device__ void add(const Entry* A, const Entry* B) {
        A += (first.row * STRIP + g) * PitchA, B += first.column * STRIP + 2 * t;
        first.with_share<OWN_ROWS, OWN_STRIPS, WarpRows, WarpColumns, AllRows && RowStrips % WarpRows == 0, Strips>(
            strips, [&](auto rows, auto own) {
                constexpr int WHOLE = Depth / CHUNK * CHUNK, TOGETHER = 2;
#pragma unroll TOGETHER
                for (int k = 0; k < WHOLE; k += CHUNK) step<CHUNK, rows.value, own.value>(A + k, B + k * PitchB);
                if constexpr (Depth > WHOLE) step<Depth - WHOLE, rows.value, own.value>(A + WHOLE, B + WHOLE * PitchB);
            });
    }

    // The same over `steps` times UNIT, where all warps have as many strips   Known: to the compiler
    template <bool Known>
    __device__ void add_steps(const Entry* A, const Entry* B, int steps) {
        static_assert(RowStrips % WarpRows == 0 && Strips % WarpColumns == 0, "warps have as many strips");
        A += (first.row * STRIP + g) * PitchA, B += first.column * STRIP + 2 * t;
        constexpr int TOGETHER = Known ? 2 : 1;
#pragma unroll TOGETHER
        for (int s = 0; s < steps; s++) step<CHUNK, OWN_ROWS, OWN_STRIPS>(A + s * CHUNK, B + s * CHUNK * PitchB);
    }

    // The same over as many as there are, known at run time; columns: of C that count
    __device__ void add_up_to(const Entry* A, const Entry* B, int depth, int columns) {
        A += (first.row * STRIP + g) * PitchA, B += first.column * STRIP + 2 * t;
        const int own_rows = per_warp(strips - first.row, WarpRows), own_strips = per_warp((columns + STRIP - 1) / STRIP - first.column, WarpColumns);
        int k = 0;
#pragma unroll 1
        for (; k + CHUNK <= depth; k += CHUNK) step<CHUNK, OWN_ROWS, OWN_STRIPS>(A + k, B + k * PitchB, CHUNK, own_rows, own_strips);
        if (k < depth) step<CHUNK, OWN_ROWS, OWN_STRIPS>(A + k, B + k * PitchB, depth - k, own_rows, own_strips);
    }

    template <typename Store>
    __device__ void each_pair(Store store) const {
#pragma unroll
        for (int i = 0; i < OWN_ROWS; i++)
#pragma unroll
            for (int j = 0; j < OWN_STRIPS; j++)
                store((first.row + i * WarpRows) * STRIP + g, (first.column + j * WarpColumns) * STRIP + 2 * t, sum[i][j][0], sum[i][j][1]);
    }

  private:
    struct alignas(16) Chunk { Entry entry[CHUNK]; };

    // `count` of the inner indices that one read of A brings; own_rows, own_strips: of OwnRows × OwnStrips that there are
    template <int Count, int OwnRows, int OwnStrips>
    __device__ __forceinline__ void step(const Entry* A, const Entry* B, int count = Count, int own_rows = OwnRows, int own_strips = OwnStrips) {
        Chunk a[OwnRows];
#pragma unroll
        for (int i = 0; i < OwnRows; i++)
            if (i < own_rows) a[i] = *reinterpret_cast<const Chunk*>(A + i * WarpRows * STRIP * PitchA);
#pragma unroll
        for (int e = 0; e < Count; e++)
#pragma unroll
            for (int j = 0; j < OwnStrips; j++) {
                if (e >= count || j >= own_strips) break;
                const Pair<Entry> b = *reinterpret_cast<const Pair<Entry>*>(B + e * PitchB + j * WarpColumns * STRIP);
#pragma unroll
                for (int i = 0; i < OwnRows; i++) {
                    if (i >= own_rows) break;
                    sum[i][j][0] = multiply_add(sum[i][j][0], a[i].entry[e], b.x);
                    sum[i][j][1] = multiply_add(sum[i][j][1], a[i].entry[e], b.y);
                }
            }
    }
};

}  // namespace products
