// systems/lu_panel.cuh — one panel of N columns of every matrix, from column `first` on: P X = L U; one block a matrix.
//
// Three ways, of which each keeps more of the panel on chip (Abdelfattah, Tomov & Dongarra 2019): lu_unblocked, all in
// device memory, a rank-one update a column; lu_column, looking left, one column in shared memory; lu_panel, the whole
// panel in registers. Rows are interchanged within the panel; systems/lu_rows.cuh does the other columns.
//     LU  matrices, in place     pivots, info, table, m, n: as in systems/lu_register.cuh; info is NOT_FINITE or 0 before
#pragma once

#include "systems/block/lu_panel.cuh"
#include "systems/thread/place.cuh"
#include "systems/warp/panel_rows.cuh"

namespace systems {

// What the block works on: nothing where the matrix is finished or refused; a refused one is made NaN with the first panel.
template <typename Scalar>
struct PanelOf {
    Place place;
    Scalar* X;    // the panel's first column, in row 0
    int* pivots;  // of the matrix
    int width;    // columns of the panel that have a pivot; 0: nothing to do

    __device__ PanelOf(Scalar* LU, int* pivots, const int* info, const long long* table, int m, int n, int first, int panel)
        : place(table, m, n, blockIdx.x), X(LU + place.target + first), pivots(pivots + place.pivots),
          width(min(panel, place.steps() - first)) {
        if (info[place.index] != NOT_FINITE) return;
        width = 0;
        if (first > 0) return;
        const long long entries = static_cast<long long>(place.m) * place.n;
        for (long long e = threadIdx.x; e < entries; e += blockDim.x) X[e] = not_a_number<Scalar>();
        for (int k = threadIdx.x; k < place.steps(); k += blockDim.x) this->pivots[k] = k;
    }

    __device__ void conclude(int* info, int verdict) const {
        if (threadIdx.x == 0 && verdict != 0 && info[place.index] == 0) info[place.index] = verdict;
    }
};

// At most Slots · blockDim.x rows behind `first`; blockDim.x ≤ Warps · WARP. Shared memory: ROW_BUFFER entries a warp.
template <typename Scalar, int N, int Slots, int Warps>
__global__ __launch_bounds__(Warps * WARP, Slots * sizeof(Scalar) <= sizeof(float) ? 2 : 1)
void lu_panel(Scalar* LU, int* pivots, int* info, const long long* table, int m, int n, int first) {
    __shared__ PanelExchange<Scalar, N, Warps, 2> exchange;
    extern __shared__ __align__(16) unsigned char memory[];
    const PanelOf<Scalar> panel(LU, pivots, info, table, m, n, first, N);
    if (panel.width <= 0) return;
    const Place& p = panel.place;
    Scalar* buffer = reinterpret_cast<Scalar*>(memory) + threadIdx.x / WARP * ROW_BUFFER;
    const int columns = min(N, p.n - first);
    Scalar x[Slots][N];
    int position[Slots], verdict = 0;
#pragma unroll
    for (int s = 0; s < Slots; s++) {
        const int row0 = first + s * blockDim.x + threadIdx.x / WARP * WARP, row = row0 + threadIdx.x % WARP;
        position[s] = row < p.m ? row : -1;
        read_rows(x[s], panel.X, p.n, row0, p.m, columns, buffer);
    }
    const auto found = eliminate_panel(x, position, first, panel.width, threadIdx.x / WARP, blockDim.x / WARP, exchange,
                                       [&](int k) { verdict = verdict ? verdict : first + k + 1; }, [](int, int, Scalar) {});
    if (threadIdx.x < panel.width) panel.pivots[first + threadIdx.x] = found.before;
#pragma unroll
    for (int s = 0; s < Slots; s++) write_rows(panel.X, p.n, position[s], panel.width, x[s], buffer);
    panel.conclude(info, verdict);
}

// The position of the largest entry of column[i · step], first ≤ i < m, in every thread; the least one among equals.
template <int Warps, typename Scalar>
__device__ int largest_entry(const Scalar* column, long long step, int first, int m) {
    using Real = typename Field<Scalar>::Real;
    __shared__ Real magnitudes[Warps];
    __shared__ int positions[Warps];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    Real largest = 0;
    int at = NOWHERE;
    for (int i = first + threadIdx.x; i < m; i += blockDim.x) {
        const Real size = magnitude(column[i * step]);
        if (at == NOWHERE || size > largest) largest = size, at = i;
    }
    const int best = pivot_position<WARP>(largest, at);
    if (at == best && (at != NOWHERE || lane == 0)) magnitudes[warp] = largest, positions[warp] = at;
    __syncthreads();
    const bool some = lane < Warps;
    return pivot_position<WARP>(some ? magnitudes[lane] : Real(0), some ? positions[lane] : NOWHERE);
}

// rows k and pivot of the panel's columns change places
template <typename Scalar>
__device__ void interchange(Scalar* X, long long ld, int k, int pivot, int columns) {
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        const Scalar upper = X[k * ld + c];
        X[k * ld + c] = X[pivot * ld + c], X[pivot * ld + c] = upper;
    }
}

