// W_b = Q_b B_b P_bᵀ as batched/bidiagonalize.cuh, with the matrix in shared memory or, where it is larger, in device memory.
//
// One thread block a matrix. The lanes that have a row in their registers take W r of it, update it, and add it to aᵀ W for the
// next column: one pass over W a step, where LAPACK's LABRD makes two. In device memory updates are put off as there,
//     W = [W_0 V X] [I; −Yᵀ; −Uᵀ],   with columns v, z and y, u of the reflections of a panel:
// passes only read W_0, and the last one of a panel writes W_0 − V Yᵀ − X Uᵀ, half of the bytes of one that updates each time.
// A row of V and X lies behind its row of W_0, so that products take all three at once; Y and U lie in shared memory.
//
// Instructions, not bytes, would take the time: numbers of a row, the same in all its lanes, cost as much as 32 entries do, so
// a warp has several rows, each in as few lanes as registers allow. Passes know no edges within: rows are padded by zeros to
// whole rounds of lanes, y and r are zero up to the next column, and a row beyond the last is row j, which nobody needs more.
#pragma once
#include "block/bidiagonal.cuh"
#include "thread/prefetch.cuh"

// Across lanes a row, each with Vectors of 16 bytes; rows lie `line` apart; Held: columns of V and X, 0: each step updates W
// shared: line (Warps + 2) + Held · pitch entries and, where W is null, the matrix   corner: 2
template <typename Real, int Across, int Vectors, int Warps, int Held>
struct BidiagonalRows {
    static constexpr int THREADS = Warps * WARP, PANEL = Held / 2, SUMS = Held ? 2 : 1;
    static constexpr int WIDE = 16 / sizeof(Real), ROUND = Across * WIDE, STEP = WARP / Across * Warps;  // columns, rows at once
    static constexpr int GRAIN = Vectors % 2 ? 1 : 2, SPAN = GRAIN * ROUND;  // vectors and columns of a row that end together
    static constexpr int GUARD = SPAN - ROUND;  // zeros before r: the first span may begin so far before column 0
    static constexpr int TAILS = Held > ROUND ? Held / ROUND : 1;  // vectors of a lane behind its row
    static_assert(Held % WIDE == 0 && (Held <= ROUND || Held % ROUND == 0));
    struct alignas(16) Vector { Real e[WIDE]; };
    struct Sums { Vector entry[Vectors], tail[TAILS]; Real newest; };  // aᵀ [W V X], and by lane aᵀ a, aᵀ v or aᵀ z of the newest

    const Bidiagonal<Real>& p;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, across = lane % Across, down = threadIdx.x / Across;
    const int pitch, line;
    Real *const sums, *const y, *const r;         // Warps × line: Sums of each; τ w; row j, behind it −[Y U]ᵀ r
    Real *const factors, *const W, *const corner; // Held × pitch: y_0, u_0, y_1, … of the panel; [W V X]; r and y at column k
    int shift;

    __device__ BidiagonalRows(const Bidiagonal<Real>& p, Real* shared, Real* W, Real* corner)
        : p(p), pitch((p.n + ROUND - 1) / ROUND * ROUND), line(pitch + Held), sums(shared), y(sums + Warps * line), r(y + line + GUARD),
          factors(r + line), W(Held ? W : factors), corner(corner) {}

    // In bytes by numbers without a sign: one instruction.
    __device__ Real* row(int i) const {
        char* const begin = reinterpret_cast<char*>(W);
        return reinterpret_cast<Real*>(begin + static_cast<unsigned long long>(unsigned(i)) * unsigned(line * sizeof(Real)));
    }
    __device__ static Vector& vector(Real* at) { return *reinterpret_cast<Vector*>(at); }

    // x ← x + f y
    __device__ static void add(Real f, Vector y, Vector& x) {
#pragma unroll
        for (int e = 0; e < WIDE; e++) x.e[e] = fma(f, y.e[e], x.e[e]);
    }

    __device__ static void add_products(const Vector& x, Vector y, Vector& sum) {
#pragma unroll
        for (int e = 0; e < WIDE; e++) sum.e[e] = fma(x.e[e], y.e[e], sum.e[e]);
    }

