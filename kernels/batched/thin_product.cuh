// batched/thin_product.cuh — out_b = op(A_b) B_b for B of few columns, all of them in one tile; one block THIN_ROWS rows of out.
// Or, where `Turned`, B and out lie transposed: out_bᵀ = A_b B_bᵀ. Short: B's entries have no more than 11 bits.
//
// A warp holds 32 rows and all columns in the accumulators of warp/tile_chain.cuh, so that A is read once. Slabs of a line of
// inner indices, as A is read best where its rows lie across, pass through shared memory, STAGES − 1 in flight, in pieces of 16
// bytes. Pitches are such that no bank is asked for twice; which inner index a lane takes first differs with A's layout, since
// products do not care. The last few tiles, that would run alone, are shared by two blocks. float32 in three TF32 terms (Short:
// two), their sums in accumulators that live for a slab (Ootomo & Yokota 2022).
#pragma once
#include "thread/copy.cuh"
#include "warp/tile_chain.cuh"

constexpr int THIN_WARPS = 4, THIN_THREADS = THIN_WARPS * WARP;
constexpr int LINES = 16, TILES = 2, WARP_ROWS = TILES * LINES, THIN_ROWS = THIN_WARPS * WARP_ROWS;
constexpr int STEP = 8;                                      // inner indices of one product
constexpr int LINE = 128, PIECE = 16;                        // bytes of all banks and of a line of memory, of a copy
template <typename Real> constexpr int STAGES = sizeof(Real) == sizeof(float) ? 4 : 3;  // two blocks' fit a multiprocessor

// Entries between rows of B, `apart` of which lie between neighbouring lanes' entries: a quarter line, whole lines left out.
template <typename Real>
__host__ __device__ constexpr int thin_pitch(int width, int apart) {
    int pitch = width;
    while (apart * pitch * int(sizeof(Real)) % (LINE / 2) != LINE / 4) pitch += PIECE / sizeof(Real);
    return pitch;
}

template <typename Real, int Strips, bool TransA, bool Turned, bool Short>
struct ThinStage {
    static_assert(!(TransA && Turned), "nobody asks for it");
    static constexpr int EACH = PIECE / sizeof(Real), WIDTH = Strips * STEP, SLAB = LINE / sizeof(Real);
    static constexpr int LINE_PITCH = THIN_ROWS + LINE / 4 / sizeof(Real);  // of A where its rows lie along
    static constexpr int PITCH = Turned ? SLAB + STEP : thin_pitch<Real>(WIDTH, TransA ? 1 : 2);
    Real A[TransA ? SLAB * LINE_PITCH : SLAB * THIN_ROWS];   // [k][row], or [k / STEP][row][k % STEP]
    Real B[(Turned ? WIDTH : SLAB) * PITCH];                 // [k][column], or [column][k]

    static __device__ unsigned address(const Real* target) { return static_cast<unsigned>(__cvta_generic_to_shared(target)); }

    // op(A)'s rows row0 … and inner indices k0 … from X, B's rows k0 … from Y; `whole`: all of them are inside
    __device__ __forceinline__ void load(const Real* X, const Real* Y, int row0, int k0, int m, int n, int k, int ldb, bool whole) {
        if (whole) load(X, Y, row0, k0, m, k, ldb, [](int, int, int) { return true; });
        else load(X, Y, row0, k0, m, k, ldb, [&](int i, int l, int j) { return i < m && l < k && j < n; });
    }

