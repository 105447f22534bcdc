// batched/fixed_gemm.cuh — out_b = α op(A_b) op(B_b) + β C_b for matrices of one shape that the compiler knows; one block a
// group of matrices, or a band of rows of one.
//
// Nothing is checked at the edges of the matrices: whole tiles are computed, entries beyond the edges are whatever lies there,
// and they are not stored (Nath, Tomov & Dongarra 2010, pointer redirecting). Inner indices end exactly. What a block
// computes is one run of memory, which leaves through shared memory in pieces of 16 bytes whatever the size.
#pragma once
#include "block/fixed_layout.cuh"
#include "block/store_run.cuh"
#include "thread/copy.cuh"
#include "warp/staged_product.cuh"

constexpr int STAGES = 3;  // slabs in shared memory, where the inner dimension comes in several
constexpr int REGISTERS = 1 << 16, SHARED_BYTES = 227 << 10, SYSTEM_BYTES = 1 << 10;  // of a multiprocessor; of a block besides its own
constexpr int REGISTERS_BESIDES = 56;  // of a thread, besides sums and factors

__host__ __device__ constexpr int per(int count, int parts) { return (count + parts - 1) / parts; }

// How the parts of a block of WarpRows × WarpColumns warps a matrix are computed.
template <typename Entry, int M, int N, int K, bool TransA, bool TransB, int Method, int Group, int Band, int Slab, int WarpRows, int WarpColumns>
struct FixedProduct {
    static constexpr int EACH = WarpRows * WarpColumns;  // warps a matrix
    static constexpr int THREADS = Method == BY_ROWS ? rounded(Group * M, WARP) : Group * EACH * WARP;
    using Layout = FixedLayout<Entry, M, N, K, TransA, TransB, Method, Group, Band, Slab, THREADS>;
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
            return TensorProduct<TILES, STRIPS, WarpRows, WarpColumns, M % Band == 0, L::STEP_A, L::INNER_A, L::INNER_B, L::STEP_B, L::RUN>(warp(), rows);
        else if constexpr (Method == BY_LANES)
            return LaneProduct<Entry, ROW_STRIPS, STRIPS, WarpRows, WarpColumns, M % Band == 0, L::PITCH_A, L::PITCH_B>(warp(), rows);
        else
            return RowProduct<Entry, N, L::PITCH_A, L::PITCH_B>(threadIdx.x % M);
    }

    // Blocks a multiprocessor that the compiler shall leave registers for.
    static __host__ __device__ constexpr int resident(int shared) { return most_of(1, least_of(BY_REGISTERS, SHARED_BYTES / (shared + SYSTEM_BYTES))); }

    // The matrix of the group that this thread works on.
    static __device__ int matrix() { return Method == BY_ROWS ? threadIdx.x / M : warp() / EACH; }
};

// A, B, C, out: (batch, rows, columns) each, from multiples of 16 bytes on; C may be null if β is 0
// Shared: bytes of shared memory that the launch asks for
template <typename Entry, int M, int N, int K, bool TransA, bool TransB, int Method, int Group, int Band, int Slab, int WarpRows,
          int WarpColumns, int Shared>
__global__ __launch_bounds__((FixedProduct<Entry, M, N, K, TransA, TransB, Method, Group, Band, Slab, WarpRows, WarpColumns>::THREADS),
                             (FixedProduct<Entry, M, N, K, TransA, TransB, Method, Group, Band, Slab, WarpRows, WarpColumns>::resident(Shared)))
void fixed_gemm(const Entry* A, const Entry* B, const Entry* C, Entry* out, long long batch, Entry alpha, Entry beta) {
    using Product = FixedProduct<Entry, M, N, K, TransA, TransB, Method, Group, Band, Slab, WarpRows, WarpColumns>;
    using Layout = typename Product::Layout;
    constexpr int THREADS = Product::THREADS, BANDS = (M + Band - 1) / Band, CHUNK = Layout::CHUNK;
    constexpr int SLABS = K / Layout::INNER, REST = K % Layout::INNER, COUNT = SLABS + (REST > 0), DEEP = least_of(STAGES, COUNT);
    constexpr int ENTRIES = most_of(DEEP * Layout::STAGE + Layout::BEYOND, Group * least_of(Band, M) * N + CHUNK);
    static_assert(ENTRIES * sizeof(Entry) <= Shared, "shared memory");
    static_assert(Group == 1 || (BANDS == 1 && COUNT == 1 && Band == M), "groups take whole matrices");
    extern __shared__ __align__(16) unsigned char memory[];
    Entry* stages = reinterpret_cast<Entry*>(memory);

    const long long first = BANDS == 1 ? static_cast<long long>(blockIdx.x) * Group : blockIdx.x / BANDS;
    const int row0 = BANDS == 1 ? 0 : blockIdx.x % BANDS * Band, rows = BANDS == 1 ? M : min(Band, M - row0);
    const int matrices = Group == 1 ? 1 : static_cast<int>(min(static_cast<long long>(Group), batch - first));
    A += first * M * K, B += first * K * N;
    const long long start = first * M * N + row0 * N;
    out += start, C += start;
    auto product = Product::make(rows);
    const int q = Group == 1 ? 0 : Product::matrix();
    const bool works = Group == 1 && Method != BY_ROWS ? true : Product::matrix() < matrices;

#pragma unroll
    for (int slab = 0; slab < DEEP - 1; slab++) {
        Layout::load(stages + slab * Layout::STAGE, A, B, matrices, row0, rows, slab);
        copies_issued();
    }
    if constexpr (COUNT == 1) {
        Layout::load(stages, A, B, matrices, row0, rows, 0);
        copies_issued();
    }
#pragma unroll 1
    for (int slab = 0; slab < COUNT; slab++) {
        copies_arrived<COUNT == 1 ? 0 : DEEP - 2>();
        __syncthreads();  // everybody's copies are there, and everybody is done with the stage that is filled next
        if (COUNT > 1) {
            if (slab + DEEP - 1 < COUNT) Layout::load(stages + (slab + DEEP - 1) % DEEP * Layout::STAGE, A, B, matrices, row0, rows, slab + DEEP - 1);
            copies_issued();
        }
        const Entry* stage = stages + slab % DEEP * Layout::STAGE;
        const Entry *left = Layout::left(stage, A, q), *right = Layout::right(stage, B, q);
        if (!works) continue;
        if (REST == 0 || slab < SLABS) product.template add<Layout::INNER>(left, right);
        else if constexpr (REST > 0) product.template add<REST>(left, right);
    }
    __syncthreads();
    const int skew = Layout::skew(out);
    Entry* sums = stages + skew;
    product.each([&](int i, int j, Entry sum) {
        if (works && i < rows && j < N) sums[(q * M + i) * N + j] = sum;
    });
    __syncthreads();
    store_run<THREADS>(sums, C, out, (Group > 1 ? matrices * M : rows) * N, skew, alpha, beta);
}
