// W_b = Q_b B_b P_bᵀ, B upper bidiagonal, in registers and with one pass over them a column: Golub & Kahan 1965; Dong, Haidar,
// Tomov & Dongarra 2018.
//
// With v = [1; s a] from column a of row j, the products wᵀ = vᵀ W = W_j + s aᵀ W and W uᵀ for the row reflector u = [1; t r],
// r = (1 − τ) W_j − τ s aᵀ W, need a and r alone, whose scales s and t are known later. So step j
//     1. knows aᵀ W from the step before, gets r, and sums |r|², (τ w) · r and W r by one exchange of lanes;
//     2. updates W ← W − v (τ w)ᵀ − x uᵀ and adds up a'ᵀ W for the next column a' at once.
// The bits of a' are those of W's column: the sums pair the two, and cancellation would magnify a difference. A factor one that
// the compiler does not know keeps it from contracting the operations of either.
// A warp holds all columns of its rows: W r is its own business, and a step has one or two barriers,
// after the sums aᵀ W of every warp and after those of all.
// Nominal work 8/3 n³: four multiply-adds an entry and step. Lanes hold rows and columns cyclically; both ranges shrink at
// compile time, each time that a round of either is done.
#pragma once
#include "bidiagonal/block/bidiagonal.cuh"

namespace bidiagonal {

template <typename Real, int Columns, int Warps>
struct StepExchange {
    static constexpr int BUFFERS = Warps == 1 ? 2 : 1;  // several warps have a barrier more
    Real row[BUFFERS][Columns];                         // row j
    Real sums[BUFFERS][Warps][Columns];                 // aᵀ W of each warp's rows
    Real y[Columns], r[Columns];                        // where there are several warps
    int scratch[Warps];
};

// Rows × Columns entries a lane; Across lanes of a warp lie along the columns, the others along the rows.
template <typename Real, int Rows, int Columns, int Across, int Warps, typename Watch>
struct BidiagonalTile {
    static constexpr int DOWN = WARP / Across, ROUND = DOWN * Warps, WIDTH = Columns * Across;
    static constexpr int STEPS = ROUND < Across ? ROUND : Across;  // after which rows or columns may become fewer
    using Exchange = StepExchange<Real, WIDTH, Warps>;

    const Bidiagonal<Real>& p;
    Exchange& exchange;
    Watch watch;
    const int across, down;
    int shift;
    Real x[Rows][Columns], a[Rows], sum[Columns];  // entries; column j below row j; aᵀ W

    __device__ __forceinline__ BidiagonalTile(const Bidiagonal<Real>& p, Exchange& exchange, const Watch& watch)
        : p(p), exchange(exchange), watch(watch), across(threadIdx.x % Across), down(threadIdx.x / Across) {
        int field = 0;
#pragma unroll
        for (int q = 0; q < Rows; q++)
#pragma unroll
            for (int c = 0; c < Columns; c++) {
                x[q][c] = row(q) < p.m && column(c) < p.n ? p.entry(row(q), column(c)) : Real(0);
                field = max(field, Range<Real>::exponent_field(x[q][c]));
            }
        shift = block_shift<Real, Warps>(field, exchange.scratch);
        if (!shift) return;
        const PowerOfTwo scale(-shift);
#pragma unroll
        for (int q = 0; q < Rows; q++)
#pragma unroll
            for (int c = 0; c < Columns; c++) x[q][c] = scale(x[q][c]);
    }

    __device__ int row(int q) const { return q * ROUND + down; }
    __device__ int column(int c) const { return c * Across + across; }

    // Whether a lane's number q or c lies beyond index i of the step in hand or the next, where numbers before First are done
    // with: most are known to.
    template <int First>
    __device__ __forceinline__ bool row_beyond(int q, int i) const { return q > First + 1 || row(q) > i; }
    template <int First>
    __device__ __forceinline__ bool column_beyond(int c, int i) const { return c > First + 1 || column(c) > i; }

    __device__ static void sync() {
        if constexpr (Warps == 1) __syncwarp();
        else __syncthreads();
    }

    // sum = aᵀ W over the rows of this warp, in all its lanes
    template <int Q, int C>
    __device__ __forceinline__ void multiply() {
#pragma unroll
        for (int c = C; c < Columns; c++) {
            sum[c] = 0;
#pragma unroll
            for (int q = Q; q < Rows; q++) sum[c] = fma(a[q], x[q][c], sum[c]);
        }
#pragma unroll
        for (int distance = Across; distance < WARP; distance *= 2)
#pragma unroll
            for (int c = C; c < Columns; c++) sum[c] += __shfl_xor_sync(EVERY_LANE, sum[c], distance);
    }

