// batched/redirected_gemm.cuh — out_b = α op(A_b) op(B_b) + β C_b for a ragged batch whose sizes do not exceed Edge; one block
// a matrix, which waits for memory once.
//
// Threads beyond the last row or column read it once more, and never write (Nath, Tomov & Dongarra 2010, pointer
// redirecting): shared memory holds more rows and columns than there are, none of which reaches what is stored.
#pragma once
#include "block/store_run.cuh"
#include "thread/copy.cuh"
#include "warp/staged_product.cuh"

constexpr int REDIRECTED_ROWS = 2, REDIRECTED_COLUMNS = 2, REDIRECTED_WARPS = REDIRECTED_ROWS * REDIRECTED_COLUMNS;
constexpr int REDIRECTED_THREADS = REDIRECTED_WARPS * WARP;
constexpr int AT_ONCE = 4;  // rows of a warp's copies behind one another

// target[i · Pitch + j] (Turned: [j · Pitch + i]) = source[i · columns + j] for i < rows, j < columns, all ≤ Edge
template <int Edge, int Pitch, bool Turned, typename Real>
__device__ __forceinline__ void stage_redirected(Real* target, const Real* source, int rows, int columns) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll 1
    for (int j0 = 0; j0 < columns; j0 += WARP) {
        const int j = j0 + lane;
        if (j >= Edge) break;
        const Real* from = source + min(j, columns - 1);
#pragma unroll 1
        for (int i0 = 0; i0 < rows; i0 += AT_ONCE * REDIRECTED_WARPS)
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                const int i = i0 + u * REDIRECTED_WARPS + warp;
                copy_async(target + (Turned ? j * Pitch + i : i * Pitch + j), from + min(i, rows - 1) * columns, true);
            }
    }
}

// lists: as batched/gemm.cuh   shared memory: 2 · Edge · (Edge + 4) entries and 4 more
template <typename Real, int Edge, bool TransA, bool TransB>
__global__ __launch_bounds__(REDIRECTED_THREADS)
void redirected_gemm(const Real* A, const Real* B, const Real* C, Real* out, const long long* a_first, const long long* b_first,
                     const long long* c_first, const long long* out_first, const long long* rows, const long long* columns,
                     const long long* inner, Real alpha, Real beta) {
    extern __shared__ __align__(16) unsigned char memory[];
    constexpr bool TENSOR = sizeof(Real) == sizeof(double);
    constexpr int PITCH = Edge + 4, STRIPS = Edge / 8, TILES = TENSOR ? Edge / 16 : STRIPS, CHUNK = 16 / sizeof(Real);
    static_assert(Edge % (AT_ONCE * REDIRECTED_WARPS) == 0 && PITCH % 8 == 4, "rows in whole rounds, no bank asked for twice");
    const long long b = blockIdx.x;
    const int m = rows[b], n = columns[b], k = inner[b];
    if (m == 0 || n == 0) return;
    A += a_first[b], B += b_first[b], C += c_first[b], out += out_first[b];
    Real *left = reinterpret_cast<Real*>(memory), *right = left + Edge * PITCH;
    if (k > 0) {
        stage_redirected<Edge, PITCH, TransA && !TENSOR>(left, A, TransA ? k : m, TransA ? m : k);
        stage_redirected<Edge, PITCH, TransB && !TENSOR>(right, B, TransB ? n : k, TransB ? k : n);
    }
    copies_issued();
    constexpr int INNER_A = TransA ? PITCH : 1, INNER_B = TransB ? 1 : PITCH;
    auto product = [&] {
        const int warp = (threadIdx.x / WARP + blockIdx.x) % REDIRECTED_WARPS;
        if constexpr (TENSOR)
            return TensorProduct<TILES, STRIPS, REDIRECTED_ROWS, REDIRECTED_COLUMNS, false, PITCH + 1 - INNER_A, INNER_A, INNER_B,
                                 PITCH + 1 - INNER_B, false>(warp, m);
        else
            return LaneProduct<Real, TILES, STRIPS, REDIRECTED_ROWS, REDIRECTED_COLUMNS, false, PITCH, PITCH>(warp, m);
    }();
    copies_arrived<0>();
    __syncthreads();
    product.add_up_to(left, right, k, n);
    __syncthreads();
    const int skew = static_cast<int>(reinterpret_cast<unsigned long long>(out) / sizeof(Real) % CHUNK);
    Real* sums = left + skew;
    product.each([&](int i, int j, Real sum) {
        if (i < m && j < n) sums[i * n + j] = sum;
    });
    __syncthreads();
    store_run<REDIRECTED_THREADS>(sums, C, out, m * n, skew, alpha, beta);
}
