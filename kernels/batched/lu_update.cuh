// batched/lu_update.cuh — what is behind N columns of L: C −= L U, or C −= L Lᵀ below the diagonal.
//
// One block a tile of C. Both factors lie in shared memory with the inner index contiguous, as warp/tile_product.cuh wants
// them. C is read at once, while they are on their way, and the sums begin with −C: read entry by entry as sums are subtracted,
// each would wait for the store before. Entries outside are zeros.
#pragma once

#include "thread/copy.cuh"
#include "thread/field.cuh"
#include "thread/place.cuh"
#include "warp/tile_product.cuh"

constexpr int UPDATE_EDGE = 64, UPDATE_SIDE = 2, UPDATE_THREADS = UPDATE_SIDE * UPDATE_SIDE * WARP;
constexpr int UPDATE_RUN = 8;  // lanes along a row of U, which is turned on its way to shared memory

// slab[r][k] = X[(row0 + r) · ld + column0 + k] (Along) or X[(row0 + k) · ld + column0 + r], zero where r ≥ count
template <int N, int Pitch, bool Along, typename Scalar>
__device__ void load_factor(Scalar* slab, const Scalar* X, long long ld, int row0, int column0, int count) {
#pragma unroll 8
    for (int e = threadIdx.x; e < UPDATE_EDGE * N; e += UPDATE_THREADS) {
        const int k = Along ? e % N : e / UPDATE_RUN % N;
        const int r = Along ? e / N : e / (UPDATE_RUN * N) * UPDATE_RUN + e % UPDATE_RUN;
        const long long at = (row0 + (Along ? r : k)) * ld + column0 + (Along ? k : r);
        copy_async(slab + r * Pitch + k, X + (r < count ? at : 0), r < count);
    }
}

// The product where tensor cores do not know the numbers: as TileProduct, a grid of threads in place of strips.
template <typename Scalar>
struct EntryProduct {
    static constexpr int ACROSS = 16, DOWN = UPDATE_THREADS / ACROSS, ROWS = UPDATE_EDGE / DOWN, COLUMNS = UPDATE_EDGE / ACROSS;
    Scalar sum[ROWS][COLUMNS];

    template <typename Visit>
    __device__ void visit(Visit visit) {
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) visit(threadIdx.x / ACROSS + i * DOWN, threadIdx.x % ACROSS + j * ACROSS, sum[i][j]);
    }

    // sum −= L U
    template <int N, int Pitch>
    __device__ void subtract(const Scalar* L, const Scalar* U) {
        for (int k = 0; k < N; k++) {
            Scalar l[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; i++) l[i] = L[(threadIdx.x / ACROSS + i * DOWN) * Pitch + k];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                const Scalar u = U[(threadIdx.x % ACROSS + j * ACROSS) * Pitch + k];
#pragma unroll
                for (int i = 0; i < ROWS; i++) sum[i][j] = less_product(sum[i][j], l[i], u);
            }
        }
    }
};

// LU, info, table, m, n: as in batched/lu_panel.cuh     inner: the first column of L
// C: rows from inner + N on, columns from there on before `stop`, in tiles_down × tiles_across tiles of each matrix
// Shared memory: 2 · UPDATE_EDGE · (N + 4) entries.
template <typename Scalar, int N, bool Symmetric>
__global__ __launch_bounds__(UPDATE_THREADS, sizeof(Scalar) > 8 ? 2 : 3)
void lu_update(Scalar* LU, const int* info, const long long* table, int m, int n, int inner, int stop, int tiles_down,
               int tiles_across) {
    constexpr int PITCH = N + DEPTH_STEP;
    extern __shared__ __align__(16) unsigned char memory[];
    Scalar *L = reinterpret_cast<Scalar*>(memory), *U = L + UPDATE_EDGE * PITCH;
    const int area = tiles_down * tiles_across, tile = blockIdx.x % area;
    const Place p(table, m, n, blockIdx.x / area);
    const int row = inner + N + tile / tiles_across * UPDATE_EDGE, column = inner + N + tile % tiles_across * UPDATE_EDGE;
    stop = min(stop, p.n);
    if (row >= p.m || column >= stop || info[p.index] != 0 && (Symmetric || info[p.index] == NOT_FINITE)) return;
    if (Symmetric && column > row) return;
    const long long ld = p.n;
    Scalar* A = LU + p.target;
    const int rows = min(UPDATE_EDGE, p.m - row), columns = min(UPDATE_EDGE, stop - column);
    load_factor<N, PITCH, true>(L, A, ld, row, inner, rows);
    if (Symmetric) load_factor<N, PITCH, true>(U, A, ld, column, inner, columns);
    else load_factor<N, PITCH, false>(U, A, ld, inner, column, columns);
    copies_issued();
    A += row * ld + column;
    const auto belongs = [&](int i, int j) { return i < rows && j < columns && (!Symmetric || column + j <= row + i); };
    if constexpr (Field<Scalar>::COMPLEX) {
        EntryProduct<Scalar> product;
        product.visit([&](int i, int j, Scalar& sum) { sum = belongs(i, j) ? A[i * ld + j] : Scalar(); });
        copies_arrived<0>();
        __syncthreads();
        product.template subtract<N, PITCH>(L, U);
        product.visit([&](int i, int j, Scalar& sum) { if (belongs(i, j)) A[i * ld + j] = sum; });
    } else {
        constexpr int STEP = UPDATE_SIDE * STRIP, STRIPS = UPDATE_EDGE / STEP;
        const int warp = threadIdx.x / WARP, down = warp / UPDATE_SIDE * STRIP, across = warp % UPDATE_SIDE * STRIP;
        TileProduct<Scalar, STRIPS, STRIPS> product;
        product.begin(down, across, STEP, STEP, [&](int i, int j) { return belongs(i, j) ? -A[i * ld + j] : Scalar(); });
        copies_arrived<0>();
        __syncthreads();
        const int row_strips = (rows - down + STEP - 1) / STEP, column_strips = (columns - across + STEP - 1) / STEP;
#pragma unroll 1
        for (int k = 0; k < N; k += UPDATE_RUN)  // all at once would take too many registers
            product.template add<UPDATE_RUN, PITCH>(L + down * PITCH + k, U + across * PITCH + k, STEP, STEP, UPDATE_RUN,
                                                    row_strips, column_strips);
        product.each(down, across, STEP, STEP, [&](int i, int j, Scalar sum) { if (belongs(i, j)) A[i * ld + j] = -sum; });
    }
}
