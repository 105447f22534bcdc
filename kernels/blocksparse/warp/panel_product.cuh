// blocksparse/warp/panel_product.cuh — one warp makes both products of a panel P from one reading of it:
//
//     forward   y ⟵ P x   (one number a row)        backward   w = Pᵀ z   (one number a column)
//
// P passes through shared memory in stages, PANEL_STAGES - 1 of them on their way while one is at work. float32 and
// float64 alike, P in float32 and vectors in float64 too, are multiplied in float64: on the tensor cores, 8 right-hand
// sides a tile, a single side (Groups = 0) by blocksparse/warp/panel_vector.cuh.
// Called by all lanes of a warp together; results go to memory.
#pragma once
#include "blocksparse/warp/panel_vector.cuh"

namespace blocksparse {

// The products of one strip, for Groups · SIDES right-hand sides at most.
template <typename Stored, typename Real, bool Forward, bool Backward, int Groups>
struct StripProduct {
    static constexpr int STEPS = STRIP_COLUMNS / DEPTH_STEP, TILES = STRIP_COLUMNS / TILE_ROWS;
    static constexpr int CHAINS = Groups == 1 ? 2 : 1;   // sums in turn, so that one product need not await the last
    static constexpr int AT_ONCE = TILE_ROWS / DEPTH_STEP;  // steps of operands read together
    double x[Forward ? STEPS : 1][Groups];
    double w[Backward ? TILES : 1][Groups][2][2] = {};
    int line = threadIdx.x % WARP / 4, quad = threadIdx.x % 4;

    __device__ explicit StripProduct(const StagedStrip<Stored, Real, Backward, Groups>&) {}

    __device__ void read_x(Vectors<const Real> source, int row, int width) {
        const Real* from = source.row(row + quad) + line;
        const long long step = static_cast<long long>(source.pitch) * DEPTH_STEP;
#pragma unroll
        for (int i = 0; i < STEPS; i++, from += step)
#pragma unroll
            for (int g = 0; g < Groups; g++)
                x[i][g] = i * DEPTH_STEP + quad < width && g * SIDES + line < source.count ? from[g * SIDES] : Real(0);
    }

    template <bool Add>
    __device__ void multiply(const StagedStrip<Stored, Real, Backward, Groups>& strip, const Stored* P, int rows,
                             const Real* z, Vectors<Real> y, int first) {
        const int along = strip.shift(line), across = strip.shift(quad);
        if constexpr (Backward) backward(P, rows, strip.width, strip.pitch, across, z, strip.z_pitch, y.count);
        if constexpr (Forward) forward<Add>(P, rows, strip.width, strip.pitch, along, y, first);
    }

    __device__ void write_w(Vectors<Real> target, int first, int width) const {
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int c = i * TILE_ROWS + half * STRIP + line;
                Real* to = target.row(first + c) + 2 * quad;
                if (c < width) each_side(target.count, [&](int g, int e, int at) { to[at] = Real(w[i][g][half][e]); });
            }
    }

  private:
    // y[first + r] = P[r] x, or with Add y + P x, for the rows of a stage   shift: of the rows line, line + 4, …
    template <bool Add>
    __device__ void forward(const Stored* P, int rows, int width, int pitch, int shift, Vectors<Real> y,
                            int first) const {
        Real* to = y.row(first + line) + 2 * quad;
        const long long half = static_cast<long long>(y.pitch) * STRIP;
#pragma unroll 1
        for (int t = 0; t < rows; t += TILE_ROWS, to += 2 * half) {
            const bool within[2] = {t + line < rows, t + line + STRIP < rows};
            Real before[Groups][2][2] = {};
            if constexpr (Add) each_side(y.count, [&](int g, int e, int at) {
                if (within[0]) before[g][0][e] = to[at];
                if (within[1]) before[g][1][e] = to[half + at];
            });
            double sum[CHAINS][Groups][2][2] = {};
            tile_forward(sum, P + min(t + line, rows - 1) * pitch + shift + quad,
                         P + min(t + line + STRIP, rows - 1) * pitch + shift + quad, width);
            each_side(y.count, [&](int g, int e, int at) {
                if (within[0]) to[at] = before[g][0][e] + Real(total(sum, g, 0, e));
                if (within[1]) to[half + at] = before[g][1][e] + Real(total(sum, g, 1, e));
            });
        }
    }

