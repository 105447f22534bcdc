// qr/block/gram_of_products.cuh — G += QᵀQ, Q = F S X with rows of Q in the registers of warps, sixteen each.
//
//     P = F S  (F from device memory, S in shared memory),   Q = P X  (X upper triangular, in shared memory)
//
// Sums of the tensor cores are left factors of the next product as they are (common/warp/tile_chain.cuh), so that P stays where it
// is; Q goes through shared memory, because every warp has its own tiles of G. Zeros of an upper triangular F are skipped.
// Called by whole warps.
#pragma once
#include "common/thread/each_number.cuh"
#include "qr/block/link_queue.cuh"
#include "qr/warp/factor_tiles.cuh"

namespace qr {
using namespace common;

constexpr int BAND = 16, STEP = 8;              // rows of Q that a warp has in hand; inner indices of a product of tiles

// A warp's tiles of the upper triangle of G, 16 × 8 each: of all of them, band by band, the next BANDS + 1.
template <int N>
struct GramShare {
    static constexpr int BANDS = N / BAND, STRIPS = N / STEP, TILES = BANDS + 1;
    double sum[TILES][4];

    __host__ __device__ static constexpr int band_of(int tile) {
        int band = 0;
        for (int left = tile; left >= STRIPS - 2 * band; band++) left -= STRIPS - 2 * band;
        return band;
    }
    __host__ __device__ static constexpr int strip_of(int tile) {
        int left = tile;
        for (int band = 0; band < band_of(tile); band++) left -= STRIPS - 2 * band;
        return 2 * band_of(tile) + left;
    }
    __host__ __device__ static constexpr bool uses(int warp, int band) {
        for (int tile = warp * TILES; tile < (warp + 1) * TILES; tile++)
            if (band_of(tile) == band || strip_of(tile) / 2 == band) return true;
        return false;
    }

    __device__ void clear() {
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int e = 0; e < 4; e++) sum[t][e] = 0;
    }

    template <int Warp>
    static __device__ void read(double2 (&q)[BANDS][2], const FactorTiles<N>& Q, int step) {
        each_number<0, BANDS>([&](auto i) {
            if constexpr (uses(Warp, i.value))
                for (int half = 0; half < 2; half++) q[i.value][half] = Q.read(BAND * i.value, STEP * step, half);
        });
    }
    template <int Warp>
    __device__ void multiply(const double2 (&q)[BANDS][2]) {
#pragma unroll
        for (int half = 0; half < 2; half++)
            each_number<0, TILES>([&](auto t) {
                constexpr int i = band_of(Warp * TILES + t.value), j = strip_of(Warp * TILES + t.value);
                const double2 a = q[i][half], b = q[j / 2][half];
                multiply_half_tile(sum[t.value], a.x, a.y, j % 2 ? b.y : b.x);
            });
    }
    // The warp's tiles of QᵀQ, of bands first, first + stride … of Q before `end`.
    __device__ void add(const FactorTiles<N>& Q, int first, int end, int stride) {
        each_number<0, BANDS>([&](auto warp) {
            if (threadIdx.x / WARP != warp.value) return;
            double2 q[2][BANDS][2];
            read<warp.value>(q[0], Q, 2 * first);
#pragma unroll 1
            for (int band = first; band < end; band += stride) {
                read<warp.value>(q[1], Q, 2 * band + 1);
                multiply<warp.value>(q[0]);
                read<warp.value>(q[0], Q, min(2 * (band + stride), STRIPS - 1));
                multiply<warp.value>(q[1]);
            }
        });
    }

    // square(i, j) ← G where the tiles are.  Lines g and g + 8 of q's tiles are the columns 2g and 2g + 1 of a band.
    __device__ void store(double* square) const {
        const int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            const int tile = threadIdx.x / WARP * TILES + t, i = band_of(tile), j = strip_of(tile);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int row = BAND * i + 2 * line + e / 2, column = BAND * (j / 2) + 2 * (2 * quad + e % 2) + j % 2;
                square[square_entry<N>(row, column)] = sum[t][e];
            }
        }
    }
};

