// products/thin_parts.cuh — out_b = op(A_b) B_b in float32 for B of few columns, all of them in one tile; a block THIN_ROWS rows of out.
// Or, where `Turned`, B and out lie transposed: out_bᵀ = A_b B_bᵀ. Parts: FINE, COARSE or SHORT, see products/warp/tile_parts.cuh.
//
// Sums live for a slab in accumulators of their own, as the tensor cores truncate. Slabs of a line of inner indices of A pass
// through shared memory, all but one in flight. So do B's if SHORT; others pass through registers, where they are taken apart once
// a block, into what a lane needs for a product, in one piece. A's pieces are exchanged within lines such that no bank is asked
// for twice; which inner indices a lane takes differs with A's layout, since products do not care.
#pragma once
#include "common/thread/copy.cuh"
#include "products/block/thin_tile.cuh"
#include "products/warp/tile_parts.cuh"

namespace products {
using namespace common;

constexpr int SLAB = LINE / sizeof(float), STEPS = SLAB / STEP;
constexpr int QUAD = PIECE / sizeof(float), QUADS = SLAB / QUAD;  // entries of a piece, pieces of a line

struct alignas(PIECE) Quad { float x[QUAD]; };

// The first of the two inner indices that lane t takes in step s: of a matrix whose rows lie across, in what a piece of the left factor holds.
template <bool TransA>
__device__ __forceinline__ int first_inner(int s, int t) { return TransA ? s * STEP + t : s / 2 * (2 * STEP) + t * QUAD + s % 2 * 2; }

// A slab of B in parts, unless SHORT, [step][strip][lane], the lanes in an order that meets no bank twice where it is written, too.
template <int Strips, bool TransA, bool Turned, int Parts>
struct RightSlab {
    using Pair = RightParts<Parts>;
    static constexpr int ACROSS = Strips * STEP / QUAD;      // pieces in a row of B
    static constexpr int UNITS = Turned ? Strips * STEP * QUADS : STEPS * 4 * ACROSS, EACH = (UNITS + THIN_THREADS - 1) / THIN_THREADS;
    static constexpr int SECOND = TransA ? STEP / 2 : 1;     // inner indices between the two of a lane
    static constexpr int BYTES = STEPS * Strips * WARP * sizeof(Pair);
    struct Held { Quad x[EACH], y[Turned ? 1 : EACH]; };     // of a thread, on the way: rows of B, those SECOND further on

    Pair* memory;

    static __device__ __forceinline__ int place(int s, int j, int g, int t) { return (s * Strips + j) * WARP + 4 * (g ^ g / 4) + t; }

    __device__ __forceinline__ Pair pair(int s, int j, int g, int t) const { return memory[place(s, j, g, t)]; }

    static __device__ __forceinline__ int unit(int v) { return threadIdx.x + v * THIN_THREADS; }

    // inner indices k0 … of Y
    __device__ __forceinline__ void fetch(Held& held, const float* Y, int k0, int n, int k, int ldb) const {
#pragma unroll
        for (int v = 0; v < EACH; v++) {
            const int u = unit(v), s = u / 4 / ACROSS;
            const int j = Turned ? u / QUADS : u / 4 % ACROSS * QUAD, l = k0 + (Turned ? u % QUADS * QUAD : first_inner<TransA>(s, u % 4));
            const bool valid = u < UNITS && j < n;
            const float* source = Y + (Turned ? j * static_cast<long long>(ldb) + l : l * static_cast<long long>(ldb) + j);
            held.x[v] = valid && l < k ? *reinterpret_cast<const Quad*>(source) : Quad{};
            if constexpr (!Turned) held.y[v] = valid && l + SECOND < k ? *reinterpret_cast<const Quad*>(source + SECOND * ldb) : Quad{};
        }
    }

    __device__ __forceinline__ void put(const Held& held) const {
#pragma unroll
        for (int v = 0; v < EACH; v++) {
            const int u = unit(v);
            if (UNITS % THIN_THREADS && u >= UNITS) break;
            if constexpr (Turned) {
                const int j = u / QUADS, l = u % QUADS;
#pragma unroll
                for (int h = 0; h < 2; h++)
                    memory[place(l / 4 * 2 + h, j / STEP, j % STEP, l % 4)] = Pair(held.x[v].x[2 * h], held.x[v].x[2 * h + 1]);
            } else {
                const int quad = u / 4 % ACROSS;
#pragma unroll
                for (int e = 0; e < QUAD; e++)
                    memory[place(u / 4 / ACROSS, quad / 2, quad % 2 * QUAD + e, u % 4)] = Pair(held.x[v].x[e], held.y[v].x[e]);
            }
        }
    }
};

// A slab of B, SHORT: rows of inner indices as they are, those of a lane's neighbours next to each other, a quarter of all banks apart.
template <int Strips>
struct ShortSlab {
    static constexpr int WIDTH = Strips * STEP, PITCH = WIDTH % (2 * STEP) ? WIDTH : WIDTH + STEP, ACROSS = WIDTH / QUAD;
    float B[SLAB * PITCH];

