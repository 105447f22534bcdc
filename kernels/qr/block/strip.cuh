// qr/block/strip.cuh — sixteen columns of a matrix in the registers of a thread block, and reflectors applied to them.
//
//     X ← (I − V T Vᵀ) X  or  (I − V Tᵀ Vᵀ) X,   V: rows × PANEL, zeros above row PANEL j,   T: PANEL × PANEL
//
// (compact WY, Schreiber & Van Loan 1989). X lies transposed in tiles of common/warp/tile_chain.cuh, rows cyclic over warps by tiles
// of TILE_ROWS: lane (g, t) holds of tile i columns g, g, g + 8, g + 8 and rows 2t, 2t + 1, 2t, 2t + 1. Hence W = Vᵀ X,
// Wᵀ T and Xᵀ − (Wᵀ T) Vᵀ need no exchange, but for one sum over warps, which turns W. A warp reads of V its own rows only:
// they stream through its part of shared memory, each tile of V replaced by the next panel's as soon as it has been used.
// All members are called by the whole block of Warps warps.
#pragma once
#include "common/thread/copy_vector.cuh"
#include "common/thread/range.cuh"
#include "common/thread/wide.cuh"
#include "common/warp/tile_chain.cuh"
#include "qr/block/panel_reflectors.cuh"

namespace qr {
using namespace common;

// Whether first ≤ i < end. `branch` keeps the compiler from computing both sides and choosing: a third of all instructions.
__device__ inline bool within(int i, int first, int end) {
    return static_cast<unsigned>(i - first) < static_cast<unsigned>(end - first);
}
__device__ __forceinline__ void branch() { asm volatile(""); }

constexpr int TOGETHER = 4;                         // tiles of V that are waited for
constexpr int LANE_SUMS = PANEL * PANEL / WARP;  // entries of W that a lane holds

template <typename Real>
struct alignas(2 * sizeof(Real)) Two {
    Real x, y;
};

// Shared memory of a block.
template <typename Real, int Warps, int Tiles>
struct StripMemory {
    Real V[Warps][Tiles][TILE];
    Two<Real> column[Warps][Tiles][4];                            // a pivot column, each warp's rows
    Real parts[Warps][LANE_SUMS * WARP], sums[LANE_SUMS * WARP];  // of W: each warp's, and the block's
    Real dots[2][Warps + 1][PANEL];                               // of a panel's step: each warp's, and the pivot row
    Real gram[PANEL][PANEL], taus[PANEL];                         // gram[c][t] = v_tᵀ v_c, t < c
    int largest[Warps];
};

template <typename Real, int Warps, int Tiles>
struct Strip {
    static_assert(Tiles % 2 == 0, "two tiles by turns");
    using Memory = StripMemory<Real, Warps, Tiles>;
    static constexpr int THREADS = Warps * WARP;
    Memory& memory;
    int lane, warp, g, t;
    Real x[Tiles][4];

    // The thread's number is read anew for every strip: what follows from it would otherwise wait in registers that x needs.
    __device__ __forceinline__ explicit Strip(Memory& memory) : memory(memory) {
        int thread;
        asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
        lane = thread % WARP, warp = thread / WARP, g = lane / 4, t = lane % 4;
    }

    __device__ int tile(int i) const { return warp + Warps * i; }
    __device__ int place(int i, int e) const { return tile(i) * TILE + tile_place<Real>(2 * t + e % 2, column(e)); }  // in a panel of V
    __device__ int row(int i, int e) const { return tile(i) * TILE_ROWS + 2 * t + e % 2; }
    __device__ int column(int e) const { return g + e / 2 * 8; }

    // Calls visit(i, e) for every entry x[i][e] in layers first … end.
    template <typename Visit>
    __device__ __forceinline__ static void each(int first, int end, Visit visit) {
#pragma unroll
        for (int i = 0; i < Tiles; i++)
            if (i >= first && i < end)
#pragma unroll
                for (int e = 0; e < 4; e++) visit(i, e);
    }

