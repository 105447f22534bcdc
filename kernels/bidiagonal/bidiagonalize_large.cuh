// W_b = Q_b B_b P_bᵀ as bidiagonal/bidiagonalize.cuh, with the matrix in shared memory or, where it is larger, in device memory.
//
// One thread block a matrix, or, where there are few in device memory, the blocks of a cluster. The lanes that have a row in
// their registers take W r of it, update it, and add it to aᵀ W for the next column: one pass over W a step, where LAPACK's
// LABRD makes two. In device memory updates are put off as there,
//     W = [W_0 V X] [I; −Yᵀ; −Uᵀ],   with columns v, z and y, u of the reflections of a panel:
// passes only read W_0, and the last of a panel writes W_0 − V Yᵀ − X Uᵀ, half of the bytes of one that updates each time.
// A row of V and X lies behind its row of W_0, so that products take all three at once; Y and U lie in shared memory.
#pragma once
#include "bidiagonal/block/bidiagonal_rows.cuh"

namespace bidiagonal {

// Template arguments: bidiagonal/block/bidiagonal_rows.cuh
template <typename Real, int Across, int Vectors, int Warps, int Held, int Blocks, typename Watch>
struct BidiagonalSteps : BidiagonalRows<Real, Across, Vectors, Warps, Held, Blocks, Watch> {
    using Rows = BidiagonalRows<Real, Across, Vectors, Warps, Held, Blocks, Watch>;
    using Team = Cluster<Blocks>;
    using Rows::p, Rows::rank, Rows::sums, Rows::y, Rows::r, Rows::factors, Rows::corner, Rows::pitch, Rows::line;
    using Rows::lane, Rows::warp, Rows::row, Rows::watch;
    using Rows::Rows;
    static constexpr int THREADS = Rows::THREADS, PANEL = Held / 2;
    static constexpr int FETCHED = (Rows::ROUND * Vectors + THREADS - 1) / THREADS;  // columns of a thread at once

    __device__ Real block_total(int c) const {
        Real sum = 0;
#pragma unroll
        for (int w = 0; w < Warps; w++) sum += sums[w * line + c];
        return sum;
    }

    __device__ bool used(int c, int held) const { return c < p.n || (c >= pitch && c < pitch + held); }

    // Sums of all warps are there, from column j on; with more blocks than one, each block's in place of its first warp's.
    __device__ void gather(int j, int held) const {
        __syncthreads();
        if constexpr (Blocks > 1) {
            for (int c = j + threadIdx.x; c < pitch + held; c += THREADS)
                if (used(c, held)) sums[c] = block_total(c);
            Team::meet();
        }
    }

    // The same in every block, to the bit.
    __device__ Real total(int c) const {
        if constexpr (Blocks == 1) {
            return block_total(c);
        } else {
            Real sum = 0;
#pragma unroll
            for (int b = 0; b < Blocks; b++) sum += Team::of(sums[c], b);
            return sum;
        }
    }

    // Totals into y and row j into r, from column j + 1 on and behind: several on their way at once.
    __device__ void fetch(int j, int held) const {
        for (int c = j + 1 + threadIdx.x; c < pitch + held; c += FETCHED * THREADS) {
            Real sum[FETCHED], entry[FETCHED];
#pragma unroll
            for (int f = 0; f < FETCHED; f++) {
                const int from = used(c + f * THREADS, held) ? c + f * THREADS : j;  // no branch around the reads
                sum[f] = total(from), entry[f] = row(j)[from];
            }
#pragma unroll
            for (int f = 0; f < FETCHED; f++)
                if (used(c + f * THREADS, held)) y[c + f * THREADS] = sum[f], r[c + f * THREADS] = entry[f];
        }
        __syncthreads();
    }

    // H_j, the same in every thread; y and r from column j + 1 on. `held` columns of V and X have been put off.
    __device__ Householder<Real> reflect(int j, int held) const {
        gather(j, held);
        const Real a_j = row(j)[j], square = total(j);
        if constexpr (Held > 0) {
            fetch(j, held);
        }
        const Householder<Real> h = householder(a_j, square);
        for (int c = j + 1 + threadIdx.x; c < p.n; c += THREADS) {
            Real entry = Held ? r[c] : row(j)[c], sum = Held ? y[c] : total(c);
            for (int l = 0; l < held; l++) {
                const Real factor = factors[l * pitch + c];
                entry = fma(-r[pitch + l], factor, entry), sum = fma(-y[pitch + l], factor, sum);
            }
            const Real y_c = h.tau * fma(h.scale, sum, entry), r_c = entry - y_c;
            const bool first = c == j + 1;
            if (first) corner[0] = r_c, corner[1] = y_c;
            y[c] = first ? Real(0) : y_c, r[c] = first ? Real(0) : r_c;
        }
        Team::leave();  // waited for before sums are written again
        __syncthreads();
        return h;
    }

    // G_j from row j, and y · r beyond column k, the same in every thread.
    __device__ Householder<Real> reflect_row(int k, Real& yr) const {
        Real square_product[2] = {};
        for (int c = k + 1 + lane; c < p.n; c += WARP) {
            square_product[0] = fma(r[c], r[c], square_product[0]);
            square_product[1] = fma(y[c], r[c], square_product[1]);
        }
        sum_all<WARP / 2>(square_product);
        yr = square_product[1];
        return householder(corner[0], square_product[0]);
    }

