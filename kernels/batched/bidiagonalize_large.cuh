// W_b = Q_b B_b P_bᵀ as batched/bidiagonalize.cuh, with the matrix in shared memory or, where it is larger, in device memory.
//
// One thread block a matrix. The warp that has a row in its registers takes W r of it, updates it, and adds it to aᵀ W for the
// next column: one pass over W a step, where LAPACK's LABRD makes two. In device memory updates are put off as there,
//     W = [W_0 V X] [I; −Yᵀ; −Uᵀ],   with columns v, z and y, u of the reflections of a panel:
// passes only read W_0, and the last one of a panel writes W_0 − V Yᵀ − X Uᵀ, half of the bytes of one that updates each time.
// A row of V and X lies behind its row of W_0, so that products take all three at once; Y and U lie in shared memory.
// Rows are cyclic over warps, Together of them at a time; lanes lie along the columns, from multiples of a warp on.
#pragma once
#include "block/bidiagonal.cuh"
#include "thread/prefetch.cuh"

constexpr int PITCH_UNIT = 4;  // rows begin at multiples of so many entries: 16 bytes or 32

// Strips × 32 columns at most; rows lie `line` apart; Held: columns of V and X, 0 where each step updates W
// shared: line (Warps + 2) + Held · pitch entries and, where W is null, the matrix
template <typename Real, int Strips, int Together, int Warps, int Held>
struct BidiagonalRows {
    static constexpr int THREADS = Warps * WARP, PANEL = Held / 2, SUMS = Held ? 2 : 1;
    static_assert(Held <= WARP);
    const Bidiagonal<Real>& p;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, pitch, line;
    Real *const sums, *const y, *const r;  // Warps × line: aᵀ [W V X] of each; τ w; row j, behind it −[Y U]ᵀ r
    Real *const factors, *const W;         // Held × pitch: y_0, u_0, y_1, … of the panel; [W V X], m × line
    int shift;

    __device__ BidiagonalRows(const Bidiagonal<Real>& p, Real* shared, Real* W)
        : p(p), pitch((p.n + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT), line(pitch + Held), sums(shared),
          y(sums + Warps * line), r(y + line), factors(r + line), W(W ? W : factors) {}

    __device__ Real* row(int i) const { return W + static_cast<long long>(i) * line; }

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
            if (lane + s * WARP < p.n) sums[warp * line + lane + s * WARP] = sum[s];
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
        for (int w = 0; w < Warps; w++) sum += sums[w * line + c];
        return sum;
    }