    // inner indices k0 … of Y
    __device__ __forceinline__ void load(const float* Y, int k0, int n, int k, int ldb) {
#pragma unroll
        for (int u = threadIdx.x; u < SLAB * ACROSS; u += THIN_THREADS) {
            const int l = u / ACROSS, j = u % ACROSS * QUAD;
            const bool valid = k0 + l < k && j < n;
            const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(B + place(l) + j));
            copy_piece(target, valid ? Y + (k0 + l) * static_cast<long long>(ldb) + j : Y, valid);
        }
    }

    // inner index l, of lane l / QUAD % 4 in one step of two
    static __device__ __forceinline__ int place(int l) { return (l & ~15 | l % QUAD * 4 | l / QUAD % 4) * PITCH; }

    __device__ __forceinline__ RightParts<SHORT> pair(int s, int j, int g, int t) const {
        const float* first = B + (s / 2 * (2 * STEP) + s % 2 * STEP + t) * PITCH + j * STEP + g;
        return {first[0], first[4 * PITCH]};
    }
};

// A slab of op(A): [row][k], pieces of odd rows exchanged with those 4 on, or [k][row], pieces exchanged with those 2 (k % 4) on.
template <bool TransA>
struct LeftSlab {
    float A[SLAB * THIN_ROWS];

    // rows row0 … and inner indices k0 … from X; `whole`: all of them are inside
    __device__ __forceinline__ void load(const float* X, int row0, int k0, int m, int k, bool whole) {
        if (whole) load(X, row0, k0, m, k, [](int, int) { return true; });
        else load(X, row0, k0, m, k, [&](int i, int l) { return i < m && l < k; });
    }

    template <typename Inside>
    __device__ __forceinline__ void load(const float* X, int row0, int k0, int m, int k, Inside inside) {
        constexpr int ALONG = TransA ? THIN_ROWS / QUAD : QUADS, NEXT = THIN_THREADS / ALONG;  // pieces of a line here, lines between a thread's
        const int line = threadIdx.x / ALONG, piece = threadIdx.x % ALONG, away = TransA ? line % 4 * 2 : line % 2 * 4;
        const int i0 = row0 + (TransA ? piece * QUAD : line), l0 = k0 + (TransA ? line : piece * QUAD);
        const long long apart = TransA ? m : k;
        const float* source = X + (TransA ? l0 * apart + i0 : i0 * apart + l0);
        const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(A + (line * ALONG + (piece ^ away)) * QUAD));
#pragma unroll
        for (int v = 0; v < SLAB * THIN_ROWS / QUAD / THIN_THREADS; v++) {
            const bool valid = inside(i0 + (TransA ? 0 : v * NEXT), l0 + (TransA ? v * NEXT : 0));
            copy_piece(target + v * THIN_THREADS * PIECE, valid ? source : X, valid);
            source += NEXT * apart;
        }
    }

    // sum += op(A) B for rows row0 … of the tile, Own times LINES
    template <int Parts, int Own, int Strips, typename Right>
    __device__ __forceinline__ void multiply(float (&sum)[Own][Strips][4], const Right& B, int row0) const {
        using Left = LeftParts<Parts>;
        const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int s = 0; s < STEPS; s += 2) {
            Quad x[Own][2];                                  // of two products, see below
#pragma unroll
            for (int i = 0; i < Own; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int row = row0 + i * LINES;
                    x[i][h] = TransA ? down(row, s + h, g, t) : along(row + g + h * LINES / 2, s, g, t);
                }
            constexpr int AT_ONCE = Parts == SHORT ? 2 : 1;  // products of half the inner length go together
#pragma unroll
            for (int half = 0; half < 2; half += AT_ONCE) {
                Left left[AT_ONCE][Own];
#pragma unroll
                for (int h = 0; h < AT_ONCE; h++)
#pragma unroll
                    for (int i = 0; i < Own; i++) {
                        const Quad &a = x[i][TransA ? half + h : 0], &c = x[i][1];
                        left[h][i] = TransA ? Left(a.x[0], a.x[2], a.x[1], a.x[3])
                                            : Left(a.x[2 * (half + h)], a.x[2 * (half + h) + 1], c.x[2 * (half + h)], c.x[2 * (half + h) + 1]);
                    }
#pragma unroll
                for (int j = 0; j < Strips; j++) {
                    const auto b = B.pair(s + half, j, g, t), next = B.pair(s + half + AT_ONCE - 1, j, g, t);
#pragma unroll
                    for (int i = 0; i < Own; i++) {
                        if constexpr (AT_ONCE == 2) left[0][i].multiply(sum[i][j], b, left[1][i], next);
                        else left[0][i].multiply(sum[i][j], b);
                    }
                }
            }
        }
    }

    // four inner indices of a row
    __device__ __forceinline__ Quad along(int row, int s, int g, int t) const {
        return *reinterpret_cast<const Quad*>(A + row * SLAB + (s / 2 ^ g % 2) * (SLAB / 2) + t * QUAD);
    }

    // (2g, k), (2g + 1, k), (2g, k + 4), (2g + 1, k + 4) of a tile
    __device__ __forceinline__ Quad down(int row, int s, int g, int t) const {
        struct alignas(2 * sizeof(float)) Two { float x, y; };
        const float* place = A + (s * STEP + t) * THIN_ROWS + ((row + 2 * g) ^ t * 2 * QUAD);
        const Two p = *reinterpret_cast<const Two*>(place), q = *reinterpret_cast<const Two*>(place + STEP / 2 * THIN_ROWS);
        return {{p.x, p.y, q.x, q.y}};
    }
};