    template <typename Inside>
    __device__ __forceinline__ void load(const Real* X, const Real* Y, int row0, int k0, int m, int k, int ldb, Inside inside) {
        constexpr int COLUMNS = WIDTH / EACH, PARTS = STEP / EACH, ROWS = LINE / PIECE / PARTS;  // rows of one product in a line
        constexpr int UNITS = THIN_ROWS / EACH, GROUP = SLAB / STEP * PARTS * ROWS;
        const int u = threadIdx.x;
        const int i0 = TransA ? u % UNITS * EACH : u / GROUP * ROWS + u / PARTS % ROWS;
        const int l0 = TransA ? u / UNITS : u / (PARTS * ROWS) % (SLAB / STEP) * STEP + u % PARTS * EACH;
        constexpr int NEXT = TransA ? THIN_THREADS / UNITS : THIN_THREADS / GROUP * ROWS;       // inner indices or rows between units
        const Real* source = X + (TransA ? static_cast<long long>(k0 + l0) * m + row0 + i0 : static_cast<long long>(row0 + i0) * k + k0 + l0);
        const unsigned target = address(A + (TransA ? l0 * LINE_PITCH + i0 : (l0 / STEP * THIN_ROWS + i0) * STEP + l0 % STEP));
#pragma unroll
        for (int v = 0; v < SLAB * THIN_ROWS / EACH / THIN_THREADS; v++) {
            const bool valid = inside(row0 + i0 + (TransA ? 0 : v * NEXT), k0 + l0 + (TransA ? v * NEXT : 0), 0);
            copy_piece(target + v * NEXT * (TransA ? LINE_PITCH : STEP) * int(sizeof(Real)), valid ? source : X, valid);
            source += static_cast<long long>(NEXT) * (TransA ? m : k);
        }
#pragma unroll
        for (int u = threadIdx.x; u < SLAB * COLUMNS; u += THIN_THREADS) {
            constexpr int ALONG = Turned ? SLAB / EACH : COLUMNS;  // pieces in a row of B
            const int l = Turned ? u % ALONG * EACH : u / ALONG, j = Turned ? u / ALONG : u % ALONG * EACH;
            const bool valid = inside(row0, k0 + l, j);
            const long long from = Turned ? static_cast<long long>(j) * ldb + k0 + l : static_cast<long long>(k0 + l) * ldb + j;
            copy_piece(address(B + (Turned ? j * PITCH + l : l * PITCH + j)), valid ? Y + from : Y, valid);
        }
    }

    // sum += op(A) B for rows row0 … of the tile, Own times LINES; lane (g, t): inner indices first(t) and `second` more
    template <int Own>
    __device__ void multiply(Real (&sum)[TILES][Strips][4], int row0) const {
        struct alignas(2 * sizeof(Real)) Two { Real x, y; };
        const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
        const int first = TransA ? t : 2 * t, second = TransA ? STEP / 2 : 1;
#pragma unroll
        for (int l = 0; l < SLAB; l += STEP) {
            Real a[Own][4];
#pragma unroll
            for (int i = 0; i < Own; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int row = row0 + i * LINES;
                    const Two two = *reinterpret_cast<const Two*>(
                        TransA ? A + (l + t + h * second) * LINE_PITCH + row + 2 * g
                               : A + (l / STEP * THIN_ROWS + row + g + h * LINES / 2) * STEP + 2 * t);
                    if (TransA) a[i][h] = two.x, a[i][2 + h] = two.y;
                    else a[i][2 * h] = two.x, a[i][2 * h + 1] = two.y;
                }
            if (!TransA)
#pragma unroll
                for (int i = 0; i < Own; i++) as_factor(a[i], a[i]);
#pragma unroll
            for (int j = 0; j < Strips; j++) {
                const Two b = Turned ? *reinterpret_cast<const Two*>(B + (j * STEP + g) * PITCH + l + first)
                                     : Two{B[(l + first) * PITCH + j * STEP + g], B[(l + first + second) * PITCH + j * STEP + g]};
#pragma unroll
                for (int i = 0; i < Own; i++) {
                    if (Short) multiply_short(sum[i][j], a[i], b.x, b.y);
                    else multiply_tile(sum[i][j], a[i], b.x, b.y);
                }
            }
        }
    }
};

