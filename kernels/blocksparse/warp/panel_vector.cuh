// blocksparse/warp/panel_vector.cuh — both products of a strip with a single right-hand side: multiply-adds on the vector pipe.
//
// On the tensor cores 7/8 of every product would be for no right-hand side, and each entry would be turned into float64
// once a product. Here a lane keeps COLUMNS entries of x and sums of w, LANES columns apart, and four lines of as many
// lanes take two rows each. A lane's sums of rows are added up over its line by exchanges of halves.
// Called by all lanes of a warp together; results go to memory.
#pragma once
#include "blocksparse/warp/panel_stage.cuh"
#include "common/thread/pair.cuh"
#include "common/thread/power_of_two.cuh"
#include "common/warp/part_sums.cuh"
#include "common/warp/reduce_many.cuh"

namespace blocksparse {
using namespace common;

template <typename Stored, typename Real, bool Forward, bool Backward, int Groups>
struct StripProduct;

template <typename Stored, typename Real, bool Forward, bool Backward>
struct StripProduct<Stored, Real, Forward, Backward, 0> {
    using Strip = StagedStrip<Stored, Real, Backward, 0>;
    static constexpr int LANES = 8, COLUMNS = STRIP_COLUMNS / LANES, TURNS = WARP / LANES;
    static constexpr int STEP = ROW_STEP<0>, HALVES = TILE_ROWS / STEP;
    double x[Forward ? COLUMNS : 1];
    double w[Backward ? COLUMNS : 1] = {};
    int lane = threadIdx.x % LANES, line = threadIdx.x % WARP / LANES;
    bool turned;
    int turn;                                            // slot j holds the columns LANES · (j ^ turn) + lane

    __device__ explicit StripProduct(const Strip& strip) : turned(strip.turned), turn(turned ? line : 0) {}

    __device__ void read_x(Vectors<const Real> source, int row, int width) {
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const int c = column(j);
            x[j] = c < width ? *source.row(row + c) : Real(0);
        }
    }

    // w += Pᵀ z and y[first + r] = P[r] x, or with Add y + P x, for the rows of a stage, whose last STEP is filled up
    // with zeros of z and rows that are finite
    template <bool Add>
    __device__ void multiply(const Strip& strip, const Stored* P, int rows, const Real* z, Vectors<Real> y,
                             int first) {
        multiply_columns<Add, COLUMNS>(strip, P, rows, z + 2 * line, y, first);
    }

    __device__ void write_w(Vectors<Real> target, int first, int width) {
        add_lines<1>();
        add_lines<2>();
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const int c = column(j);
            if ((j % TURNS ^ turn) == line && c < width) *target.row(first + c) = Real(w[j]);
        }
    }

  private:
    __device__ int column(int j) const { return (j ^ turn) * LANES + lane; }

    // w ← its sums over lines that differ by Distance, where turned strips have the same columns in another slot
    template <int Distance>
    __device__ void add_lines() {
        double other[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; j++)
            other[j] = __shfl_xor_sync(EVERY_LANE, turned ? w[j ^ Distance] : w[j], Distance * LANES);
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) w[j] += other[j];
    }

    // Of strips that need so many columns a lane, or fewer.
    template <bool Add, int Columns>
    __device__ void multiply_columns(const Strip& strip, const Stored* P, int rows, const Real* z, Vectors<Real> y,
                                     int first) {
        if constexpr (Columns > 1)
            if (strip.width <= (Columns - 1) * LANES)
                return multiply_columns<Add, Columns - 1>(strip, P, rows, z, y, first);
        if constexpr (Columns % TURNS == 0)
            if (turned) return multiply_tiles<Add, Columns, true>(strip, P, rows, z, y, first);
        multiply_tiles<Add, Columns, false>(strip, P, rows, z, y, first);
    }

    template <bool Add, int Columns, bool Turned>
    __device__ void multiply_tiles(const Strip& strip, const Stored* P, int rows, const Real* z, Vectors<Real> y,
                                   int first) {
        const int pitch = Turned ? Columns * LANES : strip.pitch, mine = 2 * line;
        const Stored* row[2] = {P + mine * pitch + strip.shift(mine) + lane, row[0] + pitch};
        if (!Turned) row[1] += strip.shift(mine + 1) - strip.shift(mine);
        const int own = lane / 4 * STEP + mine + lane / 2 % 2;  // the row of a tile whose total this lane ends with
        Real* to = y.row(first + own);
#pragma unroll 1
        for (int t = 0; t < rows; t += TILE_ROWS, to += static_cast<long long>(y.pitch) * TILE_ROWS) {
            const bool writes = Forward && lane % 2 == 0 && t + own < rows;
            const Real before = Add && writes ? *to : Real(0);
            double sum[HALVES * 2] = {};
#pragma unroll
            for (int h = 0; h < HALVES; h++) {
                if (h > 0 && t + h * STEP >= rows) break;
                multiply_rows<Columns, Turned>(sum[2 * h], sum[2 * h + 1], row[0], row[1], z);
                row[0] += STEP * pitch, row[1] += STEP * pitch, z += STEP;
            }
            if constexpr (Forward) {
                exchange_halves<HALVES, LANES / 2>(sum);
                const double total = part_sum<1, LANES / 2 / HALVES>(sum[0]);
                if (writes) *to = Add ? before + Real(total) : Real(total);
            }
        }
    }

    // Two rows of this lane.
    template <int Columns, bool Turned>
    __device__ void multiply_rows(double& sum0, double& sum1, const Stored* row0, const Stored* row1, const Real* z) {
        Stored a0[Columns], a1[Columns];
#pragma unroll
        for (int j = 0; j < Columns; j++) {
            const int at = Turned ? (j % TURNS ^ turn) * LANES + j / TURNS * TURNS * LANES : j * LANES;
            a0[j] = row0[at], a1[j] = row1[at];
        }
        Pair<Real> b = {};
        if constexpr (Backward) b = *reinterpret_cast<const Pair<Real>*>(z);
#pragma unroll
        for (int j = 0; j < Columns; j++) {
            const double first = widened(a0[j]), second = widened(a1[j]);
            if constexpr (Forward) sum0 = fma(first, x[j], sum0), sum1 = fma(second, x[j], sum1);
            if constexpr (Backward) w[j] = fma(second, double(b.y), fma(first, double(b.x), w[j]));
        }
    }
};

}  // namespace blocksparse