    // column k of this lane's rows; k lies among the lanes' columns number C or C + 1
    template <int Q, int C>
    __device__ __forceinline__ void take_column(int k, Real (&taken)[Rows]) const {
        constexpr int NEXT = C + 1 < Columns ? C + 1 : C;
#pragma unroll
        for (int q = Q; q < Rows; q++)
            taken[q] = __shfl_sync(EVERY_LANE, k < NEXT * Across ? x[q][C] : x[q][NEXT], k % Across, Across);
    }

    __device__ static void reflect_entry(const Householder<Real>& h, int j, int c, const Real (&sums)[Warps][WIDTH],
                                         const Real* row_j, Real& y, Real& r) {
        Real total = 0;
#pragma unroll
        for (int w = 0; w < Warps; w++) total += sums[w][c];
        y = c > j ? h.tau * fma(h.scale, total, row_j[c]) : Real(0);
        r = row_j[c] - y;
    }

    // Row j and the sums of all warps, to every thread: returns H_j; y = τ w and r = row j of H_j W from column j + 1 on, r is
    // anything before.
    template <int Q, int C>
    __device__ __forceinline__ Householder<Real> reflect(int j, int k, Real (&y)[Columns], Real (&r)[Columns], Real& y_k,
                                                         Real& r_k) {
        Real* row_j = exchange.row[j % Exchange::BUFFERS];
        const auto& sums = exchange.sums[j % Exchange::BUFFERS];
#pragma unroll
        for (int c = C; c < Columns; c++) {
            if (row(Q) == j) row_j[column(c)] = x[Q][c];
            if (threadIdx.x % WARP < Across) exchange.sums[j % Exchange::BUFFERS][threadIdx.x / WARP][column(c)] = sum[c];
        }
        sync();
        Real square = 0, sum_k = 0;
#pragma unroll
        for (int w = 0; w < Warps; w++) square += sums[w][j], sum_k += sums[w][k];
        const Householder<Real> h = householder(row_j[j], square);
        y_k = h.tau * fma(h.scale, sum_k, row_j[k]), r_k = row_j[k] - y_k;
        if constexpr (Warps == 1) {
#pragma unroll
            for (int c = C; c < Columns; c++) reflect_entry(h, j, column(c), sums, row_j, y[c], r[c]);
        } else {  // a column a thread: all threads' loads of all warps' sums would take longer than a barrier
#pragma unroll 1
            for (int c = C * Across + threadIdx.x; c < WIDTH; c += Warps * WARP)
                reflect_entry(h, j, c, sums, row_j, exchange.y[c], exchange.r[c]);
            sync();
#pragma unroll
            for (int c = C; c < Columns; c++) y[c] = exchange.y[column(c)], r[c] = exchange.r[column(c)];
        }
        return h;
    }

    template <int Q>
    __device__ __forceinline__ void save(int j, const Householder<Real>& h, const Real (&v)[Rows]) const {
        if (threadIdx.x == 0) p.d[j] = h.beta;
        if (!p.V || across) return;
        if (down == 0) p.tau_v[j] = h.tau;
        Real* to = p.V + static_cast<long long>(j) * p.m;
#pragma unroll
        for (int q = 0; q < Rows; q++)
            if (row(q) < p.m) to[row(q)] = q < Q ? Real(0) : row_beyond<Q>(q, j) ? v[q] : Real(row(q) == j);
    }

    template <int C>
    __device__ __forceinline__ void save_row(int j, Real tau, const Real (&u)[Columns]) const {
        if (!p.V || down) return;
        if (across == 0) p.tau_u[j] = tau;
        Real* to = p.U + static_cast<long long>(j) * p.n;
#pragma unroll
        for (int c = 0; c < Columns; c++)
            if (column(c) < p.n) to[column(c)] = c < C || !column_beyond<C>(c, j) ? Real(0) : u[c];
    }

