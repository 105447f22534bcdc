// The stages of svd/block/svd_stages.cuh and svd/block/svd_finish.cuh with QR in registers (qr/block/register_qr.cuh), for matrices of
// at most 32·Rows rows and Warps·Slots columns. Columns keep the caller's order, so that no permutation is undone at the end.
// Called by svd/svd_shared.cuh, by the whole block; the workspace lies in shared memory.
#pragma once

#include "qr/block/register_qr.cuh"
#include "svd/block/svd_finish.cuh"

namespace svd {
using namespace qr;

// As prepare of svd/block/svd_stages.cuh.
template <int Rows, int Slots, int Warps, typename Real>
__device__ bool prepare_in_registers(const Problem<Real>& p, const Workspace<Real>& w, Vectors vectors,
                                     Exchange<Real, Rows, Slots, Warps>& exchange) {
    if (!load_problem(p, w)) return false;
    int k = p.rank(), rows = p.longer();
    RegisterColumns<Real, Rows, Slots, Warps> columns;
    columns.load(w.W, w.ld, rows, k);
    Real* first = vectors == LEFT_VECTORS ? p.U : vectors == BOTH_VECTORS ? p.first_reflectors() : nullptr;
    int r = 0;
    for (int more = vectors == LEFT_VECTORS && !p.tall(); more >= 0; more--) {  // A wide A: W ← R₀ᵀ, and once more
        r = columns.template factor<true>(rows, k, more ? nullptr : first, w.tau, exchange);
        __syncthreads();
        columns.store_transposed(w.W, w.ld, r, k);
        __syncthreads();
        columns.load(w.W, w.ld, k, r);
        __syncthreads();
        if (more) rows = k;
    }
    Real* second = vectors == BOTH_VECTORS ? p.second_reflectors() : nullptr;
    columns.template factor<false>(k, r, second, w.tau2, exchange);
    __syncthreads();
    columns.store_transposed(w.W, w.ld, r, r);
    if (threadIdx.x == 0) *w.rank = r, *w.rows = rows;
    __syncthreads();
    for (int j = threadIdx.x / WARP; j < k; j += Warps) {  // L in the leading r × r, identities everywhere else
        Real* column = w.W + j * w.ld;
        for (int i = (j < r ? r : 0) + threadIdx.x % WARP; i < k; i += WARP) column[i] = i == j ? Real(1) : Real(0);
        if (vectors == BOTH_VECTORS)
            for (int i = threadIdx.x % WARP; i < k; i += WARP) column[k + i] = i == j ? Real(1) : Real(0);
    }
    __syncthreads();
    return true;
}

// X ← H X for the k columns of X, whose rows past `given` are zero
template <int Rows, int Slots, int Warps, typename Real>
__device__ void apply_in_registers(Real* X, int ld, int given, int rows, int k, const Real* U, const Real* tau, int count,
                                   Exchange<Real, Rows, Slots, Warps>& exchange) {
    RegisterColumns<Real, Rows, Slots, Warps> columns;
    columns.load(X, ld, given, k);
    columns.apply(U, rows, tau, count, exchange.numbers[columns.warp()]);
    __syncthreads();
    columns.store(X, ld, rows, k);
    __syncthreads();
}

// As finish of svd/block/svd_finish.cuh.
template <int Rows, int Slots, int Warps, typename Real>
__device__ void finish_in_registers(const Problem<Real>& p, const Workspace<Real>& w, Vectors vectors,
                                    Exchange<Real, Rows, Slots, Warps>& exchange) {
    singular_values(p, w);
    if (vectors == NO_VECTORS) return;
    int k = p.rank(), r = *w.rank, rows = *w.rows;
    if (vectors == BOTH_VECTORS) {
        apply_in_registers(w.W + k, w.ld, k, k, k, p.second_reflectors(), w.tau2, r, exchange);
        if (p.tall()) write_vectors(w, w.W + k, k, k, p.Vt, 1, k, nullptr);
        else write_vectors(w, w.W + k, k, k, p.U, k, 1, nullptr);
        __syncthreads();
    }
    apply_in_registers(w.W, w.ld, k, rows, k, vectors == BOTH_VECTORS ? p.first_reflectors() : p.U, w.tau, r, exchange);
    if (p.tall() || vectors == LEFT_VECTORS) write_vectors(w, w.W, rows, k, p.U, k, 1, nullptr);
    else write_vectors(w, w.W, rows, k, p.Vt, 1, p.n, nullptr);
}

}  // namespace svd