    __device__ static Real total(const Vector& x) {
        Real sum = x.e[0];
#pragma unroll
        for (int e = 1; e < WIDE; e++) sum += x.e[e];
        return sum;
    }

    __device__ void load(int* scratch) {
        int field = 0;
        for (int c = threadIdx.x; c < 2 * line + GUARD; c += THREADS) y[c] = 0;  // and r
        for (int i = warp; i < p.m; i += Warps)
            for (int c = lane; c < line; c += WARP) {
                const Real x = c < p.n ? p.entry(i, c) : Real(0);
                row(i)[c] = x, field = max(field, Range<Real>::exponent_field(x));
            }
        shift = block_shift<Real, Warps>(field, scratch);
        if (!shift) return;
        const PowerOfTwo scale(-shift);
        for (int i = warp; i < p.m; i += Warps)
            for (int c = lane; c < p.n; c += WARP) row(i)[c] = scale(row(i)[c]);
    }

    __device__ static void sum_rows(Real& x) {
#pragma unroll
        for (int distance = Across; distance < WARP; distance *= 2) x += __shfl_xor_sync(EVERY_LANE, x, distance);
    }

    // Where whole spans begin that end with the row and hold column k.
    __device__ int begin(int k) const { return pitch - (pitch - k + SPAN - 1) / SPAN * SPAN; }

    // Sums of this warp, from column k on; of column k itself |a|², whose bits are those of a.
    __device__ void publish(int k, int square_lane, Sums& sum) const {
        const int base = begin(k), at = base + across * WIDE;
        Real* to = sums + warp * line;
        sum_rows(sum.newest);
#pragma unroll
        for (int q = 0; q < Vectors; q++) {
            if (base + q / GRAIN * SPAN >= pitch) break;
#pragma unroll
            for (int e = 0; e < WIDE; e++) sum_rows(sum.entry[q].e[e]);
            if (lane < Across && (q >= GRAIN || at + q * ROUND + WIDE > k)) vector(to + at + q * ROUND) = sum.entry[q];
        }
        __syncwarp();
        if (lane == square_lane) to[k] = sum.newest;
    }

