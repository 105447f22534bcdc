// The columns of a large matrix in device memory and the panels that the rounds of block Jacobi take from them.
//
//     column c:   X in rows 0 … k − 1,   V, where wanted, in rows S … S + k − 1,   S = k up to a multiple of PANEL_STEP
//
// All other rows, and the columns up to a multiple of PANEL_STEP, are zero: whole panels are multiplied without asking for
// bounds. Columns of X from the rank on are unit vectors, and those before are zero from that row on, so that none of one kind is
// turned with one of the other. The small arrays of svd/block/svd_stages.cuh lie before the columns. Used by the kernels of
// svd/svd_blocks.cuh, svd_gram.cuh and svd_rounds.cuh.
#pragma once

#include "svd/block/svd_stages.cuh"

namespace svd {

constexpr int PANEL_STEP = 32, SECTOR = 128;              // columns begin at multiples of so many bytes

__host__ __device__ inline int panel_rows(int k) { return (k + PANEL_STEP - 1) / PANEL_STEP * PANEL_STEP; }

// the small arrays before a column-major stack of squares; real_bytes: of an entry
__host__ __device__ inline long long arrays_bytes(int real_bytes, int k) {
    return (workspace_bytes(real_bytes, 0, k, false) + SECTOR - 1) / SECTOR * SECTOR;
}
__host__ __device__ inline long long panel_bytes(int real_bytes, int k, bool both) {
    return arrays_bytes(real_bytes, k) + static_cast<long long>(both ? 2 : 1) * panel_rows(k) * panel_rows(k) * real_bytes;
}

// a workspace of panel_bytes
template <typename Real>
__device__ Workspace<Real> panel_workspace(char* memory, int k, bool both) {
    Workspace<Real> w = workspace<Real>(memory, 0, k, false);
    w.W = reinterpret_cast<Real*>(memory + arrays_bytes(sizeof(Real), k));
    w.ld = (both ? 2 : 1) * panel_rows(k);
    return w;
}

// Two panels of Width columns each; c counts through the first, then the second, which may be missing.
template <int Width, typename Real>
struct PanelPair {
    Real* W;
    int left, right, ld;                                 // where the panels begin, in entries
    bool paired;
    __device__ bool has(int c) const { return c < Width || paired; }
    __device__ Real* column(int c) const { return W + (c < Width ? left + c * ld : right + (c - Width) * ld); }
};

// Round `round` of a tournament of `panels`: panel i meets another; every two meet once in panels − 1 rounds.
struct Meeting {
    int left, right;
    __device__ Meeting(int panels, int round, int i) {
        int one = (round + i) % (panels - 1), other = i == 0 ? panels - 1 : (round + panels - 1 - i) % (panels - 1);
        left = min(one, other), right = max(one, other);
    }
};

}  // namespace svd
