// systems/trsm.cuh — X_b with op(A_b) X_b = α B_b, or X_b op(A_b) = α B_b, A_b triangular; one block some columns (rows) of X_b.
//
//     X_I = T_II⁻¹ (α B_I − Σ_J T_IJ X_J),   T = op(A), or op(A)ᵀ where A is on the right
//
// in tiles of 32 rows, first to last if T is lower, last to first if upper. Tiles on the diagonal are inverted, a column a
// lane, and multiplied with (Nath, Tomov & Dongarra 2010). X stays in shared memory.
#pragma once
#include "common/thread/constants.cuh"
#include "products/thread/operands.cuh"

namespace systems {
using namespace common;
using namespace products;

constexpr int TILE_EDGE = WARP, TILE_PITCH = TILE_EDGE + 1;

// v ← column `lane` of the inverse of the tile, lower triangular in the order in which rows are solved
template <bool Unit, typename Real>
__device__ __forceinline__ void inverse_column(Real (&v)[TILE_EDGE], const Real* tile, int lane) {
#pragma unroll
    for (int i = 0; i < TILE_EDGE; i++) {
        Real rest = i == lane;
#pragma unroll
        for (int j = 0; j < i; j++) rest -= tile[i * TILE_PITCH + j] * v[j];
        v[i] = i < lane ? Real(0) : Unit ? rest : rest / tile[i * TILE_PITCH + i];
    }
}

// Shared memory of a block: a tile and the inverse of one on the diagonal, sums of a tile of X, and n rows of X.
template <typename Real, int Columns>
__host__ __device__ constexpr int trsm_bytes(int n) {
    return (2 * TILE_EDGE * TILE_PITCH + (TILE_EDGE + n) * Columns) * static_cast<int>(sizeof(Real));
}

// A: batch × n × n   B, X: n × columns each, columns × n if Right   pieces: blocks a matrix, of Columns columns each
// table: products/thread/operands.cuh, A's n and the number of columns as its rows and columns, B as its x, X as its out
// Lower: of A   Trans: op   shared memory: trsm_bytes
template <typename Real, int Columns, int Warps, bool Right, bool Lower, bool Trans, bool Unit>
__global__ __launch_bounds__(Warps * WARP)
void trsm(const Real* A, const Real* B, Real* X, const long long* table, long long batch, int n, int columns, int pieces, Real alpha) {
    constexpr bool TURNED = Trans != Right, FORWARD = Lower != TURNED;  // T = Aᵀ; T is lower
    constexpr int THREADS = Warps * WARP, EACH = TILE_EDGE * Columns / THREADS, STEP = THREADS / Columns;
    static_assert(THREADS % Columns == 0 && TILE_EDGE * Columns % THREADS == 0, "a thread stays in its column");
    extern __shared__ __align__(16) unsigned char memory[];
    const long long b = blockIdx.x / pieces;
    const int column0 = blockIdx.x % pieces * Columns;
    long long at_a = b * n * n, at_b = b * n * columns, at_x = at_b;
    if (table) {
        const Operands at(table, batch, b, 0, 0, 0, 0);
        at_a = at.a, at_b = at.x, at_x = at.out, n = at.m, columns = at.n;
    }
    if (column0 >= columns) return;
    A += at_a, B += at_b, X += at_x;
    Real *tile = reinterpret_cast<Real*>(memory), *inverse = tile + TILE_EDGE * TILE_PITCH;
    Real *rest = inverse + TILE_EDGE * TILE_PITCH, *x = rest + TILE_EDGE * Columns;  // TILE_EDGE × Columns, n × Columns
    const auto place = [&](int i, int c) { return Right ? static_cast<long long>(column0 + c) * n + i : static_cast<long long>(i) * columns + column0 + c; };
    const int wide = min(Columns, columns - column0), tiles = (n + TILE_EDGE - 1) / TILE_EDGE;
    for (int e = threadIdx.x; e < n * Columns; e += THREADS) {
        const int i = Right ? e % n : e / Columns, c = Right ? e / n : e % Columns;
        x[i * Columns + c] = c < wide ? alpha * B[place(i, c)] : Real(0);
    }
    // tile[i][j] = T's entry at rows row0 and columns column of two tiles, counted in the order of solution; ones behind the edge
    const auto take = [&](int I, int J) {
        for (int e = threadIdx.x; e < TILE_EDGE * TILE_EDGE; e += THREADS) {
            const int along = e % TILE_EDGE, down = e / TILE_EDGE, i = TURNED ? along : down, j = TURNED ? down : along;
            const int solved_i = I * TILE_EDGE + i, solved_j = J * TILE_EDGE + j;
            const int row = FORWARD ? solved_i : n - 1 - solved_i, column = FORWARD ? solved_j : n - 1 - solved_j;
            const bool inside = solved_i < n && solved_j <= solved_i;
            tile[i * TILE_PITCH + j] = inside ? A[TURNED ? static_cast<long long>(column) * n + row : static_cast<long long>(row) * n + column]
                                              : Real(i == j);
        }
    };
    const int i0 = threadIdx.x / Columns, c = threadIdx.x % Columns;  // this thread's first row of a tile, and its column
    const auto row_of = [&](int I, int i) { return FORWARD ? I * TILE_EDGE + i : n - 1 - I * TILE_EDGE - i; };
    for (int I = 0; I < tiles; I++) {
        Real sum[EACH] = {};
        for (int J = 0; J < I; J++) {
            __syncthreads();
            take(I, J);
            __syncthreads();
#pragma unroll 8
            for (int j = 0; j < TILE_EDGE; j++) {
                const Real known = x[row_of(J, j) * Columns + c];
#pragma unroll
                for (int r = 0; r < EACH; r++) sum[r] += tile[(i0 + r * STEP) * TILE_PITCH + j] * known;
            }
        }
        __syncthreads();
        take(I, I);
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            const int i = i0 + r * STEP;
            rest[i * Columns + c] = I * TILE_EDGE + i < n ? x[row_of(I, i) * Columns + c] - sum[r] : Real(0);
        }
        __syncthreads();
        if (threadIdx.x < WARP) {
            Real v[TILE_EDGE];
            inverse_column<Unit>(v, tile, threadIdx.x);
#pragma unroll
            for (int i = 0; i < TILE_EDGE; i++) inverse[i * TILE_PITCH + threadIdx.x] = v[i];
        }
        __syncthreads();
        Real total[EACH] = {};
#pragma unroll 8
        for (int j = 0; j < TILE_EDGE; j++) {
            const Real known = rest[j * Columns + c];
#pragma unroll
            for (int r = 0; r < EACH; r++)
                if (j <= i0 + r * STEP) total[r] += inverse[(i0 + r * STEP) * TILE_PITCH + j] * known;
        }
#pragma unroll
        for (int r = 0; r < EACH; r++)
            if (I * TILE_EDGE + i0 + r * STEP < n) x[row_of(I, i0 + r * STEP) * Columns + c] = total[r];
    }
    __syncthreads();
    for (int e = threadIdx.x; e < n * Columns; e += THREADS) {
        const int i = Right ? e % n : e / Columns, c = Right ? e / n : e % Columns;
        if (c < wide) X[place(i, c)] = x[i * Columns + c];
    }
}

}  // namespace systems
