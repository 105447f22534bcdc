// qr/blocked_chain.cuh — R_b of tall A_b = Q_b R_b, Q never formed: R ← R-factor of [R; next rows of A], from R = 0,
// in panels of 8 columns with compact WY (Schreiber, Van Loan: A storage-efficient WY representation, 1989).
//
// A block is 8 · Strips rows of A, held in registers as tiles of 8 columns × 8 rows in the layout of products/warp/strip_pairs.cuh.
// At station p its first tile column is reflected onto R_pp (qr/warp/tile_panel.cuh), and for the tile columns t left
//
//     W = Tᵀ (diag(a) R_pt + Uᵀ X_t),   R_pt −= diag(a) W,   X_t −= U W             on the tensor cores
//
// R waits in shared memory, tile by tile. A warp has `Ways` blocks under way, a phase of some stations apart; when the
// oldest has passed the last station, the others move up and the next is loaded. Warps of a matrix are apart by a part of
// a phase: each row of tiles of R meets the blocks in their order, and one barrier a station keeps them apart.
#pragma once
#include "common/thread/prefetch.cuh"
#include "common/thread/range.cuh"
#include "qr/warp/tile_panel.cuh"

namespace qr {
using namespace common;

constexpr int TILE_ENTRIES = TILE * TILE;

template <int Strips, int Tiles, int Ways>
struct TileBlocks {
    using Panels = TilePanels<Strips, Ways>;
    static constexpr int HEIGHT = Strips * TILE, PHASE = (Tiles + Ways - 1) / Ways, GROUP = 4;
    __host__ __device__ static constexpr int left_at_most(int way) { return Tiles - 1 - way * PHASE; }

    const Panels panels;
    int field = 0;                        // largest exponent field of A among this lane's entries
    double x[Ways][Tiles][Strips][2] = {};  // tiles to the right of the panel: columns 8 t + line, rows 8 i + 2 quad + h

    __device__ explicit TileBlocks(double* scratch) : panels(scratch) {}

    // Rows `first` … of A on their way to the cache.
    __device__ static void announce(const double* A, int first, int m, int n) {
        constexpr int STEP = LINE_BYTES / sizeof(double);
        const double* const end = A + static_cast<long long>(min(first + HEIGHT, m)) * n;
        for (const double* a = A + static_cast<long long>(first) * n + threadIdx.x % WARP * STEP; a < end; a += WARP * STEP)
            prefetch(a);
    }

    // Rows `first` … of A become block 0; nobody waits for the tiles to the right of the panel yet.   A: m × n
    __device__ void load(const double* A, int first, int m, int n, int shift) {
        double panel[1][Strips][2];
#pragma unroll
        for (int i = 0; i < Strips; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int row = first + TILE * i + 2 * tile_quad() + h;
                const double* source = A + static_cast<long long>(row) * n + tile_line();
#pragma unroll
                for (int t = 0; t < Tiles; t++)
                    (t == 0 ? panel[0][i][h] : x[0][t - 1][i][h]) =
                        row < m && TILE * t + tile_line() < n ? __ldg(source + TILE * t) : 0.0;
            }
        measure<1>(panel, shift);
        panels.store(0, panel[0]);
        __syncwarp();
    }

    // Notes the exponents of Count tiles and scales them by 2^-shift.
    template <int Count>
    __device__ void measure(double (*tiles)[Strips][2], int shift) {
#pragma unroll
        for (int t = 0; t < Count; t++)
#pragma unroll
            for (int i = 0; i < Strips; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) field = max(field, Range<double>::exponent_field(tiles[t][i][h]));
        if (shift == 0) return;
        const double factor = power_of_two<double>(-shift);
#pragma unroll
        for (int t = 0; t < Count; t++)
#pragma unroll
            for (int i = 0; i < Strips; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) tiles[t][i][h] *= factor;
    }