    // Step j, of which rows before number Q and columns before number C of each lane are done with.
    template <int Q, int C>
    __device__ __forceinline__ void step(int j) {
        const int k = min(j + 1, p.n - 1);
        Real y[Columns] = {}, r[Columns] = {}, u[Columns] = {}, v[Rows] = {}, a_k[Rows], y_k, r_k;
        const Householder<Real> h = reflect<Q, C>(j, k, y, r, y_k, r_k);
#pragma unroll
        for (int q = Q; q < Rows; q++) v[q] = h.scale * a[q];
        save<Q>(j, h, v);
        watch.part(REFLECT);
        if (k == j) return save_row<C>(j, Real(0), u);

        Real sums[Rows - Q + 2] = {};  // W r, then |r|² and y · r, of the columns beyond k
#pragma unroll
        for (int c = C; c < Columns; c++) {
            r[c] = column_beyond<C>(c, k) ? r[c] : Real(0);
            sums[Rows - Q] = fma(r[c], r[c], sums[Rows - Q]);
            sums[Rows - Q + 1] = fma(y[c], r[c], sums[Rows - Q + 1]);
#pragma unroll
            for (int q = Q; q < Rows; q++) sums[q - Q] = fma(x[q][c], r[c], sums[q - Q]);
        }
        take_column<Q, C>(k, a_k);
        sum_all<Across / 2>(sums);
        watch.part(ROW_PRODUCT);
        const Householder<Real> g = householder(r_k, sums[Rows - Q]);
        const Real yu = fma(g.scale, sums[Rows - Q + 1], y_k), one = Real(g.tau > 0);
#pragma unroll
        for (int c = C; c < Columns; c++) u[c] = c <= C + 1 && column(c) == k ? Real(1) : g.scale * r[c];
        if (threadIdx.x == 0) p.e[j] = g.beta;
        save_row<C>(j, g.tau, u);
        watch.part(REFLECT);
#pragma unroll
        for (int q = Q; q < Rows; q++) {
            const Real z = row_beyond<Q>(q, j) ? g.tau * fma(-v[q], yu, fma(g.scale, sums[q - Q], a_k[q])) : Real(0);
            a[q] = row_beyond<Q>(q, k) ? fma(-z, one, fma(-v[q], y_k, a_k[q])) : Real(0);  // as x below, to the last bit
#pragma unroll
            for (int c = C; c < Columns; c++) x[q][c] = fma(-z, u[c], fma(-v[q], y[c], x[q][c]));
        }
        watch.part(UPDATE_ALL);
        multiply<Q, C>();
        watch.part(COLUMN_PRODUCT);
        watch.part(BETWEEN);
    }

    template <int Part = 0>
    __device__ __forceinline__ void steps() {
        constexpr int Q = Part * STEPS / ROUND, C = Part * STEPS / Across;
        if constexpr (Q < Rows && C < Columns) {
            for (int j = Part * STEPS; j < min((Part + 1) * STEPS, p.n); j++) step<Q, C>(j);
            if ((Part + 1) * STEPS < p.n) steps<Part + 1>();
        }
    }

    __device__ __forceinline__ void factor() {
        watch.part(READ);
        take_column<0, 0>(0, a);
#pragma unroll
        for (int q = 0; q < Rows; q++) a[q] = row(q) > 0 ? a[q] : Real(0);
        multiply<0, 0>();
        watch.part(COLUMN_PRODUCT);
        steps();
        p.unscale(shift);
        watch.part(REFLECT);
        watch.panel();
        watch.finish();
    }
};

template <int Rows, int Columns, int Across, int Warps, typename Real, typename Watch>
__device__ __forceinline__ void bidiagonalize_tile(const Bidiagonal<Real>& problem, const Watch& watch) {
    using Tile = BidiagonalTile<Real, Rows, Columns, Across, Warps, Watch>;
    __shared__ typename Tile::Exchange exchange;
    Tile tile(problem, exchange, watch);
    tile.factor();
}

// One thread block a matrix of at most Rows · ROUND × Columns · Across; what the pointers lead to: bidiagonal/block/bidiagonal.cuh
template <typename Real, int Rows, int Columns, int Across, int Warps, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void bidiagonalize(const Real* A, Real* V, Real* U, Real* d, Real* e, Real* tau_v, Real* tau_u, const long long* table) {
    bidiagonalize_tile<Rows, Columns, Across, Warps>(
        Bidiagonal<Real>(A, V, U, d, e, tau_v, tau_u, table + 7LL * blockIdx.x), NoWatch());
}

}  // namespace bidiagonal
