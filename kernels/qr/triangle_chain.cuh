// qr/triangle_chain.cuh — R_b of tall A_b = Q_b R_b, Q never formed: R ← R-factor of [R; next rows of A], from R = 0.
//
// One team a matrix: Lanes lanes share the columns, Columns each; Groups such rows of lanes in a warp and Warps warps
// share the rows, Rows each. So a block of Groups · Warps · Rows rows waits in registers, and R as a packed triangle in
// shared memory. Step j reflects column j of the block onto R_jj:
//
//     u = block column j,  σ² = uᵀu,  d_t = uᵀx_t      sums over the team's rows
//     R_jt, x_t ← H [R_jt; x_t]                        every column t > j; common/thread/householder.cuh
//
// The next pivot column is updated and sent round first, so that its way is hidden behind the others' update.
#pragma once
#include "qr/block/column_steps.cuh"

namespace qr {

template <typename Real, int Rows, int Columns, int Lanes, int Warps>
struct TriangleChain {
    static constexpr int GROUPS = WARP / Lanes, HEIGHT = GROUPS * Warps * Rows;  // rows of a block
    static constexpr int EXCHANGE = Lanes * Columns + 2;                         // sums of a warp on their way
    const int lane = threadIdx.x % Lanes, group = threadIdx.x / Lanes, warp = threadIdx.x / WARP;
    Real x[Columns][Rows];

    __device__ int column(int q) const { return lane + q * Lanes; }

    __device__ static void sync() {
        if constexpr (Warps > 1) __syncthreads();
        else __syncwarp();
    }

    // Sums over the team's rows of σ² and of d for columns First … in place.   exchange: Warps × EXCHANGE, shared
    template <int First>
    __device__ void sum_rows(Real& sigma2, Real (&d)[Columns], Real* exchange) const {
#pragma unroll
        for (int distance = Lanes; distance < WARP; distance *= 2) {
            sigma2 += __shfl_xor_sync(EVERY_LANE, sigma2, distance);
#pragma unroll
            for (int q = First; q < Columns; q++) d[q] += __shfl_xor_sync(EVERY_LANE, d[q], distance);
        }
        if constexpr (Warps > 1) {
            Real* mine = exchange + warp * EXCHANGE;
            if (threadIdx.x % WARP == 0) mine[Lanes * Columns] = sigma2;
            if (GROUPS == 1 || threadIdx.x % WARP < Lanes)
#pragma unroll
                for (int q = First; q < Columns; q++) mine[column(q)] = d[q];
            __syncthreads();
            sigma2 = 0;
#pragma unroll
            for (int w = 0; w < Warps; w++) sigma2 += exchange[w * EXCHANGE + Lanes * Columns];
#pragma unroll
            for (int q = First; q < Columns; q++) {
                d[q] = 0;
#pragma unroll
                for (int w = 0; w < Warps; w++) d[q] += exchange[w * EXCHANGE + column(q)];
            }
        }
    }

    // u = column j of the block (this thread's rows), which lies in the threads' column number First.
    template <int First>
    __device__ void send(Real (&u)[Rows], int j) const {
#pragma unroll
        for (int i = 0; i < Rows; i++) u[i] = __shfl_sync(EVERY_LANE, x[First][i], j, Lanes);
    }

