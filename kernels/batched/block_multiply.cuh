// batched/block_multiply.cuh — y = A x for a sparse matrix of dense blocks, each stored entry read once from memory.
//
// block_products: one block an item, a run of rows of one panel (the stacked blocks of a block column), at most MAX_WIDTH
// columns wide. From one reading of P it makes both P x_j (one number a row) and Pᵀ x_i (one a column) and writes them
// to `parts`. block_sums adds the parts of every block row of y in a fixed order: no atomics, the same bits every time.
#pragma once
#include "thread/constants.cuh"

constexpr int MAX_WIDTH = 128;  // columns of an item
template <int Value>
struct Number { static constexpr int value = Value; };
constexpr int PRODUCT_WARPS = 4, SUM_WARPS = 4, RESIDENT = 4;  // warps of a block, blocks of a multiprocessor

// Sums each of Count values over groups of Lanes lanes: afterwards a lane holds the sum of value `reduced_index`.
// Halving the values while halving the lanes costs Count - 1 + log2(Lanes / Count) shuffles, not Count · log2(Lanes).
template <int Count, int Lanes, typename Real>
__device__ Real reduce_many(Real (&value)[Count], int lane) {
    int distance = Lanes / 2;
#pragma unroll
    for (int half = Count / 2; half > 0; half /= 2, distance /= 2) {
        const bool upper = lane & distance;
#pragma unroll
        for (int v = 0; v < half; v++) {
            const Real sent = upper ? value[v] : value[v + half], kept = upper ? value[v + half] : value[v];
            value[v] = kept + __shfl_xor_sync(EVERY_LANE, sent, distance);
        }
    }
    for (; distance > 0; distance /= 2) value[0] += __shfl_xor_sync(EVERY_LANE, value[0], distance);
    return value[0];
}

// Which of the Count values reduce_many left in this lane, and whether this is the first lane that holds it.
template <int Count, int Lanes>
__device__ int reduced_index(int lane) { return lane % Lanes / (Lanes / Count); }
template <int Count, int Lanes>
__device__ bool is_first_holder(int lane) { return lane % (Lanes / Count) == 0; }

// One item for Sides right-hand sides from `side` on; Lanes lanes a row, Strips columns a lane, Rows rows at a time.
// P: rows × width, pitch apart   x: · × sides   x_rows: rows (the row of x that meets each row of P in Pᵀ x)
// forward: rows × sides, backward: width × sides (parts; either may be unused)   scratch: warps × MAX_WIDTH × Sides
template <bool Forward, bool Backward, int Lanes, int Strips, int Rows, int Sides, typename Real>
__device__ void item_products(const Real* P, int rows, int width, int pitch, const Real* x, long long x_column,
                              const int* x_rows, int skip, int side, int sides, Real* forward, Real* backward,
                              Real* scratch) {
    constexpr int GROUPS = WARP / Lanes, STEP = PRODUCT_WARPS * GROUPS * Rows, VALUES = Rows * Sides;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, column0 = lane % Lanes;
    const int group = warp * GROUPS + lane / Lanes;
    Real xj[Strips][Sides], z[Strips][Sides];
#pragma unroll
    for (int q = 0; q < Strips; q++)
#pragma unroll
        for (int h = 0; h < Sides; h++) {
            const int c = column0 + q * Lanes;
            xj[q][h] = Forward && c < width && side + h < sides ? x[(x_column + c) * sides + side + h] : Real(0);
            z[q][h] = 0;
        }
    for (int start = 0; start < rows; start += STEP) {      // the same trip count in every lane
        const int r0 = start + group * Rows;
        Real p[Rows][Strips];
#pragma unroll
        for (int u = 0; u < Rows; u++)
#pragma unroll
            for (int q = 0; q < Strips; q++) {
                const int c = column0 + q * Lanes;
                p[u][q] = r0 + u < rows && c < width ? P[static_cast<long long>(r0 + u) * pitch + c] : Real(0);
            }
        if constexpr (Backward) {
#pragma unroll
            for (int u = 0; u < Rows; u++) {
                const int r = r0 + u;
                if (r < skip || r >= rows) continue;
                const long long at = static_cast<long long>(x_rows[r]) * sides + side;
#pragma unroll
                for (int h = 0; h < Sides; h++) {
                    const Real xi = side + h < sides ? x[at + h] : Real(0);
#pragma unroll
                    for (int q = 0; q < Strips; q++) z[q][h] += p[u][q] * xi;
                }
            }
        }
        if constexpr (Forward) {
            Real f[VALUES];
#pragma unroll
            for (int u = 0; u < Rows; u++)
#pragma unroll
                for (int h = 0; h < Sides; h++) {
                    f[u * Sides + h] = 0;
#pragma unroll
                    for (int q = 0; q < Strips; q++) f[u * Sides + h] += p[u][q] * xj[q][h];
                }
            const Real sum = reduce_many<VALUES, Lanes>(f, lane);
            const int v = reduced_index<VALUES, Lanes>(lane), r = r0 + v / Sides, h = side + v % Sides;
            if (is_first_holder<VALUES, Lanes>(lane) && r < rows && h < sides)
                forward[static_cast<long long>(r) * sides + h] = sum;
        }
    }
    if constexpr (Backward) {
#pragma unroll
        for (int q = 0; q < Strips; q++)
#pragma unroll
            for (int h = 0; h < Sides; h++) {
                for (int distance = Lanes; distance < WARP; distance *= 2)
                    z[q][h] += __shfl_xor_sync(EVERY_LANE, z[q][h], distance);
                if (lane < Lanes) scratch[(warp * MAX_WIDTH + column0 + q * Lanes) * Sides + h] = z[q][h];
            }
        __syncthreads();
        for (int e = threadIdx.x; e < width * Sides; e += PRODUCT_WARPS * WARP) {
            Real sum = 0;
            for (int w = 0; w < PRODUCT_WARPS; w++) sum += scratch[w * MAX_WIDTH * Sides + e];
            if (side + e % Sides < sides) backward[static_cast<long long>(e / Sides) * sides + side + e % Sides] = sum;
        }
        __syncthreads();
    }
}

