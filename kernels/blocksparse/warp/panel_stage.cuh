// blocksparse/warp/panel_stage.cuh — stages of a strip of a panel on their way from memory to shared memory, by one warp.
//
// A stage is some rows of the strip and the rows of z that they meet. All travels in pieces of 16 bytes, wherever rows
// begin: each keeps its place within 16 bytes (`shift`). Rows that follow one another in memory stay so, unless their
// width is a multiple of 16 and the tensor cores' operands would all lie in a few banks; else the pitch is 4 modulo 8.
// Entries are stored as Stored, float or as Real; vectors, z among them, are Real. The last piece may reach beyond the last
// entry: allocations are multiples of 16 bytes.
// Called by all lanes of a warp together.
#pragma once
#include "blocksparse/thread/chain.cuh"
#include "common/thread/copy.cuh"
#include "common/warp/tile_product.cuh"
#include "products/thread/rounded.cuh"

namespace blocksparse {
using namespace common;
using namespace products;

constexpr int PANEL_STAGES = 2;                          // of one warp
constexpr int STAGE_ROWS = 64, STRIP_COLUMNS = 64;       // at most, of a stage
constexpr int SIDES = 8, TILE_ROWS = 2 * STRIP;          // of a tile: right-hand sides, rows
constexpr int PIECE = 16;                                // bytes that travel together

// Groups: tiles of right-hand sides, 0 for a single side, which is multiplied in another way and takes fewer registers:
// stages of float32 are half as long then, for more warps at once.
template <typename Stored, int Groups>
constexpr int STAGE_BYTES = Groups ? 8704 : 1096 * sizeof(Stored);
template <int Groups>
constexpr int ROW_STEP = Groups ? DEPTH_STEP : STRIP;    // rows that are multiplied together

// A panel and where its operands and results begin, as the host writes it.
struct alignas(16) Panel {
    long long entry;                                     // first entry of P
    int x, z, forward, backward;                         // first rows of x, z, P x and Pᵀ z
    int rows, width, pitch, skip;                        // pitch: entries from row to row; Pᵀ z leaves out `skip` rows
    int unused[2];
};

// Right-hand sides: `count` columns of a matrix with rows `pitch` apart.
template <typename Real>
struct Vectors {
    Real* first;
    int pitch, count;
    __device__ Real* row(int i) const { return first + static_cast<long long>(i) * pitch; }
};

// What the panels of a launch have in common: x and z are rows of `in`, the results are rows of `out`.
// z_rows: which row of `in` each row of all panels meets, or null where the rows of z follow one another
template <typename Stored, typename Real>
struct PanelOperands {
    const Stored* entries;
    Vectors<const Real> in;
    const int* z_rows;
    Vectors<Real> out;
};

// Shared memory of one warp: PANEL_STAGES times BYTES of entries, then as many times z_entries numbers.
template <typename Stored, typename Real, int Groups>
struct PanelMemory {
    static constexpr int BYTES = STAGE_BYTES<Stored, Groups>, ENTRIES = BYTES / sizeof(Stored);
    unsigned char* first;
    int z_entries;
    __host__ __device__ static constexpr int bytes(int z_entries) { return PANEL_STAGES * (BYTES + z_entries * static_cast<int>(sizeof(Real))); }
    __device__ Stored* entries(int s) const {
        return reinterpret_cast<Stored*>(first + s % PANEL_STAGES * BYTES);
    }
    __device__ Real* z(int s) const {
        return reinterpret_cast<Real*>(first + PANEL_STAGES * BYTES) + s % PANEL_STAGES * z_entries;
    }

    // What no copy fills is multiplied by zero and must be finite.
    __device__ void clear() const {
        float4* piece = reinterpret_cast<float4*>(first);
        for (int i = threadIdx.x % WARP; i < PANEL_STAGES * BYTES / PIECE; i += WARP) piece[i] = {0, 0, 0, 0};
        __syncwarp();
    }
};

// Columns from `column` on of a panel, at most STRIP_COLUMNS.
template <typename Stored, typename Real, bool WithZ, int Groups>
struct StagedStrip {
    static constexpr int EACH = PIECE / sizeof(Stored), FEW = STAGE_ROWS / WARP;
    const char* source;                                  // the piece that the first row begins in
    int width, rows, row_bytes;                          // of the strip in memory
    int misfit, slack;                                   // bytes before the first row in its piece, before any at most
    bool turned, flat;                                   // rows stay one after the other
    int pitch, z_pitch, stage_rows, stages;              // of a stage; how many
    int z_row, skip;                                     // first row of z, rows of the panel that meet none
    int met[FEW] = {};                                   // rows of z of the next stage, a lane each

