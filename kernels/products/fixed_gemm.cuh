// products/fixed_gemm.cuh — out_b = α op(A_b) op(B_b) + β C_b for matrices of one shape that the compiler knows, a group of whole
// matrices a block. Larger ones: products/streamed_gemm.cuh.
//
// Nothing is checked at the edges of the matrices: whole tiles are computed, entries beyond the edges are whatever lies there,
// and they are not stored (Nath, Tomov & Dongarra 2010, pointer redirecting), or one or two last rows and columns by themselves
// (products/warp/fringe_sums.cuh). Inner indices end exactly. What a block computes is one run of memory, which leaves through shared
// memory in pieces of 16 bytes whatever the size.
#pragma once
#include "common/thread/copy.cuh"
#include "products/block/fixed_product.cuh"
#include "products/block/store_run.cuh"
#include "products/thread/part.cuh"

namespace products {
using namespace common;

// A, B, C, out: (batch, rows, columns) each; C may be null if β is 0
// Part: thread/part.cuh   Fringe: last rows and columns by themselves   Shared: bytes of shared memory that the launch asks for
// Same: op(B) is op(A)ᵀ, of which B is not read
template <typename Entry, int M, int N, int K, bool TransA, bool TransB, int Method, int Group, int WarpRows, int WarpColumns,
          bool Fringe, int Shared, int Part = WHOLE_PRODUCT, bool Same = false>
__global__ __launch_bounds__((FixedProduct<Entry, M, N, K, TransA, TransB, Method, Group, false, M, K, WarpRows, WarpColumns, Fringe, Same>::THREADS),
                             (FixedProduct<Entry, M, N, K, TransA, TransB, Method, Group, false, M, K, WarpRows, WarpColumns, Fringe, Same>::resident(Shared)))
void fixed_gemm(const Entry* A, const Entry* B, const Entry* C, Entry* out, long long batch, Entry alpha, Entry beta) {
    using Product = FixedProduct<Entry, M, N, K, TransA, TransB, Method, Group, false, M, K, WarpRows, WarpColumns, Fringe, Same>;
    using Layout = typename Product::Layout;
    static_assert(most_of(Layout::STAGE, Group * M * N + Layout::CHUNK) * sizeof(Entry) <= Shared, "shared memory");
    extern __shared__ __align__(16) unsigned char memory[];
    Entry* stage = reinterpret_cast<Entry*>(memory);

    const long long first = static_cast<long long>(blockIdx.x) * Group;
    const int matrices = Group == 1 ? 1 : static_cast<int>(min(static_cast<long long>(Group), batch - first));
    A += first * M * K, B += first * K * N, C += first * M * N, out += first * M * N;
    auto product = Product::make(M);
    const int q = Group == 1 ? 0 : Product::matrix();
    const bool works = Group == 1 && Method != BY_ROWS ? true : Product::matrix() < matrices;

    Layout::load(stage, A, B, matrices, 0, M, 0);
    copies_issued();
    copies_arrived<0>();
    __syncthreads();
    if (works) product.template add<K>(Layout::left(stage, A, q), Layout::right(stage, B, q));
    __syncthreads();
    const int skew = Layout::skew(out);
    Entry* sums = stage + skew;
    product.each_pair([&](int i, int j, Entry x, Entry y) {
        if (works && i < M && j < N) store_pair(sums + (q * M + i) * N + j, in_part<Part>(i, j, x), in_part<Part>(i, j + 1, y), j + 1 < N, N % 2 == 0 && skew % 2 == 0);
    });
    if constexpr (Fringe)
        product.each_fringe([&](int i, int j, Entry x) {
            if (works && i < M && j < N) sums[(q * M + i) * N + j] = in_part<Part>(i, j, x);
        });
    __syncthreads();
    store_run<Product::THREADS>(sums, C, out, matrices * M * N, skew, alpha, beta);
}

}  // namespace products