    // −[Y U]ᵀ r behind r, row k of −[Y U] behind y, and y and u of this step, which is put off, into the factors.
    __device__ void hold(int k, int held, const Householder<Real>& g) const {
        for (int l = warp; l < Held; l += Warps) {
            Real product = 0;
            if (l < held) {
                for (int c = k + 1 + lane; c < p.n; c += WARP) product = fma(factors[l * pitch + c], r[c], product);
                product = warp_sum(product);
            }
            if (lane == 0) r[pitch + l] = -product, y[pitch + l] = l < held ? -factors[l * pitch + k] : Real(0);
        }
        for (int c = max(this->begin(k), 0) + threadIdx.x; c < pitch; c += THREADS) {
            factors[held * pitch + c] = c == k ? corner[1] : y[c];
            factors[(held + 1) * pitch + c] = c == k ? Real(1) : g.scale * r[c];
        }
        __syncthreads();
    }

    // Of column j a block reads the rows that it passes over next.
    __device__ void save(int j, const Householder<Real>& h, const Householder<Real>& g) const {
        const int t = rank * THREADS + threadIdx.x;
        if (t == 0) p.d[j] = h.beta;
        if (t == 0 && j + 1 < p.n) p.e[j] = g.beta;
        if (!p.V) return;
        if (t == 0) p.tau_v[j] = h.tau, p.tau_u[j] = g.tau;
        Real *const v = p.V + static_cast<long long>(j) * p.m, *const u = p.U + static_cast<long long>(j) * p.n;
        for (int i = t; i <= j; i += Blocks * THREADS) v[i] = Real(i == j);
        for (int l = threadIdx.x, i; (i = j + 1 + this->own(l)) < p.m; l += THREADS) v[i] = h.scale * row(i)[j];
        for (int c = t; c < p.n; c += Blocks * THREADS) u[c] = c > j + 1 ? g.scale * r[c] : Real(c == j + 1);
        __syncthreads();  // all have read column j
    }

    __device__ void factor() {
        watch.part(READ);
        this->multiply_first();
        for (int j = 0; j < p.n; j++) {
            const int held = Held ? j % PANEL * 2 : 0;
            const Householder<Real> h = reflect(j, held);
            Householder<Real> g = {};
            Real yr = 0;
            if (j + 1 < p.n) g = reflect_row(j + 1, yr);
            save(j, h, g);
            watch.part(REFLECT);
            if (j + 1 == p.n) break;
            if constexpr (Held > 0) hold(j + 1, held, g), watch.part(PUT_OFF);
            if (held + 2 < Held) this->template pass<false>(j, held, h, g, yr);
            else this->template pass<true>(j, held, h, g, yr);
        }
        Team::wait();  // others may read sums to the end
    }
};

// workspace: matrices × stride entries where Held > 0, else null
template <int Across, int Vectors, int Warps, int Held, int Blocks, typename Real, typename Watch>
__device__ __forceinline__ void bidiagonalize_rows(const Bidiagonal<Real>& problem, Real* workspace, long long stride,
                                                   const Watch& watch) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int scratch[Warps];
    __shared__ Real corner[2];
    Real* const W = Held ? workspace + blockIdx.x / Blocks * stride : nullptr;
    BidiagonalSteps<Real, Across, Vectors, Warps, Held, Blocks, Watch> steps(problem, reinterpret_cast<Real*>(memory), W, corner,
                                                                            watch);
    steps.load(scratch);
    steps.factor();
    if (steps.rank == 0) problem.unscale(steps.shift);
    steps.watch.part(REFLECT);
    steps.watch.panel();
    steps.watch.finish();
}

// Resident: blocks a multiprocessor shall hold
template <typename Real, int Across, int Vectors, int Warps, int Resident, int Held>
__global__ __launch_bounds__(Warps * WARP, Resident)
void bidiagonalize_large(const Real* A, Real* V, Real* U, Real* d, Real* e, Real* tau_v, Real* tau_u, const long long* table,
                         Real* workspace, long long stride) {
    bidiagonalize_rows<Across, Vectors, Warps, Held, 1>(
        Bidiagonal<Real>(A, V, U, d, e, tau_v, tau_u, table + 7LL * blockIdx.x), workspace, stride, NoWatch());
}

template <typename Real, int Across, int Vectors, int Warps, int Resident, int Held, int Blocks>
__global__ CLUSTER_OF(Blocks) __launch_bounds__(Warps * WARP, Resident)
void bidiagonalize_cluster(const Real* A, Real* V, Real* U, Real* d, Real* e, Real* tau_v, Real* tau_u, const long long* table,
                           Real* workspace, long long stride) {
    bidiagonalize_rows<Across, Vectors, Warps, Held, Blocks>(
        Bidiagonal<Real>(A, V, U, d, e, tau_v, tau_u, table + 7LL * (blockIdx.x / Blocks)), workspace, stride, NoWatch());
}

}  // namespace bidiagonal
