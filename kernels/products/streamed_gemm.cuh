// products/streamed_gemm.cuh — out_b = α op(A_b) op(B_b) + β C_b for larger matrices of one shape that the compiler knows.
//
// Blocks stay and take one matrix, or band of its rows, after another. Slabs of inner indices stream through a ring of stages in
// shared memory without regard to where a matrix ends, so that memory works while sums leave the registers.
// Edges: as products/fixed_gemm.cuh.
#pragma once
#include "common/thread/copy.cuh"
#include "products/block/fixed_product.cuh"
#include "products/thread/part.cuh"

namespace products {
using namespace common;

constexpr int QUARTERS = 4;  // of a multiprocessor, which takes warps by turns
constexpr int SECTOR = 32;   // bytes that memory writes at once

// Which part of the batch comes next: slab by slab, matrix by matrix, this block's of all.
template <typename Product, int M, int K, int N, int Band, int Count>
struct Stream {
    static constexpr int BANDS = (M + Band - 1) / Band;
    long long item = blockIdx.x;
    int slab = 0;

    __device__ long long matrix() const { return item / BANDS; }
    // bands by turns, so that no block has the larger ones of all matrices: the grid is a multiple of BANDS
    __device__ int row0() const { return BANDS == 1 ? 0 : static_cast<int>((item + item / gridDim.x) % BANDS) * Band; }
    __device__ int rows() const { return BANDS == 1 ? M : min(Band, M - row0()); }

    template <typename Entry>
    __device__ void load_next(Entry* stage, const Entry* A, const Entry* B, long long items) {
        if (item < items) {
            Product::Layout::load(stage, A + matrix() * M * K, B + matrix() * K * N, 1, row0(), rows(), slab);
            if (++slab == Count) slab = 0, item += gridDim.x;
        }
        copies_issued();
    }
};

// out = α sums + β C, rows × N each from row0 on, sums outside the Part zero, from the registers, by way of `scratch` where ByRows
template <int N, bool ByRows, bool Fringe, int Part, typename Product, typename Entry>
__device__ __forceinline__ void store_sums(const Product& product, Entry* scratch, const Entry* C, Entry* out, int row0, int rows, Entry alpha,
                                           Entry beta) {
    const bool even = N % 2 == 0 && reinterpret_cast<unsigned long long>(out) % sizeof(Pair<Entry>) == 0;
    const auto store = [&](auto value) {
        if constexpr (ByRows) {
            product.each_in_rows(scratch, [&](int i, int j, Entry x) {
                if (i < rows && j < N) out[i * N + j] = value(in_part<Part>(row0 + i, j, x), i * N + j);
            });
        } else {
            product.each_pair([&](int i, int j, Entry x, Entry y) {
                if (i >= rows || j >= N) return;
                const int at = i * N + j;
                store_pair(out + at, value(in_part<Part>(row0 + i, j, x), at),
                           j + 1 < N ? value(in_part<Part>(row0 + i, j + 1, y), at + 1) : y, j + 1 < N, even);
            });
        }
        if constexpr (Fringe)
            product.each_fringe([&](int i, int j, Entry x) {
                if (i < rows && j < N) out[i * N + j] = value(in_part<Part>(row0 + i, j, x), i * N + j);
            });
    };
    if (is_zero(beta)) store([&](Entry sum, int) { return times(alpha, sum); });
    else store([&](Entry sum, int at) { return scaled_sum(alpha, sum, beta, C + at); });
}

// Arguments as those of fixed_gemm; Band, Slab: rows of C and inner indices at a time; Resident: blocks a multiprocessor
// Part: thread/part.cuh   Fringe: where Band is M
// grid: any multiple of the bands
template <typename Entry, int M, int N, int K, bool TransA, bool TransB, int Method, int Band, int Slab, int WarpRows, int WarpColumns, bool Fringe,
          int Shared, int Resident, int Part = WHOLE_PRODUCT>
__global__ __launch_bounds__((FixedProduct<Entry, M, N, K, TransA, TransB, Method, 1, true, Band, Slab, WarpRows, WarpColumns, Fringe>::THREADS), Resident)
void streamed_gemm(const Entry* A, const Entry* B, const Entry* C, Entry* out, long long batch, Entry alpha, Entry beta) {
    using Product = FixedProduct<Entry, M, N, K, TransA, TransB, Method, 1, true, Band, Slab, WarpRows, WarpColumns, Fringe>;
    using Layout = typename Product::Layout;
    constexpr int COUNT = (K + Slab - 1) / Slab, UNIT = decltype(Product::make(M))::UNIT;
    constexpr int STAGES = Shared / int(sizeof(Entry)) / Layout::STAGE;
    constexpr bool BY_ROWS_OUT = Method == BY_TENSOR && N * sizeof(Entry) % SECTOR != 0;
    static_assert(STAGES >= 2 && Slab % UNIT == 0, "slabs stream, by whole steps");
    extern __shared__ __align__(16) unsigned char memory[];
    Entry* stages = reinterpret_cast<Entry*>(memory);
    using Parts = Stream<Product, M, K, N, Band, COUNT>;
    const long long items = batch * Parts::BANDS;
    Parts loaded, at;
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; s++) loaded.load_next(stages + s * Layout::STAGE, A, B, items);
    int full = 0, empty = STAGES - 1;
    // of two warps of a quarter, one sets copies out while the other multiplies
    const bool late = STAGES > 2 && threadIdx.x / (QUARTERS * WARP) % 2;
    for (; at.item < items; at.item += gridDim.x) {
        auto product = Product::make(at.rows());
#pragma unroll 1
        for (int slab = 0; slab < COUNT; slab++) {
            copies_arrived<STAGES - 2>();
            __syncthreads();  // everybody's copies are there, and everybody is done with the stage that is filled next
            if (!late) loaded.load_next(stages + empty * Layout::STAGE, A, B, items);
            const Entry* stage = stages + full * Layout::STAGE;
            product.template add_steps<K % Slab == 0>(Layout::left(stage, A, 0), Layout::right(stage, B, 0), per(Layout::inner(slab), UNIT));
            if (late) loaded.load_next(stages + empty * Layout::STAGE, A, B, items);
            empty = full, full = full + 1 == STAGES ? 0 : full + 1;
        }
        const long long start = at.matrix() * M * N + static_cast<long long>(at.row0()) * N;
        Entry* scratch = nullptr;
        if constexpr (BY_ROWS_OUT) {
            static_assert(Product::EACH * decltype(product)::SCRATCH <= Layout::STAGE, "scratch of all warps in a stage");
            __syncthreads();  // everybody is done with the stage that is filled after the next barrier
            scratch = stages + empty * Layout::STAGE + Product::warp() * decltype(product)::SCRATCH;
        }
        store_sums<N, BY_ROWS_OUT, Fringe, Part>(product, scratch, C + start, out + start, at.row0(), at.rows(), alpha, beta);
    }
}

}  // namespace products
