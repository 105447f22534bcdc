// Rows of W = [W_0 V X] [I; −Yᵀ; −Uᵀ] and one pass over them, in which they meet H_j and G_j: bidiagonal/bidiagonalize_large.cuh,
// which calls this.
//
// Instructions, not bytes, would take the time: numbers of a row, the same in all its lanes, cost as much as 32 entries do, so
// a warp has several rows, each in as few lanes as registers allow. Passes know no edges within: rows are padded by zeros to
// whole rounds of lanes, y and r are zero up to the next column, and a row beyond the last is row j, which nobody needs more.
#pragma once
#include "bidiagonal/block/bidiagonal.cuh"
#include "bidiagonal/thread/wide_vector.cuh"
#include "common/thread/prefetch.cuh"

namespace bidiagonal {
using namespace common;

// Across lanes a row, each with Vectors of 16 bytes; rows lie `line` apart; Held: columns of V and X, 0: each step updates W
// Blocks of a cluster share the rows of W in device memory, all its warps in turn; each has y, r and the factors by itself
// shared: `bytes`, with the matrix where W is null   corner: 2
template <typename Real, int Across, int Vectors, int Warps, int Held, int Blocks, typename Watch>
struct BidiagonalRows {
    static constexpr int THREADS = Warps * WARP, SUMS = Held ? 2 : 1;
    using Vector = WideVector<Real>;
    using Team = Cluster<Blocks>;
    static constexpr int WIDE = Vector::WIDE, ROUND = Across * WIDE;      // columns at once
    static constexpr int OWN = WARP / Across * Warps, STEP = OWN * Blocks;  // rows at once, of a block and of all
    static constexpr int GRAIN = Vectors % 2 ? 1 : 2, SPAN = GRAIN * ROUND;  // vectors and columns of a row that end together
    static constexpr int GUARD = SPAN - ROUND;  // zeros before r: the first span may begin so far before column 0
    static constexpr int TAILS = Held > ROUND ? Held / ROUND : 1;  // vectors of a lane behind its row
    static_assert(Held % WIDE == 0 && (Held <= ROUND || Held % ROUND == 0));
    static_assert(Held > 0 || Blocks == 1);

    // What `shared` takes, of matrices m × n: as the constructor deals it out.
    __host__ __device__ static constexpr int bytes(int m, int n) {
        const int pitch = (n + ROUND - 1) / ROUND * ROUND, line = pitch + Held;
        return (line * (Warps + 2) + GUARD + (Held ? Held : m) * pitch) * static_cast<int>(sizeof(Real));
    }

    struct Sums {                                    // of a lane's columns
        Vector entry[Vectors], tail[TAILS];          // aᵀ W, aᵀ [V X]
        Real newest;                                 // aᵀ a, or aᵀ v or aᵀ z of what the pass puts off
    };
    struct Pass {
        int j, k, held, spans, at, slot, part;       // k = j + 1; the lane's first column; lane of column `held`, and from there
        Real v_scale, tau, scale, y_k, yr;           // of H_j, G_j; y at column k; y · r
        __device__ bool some(int q) const { return q / GRAIN < spans; }
        __device__ bool mine(int q) const { return q < GRAIN ? at + q * ROUND + WIDE > k : some(q); }  // not all done with
    };

    const Bidiagonal<Real>& p;
    mutable Watch watch;
    const int rank = Team::rank();                   // of the block
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, across = lane % Across, down = own(threadIdx.x / Across);
    const int pitch, line;
    Real *const sums, *const y, *const r;            // Warps × line: Sums of each; τ w; row j, behind it −[Y U]ᵀ r
    Real *const factors, *const W, *const corner;    // Held × pitch: y_0, u_0, y_1, …; [W V X]; r and y at column k
    int shift;

    __device__ BidiagonalRows(const Bidiagonal<Real>& p, Real* shared, Real* W, Real* corner, const Watch& watch)
        : p(p), watch(watch), pitch((p.n + ROUND - 1) / ROUND * ROUND), line(pitch + Held), sums(shared), y(sums + Warps * line),
          r(y + line + GUARD), factors(r + line), W(Held ? W : factors), corner(corner) {}

    // The l-th row of this block.
    __device__ int own(int l) const { return (l / OWN * Blocks + rank) * OWN + l % OWN; }

    // In bytes, by numbers without a sign: one instruction.
    __device__ Real* row(int i) const {
        char* const begin = reinterpret_cast<char*>(W);
        return reinterpret_cast<Real*>(begin + static_cast<unsigned long long>(unsigned(i)) * unsigned(line * sizeof(Real)));
    }