    __device__ StagedStrip(const PanelOperands<Stored, Real>& all, const Panel& panel, int column, int z_entries) {
        const unsigned long long address = reinterpret_cast<unsigned long long>(all.entries + panel.entry + column);
        misfit = address % PIECE;
        source = reinterpret_cast<const char*>(address - misfit);
        width = min(panel.width - column, STRIP_COLUMNS), rows = panel.rows, row_bytes = panel.pitch * sizeof(Stored);
        const int shifts = (misfit | row_bytes) % PIECE ? EACH - 1 : 0;
        slack = shifts * sizeof(Stored);
        turned = Groups == 0 && panel.pitch == width && width % WARP == 0;
        flat = turned || (panel.pitch == width && width % TILE_ROWS);
        pitch = flat ? width : rounded_up(width + shifts + STRIP / 2, STRIP) - STRIP / 2;
        z_pitch = Groups ? Groups * SIDES + STRIP / 2 : 1;
        const int whole = rounded_up(width, WithZ && Groups ? 2 * TILE_ROWS : TILE_ROWS);  // tiles are read whole, for w two
        const int beyond = flat ? whole - width + 2 * EACH : max(0, max(whole, width + EACH) + EACH - 1 - pitch);
        const unsigned room = PanelMemory<Stored, Real, Groups>::ENTRIES - beyond;
        unsigned fit = min(STAGE_ROWS, room / pitch);
        if (WithZ) fit = min(fit, static_cast<unsigned>(z_entries) / z_pitch);
        fit -= fit % ROW_STEP<Groups>;
        stage_rows = fit, stages = (rows + fit - 1) / fit;
        skip = panel.skip, z_row = panel.z;
        if (WithZ) find_z(all, 0);
    }

    __device__ int rows_of(int s) const { return min(stage_rows, rows - s * stage_rows); }

    // Where row r of a stage begins after a multiple of `pitch`: the same in all stages, and for rows equal modulo 4.
    __device__ int shift(int r) const {
        return ((misfit + (flat ? 0 : r * row_bytes)) & (PIECE - 1)) / static_cast<int>(sizeof(Stored));
    }

    __device__ void load_entries(const PanelMemory<Stored, Real, Groups>& memory, int s) const {
        if (s >= stages) return;
        if (flat) load_flat(memory.entries(s), s);
        else load_rows(memory.entries(s), s);
    }

    __device__ void load_z(const PanelOperands<Stored, Real>& all, const PanelMemory<Stored, Real, Groups>& memory,
                           int s) {
        if (!WithZ || s >= stages) return;
        load_z(all, memory.z(s), s);
        find_z(all, s + 1);
    }

    // Once the last stage is there: zeros in place of what the last piece brought along from beyond the panel.
    __device__ void cut_off(Stored* target) const {
        const int last = rows_of(stages - 1) - 1, lane = threadIdx.x % WARP;
        if (lane < EACH) target[last * pitch + shift(last) + width + lane] = 0;
        __syncwarp();
    }

  private:
    __device__ void load_flat(Stored* target, int s) const {
        const int lane = threadIdx.x % WARP, end = misfit + rows_of(s) * row_bytes;
        const char* from = source + static_cast<long long>(s * stage_rows) * row_bytes + lane * PIECE;
        unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target)) + lane * PIECE;
#pragma unroll 4
        for (int at = lane * PIECE; at < end; at += WARP * PIECE, from += WARP * PIECE, to += WARP * PIECE)
            copy_piece(to, from, true);
    }

    // 8, 16 or 32 lanes a row; the last piece of a row may hold what follows it in memory.
    __device__ void load_rows(Stored* target, int s) const {
        const unsigned lane = threadIdx.x % WARP, row_span = width * sizeof(Stored) + slack, count = rows_of(s);
        const int log_lanes = row_span <= WARP / 4 * PIECE ? 3 : row_span <= WARP / 2 * PIECE ? 4 : 5;
        const unsigned row = lane >> log_lanes, step = WARP >> log_lanes, pitch_bytes = pitch * sizeof(Stored);
        const char* base = source + static_cast<long long>(s * stage_rows) * row_bytes;
        const unsigned last = misfit + (count - 1) * row_bytes, end = last + width * sizeof(Stored);
        for (unsigned begin = lane % (1u << log_lanes) * PIECE; begin < row_span; begin += WARP * PIECE) {
            unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target)) + row * pitch_bytes + begin;
#pragma unroll 4
            for (unsigned from = misfit + row * row_bytes + begin; from <= last + begin; from += step * row_bytes) {
                const unsigned at = from / PIECE * PIECE;
                copy_piece(to, base + at, at < end);
                to += step * pitch_bytes;
            }
        }
    }

    // met ← the rows of z that the rows of stage s meet
    __device__ void find_z(const PanelOperands<Stored, Real>& all, int s) {
#pragma unroll
        for (int i = 0; i < FEW; i++) {
            const int r = threadIdx.x % WARP + i * WARP, at = z_row + s * stage_rows + r;
            if (r < rows_of(s)) met[i] = all.z_rows ? all.z_rows[at] : at;
        }
    }

    // target[r] ← z of row r of the stage, zero for `skip` rows of the panel and up to a multiple of ROW_STEP
    __device__ void load_z(const PanelOperands<Stored, Real>& all, Real* target, int s) const {
        const int lane = threadIdx.x % WARP, count = rows_of(s), filled = rounded_up(count, ROW_STEP<Groups>);
        const int left_out = skip - s * stage_rows;
        if constexpr (Groups == 0) {
#pragma unroll
            for (int i = 0; i < FEW; i++) {
                const int r = lane + i * WARP;
                const bool valid = r < count && r >= left_out;
                if (r < filled) copy_async(target + r, all.in.row(met[i]), valid);
            }
        } else {
            constexpr int LANES = Groups * SIDES, STEP = WARP / LANES;
#pragma unroll 1
            for (int first = 0; first < filled; first += STEP) {
                const int r = first + lane / LANES, h = lane % LANES;
                const int row = __shfl_sync(EVERY_LANE, first < WARP ? met[0] : met[FEW - 1], r % WARP);
                const bool valid = r < count && r >= left_out;
                if (h < all.in.count) copy_async(target + r * z_pitch + h, all.in.row(valid ? row : 0) + h, valid);
            }
        }
    }
};

}  // namespace blocksparse