template <typename Scalar, int N, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void lu_unblocked(Scalar* LU, int* pivots, int* info, const long long* table, int m, int n, int first) {
    const PanelOf<Scalar> panel(LU, pivots, info, table, m, n, first, N);
    const long long ld = panel.place.n;
    const int rows = panel.place.m, columns = panel.width;
    Scalar* X = panel.X;
    int verdict = 0;
    for (int c = 0; c < columns; c++) {
        const int k = first + c, pivot = largest_entry<Warps>(X + c, ld, k, rows);
        if (threadIdx.x == 0) panel.pivots[k] = pivot;
        if (pivot != k) interchange(X, ld, k, pivot, columns);
        __syncthreads();
        const Scalar diagonal = X[k * ld + c];
        const Divisor<Scalar> divided(diagonal);
        if (!(magnitude(diagonal) > 0) && verdict == 0) verdict = k + 1;
        for (int i = k + 1 + threadIdx.x; i < rows; i += blockDim.x) X[i * ld + c] = divided(X[i * ld + c]);
        __syncthreads();
        for (int i = k + 1 + threadIdx.x / N; i < rows; i += blockDim.x / N) {
            const int j = threadIdx.x % N;
            if (j > c && j < columns) X[i * ld + j] = less_product(X[i * ld + j], X[i * ld + c], X[k * ld + j]);
        }
        __syncthreads();
    }
    panel.conclude(info, verdict);
}

// Shared memory: the rows from `first` on of one column.
template <typename Scalar, int N, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void lu_column(Scalar* LU, int* pivots, int* info, const long long* table, int m, int n, int first) {
    extern __shared__ __align__(16) unsigned char memory[];
    Scalar* v = reinterpret_cast<Scalar*>(memory);
    const PanelOf<Scalar> panel(LU, pivots, info, table, m, n, first, N);
    const long long ld = panel.place.n;
    const int rows = panel.place.m - first, columns = panel.width;
    Scalar* X = panel.X + first * ld;  // positions are counted from here
    int verdict = 0;
    for (int c = 0; c < columns; c++) {
        for (int i = threadIdx.x; i < rows; i += blockDim.x) v[i] = X[i * ld + c];
        __syncthreads();
        if (threadIdx.x < WARP)  // the column of U: a row a lane
            for (int j = 0; j + 1 < c; j++) {
                const int i = threadIdx.x;
                if (i > j && i < c) v[i] = less_product(v[i], X[i * ld + j], v[j]);
                __syncwarp();
            }
        __syncthreads();
        for (int i = c + threadIdx.x; i < rows; i += blockDim.x) {
            Scalar sum = v[i];
            for (int j = 0; j < c; j++) sum = less_product(sum, X[i * ld + j], v[j]);
            v[i] = sum;
        }
        __syncthreads();
        const int pivot = largest_entry<Warps>(v, 1, c, rows);
        if (threadIdx.x == 0) panel.pivots[first + c] = first + pivot;
        const Scalar diagonal = v[pivot], upper = v[c];
        const Divisor<Scalar> divided(diagonal);
        if (!(magnitude(diagonal) > 0) && verdict == 0) verdict = first + c + 1;
        if (pivot != c) interchange(X, ld, c, pivot, columns);
        __syncthreads();
        for (int i = threadIdx.x; i < rows; i += blockDim.x)
            X[i * ld + c] = i < c ? v[i] : i == c ? diagonal : divided(i == pivot ? upper : v[i]);
        __syncthreads();
    }
    panel.conclude(info, verdict);
}

}  // namespace systems
