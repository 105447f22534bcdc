// block/gram_of_products.cuh — G = Σ_l Q_lᵀ Q_l of products Q_l = F_l Y_l, eight rows of Q at a time in a warp's registers.
//
//     Qᵀ = Yᵀ Fᵀ,   G += Qᵀ (Qᵀ)ᵀ
//
// Sums of the tensor cores are factors of the next product as they are (warp/tile_chain.cuh), so that Q never leaves the
// registers: of F every entry is read once, from device memory, of Y in shared memory once a warp and eight rows.
// Zeros of an upper triangular F are skipped. Every warp has a G of its own. Called by whole warps.
#pragma once
#include "block/link_queue.cuh"

constexpr int OCTET = 8;                        // rows of Q in hand

// The upper triangle of G in tiles of 16 × 8: of rows 16 i … those from column 16 i on, in pairs of halves.
template <int N>
struct GramTiles {
    static constexpr int BANDS = N / 16, STRIPS = N / 8, TILES = BANDS * (BANDS + 1);
    __host__ __device__ static constexpr int index(int band, int strip) { return band * (STRIPS - band + 1) + strip - 2 * band; }
    // Lines g and g + 8 of q's tiles are the columns 2g and 2g + 1 of a band (warp/crossed_square.cuh).
    static __device__ int row_of(int band, int line, int half) { return 16 * band + 2 * line + half; }
    static __device__ int column_of(int strip, int number) { return 16 * (strip / 2) + 2 * number + strip % 2; }
    double sum[TILES][4];

    __device__ void clear() {
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int e = 0; e < 4; e++) sum[t][e] = 0;
    }

    __device__ void add(const double (&q)[BANDS][4]) {
#pragma unroll
        for (int i = 0; i < BANDS; i++)
#pragma unroll
            for (int j = 2 * i; j < STRIPS; j++)
                multiply_tile(sum[index(i, j)], q[i], q[j / 2][j % 2 * 2], q[j / 2][j % 2 * 2 + 1]);
    }

    // square(i, j) ← the sum of all warps; the caller synchronizes.
    __device__ void total(double* square) const {
        const int warp = threadIdx.x / WARP, line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;
        for (int turn = 0; turn < LINK_THREADS / WARP; turn++) {
            __syncthreads();
            if (warp != turn) continue;
#pragma unroll
            for (int i = 0; i < BANDS; i++)
#pragma unroll
                for (int j = 2 * i; j < STRIPS; j++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        double* target = square + square_entry<N>(row_of(i, line, e / 2), column_of(j, 2 * quad + e % 2));
                        *target = turn == 0 ? sum[index(i, j)][e] : *target + sum[index(i, j)][e];
                    }
        }
    }
};

// Where rows 8 octet … of F begin.
template <typename Real>
__device__ int first_inner(const Link<Real>& link, int octet) { return link.full() ? 0 : octet * OCTET; }

// Rows 8 octet … of F as right factors Fᵀ: entries (2t, g), (2t + 1, g) for 8 inner indices at a time, AHEAD of their use.
template <typename Real>
struct RowStream {
    static constexpr int AHEAD = 4;             // products of 8 inner indices take less time than a read
    const Real* entry;                          // the lane's next to be read
    int next, inner;                            // its index, relative to which `inner` is the end; beyond: zeros
    double x[AHEAD][2];

    __device__ void open(const Link<Real>& link, int octet) {
        const int row = octet * OCTET + threadIdx.x % WARP / 4;
        next = first_inner(link, octet) + 2 * (threadIdx.x % 4), inner = row < link.rows ? link.inner : 0;
        entry = link.F + static_cast<long long>(row) * link.inner + next;
#pragma unroll
        for (int i = 0; i < AHEAD; i++) read(x[i]);
    }
    __device__ void read(double (&pair)[2]) {
        pair[0] = next < inner ? widened(__ldg(entry)) : 0;
        pair[1] = next + 1 < inner ? widened(__ldg(entry + 1)) : 0;
        next += OCTET, entry += OCTET;
    }
};

// G += Qᵀ Q for rows 8 octet … of Q = scale F Y, Yᵀ as `reader` reads it.   rows: as opened for this octet; `then` is
// called when they have been read, before the second product
template <int N, typename Reader, typename Real, typename Then>
__device__ void add_octet(GramTiles<N>& G, const Reader& reader, const Link<Real>& link, int octet, RowStream<Real>& rows,
                          double scale, Then then) {
    constexpr int BANDS = GramTiles<N>::BANDS;
    static_assert(BANDS % 2 == 0, "two tiles by turns");
    double q[BANDS][4] = {}, y[2][4];
    const int first = first_inner(link, octet);
    if (octet * OCTET >= link.rows) return then();
    reader.read(y[0], 0, first);
    const auto step = [&](double (&pair)[2], int k) {
        const double b0 = pair[0], b1 = pair[1];
        rows.read(pair);
#pragma unroll
        for (int i = 0; i < BANDS; i++) {
            if (i + 1 < BANDS) reader.read(y[(i + 1) % 2], 16 * (i + 1), k);
            else reader.read(y[0], 0, min(k + OCTET, N - OCTET));
            multiply_tile(q[i], y[i % 2], b0, b1);
        }
    };
    constexpr int AHEAD = RowStream<Real>::AHEAD;
#pragma unroll 1
    for (int k = first; k < link.inner; k += AHEAD * OCTET) // pairs by turns: none is moved before it is there
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (k + i * OCTET < link.inner) step(rows.x[i], k + i * OCTET);
    then();
    if (scale != 1)
#pragma unroll
        for (int i = 0; i < BANDS; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) q[i][e] *= scale;
    G.add(q);
}

// The octet that a warp takes after its first: short rows of a triangle after long ones.
template <int N>
__device__ int second_octet(int warp) {
    static_assert(N / OCTET == 2 * LINK_THREADS / WARP, "two octets a warp");
    return N / OCTET - 1 - warp;
}
