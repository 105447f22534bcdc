// blocksparse/block_multiply.cuh — products with many panels at once, and the sums of their parts.
//
// A sparse matrix of dense blocks, y = A x: panel_products makes the parts P x_j and Pᵀ x_i of all panels (the stacked
// blocks of a block column, cut into runs of rows); block_sums adds the parts of every block row of y in a fixed
// order: no atomics, the same bits every time. Block-diagonal matrices one after the other: one launch each.
#pragma once
#include "blocksparse/warp/panel_product.cuh"

namespace blocksparse {

// Warps of a multiprocessor at least: with a single right-hand side as many as find room in shared memory, 96 registers
// each for float32.
template <typename Stored, int Groups>
constexpr int PANEL_WARPS = Groups ? 1 : sizeof(Stored) == sizeof(float) ? 20 : 12;

// A warp a panel, of at most STRIP_COLUMNS columns unless Add.   entries: buffer of all panels, in float or as Real
// in, out: · × sides, rows in_pitch and out_pitch apart; with Add, P x is added to what is in `out`
// z_rows: rows of all panels, or null   z_entries: room in shared memory for z, a stage
// Groups: tiles of right-hand sides, 0 for a single one
template <typename Stored, typename Real, bool Forward, bool Backward, bool Add, int Groups, int Warps>
__global__ __launch_bounds__(Warps * WARP, (PANEL_WARPS<Stored, Groups> + Warps - 1) / Warps)
void panel_products(const Panel* panels, int count, const Stored* entries, const Real* in, int in_pitch,
                    const int* z_rows, Real* out, int out_pitch, int sides, int z_entries) {
    extern __shared__ __align__(16) unsigned char memory[];
    let_next_begin();
    const int warp = threadIdx.x / WARP, i = blockIdx.x * Warps + warp;
    if (i >= count) return;
    const PanelOperands<Stored, Real> all = {entries, {in, in_pitch, sides}, z_rows, {out, out_pitch, sides}};
    using Memory = PanelMemory<Stored, Real, Groups>;
    const Memory own = {memory + warp * Memory::bytes(z_entries), z_entries};
    multiply_panel<Forward, Backward, Add, Groups>(all, panels[i], own);
}

// A warp WARP · Each entries of a block row of y; `pieces` of them for each.
// y, parts: rows × sides, y's rows y_pitch apart
// add: to what is in y; else rows of blocks without terms are set to zero
// table: 4 × block rows: first row of y, rows, first and last + 1 of `lists`
// lists: the first part of every term, block row by block row
template <typename Real, int Warps, int Each, int Terms>
__global__ __launch_bounds__(Warps * WARP)
void block_sums(Real* y, const Real* parts, const long long* table, const int* lists, int block_rows, int pieces,
                int sides, int y_pitch, bool add) {
    let_next_begin();
    const int lane = threadIdx.x % WARP, warp = blockIdx.x * Warps + threadIdx.x / WARP;
    const int i = warp / pieces, begin = warp % pieces * WARP * Each + lane;
    if (i >= block_rows) return;
    const int entries = static_cast<int>(table[block_rows + i]) * sides;
    const long long first = table[2 * block_rows + i];
    const int terms = static_cast<int>(table[3 * block_rows + i] - first);
    Real sum[Each] = {};
    int own = lane < terms ? lists[first + lane] : 0;
    await_earlier();                                     // what is read so far is the plan's
    if (add && terms == 0) return;
    for (int c0 = 0; c0 < terms; c0 += WARP) {
        const int count = min(WARP, terms - c0);
        if (c0 > 0) own = c0 + lane < terms ? lists[first + c0 + lane] : 0;
        for (int c = 0; c < count; c += Terms) {
            Real part[Terms][Each];
#pragma unroll
            for (int t = 0; t < Terms; t++) {
                const Real* from = parts + static_cast<long long>(__shfl_sync(EVERY_LANE, own, (c + t) % WARP)) * sides;
#pragma unroll
                for (int q = 0; q < Each; q++) {
                    const int e = begin + q * WARP;
                    part[t][q] = c + t < count && e < entries ? from[e] : Real(0);
                }
            }
#pragma unroll
            for (int t = 0; t < Terms; t++)
#pragma unroll
                for (int q = 0; q < Each; q++) sum[q] += part[t][q];
        }
    }
    y += table[i] * y_pitch;
#pragma unroll
    for (int q = 0; q < Each; q++) {
        const int e = begin + q * WARP;
        Real* to = y + static_cast<long long>(e / sides) * y_pitch + e % sides;
        if (e < entries) *to = add ? *to + sum[q] : sum[q];
    }
}

}  // namespace blocksparse
