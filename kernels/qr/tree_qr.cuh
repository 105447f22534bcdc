// qr/tree_qr.cuh — a level of the QR of tall matrices by a tree: R_i of the pieces A_i = Q_i R_i of every matrix, Q_i never
// formed; the R_i of a matrix, one below the other, are the next level's matrix (TSQR: Demmel, Grigori, Hoemmen & Langou 2012).
//
// A piece has every p-th row of its matrix, and so has its triangle of the next one, p · n rows whose row r is row r / p of a
// triangle: columns before c are zero from row p c on, and reflectors are so much shorter. A level costs the flops of Householder's
// way with triangles' zeros left out; the tree, no more than one QR of the matrix.
//
// `share` blocks of a team deal the strips of a piece out in turns: a panel that one has made is read by all at about the same
// time, from the second-level cache, which the reflectors of all pieces together exceed several times over. A flag a piece says
// how many panels are there. All blocks of a launch are resident, teams consecutive, so that none waits for one that cannot begin.
#pragma once
#include "qr/block/strip_factors.cuh"
#include "qr/thread/flag.cuh"

namespace qr {

// Reflectors of a piece, a team's: they end where columns have zeros alone, before column c from row growth · c / PANEL on.
template <typename Real, int Warps>
struct TeamReflectors : Reflectors<Real, Warps> {
    int growth;
    int* made;                                      // panels that are there
    mutable int known[Warps];                       // of them, to each warp
    TeamReflectors() = default;
    __device__ TeamReflectors(Real* V, int rows, int steps, int growth, int* made)
        : Reflectors<Real, Warps>(V, rows, steps), growth(growth), made(made), known{} {}
    __device__ int end_layer(int j) const {
        return min(this->layers, (growth * (j + 1) + Warps * TILE_ROWS - 1) / (Warps * TILE_ROWS));
    }
    __device__ bool has(int j) const {
        const int warp = threadIdx.x / WARP;
        if (j < known[warp]) return true;
        const int found = __reduce_min_sync(EVERY_LANE, load_acquire(made));
        __syncwarp();  // all have read the last one
        if (threadIdx.x % WARP == 0) known[warp] = found;
        __syncwarp();
        return j < found;
    }
    __device__ void await(int j) const {
        while (!has(j)) {}
    }
    __device__ static Real read(const Real* T) { return __ldcg(T); }    // another block's: not from the nearest cache
    // By the whole block: panel j is in memory.
    __device__ void publish(int j) const {
        __syncthreads();
        if (threadIdx.x > 0) return;
        __threadfence();
        store_release(made, j + 1);
    }
};

// Rows of a piece's table: first entries of A_i and R_i, rows, columns, entries between rows, growth.
enum PieceField { PIECE_A, PIECE_R, PIECE_ROWS, PIECE_COLUMNS, PIECE_PITCH, PIECE_GROWTH };

template <typename Real, int Warps>
struct Piece {
    const Real* A;
    Real* R;
    int m, n, steps, step, share;                   // step: entries between rows
    TeamReflectors<Real, Warps> reflectors;
    __device__ int pitch() const { return step; }
    __device__ int height(int columns) const { return min(m, reflectors.growth * ((columns + PANEL - 1) / PANEL)); }
    __device__ int apart() const { return share; }
};

// The last piece of a matrix, whose rows are as far apart as it has columns, gives R; the others triangles of the next level.
template <int Warps, typename Real>
__device__ Piece<Real, Warps> piece(const Real* A, Real* R, Real* next, const long long* table, long long count, long long i,
                                    int share, Real* workspace, int* made) {
    const auto field = [&](PieceField f) { return static_cast<int>(table[f * count + i]); };
    const int m = field(PIECE_ROWS), n = field(PIECE_COLUMNS), pitch = field(PIECE_PITCH);
    Real* target = (pitch == n ? R : next) + table[PIECE_R * count + i];
    return {A + table[PIECE_A * count + i], target, m, n, min(m, n), pitch, share,
            {workspace, m, min(m, n), field(PIECE_GROWTH), made + i}};
}

// A, R, next: the level's matrices, the results, the next level's   table: fields × count   made: count zeros
// workspace: of a team two times `stride` entries, V and T of its piece and of the next: whoever is done with a piece's first
// strips begins the next; nobody comes to the one after it before all are, as every piece has more strips than a team blocks.
// Teams go through the pieces by turns.
template <typename Real, int Warps, int Tiles, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void tree_qr(const Real* A, Real* R, Real* next, const long long* table, long long count, int share, Real* workspace,
             long long stride, int* made) {
    static_assert(Warps > 1, "strips have barriers");
    extern __shared__ __align__(16) unsigned char bytes[];
    auto& memory = *reinterpret_cast<StripMemory<Real, Warps, Tiles>*>(bytes);
    __shared__ Piece<Real, Warps> pieces[2];  // this and the next: seldom needed, not in registers
    const int team = blockIdx.x / share, member = blockIdx.x % share, teams = gridDim.x / share;
    const auto read = [&](int to, long long i) {
        if (threadIdx.x == 0 && i < count)
            pieces[to] = piece<Warps>(A, R, next, table, count, i, share, workspace + (2 * team + to) * stride, made);
    };
    int now = 0;
    read(now, team);
    for (long long i = team; i < count; i += teams, now = 1 - now) {
        __syncthreads();  // the piece is known, and nobody reads the last one
        read(1 - now, i + teams);
        const auto& p = pieces[now];
        for (int k = member; k * PANEL < p.n; k += share) factor_strip(p, k, memory);
        if (i + teams < count) announce<Warps * WARP>(pieces[1 - now], member * PANEL);
    }
}

}  // namespace qr
