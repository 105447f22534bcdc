// products/thin_product.cuh — out_b = op(A_b) B_b for B of few columns, all of them in one tile; one block THIN_ROWS rows of out.
// Or, where `Turned`, B and out lie transposed: out_bᵀ = A_b B_bᵀ.
//
// A warp holds its rows and all columns in the accumulators of common/warp/tile_chain.cuh, so that A is read once. Slabs of a line of
// inner indices, as A is read best where its rows lie across, pass through shared memory, STAGES − 1 in flight, in pieces of 16
// bytes. Pitches are such that no bank is asked for twice; which inner index a lane takes first differs with A's layout, since
// products do not care. For float64: float32 goes by parts, products/thin_parts.cuh.
#pragma once
#include "common/thread/copy.cuh"
#include "common/warp/tile_chain.cuh"
#include "products/block/thin_tile.cuh"

namespace products {
using namespace common;

constexpr int STAGES = 3;                                    // two blocks' fit a multiprocessor

// Entries between rows of B, `apart` of which lie between neighbouring lanes' entries: a quarter line, whole lines left out.
template <typename Real>
__host__ __device__ constexpr int thin_pitch(int width, int apart) {
    int pitch = width;
    while (apart * pitch * int(sizeof(Real)) % (LINE / 2) != LINE / 4) pitch += PIECE / sizeof(Real);
    return pitch;
}

template <typename Real, int Strips, bool TransA, bool Turned>
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
                for (int i = 0; i < Own; i++) multiply_tile(sum[i][j], a[i], b.x, b.y);
            }
        }
    }
};

// A: batch × m × k (k × m if TransA)   B: k × n (n × k if Turned) each, rows ldb and matrices strideb apart
// out: batch × m × n (n × m if Turned)   each, whole: see products/block/thin_tile.cuh
// m or k, n, ldb, strideb: multiples of 16 bytes   shared memory: STAGES ThinStages
template <typename Real, int Strips, bool TransA, bool Turned>
__global__ __launch_bounds__(THIN_THREADS, 2)
void thin_product(const Real* A, const Real* B, Real* out, int each, int whole, int m, int n, int k, int ldb, long long strideb) {
    extern __shared__ __align__(16) unsigned char memory[];
    using Stage = ThinStage<Real, Strips, TransA, Turned>;
    constexpr int SLAB = Stage::SLAB;
    auto* stages = reinterpret_cast<Stage*>(memory);
    const ThinTile tile(each, whole);
    const int count = (k + SLAB - 1) / SLAB;
    A += tile.b * m * k, B += tile.b * strideb, out += tile.b * m * n;
    const auto load = [&](int slab) {
        const bool inside = tile.row0 + THIN_ROWS <= m && (slab + 1) * SLAB <= k && n == Strips * STEP;
        if (slab < count) stages[slab % STAGES].load(A, B, tile.row0, slab * SLAB, m, n, k, ldb, inside);
        copies_issued();
    };
    Real total[TILES][Strips][4] = {};
    for (int slab = 0; slab < STAGES - 1; slab++) load(slab);
    for (int slab = 0; slab < count; slab++) {
        copies_arrived<STAGES - 2>();
        __syncthreads();  // everybody's copies are there, and everybody is done with the stage that is filled next
        load(slab + STAGES - 1);
        if (tile.shared) stages[slab % STAGES].template multiply<TILES / 2>(total, tile.in_tile);
        else stages[slab % STAGES].template multiply<TILES>(total, tile.in_tile);
    }
    store_tile<Turned, TransA>(total, out, tile, m, n);
}

}  // namespace products
