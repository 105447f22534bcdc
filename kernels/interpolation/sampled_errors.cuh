// interpolation/sampled_errors.cuh — how wrong interpolation is at a few entries of sampled blocks, for many orders:
//     out[o][s] = mean over r, c of (f(x_r, y_c) − Σ_ν L_ν(x_r) f(ξ_ν, y_c))²     of sample s, order first + o
// ξ_ν: the grid of the sample's box, the last direction fastest; polynomials as in chebyshev.cuh. Samples of no more
// points than order^dim use their own points: 0. The first samples are blocks, with all their rows and columns; each of
// the others is one entry of a block, for another box. One warp a sample and order.
#pragma once
#include "common/thread/constants.cuh"
#include "common/warp/reduce.cuh"
#include "covariance/pairwise.cuh"

namespace interpolation {
using namespace common;
using namespace covariance;

// How many blocks and other samples, rows and columns of a block, orders, and the largest order of tables.
struct SampledSizes { int blocks, others, rows, columns, first, orders, most; };

// points: samples, of a cluster   block: others   lower, upper: samples × dim   x: blocks × rows × dim
// y: blocks × columns × dim   nodes, weights: orders × most   out: orders × samples
// shared memory of a warp: (Rows + 1) · dim · most numbers
template <typename Real, int Warps, int Rows, int Columns, typename Function>
__global__ __launch_bounds__(Warps * WARP)
void sampled_errors(const long long* points, const long long* block, const Real* lower, const Real* upper,
                    const Real* x, const Real* y, const Real* nodes, const Real* weights, const SampledSizes sizes,
                    double* out, const Real* tables, Parameters<Real, Function::parameters> parameters) {
    constexpr int DIM = Function::dimension;
    static_assert(Rows * Columns <= WARP, "a lane evaluates an entry");
    extern __shared__ __align__(16) unsigned char memory[];
    const int lane = threadIdx.x % WARP, most = sizes.most;
    Real* axes = reinterpret_cast<Real*>(memory) + threadIdx.x / WARP * (Rows + 1) * DIM * most;  // DIM × most
    Real* L = axes + DIM * most;                                                                  // rows × DIM × most
    const long long task = static_cast<long long>(blockIdx.x) * Warps + threadIdx.x / WARP;
    const int samples = sizes.blocks + sizes.others;
    if (task >= static_cast<long long>(samples) * sizes.orders) return;
    const int o = static_cast<int>(task / samples), s = static_cast<int>(task - static_cast<long long>(o) * samples);
    const int order = sizes.first + o;
    int count = 1;
    for (int j = 0; j < DIM; j++) count *= order;
    if (points[s] <= count) {
        if (lane == 0) out[task] = 0;
        return;
    }
    const Real *t = nodes + o * most, *w = weights + o * most;
    lower += static_cast<long long>(s) * DIM;
    upper += static_cast<long long>(s) * DIM;
    const bool whole = s < sizes.blocks;
    const long long of = whole ? s : block[s - sizes.blocks];
    const int rows = whole ? sizes.rows : 1, columns = whole ? sizes.columns : 1;
    x += (of * sizes.rows + (whole ? 0 : of % sizes.rows)) * DIM;
    y += (of * sizes.columns + (whole ? 0 : of % sizes.columns)) * DIM;
    for (int e = lane; e < DIM * order; e += WARP) {
        const int j = e / order;
        axes[j * most + e % order] = (lower[j] + upper[j]) / 2 + (upper[j] - lower[j]) / 2 * t[e % order];
    }
    for (int e = lane; e < rows * DIM; e += WARP) {
        const int j = e % DIM;
        const Real a = lower[j], b = upper[j], z = a == b ? t[0] : (2 * x[e] - (a + b)) / (b - a);
        Real sum = 0;
        int hit = -1;
        for (int p = 0; p < order; p++) {
            if (z == t[p]) hit = p;
            else sum += w[p] / (z - t[p]);
        }
        for (int p = 0; p < order; p++) L[e * most + p] = hit >= 0 ? Real(p == hit) : w[p] / (z - t[p]) / sum;
    }
    Real exact = 0;  // of entry (lane / columns, lane mod columns)
    if (lane < rows * columns) {
        Real own[DIM], other[DIM];
#pragma unroll
        for (int k = 0; k < DIM; k++) {
            own[k] = x[lane / columns * DIM + k];
            other[k] = y[lane % columns * DIM + k];
        }
        exact = Function::value(own, other, parameters.values, tables);
    }
    Real far[Columns][DIM], found[Rows][Columns];
#pragma unroll
    for (int c = 0; c < Columns; c++) {
#pragma unroll
        for (int k = 0; k < DIM; k++) far[c][k] = c < columns ? y[c * DIM + k] : Real(0);
#pragma unroll
        for (int r = 0; r < Rows; r++) found[r][c] = 0;
    }
    __syncwarp();
    for (int v = lane; v < count; v += WARP) {
        Real node[DIM], product[Rows];
        int rest = v;
#pragma unroll
        for (int r = 0; r < Rows; r++) product[r] = 1;
#pragma unroll
        for (int j = DIM - 1; j >= 0; j--) {
            const int p = rest % order;
            rest /= order;
            node[j] = axes[j * most + p];
#pragma unroll
            for (int r = 0; r < Rows; r++)
                if (r < rows) product[r] *= L[(r * DIM + j) * most + p];
        }
#pragma unroll
        for (int c = 0; c < Columns; c++) {
            if (c >= columns) break;
            const Real value = Function::value(node, far[c], parameters.values, tables);
#pragma unroll
            for (int r = 0; r < Rows; r++) found[r][c] += product[r] * value;
        }
    }
    double square = 0;
#pragma unroll
    for (int r = 0; r < Rows; r++) {
#pragma unroll
        for (int c = 0; c < Columns; c++) {
            if (r >= rows || c >= columns) continue;
            const Real entry = __shfl_sync(EVERY_LANE, exact, r * columns + c);
            const double error = static_cast<double>(entry - warp_sum(found[r][c]));
            square += error * error;
        }
    }
    if (lane == 0) out[task] = square / (rows * columns);
}

}  // namespace interpolation
