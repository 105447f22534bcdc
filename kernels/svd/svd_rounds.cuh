// A round of block Jacobi on the columns themselves, method "block-direct"; before and after it the kernels of
// svd/svd_blocks.cuh. One thread block a pair (I, J) of panels of `width` columns: both come to shared memory, and their
// columns are turned directly (svd/block/jacobi_sweep.cuh); all pairs of a round, of all matrices, at once.
//
// The host launches sweeps × rounds without reading anything back: from the sweep on that turned nothing, a matrix's blocks
// return at once.   workspaces   matrices × stride bytes     turned   sweeps × matrices, zero at first
#pragma once

#include "svd/block/jacobi_panels.cuh"

namespace svd {

// Entries between columns in shared memory, of X and where wanted of V behind it: odd, so that rows lie in different banks.
// Behind two panels of such columns lie their norms.
__host__ __device__ constexpr int round_pitch(int r, bool both) { return (both ? 2 * r : r) | 1; }

// a panel's columns between the workspace and shared memory, `stack` rows of each half packed one behind the other
template <bool In, typename Real>
__device__ void move_panel(const Workspace<Real>& w, Real* X, int ld, int first, int columns, int rows, int stack, bool both) {
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (int j = warp; j < columns; j += warps)
        for (int half = 0; half < (both ? 2 : 1); half++) {
            Real* outside = w.W + static_cast<long long>(first + j) * w.ld + half * stack;
            Real* inside = X + static_cast<long long>(j) * ld + half * rows;
            for (int i = lane; i < rows; i += WARP) (In ? inside[i] : outside[i]) = In ? outside[i] : inside[i];
        }
}

template <typename Real, int DotRows, bool Both, int Columns, int Threads>
__global__ __launch_bounds__(Threads)
void svd_round(const long long* table, int m, int n, char* workspaces, long long stride, int* turned, int matrices, int pairs,
               int width, int sweep, int round) {
    extern __shared__ double memory[];
    __shared__ Angle<Real> angles[Threads / WARP * Columns];
    int b = blockIdx.x / pairs, i = blockIdx.x % pairs, panels = 2 * pairs;
    if (sweep > 0 && turned[static_cast<long long>(sweep - 1) * matrices + b] == 0) return;
    Problem<Real> p = problem<Real>(nullptr, nullptr, nullptr, nullptr, table, m, n, b);
    Workspace<Real> w = panel_workspace<Real>(workspaces + b * stride, p.rank(), Both);
    int r = *w.rank, stack = panel_rows(p.rank());
    Meeting pair(panels, round, i);
    int left = pair.left * width, right = pair.right * width;
    int second = min(width, r - right), columns = second > 0 ? width + second : min(width, r - left);
    if (columns < 2 || (second <= 0 && round > 0)) return;
    int ld = round_pitch(r, Both);
    Real* X = reinterpret_cast<Real*>(memory);
    Panel<Real> panel = {X, ld, r, r, columns, X + static_cast<long long>(ld) * 2 * width};
    Real* half = X + static_cast<long long>(width) * ld;
    move_panel<true>(w, X, ld, left, min(width, columns), r, stack, Both);
    if (second > 0) move_panel<true>(w, half, ld, right, second, r, stack, Both);
    __syncthreads();
    bool halves = round > 0;
    int blocks = halves ? 2 * width / Columns : even_blocks<Columns>(columns);
    if (!jacobi_sweep<Both ? 2 * DotRows : DotRows, DotRows, Columns>(panel, blocks, angles, orthogonality_tolerance<Real>(r),
                                                                      halves)) return;
    move_panel<false>(w, X, ld, left, min(width, columns), r, stack, Both);
    if (second > 0) move_panel<false>(w, half, ld, right, second, r, stack, Both);
    if (threadIdx.x == 0) turned[static_cast<long long>(sweep) * matrices + b] = 1;
}

}  // namespace svd
