// products/gemv.cuh — out_b = α A_b x_b + β y_b and out_b = α A_bᵀ x_b + β y_b, every entry of A_b read once.
//
// Pieces of 16 bytes are read from multiples of 16 bytes on, whatever the rows' first entries: threads start before the row,
// and what belongs to another row is not added (Dong et al. 2017, padding). Threads beyond the last row read it once more
// (Nath, Tomov & Dongarra 2010, pointer redirecting).
#pragma once
#include "common/thread/tiling.cuh"
#include "common/warp/part_sums.cuh"
#include "products/thread/multiply_add.cuh"
#include "products/thread/operands.cuh"

namespace products {
using namespace common;

constexpr int PIECE_BYTES = 16;
constexpr long long UINT_LARGEST = 0xffffffff;
constexpr int AHEAD = 4;       // pieces of one row a thread reads together
constexpr int ROWS_AHEAD = 4, STREAMED_AHEAD = 8;  // rows of the transposed product a thread reads together; of a whole warp's strips

template <typename Entry> struct alignas(PIECE_BYTES) Piece {
    static constexpr int COUNT = PIECE_BYTES / sizeof(Entry);
    Entry entry[COUNT];
};

// A team of Lanes lanes takes Rows rows; more lanes than a warp's add up through shared memory.
// A: batch × m × n   x: n each   y, out: m each   table: products/thread/operands.cuh
// first, owner, each: common/thread/tiling.cuh, of tiles of all rows of a block; not asked for without a table
// Aligned: every row and x begin at multiples of 16 bytes   a lane of a team with one row asks for AHEAD pieces together
template <typename Entry, int Threads, int Lanes, int Rows, bool Aligned>
__global__ __launch_bounds__(Threads)
void gemv_rows(const Entry* A, const Entry* x, const Entry* y, Entry* out, const long long* table, long long batch,
               const long long* first, const int* owner, int each, int m, int n, Entry alpha, Entry beta) {
    constexpr int TEAMS = Threads / Lanes, COUNT = Piece<Entry>::COUNT, STEPS = Rows == 1 ? AHEAD : 1;
    const int team = threadIdx.x / Lanes, lane = threadIdx.x % Lanes;
    long long b, group;
    if (table) {
        const Tile tile = tile_of_block(first, owner, each);
        b = tile.matrix, group = static_cast<long long>(tile.index) * TEAMS + team;
    } else {
        const long long unit = static_cast<long long>(blockIdx.x) * TEAMS + team;
        const int groups = (m + Rows - 1) / Rows;
        b = unit <= UINT_LARGEST ? static_cast<unsigned>(unit) / static_cast<unsigned>(groups) : unit / groups;  // by 32 bits in a fifth of the clocks
        group = unit - b * groups;
    }
    const bool live = b < batch;
    const Operands at(table, batch, live ? b : 0, m, n, n, m);
    m = at.m, n = at.n, x += at.x;
    const long long row0 = group * Rows;
    Entry sum[Rows] = {};
    if (live && row0 < m && n > 0) {
        const Piece<Entry>* row[Rows];
        int skew[Rows];
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            const Entry* begin = A + at.a + min(row0 + r, static_cast<long long>(m - 1)) * n;
            skew[r] = Aligned ? 0 : static_cast<int>(reinterpret_cast<unsigned long long>(begin) % PIECE_BYTES / sizeof(Entry));
            row[r] = reinterpret_cast<const Piece<Entry>*>(begin - skew[r]);
        }
        const int pieces = (n + (Aligned ? 0 : COUNT - 1) + COUNT - 1) / COUNT;
        for (int k0 = lane; k0 < pieces; k0 += STEPS * Lanes) {
            Piece<Entry> a[STEPS][Rows], same[STEPS];
#pragma unroll
            for (int s = 0; s < STEPS; s++) {
                const int k = k0 + s * Lanes;
                if (s > 0 && k >= pieces) break;
#pragma unroll
                for (int r = 0; r < Rows; r++) a[s][r] = row[r][Aligned ? k : min(k, (n - 1 + skew[r]) / COUNT)];
                if (Aligned) same[s] = reinterpret_cast<const Piece<Entry>*>(x)[k];
            }
#pragma unroll
            for (int s = 0; s < STEPS; s++) {
                const int k = k0 + s * Lanes;
                if (s > 0 && k >= pieces) break;
#pragma unroll
                for (int r = 0; r < Rows; r++)
#pragma unroll
                    for (int e = 0; e < COUNT; e++) {
                        const int j = k * COUNT + e - skew[r];
                        if (Aligned) sum[r] = multiply_add(sum[r], a[s][r].entry[e], same[s].entry[e]);
                        else if (j >= 0 && j < n) sum[r] = multiply_add(sum[r], a[s][r].entry[e], x[j]);
                    }
            }
        }
    }
    __shared__ Entry parts[Lanes > WARP ? Threads / WARP : 1];
#pragma unroll
    for (int r = 0; r < Rows; r++) {
        Entry total = part_sum<1, (Lanes < WARP ? Lanes : WARP)>(sum[r]);
        if constexpr (Lanes > WARP) {
            static_assert(Rows == 1, "a row's parts of all its warps are in shared memory together");
            if (lane % WARP == 0) parts[threadIdx.x / WARP] = total;
            __syncthreads();
            if (lane == 0)
#pragma unroll
                for (int w = 1; w < Lanes / WARP; w++) total = plus(total, parts[threadIdx.x / WARP + w]);
        }
        if (live && lane == r % Lanes && row0 + r < m) out[at.out + row0 + r] = scaled_sum(alpha, total, beta, y + at.y + row0 + r);
    }
}

