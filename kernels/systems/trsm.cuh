// systems/trsm.cuh — X_b with op(A_b) X_b = α B_b, or X_b op(A_b) = α B_b, A_b triangular; one block some columns (rows) of X_b.
//
//     X_I = T_II⁻¹ (α B_I − Σ_J T_IJ X_J),   T = op(A), or op(A)ᵀ where A is on the right
//
// in tiles of rows, first to last if T is lower, last to first if upper. X stays in shared memory.
//
// trsm          tiles of 32 rows; those on the diagonal are inverted, a column a lane, and multiplied with (Nath, Tomov &
//               Dongarra 2010): threads share the rows of a tile, for few right-hand sides or large triangles
// trsm_columns  tiles of 16 rows, T's panels double-buffered; a thread has a column of X, the tile's rows in its registers
#pragma once
#include "common/thread/copy.cuh"
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

constexpr int PANEL_EDGE = 16, COLUMN_THREADS = 128;  // rows of a tile of trsm_columns; its threads at most

// Entries between columns of a panel in shared memory: a multiple of 16 bytes.
template <typename Real>
__host__ __device__ constexpr int panel_pitch() { return PANEL_EDGE + 16 / static_cast<int>(sizeof(Real)); }

// Shared memory of one matrix: panels of T, two where it has several, and n rows of X.
template <typename Real>
__host__ __device__ constexpr int trsm_columns_bytes(int n, int columns) {
    const int tiles = (n + PANEL_EDGE - 1) / PANEL_EDGE, panels = tiles > 1 ? 2 : 1;
    const int words = panels * tiles * PANEL_EDGE * panel_pitch<Real>() + n * (columns | 1);
    return ((words * static_cast<int>(sizeof(Real)) + 15) / 16 | 1) * 16;  // odd: matrices of one warp in different banks
}

template <typename Real> struct alignas(16) PanelPart { Real entry[16 / sizeof(Real)]; };

// rest[i] −= column[i] · x for from ≤ i < PANEL_EDGE   column: 16 bytes at a time, from shared memory   from: known when inlined
template <typename Real>
__device__ __forceinline__ void subtract_column(Real (&rest)[PANEL_EDGE], const Real* column, Real x, int from) {
    constexpr int COUNT = 16 / sizeof(Real);
#pragma unroll
    for (int part = 0; part < PANEL_EDGE / COUNT; part++) {
        if ((part + 1) * COUNT <= from) continue;
        const PanelPart<Real> some = reinterpret_cast<const PanelPart<Real>*>(column)[part];
#pragma unroll
        for (int e = 0; e < COUNT; e++)
            if (part * COUNT + e >= from) rest[part * COUNT + e] = fma(-some.entry[e], x, rest[part * COUNT + e]);
    }
}

