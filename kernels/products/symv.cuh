// products/symv.cuh — out_b = α A_b x_b + β y_b for symmetric A_b, one triangle of which is read, once; one block a matrix.
//
//     out_i += Σ_j a_ij x_j   and   out_j += Σ_i a_ij x_i   for the entries a_ij of the triangle
//
// A warp takes SYMV_ROWS rows at a time, a column a lane: sums over the lanes give the first, sums in a lane the second.
#pragma once
#include "common/warp/reduce_many.cuh"
#include "products/thread/multiply_add.cuh"
#include "products/thread/operands.cuh"

namespace products {
using namespace common;

constexpr int SYMV_ROWS = 8;  // of a warp at a time
constexpr int SYMV_SHARED = 2;  // vectors in shared memory, x and the first sums, before each warp's second sums

// Steps: columns of a lane
// A: batch × n × n   x, y, out: n each   table: products/thread/operands.cuh   shared memory: (SYMV_SHARED + Warps) · n entries
template <typename Real, int Warps, int Steps, bool Lower>
__global__ __launch_bounds__(Warps * WARP)
void symv(const Real* A, const Real* x, const Real* y, Real* out, const long long* table, long long batch, int n, Real alpha, Real beta) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Operands at(table, batch, blockIdx.x, n, n, n, n);
    n = at.n, A += at.a;
    Real *known = reinterpret_cast<Real*>(memory), *rows = known + n, *columns = rows + (SYMV_SHARED - 1) * n;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int i = threadIdx.x; i < n; i += Warps * WARP) known[i] = x[at.x + i], rows[i] = 0;
    __syncthreads();
    constexpr int PANEL = Steps * WARP;
    const int groups = (n + SYMV_ROWS - 1) / SYMV_ROWS;
    for (int column0 = 0; column0 < n; column0 += PANEL) {
        Real sum[Steps] = {}, factor[Steps];
#pragma unroll
        for (int k = 0; k < Steps; k++) factor[k] = known[min(column0 + k * WARP + lane, n - 1)];
        const int begin = Lower ? column0 / SYMV_ROWS : 0, end = Lower ? groups : min(groups, (column0 + PANEL) / SYMV_ROWS);
        for (int group = begin + (warp + Warps - begin % Warps) % Warps; group < end; group += Warps) {
            const int row0 = group * SYMV_ROWS;
            Real a[Steps][SYMV_ROWS], dot[SYMV_ROWS] = {};
#pragma unroll
            for (int k = 0; k < Steps; k++)
#pragma unroll
                for (int r = 0; r < SYMV_ROWS; r++) {
                    const int i = row0 + r, j = column0 + k * WARP + lane;
                    a[k][r] = i < n && j < n && (Lower ? j <= i : j >= i) ? A[static_cast<long long>(i) * n + j] : Real(0);
                }
#pragma unroll
            for (int k = 0; k < Steps; k++)
#pragma unroll
                for (int r = 0; r < SYMV_ROWS; r++) {
                    const int i = row0 + r, j = column0 + k * WARP + lane;
                    if (i >= n || j >= n || (Lower ? j > i : j < i)) continue;
                    dot[r] += a[k][r] * factor[k];
                    if (i != j) sum[k] += a[k][r] * known[i];
                }
            const Real total = sum_each<SYMV_ROWS>(dot);
            const int i = row0 + lane * SYMV_ROWS / WARP;
            if (lane % (WARP / SYMV_ROWS) == 0 && i < n) rows[i] += total;
        }
#pragma unroll
        for (int k = 0; k < Steps; k++)
            if (column0 + k * WARP + lane < n) columns[warp * n + column0 + k * WARP + lane] = sum[k];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += Warps * WARP) {
        Real total = rows[i];
        for (int w = 0; w < Warps; w++) total += columns[w * n + i];
        out[at.out + i] = scaled_sum(alpha, total, beta, y + at.y + i);
    }
}

}  // namespace products