    // Block Way and younger ones at their stations behind the panels.   R: triangle; starts: of its rows   station: of
    // block 0, which advances `phase` a way   last: they move up
    template <int Way = Ways - 1>
    __device__ void follow(double* R, const int* starts, int panel_count, int station, int phase, bool last) {
        const int p = station + Way * phase, left = panel_count - 1 - p;
        if constexpr (left_at_most(Way) > 0) {
            if (left > 0) follow_one<Way>(R + starts[p], left, last);
            if (last) {
                if constexpr (Way + 1 < Ways) advance<Way + 1>(x[Way]);
            } else {
                advance<Way>(x[Way]);
            }
        }
        if constexpr (Way > 0) follow<Way - 1>(R, starts, panel_count, station, phase, last);
    }

  private:
    // The tiles after the first become block To's.
    template <int To>
    __device__ void advance(const double (&from)[Tiles][Strips][2]) {
#pragma unroll
        for (int t = 0; t < left_at_most(To); t++)
#pragma unroll
            for (int i = 0; i < Strips; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) x[To][t][i][h] = from[t + 1][i][h];
    }

    // R: row of tiles   left: tiles to the right of the panel
    template <int Way>
    __device__ void follow_one(double* R, int left, bool last) {
        const int line = tile_line(), quad = tile_quad();
        double U[Strips][2], rows[Strips][2], T[2], tops[2];  // U: lines are columns; rows: lines are rows
#pragma unroll
        for (int h = 0; h < 2; h++) {
#pragma unroll
            for (int i = 0; i < Strips; i++) {
                U[i][h] = panels.line(Way, i, line)[2 * quad + h];
                rows[i][h] = panels.line(Way, i, 2 * quad + h)[line];
            }
            T[h] = panels.t_line(Way, line)[2 * quad + h];
            tops[h] = R[(2 * quad + h) * Panels::LINE + TILE];
        }
        double* tile = R + Panels::DIAGONAL + threadIdx.x % WARP * 2;
#pragma unroll
        for (int t = 0; t < left_at_most(Way); t += GROUP)
            if (t < left) follow_group<Way>(t, left, tile, U, rows, T, tops);
        __syncwarp();
        panels.store(last ? Way + 1 : Way, x[Way][0]);
    }

