// products/redirected_gemm.cuh — out_b = α op(A_b) op(B_b) + β C_b for a ragged batch whose sizes do not exceed Edge; one block
// a matrix, which waits for memory once.
//
// Threads beyond the last row or column read it once more, and never write (Nath, Tomov & Dongarra 2010, pointer
// redirecting): shared memory holds more rows and columns than there are, none of which reaches what is stored.
#pragma once
#include "common/thread/copy.cuh"
#include "products/block/edge_copies.cuh"
#include "products/block/store_run.cuh"
#include "products/warp/lane_product.cuh"
#include "products/warp/staged_product.cuh"

namespace products {
using namespace common;

constexpr int REDIRECTED_ROWS = 2, REDIRECTED_MANY = 64;  // warps along rows; edge from which twice as many are along columns

__host__ __device__ constexpr int redirected_columns(int edge) { return edge < REDIRECTED_MANY ? 2 : 4; }

// lists: as products/gemm.cuh   shared memory: 2 · Edge rows of edge_pitch(Edge) entries   Beyond: see products/block/edge_copies.cuh
template <typename Real, int Edge, bool TransA, bool TransB, int Beyond = REDIRECTED>
__global__ __launch_bounds__(REDIRECTED_ROWS * redirected_columns(Edge) * WARP, 2)
void redirected_gemm(const Real* A, const Real* B, const Real* C, Real* out, const long long* a_first, const long long* b_first,
                     const long long* c_first, const long long* out_first, const long long* rows, const long long* columns,
                     const long long* inner, Real alpha, Real beta) {
    extern __shared__ __align__(16) unsigned char memory[];
    constexpr bool TENSOR = sizeof(Real) == sizeof(double);
    constexpr int COLUMNS = redirected_columns(Edge), WARPS = REDIRECTED_ROWS * COLUMNS;
    constexpr int PITCH = edge_pitch(Edge), STRIPS = Edge / 8, TILES = TENSOR ? Edge / 16 : STRIPS, CHUNK = 16 / sizeof(Real);
    static_assert(Edge % (at_once(WARPS) * WARPS) == 0 && PITCH % 8 == 4, "rows in whole rounds, no bank asked for twice");
    const long long b = blockIdx.x;
    const int m = rows[b], n = columns[b], k = inner[b];
    if (m == 0 || n == 0) return;
    A += a_first[b], B += b_first[b], C += c_first[b], out += out_first[b];
    Real *left = reinterpret_cast<Real*>(memory), *right = left + Edge * PITCH;
    if (k > 0) {
        copy_to_edges<Edge, PITCH, WARPS, TransA && !TENSOR, Beyond>(left, A, TransA ? k : m, TransA ? m : k);
        copy_to_edges<Edge, PITCH, WARPS, TransB && !TENSOR, Beyond>(right, B, TransB ? n : k, TransB ? k : n);
    }
    copies_issued();
    constexpr int INNER_A = TransA ? PITCH : 1, INNER_B = TransB ? 1 : PITCH;
    auto product = [&] {
        const int warp = (threadIdx.x / WARP + blockIdx.x) % WARPS;
        if constexpr (TENSOR)
            return TensorProduct<Real, TILES, STRIPS, REDIRECTED_ROWS, COLUMNS, false, PITCH + 1 - INNER_A, INNER_A, INNER_B,
                                 PITCH + 1 - INNER_B, false, false>(warp, m);
        else
            return LaneProduct<Real, TILES, STRIPS, REDIRECTED_ROWS, COLUMNS, false, PITCH, PITCH>(warp, m);
    }();
    copies_arrived<0>();
    __syncthreads();
    product.add_up_to(left, right, k, n);
    __syncthreads();
    const int skew = static_cast<int>(reinterpret_cast<unsigned long long>(out) / sizeof(Real) % CHUNK);
    Real* sums = left + skew;
    product.each_pair([&](int i, int j, Real x, Real y) {
        if (i < m && j < n) store_pair(sums + i * n + j, x, y, j + 1 < n, n % 2 == 0 && skew % 2 == 0);
    });
    __syncthreads();
    store_run<WARPS * WARP>(sums, C, out, m * n, skew, alpha, beta);
}

}  // namespace products
