// products/block/fixed_product.cuh — the parts that warps compute of products whose sizes the compiler knows.
#pragma once
#include "products/block/fixed_layout.cuh"
#include "products/thread/row_product.cuh"
#include "products/warp/lane_product.cuh"
#include "products/warp/staged_product.cuh"

namespace products {

constexpr int REGISTERS = 1 << 16, SHARED_BYTES = 227 << 10, SYSTEM_BYTES = 1 << 10;  // of a multiprocessor; of a block besides its own
constexpr int REGISTERS_BESIDES = 56;  // of a thread, besides sums and factors

__host__ __device__ constexpr int per(int count, int parts) { return (count + parts - 1) / parts; }

constexpr int WIDEST_FRINGE = 2;  // rows and columns

// How the parts of a block of WarpRows × WarpColumns warps a matrix are computed.
// Fringe: rows and columns behind the last whole tile, at most WIDEST_FRINGE, on the vector pipe   Same: FixedLayout's
template <typename Entry, int M, int N, int K, bool TransA, bool TransB, int Method, int Group, bool Streams, int Band, int Slab, int WarpRows,
          int WarpColumns, bool Fringe, bool Same = false>
struct FixedProduct {
    static constexpr int EACH = WarpRows * WarpColumns;  // warps a matrix
    static constexpr int THREADS = Method == BY_ROWS ? rounded_up(Group * M, WARP) : Group * EACH * WARP;
    static constexpr int TALL = Method == BY_TENSOR ? TENSOR_TILE : TILE_STRIP;
    // rows and strips of tiles; where slabs stream, all warps take as many: one piece of code serves them, of which the
    // instruction cache holds not much more, and which leaves the sums where they are (127: 240 moves in 350 instructions else)
    static constexpr int FRINGE_ROWS = Fringe && M % TALL <= WIDEST_FRINGE ? M % TALL : 0;
    static constexpr int FRINGE_COLUMNS = Fringe && N % TILE_STRIP <= WIDEST_FRINGE ? N % TILE_STRIP : 0;
    static constexpr int TILES = rounded_up(rounded_up(Band - FRINGE_ROWS, TALL) / TALL, Streams ? WarpRows : 1);
    static constexpr int STRIPS = rounded_up(rounded_up(N - FRINGE_COLUMNS, TILE_STRIP) / TILE_STRIP, Streams ? WarpColumns : 1);
    static_assert(!Fringe || (Method == BY_TENSOR && Band == M), "a fringe beside the tensor cores' tiles of whole matrices");
    static_assert((FRINGE_ROWS == 0 || TILES * TALL < M) && (FRINGE_COLUMNS == 0 || STRIPS * TILE_STRIP < N), "tiles reach over the fringe");
    using Layout = FixedLayout<Entry, M, N, K, TransA, TransB, Method, Group, Streams, Band, Slab, THREADS, Method == BY_ROWS ? 0 : TILES * TALL,
                               Method == BY_ROWS ? 0 : STRIPS * TILE_STRIP, Same>;
    static constexpr int OWN_ROWS = per(TILES, WarpRows), OWN_STRIPS = per(STRIPS, WarpColumns);
    static constexpr int FRINGE_SUMS = FringeSums<Entry, FRINGE_ROWS, FRINGE_COLUMNS, OWN_ROWS, OWN_STRIPS, WarpRows, WarpColumns>::COUNT;
    static constexpr int SUMS = Method == BY_ROWS ? N : OWN_ROWS * OWN_STRIPS * (Method == BY_TENSOR ? 4 : 2) + FRINGE_SUMS;
    static constexpr int NEEDED = REGISTERS_BESIDES + SUMS * int(sizeof(Entry)) / 4 + OWN_ROWS * (Method != BY_TENSOR ? 4 : sizeof(Entry) < sizeof(double) ? 12 : 8);
    static constexpr bool HALVES = Streams && sizeof(Entry) == sizeof(double) && NEEDED * rounded_up(THREADS, 4 * WARP) > REGISTERS;
    static constexpr int BY_REGISTERS = REGISTERS / (THREADS * NEEDED);

    // Warps take turns from block to block, so that no quarter of a multiprocessor has all of the larger shares.
    static __device__ int warp() { return (threadIdx.x / WARP + blockIdx.x) % (Group * EACH); }

    static __device__ auto make(int rows) {
        using L = Layout;
        if constexpr (Method == BY_TENSOR)
            return TensorProduct<Entry, TILES, STRIPS, WarpRows, WarpColumns, Streams || M % Band == 0, L::STEP_A, L::INNER_A, L::INNER_B, L::STEP_B,
                                 L::RUN, true, HALVES, FRINGE_ROWS, FRINGE_COLUMNS>(warp(), rows);
        else if constexpr (Method == BY_LANES)
            return LaneProduct<Entry, TILES, STRIPS, WarpRows, WarpColumns, Streams || M % Band == 0, L::PITCH_A, L::PITCH_B>(warp(), rows);
        else
            return RowProduct<Entry, N, L::PITCH_A, L::PITCH_B>(threadIdx.x % M);
    }

    // Blocks a multiprocessor that the compiler shall leave registers for.
    static __host__ __device__ constexpr int resident(int shared) {
        return most_of(1, least_of(BY_REGISTERS, SHARED_BYTES / (shared + SYSTEM_BYTES)));
    }

    // The matrix of the group that this thread works on.
    static __device__ int matrix() { return Method == BY_ROWS ? threadIdx.x / M : warp() / EACH; }
};

}  // namespace products