    // Calls visit(i, e, &M(row, column0 + column)) for the entries inside of M, rows × columns, its rows `pitch` apart.
    template <typename Pointer, typename Visit>
    __device__ __forceinline__ void each_inside(Pointer M, int rows, int columns, int pitch, int column0, Visit visit) const {
        Pointer line = M + static_cast<long long>(row(0, 0)) * pitch + column0 + g;
        const bool here[2] = {column0 + g < columns, column0 + g + 8 < columns};
#pragma unroll
        for (int i = 0; i < Tiles; i++) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (here[e / 2] && row(i, e) < rows) visit(i, e, line + e % 2 * pitch + e / 2 * 8);
            line += static_cast<long long>(Warps * TILE_ROWS) * pitch;
        }
    }

    // X = 2^-shift times columns column0 … of A (m × n, rows `pitch` apart), zeros outside, where shift, returned, makes them safe.
    __device__ __forceinline__ int load(const Real* A, int m, int n, int pitch, int column0) {
        int field = 0;
        each(0, Tiles, [&](int i, int e) { x[i][e] = 0; });
        each_inside(A, m, n, pitch, column0, [&](int i, int e, const Real* entry) { x[i][e] = *entry; });
        each(0, Tiles, [&](int i, int e) { field = max(field, Range<Real>::exponent_field(x[i][e])); });
        field = __reduce_max_sync(EVERY_LANE, field);
        if constexpr (Warps > 1) {
            if (lane == 0) memory.largest[warp] = field;
            __syncthreads();
#pragma unroll
            for (int w = 0; w < Warps; w++) field = max(field, memory.largest[w]);
        }
        const int shift = safe_shift<Real>(field - Range<Real>::BIAS);
        if (shift) {
            const Real scale = power_of_two<Real>(-shift);
            each(0, Tiles, [&](int i, int e) { x[i][e] *= scale; });
        }
        return shift;
    }

    // The panel that streams in: this thread's part of it in memory, and the layers that count.
    struct Stream {
        const Real* source;
        int first, end;
    };
    static constexpr int EACH = 16 / sizeof(Real);

    // Panel j, or none where j is negative.
    template <typename Factors>
    __device__ __forceinline__ Stream stream(const Factors& reflectors, int j) const {
        const Real* source = reflectors.panel(max(j, 0)) + warp * TILE + EACH * lane;
        asm volatile("" : "+l"(source));  // known once, not made anew for every tile
        return {source, j < 0 ? Tiles : reflectors.first_layer(j), reflectors.end_layer(j)};
    }

    // This warp's tile i on its way to shared memory, a group of copies; an empty one where there is none.
    __device__ __forceinline__ void fetch(const Stream& stream, int i) {
        if (i >= stream.first && i < stream.end)
#pragma unroll
            for (int c = 0; c < TILE; c += EACH * WARP)
                copy_vector_async(memory.V[warp][i] + EACH * lane + c, stream.source + i * Warps * TILE + c);
        copies_issued();
    }

    // The first panel to be applied; all threads are done with the one before.
    template <typename Factors>
    __device__ __forceinline__ void fetch_first(const Factors& reflectors, int j) {
        __syncwarp();
        reflectors.await(j);
        const Stream first = stream(reflectors, j);
#pragma unroll
        for (int i = 0; i < Tiles; i++) fetch(first, i);
    }

    // Panel j, fetched before, is applied while panel `next` (none where negative) is fetched.
    template <bool Transposed, typename Factors>
    __device__ __forceinline__ void apply(const Factors& reflectors, int j, int next) {
        const int first = reflectors.first_layer(j), end = reflectors.end_layer(j);
        Real w[2][4] = {}, y[2][4] = {}, T[2][2][2];
        products<0>(w, first, end);
        const Real* triangle = reflectors.triangle(j);
#pragma unroll
        for (int k = 0; k < 2; k++)
#pragma unroll
            for (int c = 0; c < 2; c++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int from = 8 * k + 2 * t + h, to = 8 * c + g;
                    T[k][c][h] = reflectors.read(triangle + (Transposed ? from * PANEL + to : to * PANEL + from));
                }
        add_over_warps(w);
#pragma unroll
        for (int k = 0; k < 2; k++)
#pragma unroll
            for (int c = 0; c < 2; c++) multiply_tile(y[c], w[k], T[k][c][0], T[k][c][1]);
#pragma unroll
        for (int c = 0; c < 2; c++) as_factor(y[c], y[c]);
        const bool there = reflectors.has(next);
        const Stream following = stream(reflectors, there ? next : -1);
#pragma unroll
        for (int i = 0; i < Tiles; i += 2) {
            if (i >= first && i + 1 < end) subtract<2>(i, y);
            else if (i >= first && i < end) subtract<1>(i, y);
            else if (i + 1 >= first && i + 1 < end) subtract<1>(i + 1, y);
            __syncwarp();
            fetch(following, i);
            fetch(following, i + 1);
        }
        if (!there) fetch_first(reflectors, next);
    }

