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

// The upper triangle of G in tiles of 16 × 8: of rows 16 i … those from column 16 i on.
template <int N>
struct GramTiles {
    static constexpr int BANDS = N / 16, STRIPS = N / 8, TILES = BANDS * (BANDS + 1);
    __host__ __device__ static constexpr int index(int band, int strip) { return band * (STRIPS - band + 1) + strip - 2 * band; }
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
                    for (int h = 0; h < 2; h++) {
                        const int at = square_entry<N>(16 * i + line + 8 * h, 8 * j + 2 * quad);
                        double2* target = reinterpret_cast<double2*>(square + at);
                        const double2 old = turn == 0 ? double2{0, 0} : *target;
                        *target = {old.x + sum[index(i, j)][2 * h], old.y + sum[index(i, j)][2 * h + 1]};
                    }
        }
    }
};

// Entries (2t, g), (2t + 1, g) of Fᵀ for inner indices inner0 …, zero beyond F, times `scale`.
template <typename Real>
struct RowPair {
    double x, y;
    __device__ RowPair(const Real* row, bool valid, int inner0, int inner, double scale) {
        const int k = inner0 + 2 * (threadIdx.x % 4);
        x = valid && k < inner ? widened(__ldg(row + k)) * scale : 0;
        y = valid && k + 1 < inner ? widened(__ldg(row + k + 1)) * scale : 0;
    }
};

// G += Qᵀ Q for rows 8 octet … of Q = scale F Y.   Y(k, c): of `square` at (c, k) if Along, else at (k, c)
template <int N, bool Along, typename Stored, typename Real>
__device__ void add_octet(GramTiles<N>& G, const Stored* square, const Link<Real>& link, int octet, double scale) {
    const int row = octet * OCTET + threadIdx.x % WARP / 4;
    if (octet * OCTET >= link.rows) return;
    const bool valid = row < link.rows;
    const Real* F = link.F + static_cast<long long>(row) * link.inner;
    double q[GramTiles<N>::BANDS][4] = {};
    const int first = link.full() ? 0 : octet * OCTET;
    RowPair<Real> next(F, valid, first, link.inner, scale);
#pragma unroll 1
    for (int k = first; k < link.inner; k += OCTET) {
        const RowPair<Real> now = next;
        if (k + OCTET < link.inner) next = RowPair<Real>(F, valid, k + OCTET, link.inner, scale);
#pragma unroll
        for (int i = 0; i < GramTiles<N>::BANDS; i++) {
            asm volatile("" ::: "memory");      // loads stay beside their products, else they fill the registers
            double y[4];
            read_factor<N, Along>(y, square, 16 * i, k);
            multiply_tile(q[i], y, now.x, now.y);
        }
    }
    G.add(q);
}
