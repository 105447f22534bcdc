// qr/block/strip_factors.cuh — a strip's part of a QR by blocked reflections from the left: it meets the earlier panels' reflectors,
// then turns into its own and into columns of R.
//
//     strip k of A meets I − V_j T_jᵀ V_jᵀ, j = 0 … k−1, then turns into V_k, T_k and R's columns
//
// Problem: A, R, m, n, steps = min(m, n), reflectors; pitch() entries between rows of A as of R; height(c), the rows beyond
// which columns before c have zeros alone; apart(), strips from one of this block to its next.
// Called by the whole block: qr/blocked_qr.cuh, qr/tree_qr.cuh.
#pragma once
#include "common/thread/prefetch.cuh"
#include "qr/block/panel.cuh"

namespace qr {
using namespace common;

// Columns column0 … of A on their way to the second-level cache.
template <int Threads, typename Problem>
__device__ __forceinline__ void announce(const Problem& p, int column0) {
    if (column0 < p.n)
        for (int i = threadIdx.x; i < p.height(column0 + PANEL); i += Threads)
            prefetch(p.A + static_cast<long long>(i) * p.pitch() + column0);
}

// Columns PANEL k … of R, and V_k, T_k where they have pivots.
template <typename Problem, typename Real, int Warps, int Tiles>
__device__ __forceinline__ void factor_strip(const Problem& p, int k, StripMemory<Real, Warps, Tiles>& memory) {
    Strip<Real, Warps, Tiles> strip(memory);
    const auto& reflectors = p.reflectors;
    const int row0 = k * PANEL, pivots = min(PANEL, max(p.steps - row0, 0)), earlier = min(k, reflectors.panels);
    if (earlier > 0) strip.fetch_first(reflectors, 0);
    const int shift = strip.load(p.A, p.height(row0 + PANEL), p.n, p.pitch(), row0);
    announce<Warps * WARP>(p, row0 + p.apart() * PANEL);
    for (int j = 0; j < earlier; j++) strip.template apply<true>(reflectors, j, j + 1 < earlier ? j + 1 : -1);
    Panel<Real, Warps, Tiles> panel(strip);
    if (pivots > 0) {
        panel.factor(row0, pivots, reflectors.end_layer(k), reflectors.triangle(k));
        Real* V = reflectors.panel(k);
        strip.each(reflectors.first_layer(k), reflectors.end_layer(k),
                   [&](int i, int e) { V[strip.place(i, e)] = panel.v(i, e, row0, pivots); });
        reflectors.publish(k);
    }
    const Real scale = power_of_two<Real>(shift);
    strip.each_inside(p.R, p.steps, p.n, p.pitch(), row0, [&](int i, int e, Real* entry) { *entry = panel.r(i, e, row0, pivots) * scale; });
}

}  // namespace qr