    // H_j, the same in every thread; y and r from column j + 1 on. `held` columns of V and X have been put off.
    __device__ Householder<Real> reflect(int j, int held) const {
        __syncthreads();
        if constexpr (Held > 0) {
            const int l = threadIdx.x;
            if (l < held) y[pitch + l] = total(pitch + l), r[pitch + l] = row(j)[pitch + l];
            __syncthreads();
        }
        const Householder<Real> h = householder(row(j)[j], total(j));
        for (int c = j + 1 + threadIdx.x; c < p.n; c += THREADS) {
            Real entry = row(j)[c], sum = total(c);
            for (int l = 0; l < held; l++) {
                const Real factor = factors[l * pitch + c];
                entry = fma(-r[pitch + l], factor, entry), sum = fma(-y[pitch + l], factor, sum);
            }
            y[c] = h.tau * fma(h.scale, sum, entry);
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

    // −[Y U]ᵀ r behind r, and y and u of this step, which is put off, into the factors.
    __device__ void hold(int k, int held, const Householder<Real>& g) const {
        for (int l = warp; l < held; l += Warps) {
            Real product = 0;
            for (int c = k + 1 + lane; c < p.n; c += WARP) product = fma(factors[l * pitch + c], r[c], product);
            product = warp_sum(product);
            if (lane == 0) r[pitch + l] = -product;
        }
        for (int c = k + threadIdx.x; c < p.n; c += THREADS) {
            factors[held * pitch + c] = y[c];
            factors[(held + 1) * pitch + c] = c == k ? Real(1) : g.scale * r[c];
        }
        __syncthreads();
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

    // A row on its way to the second-level cache, from column k on.
    __device__ void announce(int i, int k) const {
        constexpr int STEP = LINE_BYTES / sizeof(Real);
        if (i < p.m)
            for (int c = k + lane * STEP; c < line; c += WARP * STEP) prefetch(row(i) + c);
    }

    // x ← x − [V X] [Y U]ᵀ of rows in registers, from column `first` on
    __device__ __forceinline__ void apply_held(int held, int first, const Real (&tail)[Together],
                                               Real (&x)[Together][Strips]) const {
        for (int l = 0; l < held; l++) {
            Real v[Together];
#pragma unroll
            for (int t = 0; t < Together; t++) v[t] = __shfl_sync(EVERY_LANE, tail[t], l);
#pragma unroll
            for (int s = 0; s < Strips; s++) {
                const int c = lane + s * WARP;
                const Real factor = c >= first && c < p.n ? factors[l * pitch + c] : Real(0);
#pragma unroll
                for (int t = 0; t < Together; t++) x[t][s] = fma(-v[t], factor, x[t][s]);
            }
        }
    }

    // Rows i, i + Warps, … of this warp, Together of them, meet H_j and G_j, and are added to aᵀ [W V X]; they are written
    // where Now, else put off.
    template <bool Now>
    __device__ __forceinline__ void update(int i, int j, int held, const Householder<Real>& h, const Householder<Real>& g,
                                           Real yu, Real (&sum)[Strips], Real& tail_sum) const {
        const int k = j + 1;
        Real x[Together][Strips], a_k[Together], v[Together], tail[Together] = {}, products[Together * SUMS];
#pragma unroll
        for (int t = 0; t < Together; t++) {
            const bool live = i + t * Warps < p.m;
            const Real* from = row(live ? i + t * Warps : i);
            v[t] = live ? h.scale * from[j] : Real(0), a_k[t] = live ? from[k] : Real(0), products[t] = 0;
            if constexpr (Held > 0) {
                tail[t] = live && lane < held ? from[pitch + lane] : Real(0);
                if (lane < held) products[t] = tail[t] * r[pitch + lane];
                products[Together + t] = lane < held ? -tail[t] * factors[lane * pitch + k] : Real(0);
            }
#pragma unroll
            for (int s = 0; s < Strips; s++) {
                const int c = lane + s * WARP;
                x[t][s] = live && c >= k && c < p.n ? from[c] : Real(0);
                if (c > k && c < p.n) products[t] = fma(x[t][s], r[c], products[t]);
            }
        }
        __syncwarp();  // all have read columns j and k
        sum_all<WARP / 2>(products);
        if constexpr (Now && Held > 0) apply_held(held, k + 1, tail, x);
#pragma unroll
        for (int t = 0; t < Together; t++) {
            const bool live = i + t * Warps < p.m;
            if constexpr (Held > 0) a_k[t] += products[Together + t];
            const Real z = live ? g.tau * fma(-v[t], yu, fma(g.scale, products[t], a_k[t])) : Real(0);
            const Real updated = fma(-v[t], y[k], a_k[t]) - z, a = i + t * Warps > k ? updated : Real(0);
            Real* to = row(live ? i + t * Warps : i);
            if (p.V && live && lane == 0) p.V[static_cast<long long>(j) * p.m + i + t * Warps] = v[t];
#pragma unroll
            for (int s = 0; s < Strips; s++) {
                const int c = lane + s * WARP;
                if (c < k || c >= p.n) continue;
                if (Now && c > k) x[t][s] = fma(-z, g.scale * r[c], fma(-v[t], y[c], x[t][s]));
                if (c == k) x[t][s] = updated;
                if (live && (Now || c == k)) to[c] = x[t][s];
                sum[s] = fma(a, x[t][s], sum[s]);
            }
            if constexpr (!Now) {
                if (lane == held) tail[t] = v[t];
                if (lane == held + 1) tail[t] = z;
                if (live && (lane == held || lane == held + 1)) to[pitch + lane] = tail[t];
                tail_sum = fma(a, tail[t], tail_sum);
            }
        }
    }

    // All rows from `first` on. Each step begins with those that the step before read last: they may still be in the cache.
    template <bool Now>
    __device__ void pass(int first, int j, int held, const Householder<Real>& h, const Householder<Real>& g, Real yu) const {
        constexpr int STEP = Warps * Together;
        Real sum[Strips] = {}, tail_sum = 0;
        const int groups = first < p.m ? (p.m - first + STEP - 1) / STEP : 0;
        const bool upwards = Held > 0 && j % 2;
        for (int q = 0; q < groups; q++) {
            const int i = first + (upwards ? groups - 1 - q : q) * STEP;
            if constexpr (Held > 0)
                if (q + 1 < groups)
#pragma unroll
                    for (int t = 0; t < Together; t++) announce(i + (upwards ? -STEP : STEP) + t * Warps, j + 1);
            update<Now>(i, j, held, h, g, yu, sum, tail_sum);
        }
        publish(sum);
        if (!Now && lane < Held) sums[warp * line + pitch + lane] = tail_sum;
    }

    __device__ void factor() {
        multiply_first();
        for (int j = 0; j < p.n; j++) {
            const int held = Held ? j % PANEL * 2 : 0;
            const Householder<Real> h = reflect(j, held);
            Householder<Real> g = {};
            Real yu = 0;
            if (j + 1 < p.n) g = reflect_row(j + 1, yu);
            save(j, h, g);
            const int first = j + 1 + (warp + Warps - (j + 1) % Warps) % Warps;  // the warp's first row below row j
            if (j + 1 == p.n) {
                if (p.V && lane == 0)
                    for (int i = first; i < p.m; i += Warps) p.V[static_cast<long long>(j) * p.m + i] = h.scale * row(i)[j];
                return;
            }
            if constexpr (Held > 0) hold(j + 1, held, g);
            if (held + 2 < Held) pass<false>(first, j, held, h, g, yu);
            else pass<true>(first, j, held, h, g, yu);
        }
    }
};

// workspace: matrices × stride entries where Held > 0, else null   Resident: blocks a multiprocessor shall hold
template <typename Real, int Strips, int Together, int Warps, int Resident, int Held>
__global__ __launch_bounds__(Warps * WARP, Resident)
void bidiagonalize_large(const Real* A, Real* V, Real* U, Real* d, Real* e, Real* tau_v, Real* tau_u, const long long* table,
                         Real* workspace, long long stride) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int scratch[Warps];
    const Bidiagonal<Real> problem(A, V, U, d, e, tau_v, tau_u, table + 7LL * blockIdx.x);
    BidiagonalRows<Real, Strips, Together, Warps, Held> rows(problem, reinterpret_cast<Real*>(memory),
                                                             Held ? workspace + blockIdx.x * stride : nullptr);
    rows.load(scratch);
    rows.factor();
    problem.unscale(rows.shift);
}