    // aᵀ W for column 0
    __device__ void multiply_first() const {
        Sums sum = {};
        const int base = begin(0), at = base + across * WIDE;
        __syncthreads();
        for (int i = down; i < p.m; i += STEP) {
            const Real a = i ? row(i)[0] : Real(0);
            sum.newest = fma(a, a, sum.newest);
#pragma unroll
            for (int q = 0; q < Vectors; q++)
                if (base + q * ROUND < pitch && at + q * ROUND >= 0) add(a, vector(row(i) + at + q * ROUND), sum.entry[q]);
        }
        __syncwarp();
        publish(0, 0, sum);
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
            const Real y_c = h.tau * fma(h.scale, sum, entry), r_c = entry - y_c;
            const bool first = c == j + 1;
            if (first) corner[0] = r_c, corner[1] = y_c;
            y[c] = first ? Real(0) : y_c, r[c] = first ? Real(0) : r_c;
        }
        __syncthreads();
        return h;
    }

    // G_j from row j, and y · u, the same in every thread.
    __device__ Householder<Real> reflect_row(int k, Real& yu) const {
        Real square_product[2] = {};
        for (int c = k + 1 + lane; c < p.n; c += WARP) {
            square_product[0] = fma(r[c], r[c], square_product[0]);
            square_product[1] = fma(y[c], r[c], square_product[1]);
        }
        sum_all<WARP / 2>(square_product);
        const Householder<Real> g = householder(corner[0], square_product[0]);
        yu = fma(g.scale, square_product[1], corner[1]);
        return g;
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
        for (int c = max(begin(k), 0) + threadIdx.x; c < pitch; c += THREADS) {
            factors[held * pitch + c] = c == k ? corner[1] : y[c];
            factors[(held + 1) * pitch + c] = c == k ? Real(1) : g.scale * r[c];
        }
        __syncthreads();
    }

    __device__ void save(int j, const Householder<Real>& h, const Householder<Real>& g) const {
        if (threadIdx.x == 0) p.d[j] = h.beta;
        if (threadIdx.x == 0 && j + 1 < p.n) p.e[j] = g.beta;
        if (!p.V) return;
        if (threadIdx.x == 0) p.tau_v[j] = h.tau, p.tau_u[j] = g.tau;
        for (int i = threadIdx.x; i < p.m; i += THREADS)
            p.V[static_cast<long long>(j) * p.m + i] = i > j ? h.scale * row(i)[j] : Real(i == j);
        for (int c = threadIdx.x; c < p.n; c += THREADS)
            p.U[static_cast<long long>(j) * p.n + c] = c > j + 1 ? g.scale * r[c] : Real(c == j + 1);
        __syncthreads();  // all have read column j
    }

    // A row from k on, if it is one, on its way to the second-level cache, from the line of column k on.
    __device__ void announce(int i, int k) const {
        constexpr int APART = LINE_BYTES / sizeof(Real);
        if (unsigned(i - k) < unsigned(p.m - k))
#pragma unroll 1
            for (int c = (k / APART + across) * APART; c < line; c += Across * APART) prefetch(row(i) + c);
    }

    // x ← x − [V X] [Y U]ᵀ of a row in registers; at: the lane's first column
    __device__ __forceinline__ void apply_held(const Vector (&tail)[TAILS], int at, Vector (&x)[Vectors]) const {
#pragma unroll
        for (int u = 0; u < TAILS; u++)
#pragma unroll 1
            for (int a = 0; a < min(Across, Held / WIDE); a++)
#pragma unroll
                for (int e = 0; e < WIDE; e++) {
                    const Real v = __shfl_sync(EVERY_LANE, tail[u].e[e], a, Across);
                    Real* factor = factors + ((u * Across + a) * WIDE + e) * pitch + at;
#pragma unroll
                    for (int q = 0; q < Vectors; q++)
                        if (at - across * WIDE + q / GRAIN * SPAN < pitch) add(-v, vector(factor + q * ROUND), x[q]);
                }
    }

    // All rows below row j meet H_j and G_j, and are added to aᵀ [W V X]; they are written where Now, else put off. Each step
    // begins with those that the step before read last: they may still be in the cache.
    template <bool Now>
    __device__ void pass(int j, int held, const Householder<Real>& h, const Householder<Real>& g, Real yu) const {
        const int k = j + 1, base = begin(k), at = base + across * WIDE, groups = (p.m - k + STEP - 1) / STEP;
        const int spans = (pitch - base) / SPAN, onward = Held > 0 && j % 2 ? -STEP : STEP;
        const auto some = [&](int q) { return q / GRAIN < spans; };
        const auto mine = [&](int q) { return q < GRAIN ? at + q * ROUND + WIDE > k : some(q); };  // not all done with
        const int slot = held / WIDE % Across, part = Now ? 2 : (across - slot) & (Across - 1);  // 0: lane of the column of V
        const Real y_k = corner[1], scale = g.scale, gain = y_k - yu;
        Vector x[Vectors] = {}, tail[TAILS] = {};
        Sums sum = {};
        int i = k + down + (onward < 0 ? (groups - 1) * STEP : 0);
        for (int s = 0; s < groups; s++, i += onward) {
            const bool live = i < p.m;
            Real* const from = row(live ? i : j);
            if constexpr (Held > 0) announce(i + onward, k);
            const Real v = h.scale * from[j];
            Real a_k = fma(-v, y_k, from[k]), products[SUMS];
            Vector product = {}, product_k = {};
#pragma unroll
            for (int q = 0; q < Vectors; q++)
                if (mine(q)) x[q] = vector(from + at + q * ROUND);
            if constexpr (Held > 0) {
#pragma unroll
                for (int u = 0; u < TAILS; u++) {
                    const int l = across * WIDE + u * ROUND;
                    if (l < held) tail[u] = vector(from + pitch + l);
                }
            }
#pragma unroll
            for (int q = 0; q < Vectors; q++)
                if (some(q)) add_products(x[q], vector(r + at + q * ROUND), product);
            if constexpr (Held > 0) {
#pragma unroll
                for (int u = 0; u < TAILS; u++) {
                    const int l = min(across * WIDE + u * ROUND, Held - WIDE);  // tail is zero in the lanes beyond
                    add_products(tail[u], vector(r + pitch + l), product);
                    add_products(tail[u], vector(y + pitch + l), product_k);
                }
                if (across == 0) product_k.e[0] += a_k;
                products[1] = total(product_k);
            }
            products[0] = total(product);
            __syncwarp();  // all have read columns j and k
            sum_all<Across / 2>(products);
            if constexpr (Held > 0) a_k = products[1];
            const Real z = g.tau * fma(v, gain, fma(scale, products[0], a_k)), updated = a_k - z;
            const Real a = live && i > k ? updated : Real(0), newest = part == 0 ? v : part == 1 ? z : updated;
            sum.newest = fma(a, newest, sum.newest);
            if constexpr (Now) {
                if constexpr (Held > 0) {
                    constexpr int LAST = (Held - 2) % WIDE;
                    if (across == slot) tail[TAILS - 1].e[LAST] = v, tail[TAILS - 1].e[LAST + 1] = z;
                    apply_held(tail, at, x);
                } else {
                    const Real scaled = z * scale;
#pragma unroll
                    for (int q = 0; q < Vectors; q++)
                        if (some(q)) add(-v, vector(y + at + q * ROUND), x[q]), add(-scaled, vector(r + at + q * ROUND), x[q]);
                }
                if (live) {
#pragma unroll
                    for (int q = 0; q < Vectors; q++)
                        if (mine(q)) vector(from + at + q * ROUND) = x[q];
                }
                __syncwarp();
                if (live && across == 0) from[k] = updated;
            } else {
                if (live && part < 3) from[part < 2 ? pitch + held + part : k] = newest;
#pragma unroll
                for (int u = 0; u < TAILS; u++) add(a, tail[u], sum.tail[u]);
            }
#pragma unroll
            for (int q = 0; q < Vectors; q++)
                if (some(q)) add(a, x[q], sum.entry[q]);
        }
        publish(k, Now ? 0 : (slot + 2) & (Across - 1), sum);
        if constexpr (!Now) publish_tail(held, part, sum);
    }

    __device__ void publish_tail(int held, int part, Sums& sum) const {
        Real* to = sums + warp * line + pitch;
#pragma unroll
        for (int u = 0; u < TAILS; u++) {
            const int l = across * WIDE + u * ROUND;
#pragma unroll
            for (int e = 0; e < WIDE; e++) sum_rows(sum.tail[u].e[e]);
            if (lane < Across && l < held) vector(to + l) = sum.tail[u];
        }
        __syncwarp();
        if (lane < Across && part < 2) to[held + part] = sum.newest;
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
            if (j + 1 == p.n) return;
            if constexpr (Held > 0) hold(j + 1, held, g);
            if (held + 2 < Held) pass<false>(j, held, h, g, yu);
            else pass<true>(j, held, h, g, yu);
        }
    }
};

// workspace: matrices × stride entries where Held > 0, else null   Resident: blocks a multiprocessor shall hold
template <typename Real, int Across, int Vectors, int Warps, int Resident, int Held>
__global__ __launch_bounds__(Warps * WARP, Resident)
void bidiagonalize_large(const Real* A, Real* V, Real* U, Real* d, Real* e, Real* tau_v, Real* tau_u, const long long* table,
                         Real* workspace, long long stride) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int scratch[Warps];
    __shared__ Real corner[2];
    const Bidiagonal<Real> problem(A, V, U, d, e, tau_v, tau_u, table + 7LL * blockIdx.x);
    BidiagonalRows<Real, Across, Vectors, Warps, Held> rows(problem, reinterpret_cast<Real*>(memory),
                                                            Held ? workspace + blockIdx.x * stride : nullptr, corner);
    rows.load(scratch);
    rows.factor();
    problem.unscale(rows.shift);
}
