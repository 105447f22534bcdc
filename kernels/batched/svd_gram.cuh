// A round of block Jacobi by Gram matrices, method "block-gram"; before and after it the kernels of
// batched/svd_blocks.cuh. One thread block a pair (I, J) of panels of Width columns, X = [X_I X_J]:
//
//     G = Xᵀ X,   G = Rᵀ R,   R J orthogonal by one sweep of Jacobi on the triangle,   X ← X J
//
// Both products run on the tensor cores (float64). The preconditioned columns are nearly orthogonal, which makes the Gram
// matrix safe; whether a pair needs turning is asked of a fresh G, so that the result is as orthogonal as the direct method's.
// What does not converge is handed to svd_round. Arguments as there.
#pragma once

#include "batched/gemm.cuh"
#include "block/cholesky.cuh"
#include "block/jacobi_sweep.cuh"
#include "block/svd_stages.cuh"

// The columns of a pair of panels in a workspace: c counts through the first panel, then the second.
template <int Width, typename Real>
struct PanelPair {
    Real* W;
    int ld, rank, left, right;
    __device__ Real* column(int c) const { return W + static_cast<long long>((c < Width ? left : right - Width) + c) * ld; }
    __device__ bool has(int c) const { return (c < Width ? left : right - Width) + c < rank; }
};

template <typename Real, int Width>
struct GramMemory {
    static constexpr int TILE = 2 * Width, LD = TILE + 4, DEPTH = 32, PITCH = DEPTH + 4, ROWS = 64;
    static constexpr int SQUARE = TILE * LD, SLABS = 2 * TILE * PITCH, ROW_TILE = ROWS * LD;
    static constexpr int REALS = 2 * SQUARE + (SLABS > ROW_TILE ? SLABS : ROW_TILE) + 2 * TILE;
};

// slab[c][k] = X(row0 + k, c), zero outside
template <int Width, typename Real>
__device__ void load_rows(Real* slab, const PanelPair<Width, Real>& X, int row0, int rows) {
    using Memory = GramMemory<Real, Width>;
    for (int e = threadIdx.x; e < Memory::TILE * Memory::DEPTH; e += GEMM_THREADS) {
        int c = e / Memory::DEPTH, k = e % Memory::DEPTH;
        bool valid = X.has(c) && row0 + k < rows;
        copy_async(slab + c * Memory::PITCH + k, valid ? X.column(c) + row0 + k : X.W, valid);
    }
}

// G = Xᵀ X, column-major of leading dimension LD; the caller synchronizes
template <int Width, typename Real>
__device__ void gram(Real* G, Real* slabs, const PanelPair<Width, Real>& X, int rows) {
    using Memory = GramMemory<Real, Width>;
    constexpr int ROW_STEP = WARP_ROWS * STRIP, COLUMN_STEP = WARP_COLUMNS * STRIP, STAGE = Memory::TILE * Memory::PITCH;
    int warp = threadIdx.x / WARP, warp_row = warp / WARP_COLUMNS, warp_column = warp % WARP_COLUMNS;
    TileProduct<Real, Memory::TILE / ROW_STEP, Memory::TILE / COLUMN_STEP> product;
    int count = (rows + Memory::DEPTH - 1) / Memory::DEPTH;
    load_rows(slabs, X, 0, rows);
    copies_issued();
    for (int slab = 0; slab < count; slab++) {
        if (slab + 1 < count) load_rows(slabs + (slab + 1) % 2 * STAGE, X, (slab + 1) * Memory::DEPTH, rows);
        copies_issued();
        copies_arrived<1>();
        __syncthreads();
        const Real* stage = slabs + slab % 2 * STAGE;
        product.template add<Memory::DEPTH, Memory::PITCH>(stage + warp_row * STRIP * Memory::PITCH,
                                                           stage + warp_column * STRIP * Memory::PITCH, ROW_STEP, COLUMN_STEP,
                                                           Memory::DEPTH, Memory::TILE, Memory::TILE);
        __syncthreads();
    }
    product.each(warp_row * STRIP, warp_column * STRIP, ROW_STEP, COLUMN_STEP,
                 [&](int i, int j, Real sum) { G[j * Memory::LD + i] = sum; });
}

