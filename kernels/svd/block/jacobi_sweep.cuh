// One sweep of one-sided Jacobi over a panel in shared memory: every pair of its column blocks once, or every pair of a
// block of the first half with one of the second.
//
//     round r:  warp w turns block pair w in registers (svd/warp/jacobi_columns.cuh), then the thread block meets
//
// All pairs: round robin, block 0 stays and the others move on. Half against half: block i meets block i + r.
// A block is `Columns` columns, so that a column is read and written once for Columns rotations: shared memory, the binding
// resource of pairwise Jacobi, is asked for a Columns-th. Called by svd/svd_shared.cuh and svd/svd_rounds.cuh.
#pragma once

#include "svd/warp/jacobi_columns.cuh"

namespace svd {

// The panel: `columns` columns of `rows` entries, and behind each, from entry `stack` on, DotRows… more that follow along.
template <typename Real>
struct Panel {
    Real* X;         // column-major, leading dimension ld
    int ld, rows, stack, columns;
    Real* norms;     // squared norms, blocks(columns) · Columns of them, zero past the last column
};

// register row r of this lane: where it lies in a column, or −1
template <int DotRows, typename Real>
__device__ int row_of(const Panel<Real>& panel, int r) {
    int i = (r % DotRows) * WARP + threadIdx.x % WARP;
    return i >= panel.rows ? -1 : r < DotRows ? i : panel.stack + i;
}

template <int Rows, int DotRows, int Columns, typename Real>
__device__ void load_block(const Panel<Real>& panel, int first, Real (&X)[2 * Columns][Rows], int half) {
#pragma unroll
    for (int c = 0; c < Columns; c++)
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            int i = row_of<DotRows>(panel, r), j = first + c;
            X[half * Columns + c][r] = i >= 0 && j < panel.columns ? panel.X[j * panel.ld + i] : Real(0);
        }
}

template <int Rows, int DotRows, int Columns, typename Real>
__device__ void store_block(const Panel<Real>& panel, int first, const Real (&X)[2 * Columns][Rows], int half) {
#pragma unroll
    for (int c = 0; c < Columns; c++)
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            int i = row_of<DotRows>(panel, r), j = first + c;
            if (i >= 0 && j < panel.columns) panel.X[j * panel.ld + i] = X[half * Columns + c][r];
        }
}

template <int Rows, int DotRows, int Columns, typename Real>
__device__ bool turn_blocks(const Panel<Real>& panel, int left, int right, Angle<Real>* angles, Real tolerance, bool within) {
    Real X[2 * Columns][Rows];
    load_block<Rows, DotRows, Columns>(panel, left, X, 0);
    load_block<Rows, DotRows, Columns>(panel, right, X, 1);
    bool turned = jacobi_columns<Rows, DotRows, Columns>(X, panel.norms + left, panel.norms + right, angles, tolerance, within);
    if (turned) {
        store_block<Rows, DotRows, Columns>(panel, left, X, 0);
        store_block<Rows, DotRows, Columns>(panel, right, X, 1);
    }
    return turned;
}

// fresh squared norms of all columns; the caller synchronizes
template <int Columns, typename Real>
__device__ void panel_norms(const Panel<Real>& panel, int blocks) {
    int warp = threadIdx.x / WARP, warps = blockDim.x / WARP, lane = threadIdx.x % WARP;
    for (int j = warp; j < blocks * Columns; j += warps) {
        Real sum = 0;
        if (j < panel.columns)
            for (int i = lane; i < panel.rows; i += WARP) sum = fma(panel.X[j * panel.ld + i], panel.X[j * panel.ld + i], sum);
        sum = warp_sum(sum);
        if (lane == 0) panel.norms[j] = sum;
    }
}

// angles   warps · Columns slots in shared memory.   Returns whether anything was turned, the same in every thread.
template <int Rows, int DotRows, int Columns, typename Real>
__device__ bool jacobi_sweep(const Panel<Real>& panel, int blocks, Angle<Real>* angles, Real tolerance, bool halves) {
    int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    int pairs = blocks / 2, rounds = halves ? pairs : blocks - 1;
    panel_norms<Columns>(panel, blocks);
    __syncthreads();
    bool turned = false;
    for (int round = 0; round < rounds; round++) {
        for (int i = warp; i < pairs; i += warps) {
            int left = halves ? i : (round + i) % (blocks - 1);
            int right = halves ? pairs + (i + round) % pairs : i == 0 ? blocks - 1 : (round + blocks - 1 - i) % (blocks - 1);
            turned |= turn_blocks<Rows, DotRows, Columns>(panel, left * Columns, right * Columns, angles + warp * Columns, tolerance,
                                                          !halves && round == 0);
        }
        __syncthreads();
    }
    return __syncthreads_or(turned);
}

}  // namespace svd
