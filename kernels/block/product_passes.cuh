// block/product_passes.cuh — the two passes of batched/product_triangles.cuh over the links of a segment.
//
//     G₁ = Σ PᵀP of some rows of P = F S,     G₂ = Σ QᵀQ,  Q = F Y,  Y = S Π R₁⁻¹
//
// S comes to shared memory while the products of the link before are made; of R₁⁻¹ only the rows up to the rank are more
// than its diagonal. Each warp has rows 8 w … and 56 − 8 w … of every F: together equally long ones of a triangle.
// Called by the whole block of LINK_THREADS threads.
#pragma once
#include "block/gram_of_products.cuh"
#include "block/pivoted_sweep.cuh"
#include "warp/factor_tiles.cuh"

template <int N>
struct ProductMemory {                          // shared
    static constexpr int SQUARE = N * N, STRIPS = N / 8, TILE = 2 * WARP;
    static constexpr int INVERSE = STRIPS * (STRIPS + 1) / 2 * TILE;
    double first[SQUARE], second[SQUARE];       // S or G;  Y, the next S or R₂
    double inverse[INVERSE];                    // Π R₁⁻¹ in tiles 8 × 8 as read: (2t, g), (2t + 1, g)
    double scale[N];                            // diagonal of R₁⁻¹ beyond the rank
    typename PivotedSweep<N>::Memory sweep;

    static __device__ int inverse_entry(int row, int column) {
        const int above = row / 8, strip = column / 8, lane = column % 8 * 4 + row % 8 / 2;
        return (strip * (strip + 1) / 2 + above) * TILE + 2 * lane + row % 2;
    }
    __device__ double2 inverse_pair(int above, int strip, int lane) const {
        return *reinterpret_cast<const double2*>(inverse + (strip * (strip + 1) / 2 + above) * TILE + 2 * lane);
    }
};

// G₁ of the segment: of all rows, or of every other eight of triangular F.
template <int N, typename Real>
__device__ void gram_of_rows(GramTiles<N>& G, LinkQueue<Real>& queue, ProductMemory<N>& memory, const LinkList* lists,
                             int count, int columns, bool every, double scale) {
    constexpr int WARPS = LINK_THREADS / WARP;
    const int warp = threadIdx.x / WARP;
    Real* const stage[2] = {reinterpret_cast<Real*>(memory.first), reinterpret_cast<Real*>(memory.second)};
    G.clear();
    for (int start = 0;; start += LINK_THREADS) {
        const int links = queue.fill(lists, count, blockIdx.x, start);
        if (links <= 0) return;
        const auto all = [&](int l) { return every || queue.link[l].full(); };
        const auto first_octet = [&](int l) {   // rows of triangles differ in length
            return all(l) ? warp : 2 * (l / 2 % 2 ? WARPS - 1 - warp : warp) + l % 2;
        };
        RowStream<Real> rows;
        copy_square<N>(stage[0], queue.link[0], columns, nullptr);
        rows.open(queue.link[0], first_octet(0));
        for (int l = 0; l < links; l++) {
            copies_issued();
            copies_arrived<0>();
            __syncthreads();                    // S is there, and nobody reads the one before
            if (l + 1 < links) copy_square<N>(stage[(l + 1) % 2], queue.link[l + 1], columns, nullptr);
            const Link<Real> link = queue.link[l];
            const Real* S = stage[l % 2];
            const int second = all(l) ? second_octet<N>(warp) : -1;
            const auto products = [&](const auto& reader) {
#pragma unroll 1
                for (int octet = first_octet(l); octet >= 0; octet = octet == second ? -1 : second)
                    add_octet(G, reader, link, octet, rows, scale, [&] {
                        if (octet != second && second >= 0) rows.open(link, second);
                        else if (l + 1 < links) rows.open(queue.link[l + 1], first_octet(l + 1));
                    });
            };
            if (link.turned()) products(FactorReader<N, true, Real>(S));
            else products(FactorReader<N, false, Real>(S));
        }
    }
}

// Y = S Π R₁⁻¹, a band of 16 rows a warp.   strips: of eight rows of R₁⁻¹ that are more than its diagonal
template <int N, bool Along>
__device__ void precondition(const ProductMemory<N>& memory, const FactorTiles<N>& Y, const double* S, int strips) {
    constexpr int STRIPS = N / 8, TOGETHER = 4;
    static_assert(STRIPS % TOGETHER == 0, "whole groups of strips");
    const FactorReader<N, Along, double> reader(S);
    const int lane = threadIdx.x % WARP, quad = lane % 4, row0 = threadIdx.x / WARP * 16;
#pragma unroll 1
    for (int j0 = 0; j0 < STRIPS; j0 += TOGETHER) {
        double y[TOGETHER][4];
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            reader.read(y[j], row0, 8 * (j0 + j));
            const double2 scale = *reinterpret_cast<const double2*>(memory.scale + 8 * (j0 + j) + 2 * quad);
#pragma unroll
            for (int e = 0; e < 4; e++) y[j][e] *= e % 2 ? scale.y : scale.x;
        }
        const auto add = [&](int k, int from) { // row k of tiles of R₁⁻¹, from strip j0 + from on
            double s[4];
            double2 x[TOGETHER];
            reader.read(s, row0, 8 * k);
#pragma unroll
            for (int j = 0; j < TOGETHER; j++)
                if (j >= from) x[j] = memory.inverse_pair(k, j0 + j, lane);
#pragma unroll
            for (int j = 0; j < TOGETHER; j++)
                if (j >= from) multiply_tile(y[j], s, x[j].x, x[j].y);
        };
#pragma unroll 1
        for (int k = 0; k < min(strips, j0); k++) add(k, 0);
#pragma unroll
        for (int k = 0; k < TOGETHER; k++)
            if (j0 + k < strips) add(j0 + k, k);
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) Y.write(y[j], row0, 8 * (j0 + j));
    }
}

// G₂ of the segment: G₁ of all rows with Y in the place of S.
template <int N>
__device__ void gram_of_preconditioned(GramTiles<N>& G, LinkQueue<double>& queue, ProductMemory<N>& memory,
                                       const LinkList* lists, int count, int columns, int rank, double scale) {
    const int warp = threadIdx.x / WARP, second = second_octet<N>(warp);
    const FactorTiles<N> Y = {reinterpret_cast<double2*>(memory.second)};
    double* const S = memory.first;
    G.clear();
    for (int start = 0;; start += LINK_THREADS) {
        const int links = queue.fill(lists, count, blockIdx.x, start);
        if (links <= 0) return;
        RowStream<double> rows;
        copy_square<N>(S, queue.link[0], columns, memory.sweep.place);
        rows.open(queue.link[0], warp);
        for (int l = 0; l < links; l++) {
            const Link<double> link = queue.link[l];
            copies_issued();
            copies_arrived<0>();
            __syncthreads();                    // S is there, and nobody reads the last Y
            if (warp * 16 < link.inner) {
                if (link.turned()) precondition<N, false>(memory, Y, S, (rank + 7) / 8);
                else precondition<N, true>(memory, Y, S, (rank + 7) / 8);
            }
            __syncthreads();
            if (l + 1 < links) copy_square<N>(S, queue.link[l + 1], columns, memory.sweep.place);
#pragma unroll 1
            for (int octet = warp; octet >= 0; octet = octet == second ? -1 : second)
                add_octet(G, Y, link, octet, rows, scale, [&] {
                    if (octet != second) rows.open(link, second);
                    else if (l + 1 < links) rows.open(queue.link[l + 1], warp);
                });
        }
    }
}
