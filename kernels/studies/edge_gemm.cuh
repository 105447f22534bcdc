// studies/edge_gemm.cuh — out_b = A_b B_b for matrices n × n of any order, whose last tiles hang over, for apps/studies/edges.py.
//
// The kernel of products/gemm.cuh, whose threads beyond the edge do what Beyond says: products/block/edge_copies.cuh. One block a tile.
#pragma once
#include "products/block/slab_product.cuh"

namespace studies {
using namespace products;

// A, B, out: batch × n × n   across: tiles of a row   Shared memory: STAGES · 2 · Edge · PITCH entries
template <typename Real, int Edge, int Beyond>
__global__ __launch_bounds__(GEMM_THREADS, 4)
void edge_gemm(const Real* A, const Real* B, Real* out, int n, int across) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int tile = blockIdx.x % (across * across), row0 = tile / across * Edge, column0 = tile % across * Edge;
    const long long first = static_cast<long long>(blockIdx.x / (across * across)) * n * n;
    A += first, B += first, out += first;
    slab_product<Edge, Edge, true, false, Beyond>(reinterpret_cast<Real*>(memory), A, B, row0, column0, n, n, n,
                                                  [&](int i, int j, Real sum) {
                                                      if (i < n && j < n) out[static_cast<long long>(i) * n + j] = sum;
                                                  });
}

}  // namespace studies
