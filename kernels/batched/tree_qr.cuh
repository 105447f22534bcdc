// batched/tree_qr.cuh — a level of the QR of tall matrices by a tree: R_i of the pieces A_i = Q_i R_i of every matrix, Q_i never
// formed; the R_i of a matrix, one below the other, are the next level's matrix (TSQR: Demmel, Grigori, Hoemmen & Langou 2012).
//
// A piece has every p-th row of its matrix, and so has its triangle of the next one, p · n rows whose row r is row r / p of a
// triangle: columns before c are zero from row p c on, and reflectors are so much shorter. A level costs the flops of Householder's
// way with triangles' zeros left out; the tree, no more than one QR of the matrix.
#pragma once
#include "block/strip_factors.cuh"

// Reflectors that end where columns have zeros alone: before column c, from row  growth · c / PANEL  on.
template <typename Real, int Warps>
struct SteppedReflectors : Reflectors<Real, Warps> {
    int growth;
    SteppedReflectors() = default;
    __device__ SteppedReflectors(Real* V, int rows, int steps, int growth) : Reflectors<Real, Warps>(V, rows, steps), growth(growth) {}
    __device__ int end_layer(int j) const {
        return min(this->layers, (growth * (j + 1) + Warps * TILE_ROWS - 1) / (Warps * TILE_ROWS));
    }
};

// Rows of a piece's table: first entries of A_i and R_i, rows, columns, entries between rows, growth.
enum PieceField { PIECE_A, PIECE_R, PIECE_ROWS, PIECE_COLUMNS, PIECE_PITCH, PIECE_GROWTH };

template <typename Real, int Warps>
struct Piece {
    const Real* A;
    Real* R;
    int m, n, steps, step;                          // step: entries between rows
    SteppedReflectors<Real, Warps> reflectors;
    __device__ int pitch() const { return step; }
    __device__ int height(int columns) const { return min(m, reflectors.growth * ((columns + PANEL - 1) / PANEL)); }
};

// The last piece of a matrix, whose rows are as far apart as it has columns, gives R; the others triangles of the next level.
template <int Warps, typename Real>
__device__ Piece<Real, Warps> piece(const Real* A, Real* R, Real* next, const long long* table, long long count, long long i,
                                    Real* workspace) {
    const auto field = [&](PieceField f) { return static_cast<int>(table[f * count + i]); };
    const int m = field(PIECE_ROWS), n = field(PIECE_COLUMNS), pitch = field(PIECE_PITCH);
    Real* target = (pitch == n ? R : next) + table[PIECE_R * count + i];
    return {A + table[PIECE_A * count + i], target, m, n, min(m, n), pitch, {workspace, m, min(m, n), field(PIECE_GROWTH)}};
}

// A, R, next: the level's matrices, the results, the next level's   table: fields × count
// workspace: of a block `stride` entries, V and T of a piece. Blocks go through the pieces by turns.
template <typename Real, int Warps, int Tiles, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void tree_qr(const Real* A, Real* R, Real* next, const long long* table, long long count, Real* workspace, long long stride) {
    static_assert(Warps > 1, "strips have barriers");
    extern __shared__ __align__(16) unsigned char bytes[];
    auto& memory = *reinterpret_cast<StripMemory<Real, Warps, Tiles>*>(bytes);
    __shared__ Piece<Real, Warps> pieces[2];  // this and the next: seldom needed, not in registers
    const auto read = [&](int to, long long i) {
        if (threadIdx.x == 0 && i < count) pieces[to] = piece<Warps>(A, R, next, table, count, i, workspace + blockIdx.x * stride);
    };
    int now = 0;
    read(now, blockIdx.x);
    for (long long i = blockIdx.x; i < count; i += gridDim.x, now = 1 - now) {
        __syncthreads();  // the piece is known, and nobody reads the last one's reflectors
        read(1 - now, i + gridDim.x);
        const auto& p = pieces[now];
        for (int k = 0; k * PANEL < p.n; k++) factor_strip(p, k, memory);
        if (i + gridDim.x < count) announce<Warps * WARP>(pieces[1 - now], 0);
    }
}