// total += op(A) B of a slab, Own tiles of the warp, by accumulators of its own
template <int Own, int Parts, int Strips, typename Left, typename Right>
__device__ __forceinline__ void add_product(float (&total)[TILES][Strips][4], const Left& A, const Right& B, int row0) {
    float sum[Own][Strips][4] = {};
    A.template multiply<Parts>(sum, B, row0);
#pragma unroll
    for (int i = 0; i < Own; i++)
#pragma unroll
        for (int j = 0; j < Strips; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) total[i][j][e] += sum[i][j][e];
}

// So many slabs have a place, two blocks' on a multiprocessor.
template <int Parts> constexpr int STAGES = Parts == SHORT ? 3 : 4;

// What is on its way at a time: a slab of A, and of B if SHORT.
template <int Strips, bool TransA, int Parts>
struct PartsStage {
    LeftSlab<TransA> A;
};

template <int Strips, bool TransA>
struct PartsStage<Strips, TransA, SHORT> {
    LeftSlab<TransA> A;
    ShortSlab<Strips> B;
};

// A: batch × m × k (k × m if TransA)   B: k × n (n × k if Turned) each, rows ldb and matrices strideb apart
// out: batch × m × n (n × m if Turned)   each, whole: see products/block/thin_tile.cuh
// m or k, n, ldb, strideb: multiples of 16 bytes   shared memory: STAGES PartsStages, and two slabs of B unless SHORT
template <int Strips, bool TransA, bool Turned, int Parts>
__global__ __launch_bounds__(THIN_THREADS, 2)
void thin_parts(const float* A, const float* B, float* out, int each, int whole, int m, int n, int k, int ldb, long long strideb) {
    static_assert(!(TransA && Turned) && (Parts != SHORT || !(TransA || Turned)), "nobody asks for it");
    extern __shared__ __align__(128) unsigned char memory[];
    constexpr int PLACES = STAGES<Parts>;
    using Stage = PartsStage<Strips, TransA, Parts>;
    using Right = RightSlab<Strips, TransA, Turned, Parts>;
    auto* stages = reinterpret_cast<Stage*>(memory);
    const auto right = [&](int slab) {
        return Right{reinterpret_cast<typename Right::Pair*>(memory + PLACES * sizeof(Stage) + slab % 2 * Right::BYTES)};
    };
    const ThinTile tile(each, whole);
    const int count = (k + SLAB - 1) / SLAB;
    A += tile.b * m * k, B += tile.b * strideb, out += tile.b * m * n;
    const auto load = [&](int slab) {
        const bool inside = tile.row0 + THIN_ROWS <= m && (slab + 1) * SLAB <= k;
        if (slab < count) {
            stages[slab % PLACES].A.load(A, tile.row0, slab * SLAB, m, k, inside);
            if constexpr (Parts == SHORT) stages[slab % PLACES].B.load(B, slab * SLAB, n, k, ldb);
        }
        copies_issued();
    };
    typename Right::Held held;                               // the next slab of B unless SHORT
    const auto fetch = [&](int slab) {
        if constexpr (Parts != SHORT)
            if (slab < count) right(slab).fetch(held, B, slab * SLAB, n, k, ldb);
    };
    const auto put = [&](int slab) {
        if constexpr (Parts != SHORT)
            if (slab < count) right(slab).put(held);
    };
    fetch(0);                                                // not behind all that follows
    for (int slab = 0; slab < PLACES - 1; slab++) load(slab);
    put(0);
    fetch(1);
    float total[TILES][Strips][4] = {};
    const auto add = [&](const Stage& stage, const auto& B) {
        if (tile.shared) add_product<TILES / 2, Parts>(total, stage.A, B, tile.in_tile);
        else add_product<TILES, Parts>(total, stage.A, B, tile.in_tile);
    };
    for (int slab = 0; slab < count; slab++) {
        copies_arrived<PLACES - 2>();
        __syncthreads();  // everybody's copies and parts are there, and everybody is done with the slabs that are filled next
        load(slab + PLACES - 1);
        const Stage& stage = stages[slab % PLACES];
        if constexpr (Parts == SHORT) add(stage, stage.B);
        else add(stage, right(slab));
        put(slab + 1);
        fetch(slab + 2);
    }
    store_tile<Turned, TransA>(total, out, tile, m, n);
}

}  // namespace products
