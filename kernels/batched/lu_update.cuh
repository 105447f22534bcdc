// batched/lu_update.cuh — what remains behind a panel of N columns: C −= L U, or C −= L Lᵀ below the diagonal.
//
// One block a tile of C. Both factors lie in shared memory with the inner index contiguous, as warp/tile_product.cuh wants
// them; C is read and written once. Entries outside are zeros.
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
#pragma unroll
    for (int e = threadIdx.x; e < UPDATE_EDGE * N; e += UPDATE_THREADS) {
        const int k = Along ? e % N : e / UPDATE_RUN % N;
        const int r = Along ? e / N : e / (UPDATE_RUN * N) * UPDATE_RUN + e % UPDATE_RUN;
        const long long at = (row0 + (Along ? r : k)) * ld + column0 + (Along ? k : r);
        copy_async(slab + r * Pitch + k, X + (r < count ? at : 0), r < count);
    }
}

// C −= L U for numbers that tensor cores do not know: store(row, column, product) for every entry of the tile.
template <typename Scalar, int N, int Pitch, typename Store>
__device__ void multiply_entries(const Scalar* L, const Scalar* U, Store store) {
    constexpr int ACROSS = 16, DOWN = UPDATE_THREADS / ACROSS, ROWS = UPDATE_EDGE / DOWN, COLUMNS = UPDATE_EDGE / ACROSS;
    const int row = threadIdx.x / ACROSS, column = threadIdx.x % ACROSS;
    Scalar sum[ROWS][COLUMNS] = {};
    for (int k = 0; k < N; k++) {
        Scalar l[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; i++) l[i] = L[(row + i * DOWN) * Pitch + k];
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const Scalar u = U[(column + j * ACROSS) * Pitch + k];
#pragma unroll
            for (int i = 0; i < ROWS; i++) sum[i][j] = less_product(sum[i][j], l[i], u);
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) store(row + i * DOWN, column + j * ACROSS, minus(Scalar(), sum[i][j]));
}

// LU, info, table, m, n: as in batched/lu_panel.cuh     first: the panel     tiles: along an edge of C, of each matrix
// Shared memory: 2 · UPDATE_EDGE · (N + 4) entries.
template <typename Scalar, int N, bool Symmetric>
__global__ __launch_bounds__(UPDATE_THREADS, sizeof(Scalar) > 8 ? 2 : 4)
void lu_update(Scalar* LU, const int* info, const long long* table, int m, int n, int first, int tiles) {
    constexpr int PITCH = N + DEPTH_STEP;
    extern __shared__ __align__(16) unsigned char memory[];
    Scalar *L = reinterpret_cast<Scalar*>(memory), *U = L + UPDATE_EDGE * PITCH;
    const int square = tiles * tiles, tile = blockIdx.x % square;
    const Place p(table, m, n, blockIdx.x / square);
    const int row = first + N + tile / tiles * UPDATE_EDGE, column = first + N + tile % tiles * UPDATE_EDGE;
    if (row >= p.m || column >= p.n || info[p.index] != 0 && (Symmetric || info[p.index] == NOT_FINITE)) return;
    if (Symmetric && column > row) return;
    const long long ld = p.n;
    Scalar* A = LU + p.target;
    const int rows = min(UPDATE_EDGE, p.m - row), columns = min(UPDATE_EDGE, p.n - column);
    load_factor<N, PITCH, true>(L, A, ld, row, first, rows);
    if (Symmetric) load_factor<N, PITCH, true>(U, A, ld, column, first, columns);
    else load_factor<N, PITCH, false>(U, A, ld, first, column, columns);
    copies_issued();
    copies_arrived<0>();
    __syncthreads();
    A += row * ld + column;
    const auto subtract = [&](int i, int j, Scalar product) {
        if (i < rows && j < columns && (!Symmetric || column + j <= row + i)) A[i * ld + j] = minus(A[i * ld + j], product);
    };
    if constexpr (Field<Scalar>::COMPLEX) {
        multiply_entries<Scalar, N, PITCH>(L, U, subtract);
    } else {
        constexpr int STEP = UPDATE_SIDE * STRIP, STRIPS = UPDATE_EDGE / STEP;
        const int warp = threadIdx.x / WARP, down = warp / UPDATE_SIDE * STRIP, across = warp % UPDATE_SIDE * STRIP;
        TileProduct<Scalar, STRIPS, STRIPS> product;
        product.template add<N, PITCH>(L + down * PITCH, U + across * PITCH, STEP, STEP, N, (rows - down + STEP - 1) / STEP,
                                       (columns - across + STEP - 1) / STEP);
        product.each(down, across, STEP, STEP, subtract);
    }
}