// total += op(A) B of a slab, Own tiles of the warp; Apart: by accumulators of its own
template <int Own, bool Apart, typename Real, int Strips, typename Stage>
__device__ __forceinline__ void add_product(Real (&total)[TILES][Strips][4], const Stage& stage, int row0) {
    if constexpr (!Apart) return stage.template multiply<Own>(total, row0);
    Real sum[TILES][Strips][4] = {};
    stage.template multiply<Own>(sum, row0);
#pragma unroll
    for (int i = 0; i < Own; i++)
#pragma unroll
        for (int j = 0; j < Strips; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) total[i][j][e] += sum[i][j][e];
}

// A: batch × m × k (k × m if TransA)   B: k × n (n × k if Turned) each, rows ldb and matrices strideb apart
// out: batch × m × n (n × m if Turned)
// each: tiles of THIN_ROWS a matrix   whole: tiles of a block each; two blocks share one behind   m or k, n, ldb, strideb: multiples of 16 bytes   shared memory: STAGES ThinStages
template <typename Real, int Strips, bool TransA, bool Turned, bool Short>
__global__ __launch_bounds__(THIN_THREADS, 2)
void thin_product(const Real* A, const Real* B, Real* out, int each, int whole, int m, int n, int k, int ldb, long long strideb) {
    extern __shared__ __align__(16) unsigned char memory[];
    using Stage = ThinStage<Real, Strips, TransA, Turned, Short>;
    constexpr int SLAB = Stage::SLAB, AHEAD = STAGES<Real> - 1;
    constexpr bool PARTED = sizeof(Real) == sizeof(float);
    auto* stages = reinterpret_cast<Stage*>(memory);
    const int over = static_cast<int>(blockIdx.x) - whole, tile = over < 0 ? blockIdx.x : whole + over / 2;
    const int warp = threadIdx.x / WARP, in_tile = over < 0 ? warp * WARP_ROWS : over % 2 * (THIN_ROWS / 2) + warp * LINES;
    const long long b = tile / each;
    const int row0 = tile % each * THIN_ROWS, count = (k + SLAB - 1) / SLAB;
    A += b * m * k, B += b * strideb, out += b * m * n;
    const auto load = [&](int slab) {
        const bool whole = row0 + THIN_ROWS <= m && (slab + 1) * SLAB <= k && n == Strips * STEP;
        if (slab < count) stages[slab % STAGES<Real>].load(A, B, row0, slab * SLAB, m, n, k, ldb, whole);
        copies_issued();
    };
    Real total[TILES][Strips][4] = {};
    for (int slab = 0; slab < AHEAD; slab++) load(slab);
    for (int slab = 0; slab < count; slab++) {
        copies_arrived<AHEAD - 1>();
        __syncthreads();  // everybody's copies are there, and everybody is done with the stage that is filled next
        load(slab + AHEAD);
        const Stage& stage = stages[slab % STAGES<Real>];
        if (over < 0) add_product<TILES, PARTED>(total, stage, in_tile);
        else add_product<TILES / 2, PARTED>(total, stage, in_tile);
    }
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    const int warp_row = row0 + in_tile;
    out += Turned ? static_cast<long long>(2 * t) * m + warp_row : static_cast<long long>(warp_row) * n + 2 * t;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = i * LINES + (TransA ? 2 * g + h : g + h * LINES / 2);
            if (warp_row + row >= m || (over >= 0 && i >= TILES / 2)) continue;
#pragma unroll
            for (int j = 0; j < Strips; j++) {
                struct alignas(2 * sizeof(Real)) Two { Real x, y; };
                if (j * STEP + 2 * t >= n) continue;
                if constexpr (Turned)                        // a warp writes eight rows of a column together
                    for (int c = 0; c < 2; c++) out[static_cast<long long>(j * STEP + c) * m + row] = total[i][j][2 * h + c];
                else
                    *reinterpret_cast<Two*>(out + static_cast<long long>(row) * n + j * STEP) = {total[i][j][2 * h], total[i][j][2 * h + 1]};
            }
        }
}