    // w += Pᵀ z for the rows of a stage, where z is zero up to a multiple of DEPTH_STEP   shift: of the rows quad,
    // quad + 4, …
    __device__ void backward(const Stored* P, int rows, int width, int pitch, int shift, const Real* z, int z_pitch,
                             int count) {
        const Stored* row = P + quad * pitch + shift + line;
        z += quad * z_pitch;
#pragma unroll 2
        for (int k = 0; k < rows; k += DEPTH_STEP, row += DEPTH_STEP * pitch, z += DEPTH_STEP * z_pitch) {
            double b[Groups];
#pragma unroll
            for (int g = 0; g < Groups; g++) b[g] = z[min(g * SIDES + line, count - 1)];
#pragma unroll
            for (int i = 0; i < TILES; i += 2) {
                if (i > 0 && i * TILE_ROWS >= width) break;
                double a[4];
#pragma unroll
                for (int e = 0; e < 4; e++) a[e] = widened(row[i * TILE_ROWS + e * STRIP]);
#pragma unroll
                for (int g = 0; g < Groups; g++) {
                    multiply_strips(w[i][g][0], w[i][g][1], a[0], a[1], b[g]);
                    multiply_strips(w[i + 1][g][0], w[i + 1][g][1], a[2], a[3], b[g]);
                }
            }
        }
    }

    __device__ static double total(const double (&sum)[CHAINS][Groups][2][2], int g, int half, int e) {
        return CHAINS == 2 ? sum[0][g][half][e] + sum[CHAINS - 1][g][half][e] : sum[0][g][half][e];
    }

    // The products of a row of `upper` and of a row of `lower`, strip by strip.
    __device__ void tile_forward(double (&sum)[CHAINS][Groups][2][2], const Stored* upper,
                                 const Stored* lower, int width) const {
#pragma unroll
        for (int i = 0; i < STEPS; i += AT_ONCE) {
            if (i > 0 && i * DEPTH_STEP >= width) break;
            double a[AT_ONCE][2];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                const int k = (i + j) * DEPTH_STEP;
                a[j][0] = widened(upper[k]), a[j][1] = widened(lower[k]);
            }
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
#pragma unroll
                for (int g = 0; g < Groups; g++)
                    multiply_strips(sum[j % CHAINS][g][0], sum[j % CHAINS][g][1], a[j][0], a[j][1], x[i + j][g]);
        }
    }

    // visit(tile, entry, offset from column 2 · quad) for the right-hand sides of which this lane holds sums.
    template <typename Visit>
    __device__ void each_side(int count, Visit visit) const {
#pragma unroll
        for (int g = 0; g < Groups; g++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                if (g * SIDES + 2 * quad + e < count) visit(g, e, g * SIDES + e);
    }
};

// Strip by strip; several strips need Add, which adds P x to what is there.
template <bool Forward, bool Backward, bool Add, int Groups, typename Stored, typename Real>
__device__ void multiply_panel(const PanelOperands<Stored, Real>& all, const Panel panel,
                               const PanelMemory<Stored, Real, Groups>& memory) {
    memory.clear();
#pragma unroll 1
    for (int column = 0; column < (Add ? panel.width : 1); column += STRIP_COLUMNS) {
        StagedStrip<Stored, Real, Backward, Groups> strip(all, panel, column, memory.z_entries);
        StripProduct<Stored, Real, Forward, Backward, Groups> product(strip);
#pragma unroll 1
        for (int s = 1 - PANEL_STAGES; s < strip.stages; s++) {
            strip.load_entries(memory, s + PANEL_STAGES - 1);
            if (s < 0) await_earlier();                  // nothing before is written by kernels of the chain
            strip.load_z(all, memory, s + PANEL_STAGES - 1);
            copies_issued();
            if (s < 0) {
                if (Forward && s == -1) product.read_x(all.in, panel.x + column, strip.width);
                continue;
            }
            copies_arrived<PANEL_STAGES - 1>();
            __syncwarp();                                // everybody's copies are there
            if (s == strip.stages - 1) strip.cut_off(memory.entries(s));
            product.template multiply<Add>(strip, memory.entries(s), strip.rows_of(s), memory.z(s), all.out,
                                           panel.forward + s * strip.stage_rows);
            __syncwarp();                                // everybody is done with the stage that is filled next
        }
        if constexpr (Backward) product.write_w(all.out, panel.backward + column, strip.width);
    }
}

}  // namespace blocksparse