// X ← X J for rows first … first + rows of the workspace, a tile of rows at a time
template <int Width, typename Real>
__device__ void multiply_panel(const Real* J, Real* tile, const PanelPair<Width, Real>& X, int first, int rows) {
    using Memory = GramMemory<Real, Width>;
    constexpr int ROW_STEP = WARP_ROWS * STRIP, COLUMN_STEP = WARP_COLUMNS * STRIP;
    int warp = threadIdx.x / WARP, warp_row = warp / WARP_COLUMNS, warp_column = warp % WARP_COLUMNS;
    for (int row0 = 0; row0 < rows; row0 += Memory::ROWS) {
        __syncthreads();
        for (int e = threadIdx.x; e < Memory::ROWS * Memory::TILE; e += GEMM_THREADS) {
            int i = e % RUN + e / (RUN * Memory::TILE) * RUN, c = e / RUN % Memory::TILE;
            bool valid = X.has(c) && row0 + i < rows;
            copy_async(tile + i * Memory::LD + c, valid ? X.column(c) + first + row0 + i : X.W, valid);
        }
        copies_issued();
        copies_arrived<0>();
        __syncthreads();
        TileProduct<Real, Memory::ROWS / ROW_STEP, Memory::TILE / COLUMN_STEP> product;
        int strips = (rows - row0 - warp_row * STRIP + ROW_STEP - 1) / ROW_STEP;
        product.template add<Memory::TILE, Memory::LD>(tile + warp_row * STRIP * Memory::LD, J + warp_column * STRIP * Memory::LD,
                                                       ROW_STEP, COLUMN_STEP, Memory::TILE, strips, Memory::TILE);
        product.each(row0 + warp_row * STRIP, warp_column * STRIP, ROW_STEP, COLUMN_STEP, [&](int i, int c, Real sum) {
            if (i < rows && X.has(c)) X.column(c)[first + i] = sum;
        });
    }
}

constexpr int GRAM_SLACK = 2;                            // cosines of R differ from those of X by rounding: ask less of X

template <typename Real, int Width, bool Both, int Columns>
__global__ __launch_bounds__(GEMM_THREADS)
void svd_gram(const long long* table, int m, int n, char* workspaces, long long stride, int* turned, int matrices, int pairs,
              int sweep, int round) {
    using Memory = GramMemory<Real, Width>;
    constexpr int TILE = Memory::TILE, LD = Memory::LD, DOT_ROWS = TILE / WARP;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Angle<Real> angles[GEMM_THREADS / WARP * Columns];
    int b = blockIdx.x / pairs, i = blockIdx.x % pairs, panels = 2 * pairs;
    if (sweep > 0 && turned[static_cast<long long>(sweep - 1) * matrices + b] == 0) return;
    Problem<Real> p = problem<Real>(nullptr, nullptr, nullptr, nullptr, table, m, n, b);
    Workspace<Real> w = workspace<Real>(workspaces + b * stride, p.rank(), p.rank(), Both);
    int r = *w.rank, one = (round + i) % (panels - 1), other = i == 0 ? panels - 1 : (round + panels - 1 - i) % (panels - 1);
    PanelPair<Width, Real> X = {w.W, w.ld, r, min(one, other) * Width, max(one, other) * Width};
    bool halves = round > 0;
    if (X.left >= r || (halves && X.right >= r)) return;

    Real *G = reinterpret_cast<Real*>(memory), *J = G + Memory::SQUARE, *slabs = J + Memory::SQUARE;
    Real *diagonal = G + Memory::REALS - 2 * TILE, *norms = diagonal + TILE;
    gram(G, slabs, X, r);
    __syncthreads();
    for (int c = threadIdx.x; c < TILE; c += blockDim.x) diagonal[c] = G[c * LD + c];
    __syncthreads();
    Real tolerance = orthogonality_tolerance<Real>(r);
    bool oblique = false;
    for (int e = threadIdx.x; e < TILE * TILE; e += blockDim.x) {
        int row = e % TILE, column = e / TILE;
        bool asked = halves ? row < Width && column >= Width : row < column;
        if (asked) oblique |= cosine(diagonal[row], diagonal[column], G[column * LD + row]) > GRAM_SLACK * tolerance;
        J[column * LD + row] = row == column;
    }
    if (!__syncthreads_or(oblique)) return;
    cholesky<TILE, GEMM_THREADS / WARP>(G, LD, diagonal, slabs);
    Panel<Real> panel = {G, LD, TILE, Memory::SQUARE, TILE, norms};
    jacobi_sweep<2 * DOT_ROWS, DOT_ROWS, Columns>(panel, TILE / Columns, angles, tolerance, halves);
    multiply_panel(J, slabs, X, 0, r);
    if (Both) multiply_panel(J, slabs, X, p.rank(), r);
    if (threadIdx.x == 0) turned[static_cast<long long>(sweep) * matrices + b] = 1;
}