// A, B, X, table: as above   each: matrices of a block, one with a table   wide: columns of a block, of each
// pieces: blocks that share a matrix's columns   threads: each · wide or more   shared memory: trsm_columns_bytes a matrix
// a_first, a_step, a_pitch: entries before the first triangle, from one to the next, and from row to row; x_…: of B and X; not
// asked for with a table   sums: whether X holds what is to be taken off α B, products with unknowns that are solved
template <typename Real, bool Right, bool Lower, bool Trans, bool Unit>
__global__ __launch_bounds__(COLUMN_THREADS)
void trsm_columns(const Real* A, const Real* B, Real* X, const long long* table, long long batch, int n, int columns, int pieces, int each,
                  int wide, long long a_first, long long a_step, int a_pitch, long long x_first, long long x_step, int x_pitch, bool sums,
                  Real alpha) {
    constexpr bool TURNED = Trans != Right, FORWARD = Lower != TURNED;  // T = Aᵀ; T is lower
    constexpr int PITCH = panel_pitch<Real>();
    extern __shared__ __align__(16) unsigned char memory[];
    const int threads = blockDim.x, column0 = blockIdx.x % pieces * wide;
    const long long first = blockIdx.x / pieces * static_cast<long long>(each);
    const int count = static_cast<int>(min(static_cast<long long>(each), batch - first));
    long long at_a = a_first + first * a_step, at_b = x_first + first * x_step, at_x = at_b;
    if (table) {
        const Operands at(table, batch, first, 0, 0, 0, 0);
        at_a = at.a, at_b = at.x, at_x = at.out, n = a_pitch = at.m, columns = at.n, x_pitch = Right ? n : columns;
    }
    if (column0 >= columns) return;
    A += at_a, B += at_b, X += at_x;
    const int bytes = trsm_columns_bytes<Real>(n, wide), tiles = (n + PANEL_EDGE - 1) / PANEL_EDGE, pitch = wide | 1;
    const int panel_size = tiles * PANEL_EDGE * PITCH, panels = tiles > 1 ? 2 : 1;
    const int some = min(wide, columns - column0);  // of this block's columns
    const auto panel_of = [&](int b) { return reinterpret_cast<Real*>(memory + b * bytes); };
    const auto x_of = [&](int b) { return panel_of(b) + panels * panel_size; };
    const auto row_of = [&](int i) { return FORWARD ? i : n - 1 - i; };
    // panel[j][i] = T's entry at row I · PANEL_EDGE + i and column j, both counted in the order of solution
    const auto take = [&](int I) {
        const int known = min(n, (I + 1) * PANEL_EDGE), lines = min(PANEL_EDGE, n - I * PANEL_EDGE);
        for (int b = 0; b < count; b++) {
            Real* panel = panel_of(b) + I % panels * panel_size;
            const Real* a = A + b * a_step;
            for (int e = threadIdx.x; e < PANEL_EDGE * known; e += threads) {
                const int i = TURNED ? e % PANEL_EDGE : e / known, j = TURNED ? e / PANEL_EDGE : e - i * known;
                if (i >= lines || j > I * PANEL_EDGE + i) continue;
                const long long row = row_of(I * PANEL_EDGE + i), column = row_of(j);
                copy_async(panel + j * PITCH + i, a + (TURNED ? column * a_pitch + row : row * a_pitch + column), true);
            }
        }
        copies_issued();
    };
    const int size = n * some;
    // calls with each entry's place in x and in B and X, of matrix b of the block
    const auto each_entry = [&](int b, const auto& call) {
#pragma unroll 4
        for (int e = threadIdx.x; e < size; e += threads) {
            const int line = e / (Right ? n : some), along = e - line * (Right ? n : some);
            const long long at = b * x_step + static_cast<long long>(Right ? column0 + line : line) * x_pitch + along;
            if (Right) call(along * pitch + line, at);
            else call(line * pitch + along, column0 + at);
        }
    };
    for (int b = 0; b < count; b++) {
        Real* x = x_of(b);
        if (sums) each_entry(b, [&](int to, long long at) { x[to] = alpha * B[at] - X[at]; });
        else each_entry(b, [&](int to, long long at) { copy_async(x + to, B + at, true); });
    }
    if (sums) alpha = 1;
    if (tiles) take(0);
    const int b = threadIdx.x / wide, c = threadIdx.x - b * wide;
    const bool live = b < count && c < some;
    Real* x = x_of(live ? b : 0) + (live ? c : 0);
    for (int I = 0; I < tiles; I++) {
        copies_arrived<0>();
        __syncthreads();
        if (I + 1 < tiles) take(I + 1);
        if (!live) continue;
        const Real* panel = panel_of(b) + I % panels * panel_size;
        const int row0 = I * PANEL_EDGE, lines = min(PANEL_EDGE, n - row0);
        Real rest[PANEL_EDGE];
#pragma unroll
        for (int i = 0; i < PANEL_EDGE; i++) rest[i] = i < lines ? alpha * x[row_of(row0 + i) * pitch] : Real(0);
#pragma unroll 4
        for (int j = 0; j < row0; j++) subtract_column(rest, panel + j * PITCH, x[row_of(j) * pitch], 0);
#pragma unroll
        for (int k = 0; k < PANEL_EDGE; k++) {
            if (k >= lines) break;
            const Real* column = panel + (row0 + k) * PITCH;
            if (!Unit) rest[k] /= column[k];
            subtract_column(rest, column, rest[k], k + 1);
            x[row_of(row0 + k) * pitch] = rest[k];
        }
    }
    __syncthreads();
    for (int b = 0; b < count; b++) {
        const Real* x = x_of(b);
        each_entry(b, [&](int from, long long at) { X[at] = x[from]; });
    }
}

}  // namespace systems