    __device__ void load(int* scratch) {
        int field = 0;
        for (int c = threadIdx.x; c < 2 * line + GUARD; c += THREADS) y[c] = 0;  // and r
        for (int i = rank * Warps + warp; i < p.m; i += Blocks * Warps)
            for (int c = lane; c < line; c += WARP) {
                const Real x = c < p.n ? p.entry(i, c) : Real(0);
                row(i)[c] = x, field = max(field, Range<Real>::exponent_field(x));
            }
        shift = block_shift<Real, Warps, Blocks>(field, scratch);
        if (!shift) return;
        const PowerOfTwo scale(-shift);
        for (int i = rank * Warps + warp; i < p.m; i += Blocks * Warps)
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
            if (lane < Across && (q >= GRAIN || at + q * ROUND + WIDE > k)) Vector::at(to + at + q * ROUND) = sum.entry[q];
        }
        __syncwarp();
        if (lane == square_lane) to[k] = sum.newest;
    }

    __device__ void publish_tail(int held, int part, Sums& sum) const {
        Real* to = sums + warp * line + pitch;
#pragma unroll
        for (int u = 0; u < TAILS; u++) {
            const int l = across * WIDE + u * ROUND;
#pragma unroll
            for (int e = 0; e < WIDE; e++) sum_rows(sum.tail[u].e[e]);
            if (lane < Across && l < held) Vector::at(to + l) = sum.tail[u];
        }
        __syncwarp();
        if (lane < Across && part < 2) to[held + part] = sum.newest;
    }

    // aᵀ W for column 0
    __device__ void multiply_first() const {
        Sums sum = {};
        const int base = begin(0), at = base + across * WIDE;
        Team::meet();
        for (int i = down; i < p.m; i += STEP) {
            const Real a = i ? row(i)[0] : Real(0);
            sum.newest = fma(a, a, sum.newest);
#pragma unroll
            for (int q = 0; q < Vectors; q++)
                if (base + q * ROUND < pitch && at + q * ROUND >= 0) sum.entry[q].add(a, Vector::at(row(i) + at + q * ROUND));
        }
        __syncwarp();
        publish(0, 0, sum), watch.part(COLUMN_PRODUCT);
    }

    // A row from k on, if it is one, on its way to the second-level cache, from the line of column k on.
    __device__ void announce(int i, int k) const {
        constexpr int APART = LINE_BYTES / sizeof(Real);
        if (unsigned(i - k) < unsigned(p.m - k))
#pragma unroll 1
            for (int c = (k / APART + across) * APART; c < line; c += Across * APART) prefetch(row(i) + c);
    }

    __device__ __forceinline__ void read(const Pass& now, Real* from, Vector (&x)[Vectors], Vector (&tail)[TAILS]) const {
#pragma unroll
        for (int q = 0; q < Vectors; q++)
            if (now.mine(q)) x[q] = Vector::at(from + now.at + q * ROUND);
        if constexpr (Held > 0) {  // braces: without, nvcc 13.0 drops an unrolled loop behind one that it discards
#pragma unroll
            for (int u = 0; u < TAILS; u++) {
                const int l = across * WIDE + u * ROUND;
                if (l < now.held) tail[u] = Vector::at(from + pitch + l);
            }
        }
    }

    // W r, and a_k − v y_k, to which column k of −[V X] [Y U]ᵀ comes
    __device__ __forceinline__ Real multiply(const Pass& now, const Vector (&x)[Vectors], const Vector (&tail)[TAILS],
                                             Real& a_k) const {
        Vector product = {}, product_k = {};
        Real products[SUMS];
#pragma unroll
        for (int q = 0; q < Vectors; q++)
            if (now.some(q)) product.add_products(x[q], Vector::at(r + now.at + q * ROUND));
        if constexpr (Held > 0) {
            watch.part(ROW_PRODUCT);
#pragma unroll
            for (int u = 0; u < TAILS; u++) {
                const int l = min(across * WIDE + u * ROUND, Held - WIDE);  // tail is zero in the lanes beyond
                product.add_products(tail[u], Vector::at(r + pitch + l));
                product_k.add_products(tail[u], Vector::at(y + pitch + l));
            }
            if (across == 0) product_k.e[0] += a_k;
            products[1] = product_k.total(), watch.part(PUT_OFF);
        }
        products[0] = product.total();
        __syncwarp();  // all have read columns j and k
        sum_all<Across / 2>(products), watch.part(ROW_PRODUCT);
        if constexpr (Held > 0) a_k = products[1];
        return products[0];
    }

