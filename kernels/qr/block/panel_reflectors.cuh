// qr/block/panel_reflectors.cuh — where the blocked reflectors of a matrix lie in memory, for qr/block/strip.cuh.
#pragma once
#include "common/thread/constants.cuh"

namespace qr {
using namespace common;

constexpr int PANEL = 16, TILE_ROWS = 8, TILE = TILE_ROWS * PANEL;

// Where entry (r, c) of a tile of V lies: an order in which both products read it without bank conflicts.
template <typename Real>
__device__ int tile_place(int r, int c) {
    if constexpr (sizeof(Real) == sizeof(double)) return r * PANEL + (c ^ (r / 2 * 4 ^ r % 2 * 8));
    else return r / 2 * 2 * PANEL + ((r % 2 * PANEL + c) ^ r / 2 * 8);
}

// The reflectors of a matrix, in memory: `layers` · Warps tiles of V a panel, panel after panel; then PANEL × PANEL of −T each.
// A layer is a tile of every warp. Layers are taken or left as a whole: V has zeros above its panel.
template <typename Real, int Warps>
struct Reflectors {
    Real* V;
    int layers, panels;
    Reflectors() = default;
    __device__ Reflectors(Real* V, int rows, int steps)
        : V(V), layers((rows + Warps * TILE_ROWS - 1) / (Warps * TILE_ROWS)), panels((steps + PANEL - 1) / PANEL) {}
    __device__ static int first_layer(int j) { return j * PANEL / (Warps * TILE_ROWS); }
    __device__ int end_layer(int) const { return layers; }
    // What a team needs, qr/tree_qr.cuh: whether panel j is there, to wait until it is, an entry of T, to say that j is.
    __device__ static bool has(int) { return true; }
    __device__ static void await(int) {}
    __device__ static Real read(const Real* T) { return *T; }
    __device__ static void publish(int) {}
    __device__ Real* panel(int j) const { return V + static_cast<long long>(j) * layers * Warps * TILE; }
    __device__ Real* triangle(int j) const { return panel(panels) + j * PANEL * PANEL; }
};

}  // namespace qr
