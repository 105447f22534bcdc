// products/packed_gemm.cuh — out_b = α op(A_b) op(B_b) + β C_b for a ragged batch of small matrices; one warp a matrix, several of
// which share a block's memory.
//
// A matrix takes as many rows of shared memory as it has; those that do not fit beside the others wait for the next round, so
// that little memory keeps many matrices on their way. Threads beyond the edges: as products/redirected_gemm.cuh.
#pragma once
#include "common/thread/copy.cuh"
#include "products/block/edge_copies.cuh"
#include "products/thread/multiply_add.cuh"
#include "products/thread/rounded.cuh"
#include "products/warp/lane_product.cuh"
#include "products/warp/staged_product.cuh"

namespace products {
using namespace common;

constexpr int PACKED_WARPS = 4, PACKED_TILE = 16, PACKED_STRIP = 8;  // of a block; rows of out at a time, columns of a tile

constexpr int PACKED_BLOCKS = 112;  // of a multiprocessor times Edge, for which the compiler leaves registers

// Rows that copy_to_edges writes for a matrix of so many.
template <int Edge, bool Turned>
__device__ int rows_written(int rows, int columns) {
    return Turned ? min(Edge, rounded_up(columns, WARP)) : rounded_up(rows, AT_ONCE);
}

// lists, batch: as products/redirected_gemm.cuh, no size beyond Edge
// shared memory: Whole pairs of the largest factors, and PACKED_WARPS int
template <typename Real, int Edge, int Whole, bool TransA, bool TransB>
__global__ __launch_bounds__(PACKED_WARPS * WARP, PACKED_BLOCKS / Edge)
void packed_gemm(const Real* A, const Real* B, const Real* C, Real* out, const long long* a_first, const long long* b_first,
                 const long long* c_first, const long long* out_first, const long long* rows, const long long* columns,
                 const long long* inner, long long batch, Real alpha, Real beta) {
    extern __shared__ __align__(16) unsigned char memory[];
    constexpr bool TENSOR = sizeof(Real) == sizeof(double), TURN_A = TransA && !TENSOR, TURN_B = TransB && !TENSOR;
    constexpr int PITCH = edge_pitch(Edge), STRIPS = Edge / PACKED_STRIP, SPACE = Whole * 2 * Edge * PITCH;
    constexpr int INNER_A = TransA && TENSOR ? PITCH : 1, INNER_B = TransB && TENSOR ? 1 : PITCH;
    static_assert(PITCH % 8 == 4, "no bank asked for twice");
    Real* space = reinterpret_cast<Real*>(memory);
    int* needs = reinterpret_cast<int*>(space + SPACE);
    const int warp = threadIdx.x / WARP;
    const long long b = static_cast<long long>(blockIdx.x) * PACKED_WARPS + warp;
    const bool given = b < batch;
    const int m = given ? rows[b] : 0, n = given ? columns[b] : 0, k = given ? inner[b] : 0;
    const long long a_at = given ? a_first[b] : 0, b_at = given ? b_first[b] : 0, c_at = given ? c_first[b] : 0, out_at = given ? out_first[b] : 0;
    const int left_rows = rows_written<Edge, TURN_A>(TransA ? k : m, TransA ? m : k);
    const int right_rows = rows_written<Edge, TURN_B>(TransB ? n : k, TransB ? k : n);
    // whole tiles are read: what lies beyond these rows is this warp's too
    const int read_rows = max(TransA && TENSOR ? 0 : rounded_up(m, PACKED_TILE), left_rows + (TransB && TENSOR ? rounded_up(n, PACKED_STRIP) : 0));
    const int need = m > 0 && n > 0 && k > 0 ? max(left_rows + right_rows, read_rows) * PITCH : 0;
    if (threadIdx.x % WARP == 0) needs[warp] = need;
    __syncthreads();
    int round = 0, used = 0, mine = 0, first = 0;
#pragma unroll
    for (int w = 0; w < PACKED_WARPS; w++) {
        if (used + needs[w] > SPACE) round++, used = 0;
        if (w == warp) mine = round, first = used;
        used += needs[w];
    }
    A += a_at, B += b_at, C += c_at, out += out_at;
    Real *left = space + first, *right = left + left_rows * PITCH;
#pragma unroll 1
    for (int r = 0; r <= round; r++) {
        if (r > 0) __syncthreads();  // the round before has read what it had
        if (r != mine || m == 0 || n == 0) continue;
        if (k > 0) {
            copy_to_edges<Edge, PITCH, 1, TURN_A, REDIRECTED>(left, A, TransA ? k : m, TransA ? m : k);
            copy_to_edges<Edge, PITCH, 1, TURN_B, REDIRECTED>(right, B, TransB ? n : k, TransB ? k : n);
        }
        copies_issued();
        const bool together = n % 2 == 0 && reinterpret_cast<unsigned long long>(out) % sizeof(Pair<Real>) == 0;
        copies_arrived<0>();
        __syncwarp();
#pragma unroll 1
        for (int row0 = 0; row0 < m; row0 += PACKED_TILE) {
            auto product = [&] {
                if constexpr (TENSOR)
                    return TensorProduct<Real, 1, STRIPS, 1, 1, false, PITCH + 1 - INNER_A, INNER_A, INNER_B, PITCH + 1 - INNER_B, false, false>(0, m - row0);
                else
                    return LaneProduct<Real, PACKED_TILE / PACKED_STRIP, STRIPS, 1, 1, false, PITCH, PITCH>(0, m - row0);
            }();
            product.add_up_to(left + row0 * (PITCH + 1 - INNER_A), right, k, n);
            product.each_pair([&](int i, int j, Real x, Real y) {
                if (row0 + i >= m || j >= n) return;
                const int at = (row0 + i) * n + j;
                const Real first_sum = scaled_sum(alpha, x, beta, C + at), second_sum = j + 1 < n ? scaled_sum(alpha, y, beta, C + at + 1) : y;
                store_pair(out + at, first_sum, second_sum, j + 1 < n, together);
            });
        }
    }
}

}  // namespace products