    // x ← x − [V X] [Y U]ᵀ, of which v and z are the last two columns
    __device__ __forceinline__ void apply_held(const Pass& now, Real v, Real z, Vector (&tail)[TAILS], Vector (&x)[Vectors]) const {
        constexpr int LAST = (Held - 2) % WIDE;
        if (across == now.slot) tail[TAILS - 1].e[LAST] = v, tail[TAILS - 1].e[LAST + 1] = z;
#pragma unroll
        for (int u = 0; u < TAILS; u++)
#pragma unroll 1
            for (int a = 0; a < min(Across, Held / WIDE); a++)
#pragma unroll
                for (int e = 0; e < WIDE; e++) {
                    const Real factor = __shfl_sync(EVERY_LANE, tail[u].e[e], a, Across);
                    Real* of = factors + ((u * Across + a) * WIDE + e) * pitch + now.at;
#pragma unroll
                    for (int q = 0; q < Vectors; q++)
                        if (now.some(q)) x[q].add(-factor, Vector::at(of + q * ROUND));
                }
    }

    // The row as it is after this step, written.
    __device__ __forceinline__ void update(const Pass& now, Real* from, bool live, Real v, Real z, Real a_k, Vector (&tail)[TAILS],
                                           Vector (&x)[Vectors]) const {
        if constexpr (Held > 0) {
            apply_held(now, v, z, tail, x);
        } else {
            const Real scaled = z * now.scale;
#pragma unroll
            for (int q = 0; q < Vectors; q++)
                if (now.some(q))
                    x[q].add(-v, Vector::at(y + now.at + q * ROUND)), x[q].add(-scaled, Vector::at(r + now.at + q * ROUND));
        }
#pragma unroll
        for (int q = 0; q < Vectors; q++)
            if (live && now.mine(q)) Vector::at(from + now.at + q * ROUND) = x[q];
        __syncwarp();
        if (live && across == 0) from[now.k] = a_k;
    }

    // All rows below row j meet H_j and G_j, and are added to aᵀ [W V X]; they are written where Now, else put off. Each step
    // begins with those that the step before read last: they may still be in the cache.
    template <bool Now>
    __device__ void pass(int j, int held, const Householder<Real>& h, const Householder<Real>& g, Real yr) const {
        const int k = j + 1, base = begin(k), slot = held / WIDE % Across, part = Now ? 2 : (across - slot) & (Across - 1);
        const Pass now = {j,    k,       held,  (pitch - base) / SPAN, base + across * WIDE, slot,
                          part, h.scale, g.tau, g.scale,               corner[1],            yr};
        const int groups = (p.m - k + STEP - 1) / STEP, onward = Held > 0 && j % 2 ? -STEP : STEP;
        Vector x[Vectors] = {}, tail[TAILS] = {};
        Sums sum = {};
        int i = k + down + (onward < 0 ? (groups - 1) * STEP : 0);
        for (int s = 0; s < groups; s++, i += onward) {
            const bool live = i < p.m;
            Real* const from = row(live ? i : j);
            if constexpr (Held > 0) announce(i + onward, k);
            const Real v = now.v_scale * from[j];
            Real a_k = fma(-v, now.y_k, from[k]);
            read(now, from, x, tail);
            const Real product = multiply(now, x, tail, a_k), z = now.tau * fma(now.scale, fma(-v, yr, product), a_k);
            a_k -= z;
            const Real a = live && i > k ? a_k : Real(0), newest = part == 0 ? v : part == 1 ? z : a_k;
            sum.newest = fma(a, newest, sum.newest);
            if constexpr (Now) {
                update(now, from, live, v, z, a_k, tail, x), watch.part(UPDATE_ALL);
            } else {
                if (live && part < 3) from[part < 2 ? pitch + held + part : k] = newest;
#pragma unroll
                for (int u = 0; u < TAILS; u++) sum.tail[u].add(a, tail[u]);
                watch.part(PUT_OFF);
            }
#pragma unroll
            for (int q = 0; q < Vectors; q++)
                if (now.some(q)) sum.entry[q].add(a, x[q]);
            watch.part(COLUMN_PRODUCT), watch.part(BETWEEN);
        }
        Team::wait();  // all have read the sums before
        publish(k, Now ? 0 : (slot + 2) & (Across - 1), sum);
        if constexpr (!Now) publish_tail(held, part, sum);
        watch.part(COLUMN_PRODUCT);
    }
};

}  // namespace bidiagonal