// A block takes a strip of Lanes · Count columns; its teams of Lanes lanes share the rows.
// A: batch × m × n   x: m each   y, out: n each   table, first, owner, each: as above, of strips of columns
// Count: entries a lane reads together; rows begin at multiples of as many   shared memory: Threads · Count entries
template <typename Entry, int Threads, int Lanes, int Count>
__global__ __launch_bounds__(Threads)
void gemv_columns(const Entry* A, const Entry* x, const Entry* y, Entry* out, const long long* table, long long batch,
                  const long long* first, const int* owner, int each, int m, int n, Entry alpha, Entry beta) {
    struct alignas(Count * sizeof(Entry)) Part { Entry entry[Count]; };
    extern __shared__ __align__(16) unsigned char memory[];
    Part* parts = reinterpret_cast<Part*>(memory);  // warps × Lanes
    constexpr int TEAMS = Threads / Lanes, WARPS = Threads / WARP;
    constexpr bool STREAMED = Lanes == WARP && sizeof(Part) == PIECE_BYTES;  // entries are read once: they need not stay in a cache
    const Tile tile = tile_of_block(first, owner, each);
    const Operands at(table, batch, tile.matrix, m, n, m, n);
    m = at.m, n = at.n, x += at.x;
    const int team = threadIdx.x / Lanes, lane = threadIdx.x % Lanes, column = (tile.index * Lanes + lane) * Count;
    const bool inside = column < n;
    Part sum = {};
    if (m > 0 && n > 0) {
        const Entry* from = A + at.a + (inside ? column : 0);
        const auto add = [&](const Part& a, int i) {
            const Entry factor = x[i];
#pragma unroll
            for (int e = 0; e < Count; e++) sum.entry[e] = multiply_add(sum.entry[e], a.entry[e], factor);
        };
        if constexpr (STREAMED) {
            int i = team;
            for (; i + (STREAMED_AHEAD - 1) * TEAMS < m; i += STREAMED_AHEAD * TEAMS) {
                int4 a[STREAMED_AHEAD];
#pragma unroll
                for (int r = 0; r < STREAMED_AHEAD; r++) a[r] = __ldcs(reinterpret_cast<const int4*>(from + static_cast<long long>(i + r * TEAMS) * n));
#pragma unroll
                for (int r = 0; r < STREAMED_AHEAD; r++) add(reinterpret_cast<const Part&>(a[r]), i + r * TEAMS);
            }
            for (; i < m; i += TEAMS) add(*reinterpret_cast<const Part*>(from + static_cast<long long>(i) * n), i);
        } else {
            for (int i = team; i < m; i += ROWS_AHEAD * TEAMS) {
                Part a[ROWS_AHEAD];
#pragma unroll
                for (int r = 0; r < ROWS_AHEAD; r++) a[r] = *reinterpret_cast<const Part*>(from + static_cast<long long>(min(i + r * TEAMS, m - 1)) * n);
#pragma unroll
                for (int r = 0; r < ROWS_AHEAD; r++) {
                    if (i + r * TEAMS >= m) break;
                    add(a[r], i + r * TEAMS);
                }
            }
        }
    }
#pragma unroll
    for (int e = 0; e < Count; e++) sum.entry[e] = part_sum<Lanes, WARP>(sum.entry[e]);
    if (WARPS > 1) {
        if (threadIdx.x % WARP < Lanes) parts[threadIdx.x / WARP * Lanes + lane] = sum;
        __syncthreads();
        if (threadIdx.x >= Lanes) return;
#pragma unroll 1
        for (int w = 1; w < WARPS; w++)
#pragma unroll
            for (int e = 0; e < Count; e++) sum.entry[e] = plus(sum.entry[e], parts[w * Lanes + lane].entry[e]);
    }
    if (threadIdx.x >= Lanes || !inside) return;
#pragma unroll
    for (int e = 0; e < Count; e++)
        if (column + e < n) out[at.out + column + e] = scaled_sum(alpha, sum.entry[e], beta, y + at.y + column + e);
}

}  // namespace products