  private:
    // w += Vᵀ X over this warp's tiles from the I-th on, TOGETHER of them as soon as they are there. Tiles of X are right
    // factors as they are; to be left ones, for Xᵀ V, they would have to be moved to other registers first
    template <int I>
    __device__ __forceinline__ void products(Real (&w)[2][4], int first, int end) {
        constexpr int NEXT = I + TOGETHER < Tiles ? I + TOGETHER : Tiles;
        copies_arrived<Tiles - NEXT>();
        __syncwarp();
        if (I >= first && NEXT <= end) {  // all: without a predicate, for which sums would be moved after every product
            branch();
#pragma unroll
            for (int i = I; i < NEXT; i++) product(w, i);
        } else {
#pragma unroll
            for (int i = I; i < NEXT; i++) {
                if (!within(i, first, end)) continue;
                branch();
                product(w, i);
            }
        }
        if constexpr (NEXT < Tiles) products<NEXT>(w, first, end);
    }
    __device__ __forceinline__ void product(Real (&w)[2][4], int i) {
        Real v[4];
#pragma unroll
        for (int e = 0; e < 4; e++) v[e] = memory.V[warp][i][tile_place<Real>(2 * t + e % 2, column(e))];
#pragma unroll
        for (int c = 0; c < 2; c++) multiply_tile(w[c], v, x[i][2 * c], x[i][2 * c + 1]);
    }

    // Where entry e % WARP of all lanes' w[e / WARP / 4][e / WARP % 4] goes when W is turned.
    __device__ static int turned(int e) {
        const int lane = e % WARP, i = e / WARP;
        return (i % 4 / 2 * 4 + i / 4 * 2 + lane / 4 % 2) * WARP + (2 * (lane % 4) + i % 2) * 4 + lane / 8;
    }
    // w = its sum over all warps, transposed
    __device__ __forceinline__ void add_over_warps(Real (&w)[2][4]) {
#pragma unroll
        for (int e = 0; e < LANE_SUMS; e++) {
            const int at = e * WARP + lane;
            memory.parts[warp][Warps == 1 ? turned(at) : at] = w[e / 4][e % 4];
        }
        if constexpr (Warps == 1) {
            __syncwarp();
#pragma unroll
            for (int e = 0; e < LANE_SUMS; e++) w[e / 4][e % 4] = memory.parts[0][e * WARP + lane];
            __syncwarp();
        } else {
            __syncthreads();
            for (int e = threadIdx.x; e < LANE_SUMS * WARP; e += THREADS) {
                Real sum[2] = {};
#pragma unroll
                for (int v = 0; v < Warps; v++) sum[v % 2] += memory.parts[v][e];
                memory.sums[turned(e)] = sum[0] + sum[1];
            }
            __syncthreads();
#pragma unroll
            for (int e = 0; e < LANE_SUMS; e++) w[e / 4][e % 4] = memory.sums[e * WARP + lane];
        }
    }

    // x += y Vᵀ for Count tiles by turns, from the i-th on; y has −T in it. float32 sums this apart, see common/warp/tile_chain.cuh.
    template <int Count>
    __device__ __forceinline__ void subtract(int i, const Real (&y)[2][4]) {
        constexpr bool APART = sizeof(Real) == sizeof(float);
        Real sum[Count][4] = {};
#pragma unroll
        for (int c = 0; c < 2; c++)
#pragma unroll
            for (int k = 0; k < Count; k++) {
                const Real* v = memory.V[warp][i + k] + tile_place<Real>(g, 8 * c + 2 * t);
                multiply_tile(APART ? sum[k] : x[i + k], y[c], v[0], v[1]);
            }
#pragma unroll
        for (int k = 0; k < Count; k++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (APART) x[i + k][e] += sum[k][e];
    }
};

}  // namespace qr