// Sixteen rows of F as left factors: entries (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) for 8 inner indices at a
// time, AHEAD of their use.
template <typename Real>
struct BandStream {
    static constexpr int TOGETHER = 2, AHEAD = 2 * TOGETHER;
    const Real *upper, *lower;                  // the lane's next to be read, of lines g and g + 8
    int next, upper_end, lower_end;             // its index; beyond the ends: zeros
    Real x[AHEAD][4];

    // Where a band of F begins.
    static __device__ int first(const Link<Real>& link, int band) { return link.full() ? 0 : BAND * band; }

    // wanted: else zeros
    __device__ void open(const Link<Real>& link, int band, bool wanted) {
        const int rows = wanted ? link.rows : 0, row = BAND * band + threadIdx.x % WARP / 4;
        next = first(link, band) + 2 * (threadIdx.x % 4);
        upper_end = row < rows ? link.inner : 0, lower_end = row + 8 < rows ? link.inner : 0;
        upper = link.F + row * link.inner + next, lower = upper + 8 * link.inner;
        read(0), read(TOGETHER);
    }
    // Those of TOGETHER times 8 inner indices, into x[to] …
    __device__ void read(int to) {
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                x[to + i][e] = next + STEP * i + e < upper_end ? __ldg(upper + STEP * i + e) : 0;
                x[to + i][2 + e] = next + STEP * i + e < lower_end ? __ldg(lower + STEP * i + e) : 0;
            }
        next += TOGETHER * STEP, upper += TOGETHER * STEP, lower += TOGETHER * STEP;
    }
    // The next; those after them move up, and later ones are on their way.
    __device__ void take(Real (&a)[TOGETHER][4]) {
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) a[i][e] = x[i][e], x[i][e] = x[TOGETHER + i][e];
        read(TOGETHER);
    }
};

// p ← rows 16 band … of F S, or F Sᵀ if Along.   rows: as opened for this band
template <int N, bool Along, typename Real>
__device__ void multiply_band(Real (&p)[N / STEP][4], BandStream<Real>& rows, const Real* S, const Link<Real>& link,
                              int band) {
    constexpr int TOGETHER = BandStream<Real>::TOGETHER;
    const RightReader<N, Along, Real> reader(S);
#pragma unroll
    for (int j = 0; j < N / STEP; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) p[j][e] = 0;
#pragma unroll 1
    for (int k = BandStream<Real>::first(link, band); k < link.inner; k += TOGETHER * STEP) {
        Real a[TOGETHER][4];
        rows.take(a);
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
#pragma unroll
            for (int j = 0; j < N / STEP; j++) {
                Real s[2];
                reader.read(s, k + STEP * i, STEP * j);
                multiply_tile(p[j], a[i], s[0], s[1]);
            }
    }
}

// Upper triangular X in tiles 8 × 8 as they are read: (2t, g), (2t + 1, g).
template <int N>
struct RightTriangle {
    static constexpr int STRIPS = N / STEP, TILE = 2 * WARP, ENTRIES = STRIPS * (STRIPS + 1) / 2 * TILE;
    double entries[ENTRIES];

    static __device__ int entry(int row, int column) {
        const int above = row / 8, strip = column / 8, lane = column % 8 * 4 + row % 8 / 2;
        return (strip * (strip + 1) / 2 + above) * TILE + 2 * lane + row % 2;
    }
    // p ← p X, two strips at a time from the last on.
    __device__ void apply(double (&p)[STRIPS][4]) const {
        const double2* lane = reinterpret_cast<const double2*>(entries) + threadIdx.x % WARP;
#pragma unroll
        for (int last = STRIPS - 1; last > 0; last -= 2) {
            double q[2][4] = {};
#pragma unroll
            for (int k = 0; k <= last; k++)
#pragma unroll
                for (int j = last - 1; j <= last; j++) {
                    if (k > j) continue;
                    const double2 x = lane[(j * (j + 1) / 2 + k) * WARP];
                    multiply_tile(q[j - last + 1], p[k], x.x, x.y);
                }
#pragma unroll
            for (int e = 0; e < 8; e++) p[last - 1 + e / 4][e % 4] = q[e / 4][e % 4];
        }
    }
};

}  // namespace qr
