// qr/block/product_passes.cuh — a pass of qr/product_triangles.cuh over the links of a segment: Σ QᵀQ of Q = F S X.
//
// S comes to shared memory while the products of the link before are made; Q takes its place. Warps take the bands of F by
// turns, as those of a triangle differ in length. Called by the whole block, a warp for each 16 columns.
#pragma once
#include "qr/block/gram_of_products.cuh"
#include "qr/block/pivoted_sweep.cuh"

namespace qr {

// What the preconditioned pass needs; nothing in float32.
template <int N, bool Wide>
struct Preconditioner {
    int order[N];                               // which column of S comes where, so that strips of P have it in place
    double first_diagonal[N], column[N];        // of R₁;   scales or errors of columns of G₂
    RightTriangle<N> inverse;                   // Π R₁⁻¹
};
template <int N>
struct Preconditioner<N, false> {};

template <int N, typename Real>
struct ProductMemory : Preconditioner<N, sizeof(Real) == sizeof(double)> {   // shared
    static constexpr int SQUARE = N * N, THREADS = N / BAND * WARP;
    static constexpr bool WIDE = sizeof(Real) == sizeof(double);
    alignas(16) double square[2][SQUARE];       // S and then Q by turns;   R₂ and G.   In float32 Q, and two S or G
    typename PivotedSweep<N, THREADS>::Memory sweep;

    __device__ double* gram() { return square[1]; }
    __device__ Real* stage(int i) { return WIDE ? reinterpret_cast<Real*>(square[0]) + i * SQUARE
                                                : reinterpret_cast<Real*>(square[1]) + i * SQUARE; }
    __device__ FactorTiles<N> tiles(int i) { return {reinterpret_cast<double2*>(square[0] + (WIDE ? i * SQUARE : 0))}; }
};

// The bands of a link that a pass takes: all of full ones and of the others, or one of them, another one each time.
struct BandChoice {
    int first, stride;
    template <int Bands, typename Real>
    static __device__ BandChoice of(const Link<Real>& link, int l, bool every) {
        return every || link.full() ? BandChoice{0, 1} : BandChoice{(l + l / Bands) % Bands, Bands};
    }
    __device__ bool has(int band) const { return stride == 1 || band == first; }
};

// G ← Σ QᵀQ of every row of Q, or of a sample.   Preconditioned: Q = scale F S Π R₁⁻¹; else Q = scale F S.
template <int N, bool Preconditioned, typename Real, typename Queue>
__device__ void gram_of_links(GramShare<N>& G, Queue& queue, ProductMemory<N, Real>& memory, const LinkList* lists,
                              int count, int columns, bool every, double scale) {
    constexpr int THREADS = ProductMemory<N, Real>::THREADS, BANDS = N / BAND;
    const int warp = threadIdx.x / WARP;
    const int* order = nullptr;
    if constexpr (Preconditioned) order = memory.order;
    const auto chosen_of = [&](int l) { return BandChoice::of<BANDS>(queue.link[l], l, every); };
    const auto copy = [&](int l) {
        const Link<Real>& link = queue.link[l];
        copy_square<N, THREADS>(memory.stage(l % 2), link, columns, order, BandStream<Real>::first(link, chosen_of(l).first));
    };
    BandStream<Real> rows;
    const auto open = [&](int l) {
        const int band = (warp + l) % BANDS;
        rows.open(queue.link[l], band, chosen_of(l).has(band));
    };
    G.clear();
    for (int start = 0;; start += THREADS) {
        const int links = queue.fill(lists, count, blockIdx.x, start);
        if (links <= 0) break;
        copy(0);
        open(0);
        for (int l = 0; l < links; l++) {
            copies_issued();
            copies_arrived<0>();
            __syncthreads();                    // S is there, and nobody reads the last Q
            if (l + 1 < links) copy(l + 1);
            const Link<Real> link = queue.link[l];
            const BandChoice chosen = chosen_of(l);
            const int band = (warp + l) % BANDS;
            const bool busy = chosen.has(band) && BAND * band < link.rows;
            Real p[N / STEP][4];
            if (busy) {
                if (link.turned()) multiply_band<N, true>(p, rows, memory.stage(l % 2), link, band);
                else multiply_band<N, false>(p, rows, memory.stage(l % 2), link, band);
                if (scale != 1)
#pragma unroll
                    for (int j = 0; j < N / STEP; j++)
#pragma unroll
                        for (int e = 0; e < 4; e++) p[j][e] *= scale;
            }
            if (l + 1 < links) open(l + 1);
            if constexpr (Preconditioned)
                if (busy) memory.inverse.apply(p);
            if (memory.WIDE) __syncthreads();   // nobody reads S
            const FactorTiles<N> Q = memory.tiles(l % 2);
            if (busy)
#pragma unroll
                for (int j = 0; j < N / STEP; j++) Q.write(p[j], BAND * band, STEP * j);
            __syncthreads();
            G.add(Q, chosen.first, min((link.rows + BAND - 1) / BAND, BANDS), chosen.stride);
        }
    }
    __syncthreads();
    G.store(memory.gram());
    __syncthreads();
}

}  // namespace qr