    // Tiles t … t + GROUP - 1, so far as they exist, all at once to hide the way of each.   R: the lane's numbers of R_pt
    template <int Way>
    __device__ void follow_group(int t, int left, double* R, const double (&U)[Strips][2], const double (&rows)[Strips][2],
                                 const double (&T)[2], const double (&tops)[2]) {
        constexpr int MOST = left_at_most(Way);
        double2 top[GROUP] = {};
        double z[GROUP][2] = {}, w[GROUP][2] = {}, none[2] = {};
#pragma unroll
        for (int g = 0; g < GROUP && t + g < MOST; g++) {
            if (t + g < left) top[g] = *reinterpret_cast<double2*>(R + (t + g) * TILE_ENTRIES);
            z[g][0] = tops[0] * top[g].x, z[g][1] = tops[1] * top[g].y;
        }
#pragma unroll
        for (int i = 0; i < Strips; i++)
#pragma unroll
            for (int g = 0; g < GROUP && t + g < MOST; g++) multiply_tile(z[g], x[Way][t + g][i], U[i]);
#pragma unroll
        for (int g = 0; g < GROUP && t + g < MOST; g += 2) multiply_pair(w[g], w[g + 1], z[g], z[g + 1], T);
#pragma unroll
        for (int g = 0; g < GROUP && t + g < MOST; g++) {
            top[g].x += tops[0] * w[g][0], top[g].y += tops[1] * w[g][1];
            if (t + g < left) *reinterpret_cast<double2*>(R + (t + g) * TILE_ENTRIES) = top[g];
        }
#pragma unroll
        for (int g = 0; g < GROUP && t + g < MOST; g += 2)
#pragma unroll
            for (int i = 0; i < Strips; i++)
                multiply_pair(x[Way][t + g][i], t + g + 1 < MOST ? x[Way][t + g + 1][i] : none, w[g], w[g + 1], rows[i]);
    }
};

// The triangle's row p of tiles: the diagonal tile, then those to its right. Further rows than panels, which only complete
// the phases, have a diagonal tile alone.
template <typename Panels>
__device__ int row_start(int p, int panels) {
    const int full = min(p, panels);
    return p * Panels::DIAGONAL + (full * (panels - 1) - full * (full - 1) / 2) * TILE_ENTRIES;
}

// Where a matrix and its result lie, and its shape.
struct Matrix {
    const double* A;
    double* R;
    int m, n;
    Matrix() = default;
    __device__ Matrix(const double* A, double* R, const long long* table, long long batch, int m, int n) {
        const long long b = blockIdx.x;
        const bool ragged = table != nullptr;
        this->m = ragged ? table[3 * batch + b] : m, this->n = ragged ? table[4 * batch + b] : n;
        this->A = A + (ragged ? table[b] : b * m * n), this->R = R + (ragged ? table[2 * batch + b] : b * n * n);
    }
};

// A: rows × columns each, rows >= columns   R: columns × columns each
// table: 5 × batch (ragged; else null): first entries of A_b, (unused), R_b, rows, columns   m, n: the shape otherwise
// shared memory: Warps × SCRATCH, then the triangle. One block a matrix.
template <int Strips, int Tiles, int Ways, int Warps, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident / Warps)
void blocked_chain(const double* A, double* R, const long long* table, long long batch, int m, int n) {
    using Blocks = TileBlocks<Strips, Tiles, Ways>;
    using Panels = typename Blocks::Panels;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ Matrix matrix;  // seldom needed: not in registers
    __shared__ int largest, starts[(Tiles > Warps * Ways ? Tiles : Warps * Ways) + Ways];  // exponent of A; rows of tiles
    if (threadIdx.x == 0) matrix = Matrix(A, R, table, batch, m, n);
    __syncthreads();
    const int panels = (matrix.n + TILE - 1) / TILE;
    const int phase = max((panels + Ways - 1) / Ways, Warps), lag = phase / Warps;
    double *const scratch = reinterpret_cast<double*>(memory), *const tiles = scratch + Warps * Panels::SCRATCH;
    const int size = Warps * Panels::SCRATCH + row_start<Panels>(phase * Ways, panels);
    for (int p = threadIdx.x; p < phase * Ways; p += Warps * WARP) starts[p] = row_start<Panels>(p, panels);

    int shift = 0;
    while (true) {  // once more with 2^-shift A where squares were not safe
        for (int e = threadIdx.x; e < size; e += Warps * WARP) scratch[e] = 0;
        if (threadIdx.x == 0) largest = 0;
        __syncthreads();
        const int warp = threadIdx.x / WARP, count = (matrix.m + Blocks::HEIGHT - 1) / Blocks::HEIGHT;  // blocks in all
        Blocks blocks(scratch + warp * Panels::SCRATCH);
        int station = -warp * lag, first = warp * Blocks::HEIGHT;  // of the youngest block
        for (int ticks = ((count + Warps - 1) / Warps + Ways - 1) * phase + (Warps - 1) * lag; ticks > 0; ticks--) {
            if (station == 0) {
                blocks.load(matrix.A, min(first, matrix.m), matrix.m, matrix.n, shift);
                first += Warps * Blocks::HEIGHT;
                if (first < matrix.m) Blocks::announce(matrix.A, first, matrix.m, matrix.n);
            }
            if (station >= 0) {
                blocks.panels.reduce(tiles + starts[station + tile_quad() / Panels::LANES * phase]);
                if (station == 0) blocks.template measure<Tiles - 1>(blocks.x[0], shift);
                blocks.follow(tiles, starts, panels, station, phase, station + 1 == phase);
            }
            if (++station == phase) station = 0;
            if constexpr (Warps > 1) __syncthreads();
            else __syncwarp();
        }
        atomicMax(&largest, blocks.field);
        __syncthreads();
        const int wanted = safe_shift<double>(largest - Range<double>::BIAS);
        if (wanted == shift) break;
        shift = wanted;
        __syncthreads();
    }
    n = matrix.n;
    for (int t = threadIdx.x; t < n; t += Warps * WARP)
        for (int j = 0; j < n; j++) {
            const int p = j / TILE, across = t / TILE - p;
            const double* tile = tiles + starts[p] + (across > 0 ? Panels::DIAGONAL + (across - 1) * TILE_ENTRIES : 0);
            matrix.R[static_cast<long long>(j) * n + t] =
                t < j ? 0.0 : scalbn(tile[t % TILE * (across > 0 ? TILE : Panels::LINE) + j % TILE], shift);
        }
}

}  // namespace qr