    // All steps whose pivots lie in the threads' column number First, then those of the next.   R: packed, n columns
    template <int First = 0>
    __device__ void reduce(Real* R, int n, Real* exchange) {
        const int from = First * Lanes, to = min(from + Lanes, n);
        Real* slot = R + from * (2 * n - from - 1) / 2;  // slot[t] is R_jt
        Real u[Rows];
        send<First>(u, from);
#pragma unroll 2  // so that u and next change places without moves
        for (int j = from; j < to; j++) {
            Real r[Columns], d[Columns], next[Rows], sigma2 = dot<Rows, 0>(u, u);
            const Real alpha = slot[j];
#pragma unroll
            for (int q = First; q < Columns; q++) {
                r[q] = column(q) > j && column(q) < n ? slot[column(q)] : Real(0);
                d[q] = dot<Rows, 0>(u, x[q]);
            }
            sum_rows<First>(sigma2, d, exchange + j % 2 * Warps * EXCHANGE);
            const Householder<Real> h = householder(alpha, sigma2);
#pragma unroll
            for (int q = First; q < Columns; q++) {
                const Real sum = fma(h.scale, d[q], r[q]);
                r[q] = fma(-h.tau, sum, r[q]);
                d[q] = h.product * sum;
            }
            if (column(First) <= j) d[First] = 0, r[First] = h.beta;
            subtract<Rows, 0>(u, x[First], d[First]);
            send<First>(next, j + 1);
#pragma unroll
            for (int q = First + 1; q < Columns; q++) subtract<Rows, 0>(u, x[q], d[q]);
            if (group == 0)
#pragma unroll
                for (int q = First; q < Columns; q++)
                    if (column(q) >= j && column(q) < n) slot[column(q)] = r[q];
#pragma unroll
            for (int i = 0; i < Rows; i++) u[i] = next[i];
            slot += n - j - 1;
        }
        if constexpr (First + 1 < Columns) reduce<First + 1>(R, n, exchange);
    }
};

// Keeps the scale: the block is 2^-shift A, where that is needed to keep squares in Range; R follows when shift changes.
template <typename Real>
struct RunningScale {
    int shift = 0, largest = -Range<Real>::BIAS;

    // field: the largest exponent field in the block, of the whole team; returns the factor for the block
    template <int Threads>
    __device__ Real follow(int field, Real* R, int entries) {
        largest = max(largest, field - Range<Real>::BIAS);
        const int wanted = safe_shift<Real>(largest);
        if (wanted != shift)
            for (int e = threadIdx.x; e < entries; e += Threads) R[e] = scalbn(R[e], shift - wanted);
        shift = wanted;
        return power_of_two<Real>(-shift);
    }
};

// A: rows × columns each, rows >= columns   R: columns × columns each
// table: 5 × batch (ragged; else null): first entries of A_b, (unused), R_b, rows, columns   m, n: the shape otherwise
// shared memory: 2 × Warps × EXCHANGE if Warps > 1, then the triangle
template <typename Real, int Rows, int Columns, int Lanes, int Warps, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident / Warps)
void triangle_chain(const Real* A, Real* R, const long long* table, long long batch, int m, int n) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int fields[Warps];
    TriangleChain<Real, Rows, Columns, Lanes, Warps> chain;
    const long long b = blockIdx.x;
    if (table) {
        A += table[b], R += table[2 * batch + b];
        m = table[3 * batch + b], n = table[4 * batch + b];
    } else {
        A += b * m * n, R += b * n * n;
    }
    Real *exchange = reinterpret_cast<Real*>(memory), *triangle = exchange + (Warps > 1 ? 2 * Warps * chain.EXCHANGE : 0);
    const int entries = n * (n + 1) / 2;
    for (int e = threadIdx.x; e < entries; e += Warps * WARP) triangle[e] = 0;
    RunningScale<Real> scale;
    for (int first = chain.group * Rows; first - chain.group * Rows < m; first += chain.HEIGHT) {
        int field = 0;
#pragma unroll
        for (int i = 0; i < Rows; i++)
#pragma unroll
            for (int q = 0; q < Columns; q++) {
                const bool inside = first + i < m && chain.column(q) < n;
                chain.x[q][i] = inside ? A[static_cast<long long>(first + i) * n + chain.column(q)] : Real(0);
                field = max(field, Range<Real>::exponent_field(chain.x[q][i]));
            }
        field = __reduce_max_sync(EVERY_LANE, field);
        if constexpr (Warps > 1) {
            if (threadIdx.x % WARP == 0) fields[chain.warp] = field;
            __syncthreads();
            for (int w = 0; w < Warps; w++) field = max(field, fields[w]);
        }
        chain.sync();  // the block before has written its slots
        const Real factor = scale.template follow<Warps * WARP>(field, triangle, entries);
        if (scale.shift) {
            chain.sync();
#pragma unroll
            for (int q = 0; q < Columns; q++)
#pragma unroll
                for (int i = 0; i < Rows; i++) chain.x[q][i] *= factor;
        }
        chain.reduce(triangle, n, exchange);
    }
    chain.sync();
    for (int t = threadIdx.x; t < n; t += Warps * WARP)
        for (int j = 0; j < n; j++)
            R[static_cast<long long>(j) * n + t] =
                t < j ? Real(0) : scalbn(triangle[j * (2 * n - j - 1) / 2 + t], scale.shift);
}

}  // namespace qr