// blocks: buffer of all stored blocks   x: · × sides   parts: · × sides   x_rows: rows of all panels
// table: 9 × items: first entry, rows, width, pitch, first row of x_j, first of x_rows, first part of P x_j,
//        first part of Pᵀ x_i, rows to leave out of Pᵀ x_i (a diagonal block of a symmetric matrix)
template <typename Real, bool Forward, bool Backward, int Sides>
__global__ __launch_bounds__(PRODUCT_WARPS * WARP, RESIDENT)
void block_products(const Real* blocks, const Real* x, Real* parts, const int* x_rows, const long long* table,
                    long long items, int sides) {
    __shared__ Real scratch[Backward ? PRODUCT_WARPS * MAX_WIDTH * Sides : 1];
    const long long* item = table + blockIdx.x;
    const Real* P = blocks + item[0];
    const int rows = item[items], width = item[2 * items], pitch = item[3 * items], skip = item[8 * items];
    const long long x_column = item[4 * items];
    Real *forward = parts + item[6 * items] * sides, *backward = parts + item[7 * items] * sides;
    x_rows += item[5 * items];
    constexpr int FEW = 4 / Sides, MANY = 8 / Sides;        // rows at a time: wide and narrow items
    for (int side = 0; side < sides; side += Sides) {
        const auto run = [&](auto lanes, auto strips, auto some) {
            item_products<Forward, Backward, lanes.value, strips.value, some.value, Sides>(
                P, rows, width, pitch, x, x_column, x_rows, skip, side, sides, forward, backward, scratch);
        };
        if (width <= 8) run(Number<8>(), Number<1>(), Number<MANY>());
        else if (width <= 16) run(Number<16>(), Number<1>(), Number<MANY>());
        else if (width <= 32) run(Number<32>(), Number<1>(), Number<MANY>());
        else if (width <= 64) run(Number<32>(), Number<2>(), Number<MANY>());
        else run(Number<32>(), Number<4>(), Number<FEW>());
    }
}

// y: · × sides   parts: · × sides   table: 4 × block rows: first row of y, rows, first and last + 1 of `lists`
// lists: the first part of every term, block row by block row
template <typename Real>
__global__ __launch_bounds__(SUM_WARPS * WARP)
void block_sums(Real* y, const Real* parts, const long long* table, const long long* lists, long long block_rows,
                int sides) {
    const long long i = static_cast<long long>(blockIdx.x) * SUM_WARPS + threadIdx.x / WARP;
    if (i >= block_rows) return;
    const long long entries = table[block_rows + i] * sides, first = table[2 * block_rows + i];
    const long long last = table[3 * block_rows + i];
    y += table[i] * sides;
    for (long long e = threadIdx.x % WARP; e < entries; e += WARP) {
        Real sum = 0;
#pragma unroll 4
        for (long long c = first; c < last; c++) sum += parts[lists[c] * sides + e];
        y[e] = sum;
    }
}
