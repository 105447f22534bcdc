// W_b = Q_b B_b P_bᵀ as batched/bidiagonalize.cuh, with the matrix in shared memory or, where it is larger, in device memory.
//
// One thread block a matrix, not blocked, and yet each step reads and writes what remains of W once: the warp that has a row
// in its registers takes W r of it, updates it, and adds it to aᵀ W for the next column. LAPACK's blocked GEBRD reads it twice
// a column for the two products. Rows are cyclic over warps, Together of them at a time; lanes lie along the columns. Two
// barriers a step: after the sums aᵀ W of all warps, and after row j, which all threads make together.
#pragma once
#include "block/bidiagonal.cuh"

constexpr int PITCH_UNIT = 4;  // rows begin at multiples of so many entries: 16 bytes or 32

// Strips × 32 columns at most; rows lie `pitch` apart.   shared: pitch · (Warps + 2) entries and, where W is null, the matrix
template <typename Real, int Strips, int Together, int Warps>
struct BidiagonalRows {
    static constexpr int THREADS = Warps * WARP;
    const Bidiagonal<Real>& p;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, pitch;
    Real *const sums, *const y, *const r, *const W;  // Warps × pitch: aᵀ W of each; τ w; row j; the matrix, m × pitch
    int shift;

    __device__ BidiagonalRows(const Bidiagonal<Real>& p, Real* shared, Real* W)
        : p(p), pitch((p.n + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT), sums(shared), y(sums + Warps * pitch),
          r(y + pitch), W(W ? W : r + pitch) {}

    __device__ Real* row(int i) const { return W + static_cast<long long>(i) * pitch; }

    __device__ void load(int* scratch) {
        int field = 0;
        for (int i = warp; i < p.m; i += Warps)
            for (int c = lane; c < p.n; c += WARP) {
                const Real x = p.entry(i, c);
                row(i)[c] = x, field = max(field, Range<Real>::exponent_field(x));
            }
        shift = block_shift<Real, Warps>(field, scratch);
        if (!shift) return;
        const PowerOfTwo scale(-shift);
        for (int i = warp; i < p.m; i += Warps)
            for (int c = lane; c < p.n; c += WARP) row(i)[c] = scale(row(i)[c]);
    }

    __device__ void publish(const Real (&sum)[Strips]) const {
#pragma unroll
        for (int s = 0; s < Strips; s++)
            if (lane + s * WARP < p.n) sums[warp * pitch + lane + s * WARP] = sum[s];
    }

    // aᵀ W for column 0
    __device__ void multiply_first() const {
        Real sum[Strips] = {};
        __syncwarp();
        for (int i = warp ? warp : Warps; i < p.m; i += Warps) {
            const Real a = row(i)[0];
#pragma unroll
            for (int s = 0; s < Strips; s++)
                if (lane + s * WARP < p.n) sum[s] = fma(a, row(i)[lane + s * WARP], sum[s]);
        }
        publish(sum);
    }

    __device__ Real total(int c) const {
        Real sum = 0;
#pragma unroll
        for (int w = 0; w < Warps; w++) sum += sums[w * pitch + c];
        return sum;
    }

    // H_j, the same in every thread; y and r from column j + 1 on.
    __device__ Householder<Real> reflect(int j) const {
        __syncthreads();
        const Householder<Real> h = householder(row(j)[j], total(j));
        for (int c = j + 1 + threadIdx.x; c < p.n; c += THREADS) {
            const Real entry = row(j)[c];
            y[c] = h.tau * fma(h.scale, total(c), entry);
            r[c] = entry - y[c];
        }
        __syncthreads();
        return h;
    }

    // G_j from row j, and y · u, the same in every thread.
    __device__ Householder<Real> reflect_row(int k, Real& yu) const {
        Real square = 0, product = 0;
        for (int c = k + 1 + lane; c < p.n; c += WARP) square = fma(r[c], r[c], square), product = fma(y[c], r[c], product);
        const Householder<Real> g = householder(r[k], warp_sum(square));
        yu = fma(g.scale, warp_sum(product), y[k]);
        return g;
    }

    __device__ void save(int j, const Householder<Real>& h, const Householder<Real>& g) const {
        if (threadIdx.x == 0) p.d[j] = h.beta;
        if (threadIdx.x == 0 && j + 1 < p.n) p.e[j] = g.beta;
        if (!p.V) return;
        if (threadIdx.x == 0) p.tau_v[j] = h.tau, p.tau_u[j] = g.tau;
        for (int i = threadIdx.x; i <= j; i += THREADS) p.V[static_cast<long long>(j) * p.m + i] = i == j;
        for (int c = threadIdx.x; c < p.n; c += THREADS)
            p.U[static_cast<long long>(j) * p.n + c] = c > j + 1 ? g.scale * r[c] : Real(c == j + 1);
    }

    // Rows i, i + Warps, … of this warp, Together of them, meet H_j and G_j, and are added to aᵀ W.
    __device__ __forceinline__ void update(int i, int j, const Householder<Real>& h, const Householder<Real>& g, Real yu,
                                           Real (&sum)[Strips]) const {
        const int k = j + 1;
        Real x[Together][Strips], a_k[Together], v[Together], product[Together];
#pragma unroll
        for (int t = 0; t < Together; t++) {
            const bool live = i + t * Warps < p.m;
            const Real* from = row(live ? i + t * Warps : i);
            v[t] = live ? h.scale * from[j] : Real(0), a_k[t] = live ? from[k] : Real(0), product[t] = 0;
#pragma unroll
            for (int s = 0; s < Strips; s++) {
                const int c = lane + s * WARP;
                x[t][s] = live && c >= k && c < p.n ? from[c] : Real(0);
                if (c > k && c < p.n) product[t] = fma(x[t][s], r[c], product[t]);
            }
        }
        __syncwarp();  // all have read column k
        sum_all<WARP / 2>(product);
        const Real one = Real(g.tau > 0);
#pragma unroll
        for (int t = 0; t < Together; t++) {
            const bool live = i + t * Warps < p.m;
            const Real z = live ? g.tau * fma(-v[t], yu, fma(g.scale, product[t], a_k[t])) : Real(0);
            const Real a = i + t * Warps > k ? fma(-z, one, fma(-v[t], y[k], a_k[t])) : Real(0);  // as x below, to the last bit
            Real* to = row(live ? i + t * Warps : i);
            if (p.V && live && lane == 0) p.V[static_cast<long long>(j) * p.m + i + t * Warps] = v[t];
#pragma unroll
            for (int s = 0; s < Strips; s++) {
                const int c = lane + s * WARP;
                if (c < k || c >= p.n) continue;
                x[t][s] = fma(-z, c == k ? Real(1) : g.scale * r[c], fma(-v[t], y[c], x[t][s]));
                if (live) to[c] = x[t][s];
                sum[s] = fma(a, x[t][s], sum[s]);
            }
        }
    }

    __device__ void factor() {
        multiply_first();
        for (int j = 0; j < p.n; j++) {
            const Householder<Real> h = reflect(j);
            Householder<Real> g = {};
            Real yu = 0, sum[Strips] = {};
            if (j + 1 < p.n) g = reflect_row(j + 1, yu);
            save(j, h, g);
            const int first = j + 1 + (warp + Warps - (j + 1) % Warps) % Warps;  // the warp's first row below row j
            if (j + 1 == p.n) {
                if (p.V && lane == 0)
                    for (int i = first; i < p.m; i += Warps) p.V[static_cast<long long>(j) * p.m + i] = h.scale * row(i)[j];
                return;
            }
            for (int i = first; i < p.m; i += Warps * Together) update(i, j, h, g, yu, sum);
            publish(sum);
        }
    }
};

// workspace: matrices × stride entries, unless InShared   Resident: blocks a multiprocessor shall hold
template <typename Real, int Strips, int Together, int Warps, int Resident, bool InShared>
__global__ __launch_bounds__(Warps * WARP, Resident)
void bidiagonalize_large(const Real* A, Real* V, Real* U, Real* d, Real* e, Real* tau_v, Real* tau_u, const long long* table,
                         Real* workspace, long long stride) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int scratch[Warps];
    const Bidiagonal<Real> problem(A, V, U, d, e, tau_v, tau_u, table + 7LL * blockIdx.x);
    BidiagonalRows<Real, Strips, Together, Warps> rows(problem, reinterpret_cast<Real*>(memory),
                                                       InShared ? nullptr : workspace + blockIdx.x * stride);
    rows.load(scratch);
    rows.factor();
    problem.unscale(rows.shift);
}
