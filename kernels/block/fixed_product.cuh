// block/fixed_product.cuh — the parts that warps compute of products whose sizes the compiler knows.
#pragma once
#include "block/fixed_layout.cuh"
#include "thread/row_product.cuh"
#include "warp/staged_product.cuh"

constexpr int REGISTERS = 1 << 16, SHARED_BYTES = 227 << 10, SYSTEM_BYTES = 1 << 10;  // of a multiprocessor; of a block besides its own
constexpr int REGISTERS_BESIDES = 56;  // of a thread, besides sums and factors

__host__ __device__ constexpr int per(int count, int parts) { return (count + parts - 1) / parts; }

// How the parts of a block of WarpRows × WarpColumns warps a matrix are computed.
template <typename Entry, int M, int N, int K, bool TransA, bool TransB, int Method, int Group, bool Streams, int Band, int Slab, int WarpRows,
          int WarpColumns>
struct FixedProduct {
    static constexpr int EACH = WarpRows * WarpColumns;  // warps a matrix
    static constexpr int THREADS = Method == BY_ROWS ? rounded(Group * M, WARP) : Group * EACH * WARP;
    using Layout = FixedLayout<Entry, M, N, K, TransA, TransB, Method, Group, Streams, Band, Slab, THREADS>;
    static constexpr int STRIPS = rounded(N, TILE_STRIP) / TILE_STRIP;
    static constexpr int TILES = rounded(Band, TENSOR_TILE) / TENSOR_TILE, ROW_STRIPS = rounded(Band, TILE_STRIP) / TILE_STRIP;
    static constexpr int OWN_ROWS = per(Method == BY_TENSOR ? TILES : ROW_STRIPS, WarpRows), OWN_STRIPS = per(STRIPS, WarpColumns);
    static constexpr int SUMS = Method == BY_ROWS ? N : OWN_ROWS * OWN_STRIPS * (Method == BY_TENSOR ? 4 : 2);
    static constexpr int NEEDED = REGISTERS_BESIDES + SUMS * int(sizeof(Entry)) / 4 + OWN_ROWS * (Method == BY_TENSOR ? 8 : 4);
    static constexpr int BY_REGISTERS = REGISTERS / (THREADS * NEEDED);

    // Warps take turns from block to block, so that no quarter of a multiprocessor has all of the larger shares.
    static __device__ int warp() { return (threadIdx.x / WARP + blockIdx.x) % (Group * EACH); }

    static __device__ auto make(int rows) {
        using L = Layout;
        if constexpr (Method == BY_TENSOR)
            return TensorProduct<TILES, STRIPS, WarpRows, WarpColumns, M % Band == 0, L::STEP_A, L::INNER_A, L::INNER_B, L::STEP_B, L::RUN>(
                warp(), rows);
        else if constexpr (Method == BY_LANES)
            return LaneProduct<Entry, ROW_STRIPS, STRIPS, WarpRows, WarpColumns, M % Band == 0, L::PITCH_A, L::PITCH_B>(warp(), rows);
        else
            return RowProduct<Entry, N, L::PITCH_A, L::PITCH_B>(threadIdx.x % M);
    }

    // product += a slab of Depth inner indices; A, B: the first entries of the matrices in memory
    template <int Depth, typename Product>
    static __device__ void add(Product& product, const Entry* stage, const Entry* A, const Entry* B) {
        using L = Layout;
        if constexpr (L::PAIRS) {  // rows of odd length begin by turns at a multiple of 16 bytes and behind one
            const int a = L::LINES_A ? L::skew(A) : 0, b = L::LINES_B ? L::skew(B) : 0, line = threadIdx.x / 4 % 2;
            const int own_a = L::LINES_A && !TransA ? (a + line) % 2 : a, own_b = L::LINES_B && TransB ? (b + line) % 2 : b;
            product.template add_pairs<Depth>(stage + own_a, stage + L::ENTRIES_A + own_b, L::LINES_A && TransA ? 1 - 2 * a : 0,
                                              L::LINES_B && !TransB ? 1 - 2 * b : 0);
        } else {
            product.template add<Depth>(L::left(stage, A, 0), L::right(stage, B, 0));
        }
    }

    // Blocks a multiprocessor that the compiler shall leave registers for.
    static __host__ __device__ constexpr int resident(int shared) {
        return most_of(1, least_of(BY_REGISTERS, SHARED_BYTES / (shared + SYSTEM_BYTES)));
    }

    // The matrix of the group that this thread works on.
    static __device__ int matrix() { return Method == BY_ROWS ? threadIdx.x / M : warp() / EACH; }
};
