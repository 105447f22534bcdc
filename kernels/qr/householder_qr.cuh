// qr/householder_qr.cuh — Q_b R_b = A_b by Householder reflections, a few columns a thread.
//
// The rows of A pass by in blocks of Rows, held in registers. A block k first annihilates itself against the rows of R
// that earlier blocks have finished (the chain of triangles of tall matrices), then turns up to Rows pivots of its own
// into further rows of R: see qr/block/column_steps.cuh. Threads exchange one reflector a step, by shuffles within a warp.
//
// Q = H_1 ⋯ H_K [I; 0] is formed on the way back: Q's rows of block k are the last that H_k changes. S, upper triangular,
// holds the rows of Q's head that no block has taken yet, where R was before. Here no step depends on another thread.
// Reflectors wait in Q itself, below its diagonal.
//
// Scale: where |A| leaves Range, blocks are multiplied by a power of two and R is given back its scale at the end.
#pragma once
#include "qr/block/column_steps.cuh"
#include "qr/block/team.cuh"

namespace qr {

// Row j of an upper triangular matrix of n columns, so that row(j)[t] is its entry (j, t), t >= j.
template <bool Packed, typename Real>
struct Triangle {
    Real* entries;
    int n;
    __device__ Real* row(int j) const {
        return Packed ? entries + j * (2 * n - j - 1) / 2 : entries + static_cast<long long>(j) * n;
    }
};

// What a block of rows needs to know of itself.
struct RowBlock {
    int first, live, stacked, pivots;  // first row, rows, columns below finished rows of R, those and its own pivots
    __device__ RowBlock(int k, int rows, int m, int steps)
        : first(k * rows), live(min(rows, m - first)), stacked(min(first, steps)), pivots(min(first + rows, steps)) {}
};

// One matrix in the registers of its team: thread t holds columns t, t + size, t + 2 size, …
template <typename Real, int Rows, int Columns, int Threads, bool Packed>
struct HouseholderQR {
    static constexpr int PITCH = Rows + 16 / sizeof(Real);  // of staged reflectors: aligned, few bank conflicts
    static constexpr int EXCHANGE = Threads > WARP ? Rows + 16 / sizeof(Real) : 0;  // a reflector on its way, and α
    using Slots = Triangle<Packed, Real>;

    // Entries of a team's shared memory before the triangle: reflectors in exchange and, for Q, a block of them and their τ.
    __host__ __device__ static constexpr int before_triangle(int steps, bool want_q) {
        return 2 * EXCHANGE + (want_q ? steps * PITCH + (steps + 3) / 4 * 4 : 0);
    }

    Team<Threads> team;
    Real x[Columns][Rows];
    int shift = 0, largest = -Range<Real>::BIAS;  // the block is 2^-shift A; exponent of all entries so far

    __device__ int column(int q) const { return team.member + q * team.size(); }

    // x = 2^-shift A[block], and R follows where the scale changes.   A: m × n
    __device__ void load(const Real* A, int n, const RowBlock& block, Slots R, int* scratch) {
        int field = 0;
#pragma unroll
        for (int i = 0; i < Rows; i++)
#pragma unroll
            for (int q = 0; q < Columns; q++) {
                const int t = column(q);
                x[q][i] = i < block.live && t < n ? A[static_cast<long long>(block.first + i) * n + t] : Real(0);
                field = max(field, Range<Real>::exponent_field(x[q][i]));
            }
        largest = max(largest, team.max(field, scratch) - Range<Real>::BIAS);
        const int wanted = safe_shift<Real>(largest);
        if (wanted != shift)
            for (int q = 0; q < Columns; q++)
                for (int j = 0, t = column(q); t < n && j < block.stacked && j <= t; j++)
                    R.row(j)[t] = scalbn(R.row(j)[t], shift - wanted);
        shift = wanted;
        if (!shift) return;
        const Real scale = power_of_two<Real>(-shift);
#pragma unroll
        for (int q = 0; q < Columns; q++)
#pragma unroll
            for (int i = 0; i < Rows; i++) x[q][i] *= scale;
    }

    // Steps from … to, whose pivots lie in the threads' column number First.   exchange: 2 × EXCHANGE, aligned
    template <int First, int Shift>
    __device__ void factor(int from, int to, int n, Slots R, Real* exchange) {
        for (int j = from; j < to; j++) {
            Real *slot = R.row(j), r[Columns], u[Rows];
            bool active[Columns];
#pragma unroll
            for (int q = First; q < Columns; q++) {
                active[q] = column(q) > j && column(q) < n;
                r[q] = Shift ? x[q][0] : column(q) >= j && column(q) < n ? slot[column(q)] : Real(0);
            }
#pragma unroll
            for (int i = 0; i < Rows; i++) u[i] = i + Shift < Rows ? x[First][i + Shift] : Real(0);
            Real alpha = r[First];
            team.share(u, alpha, j, exchange + j % 2 * EXCHANGE);
            eliminate<First, Shift>(x, r, active, column(First) == j, u, alpha);
#pragma unroll
            for (int q = First; q < Columns; q++)
                if (column(q) >= j && column(q) < n) slot[column(q)] = r[q];
        }
    }

    template <int First = 0>
    __device__ void factor_all(const RowBlock& block, int n, Slots R, Real* exchange) {
        const int from = First * team.size(), to = min(from + team.size(), block.pivots);
        factor<First, 0>(from, min(to, block.stacked), n, R, exchange);
        factor<First, 1>(max(from, block.stacked), to, n, R, exchange);
        if constexpr (First + 1 < Columns) factor_all<First + 1>(block, n, R, exchange);
    }

    // Steps back from `to` down to `from`.   staged: steps × PITCH   taus: steps
    template <int First, int Shift>
    __device__ void form(int from, int to, int steps, Slots S, const Real* staged, const Real* taus) {
        for (int j = to - 1; j >= from; j--) {
            Real *slot = S.row(j), r[Columns];
            bool active[Columns];
#pragma unroll
            for (int q = First; q < Columns; q++) {
                active[q] = column(q) >= j && column(q) < steps;
                r[q] = active[q] ? slot[column(q)] : Real(0);
            }
            restore<First, Shift>(x, r, active, staged + j * PITCH, taus[j]);
#pragma unroll
            for (int q = First; q < Columns; q++)
                if (!Shift && active[q]) slot[column(q)] = r[q];
        }
    }

    template <int Shift, int First = Columns - 1>
    __device__ void form_all(int first, int last, int steps, Slots S, const Real* staged, const Real* taus) {
        const int from = First * team.size(), to = from + team.size();
        form<First, Shift>(max(from, first), min(to, last), steps, S, staged, taus);
        if constexpr (First > 0) form_all<Shift, First - 1>(first, last, steps, S, staged, taus);
    }

    // Where thread column q's reflector of this block begins, in rows of the block: below its pivot where that is own.
    __device__ int begin(int q, const RowBlock& block) const {
        return column(q) >= block.stacked ? column(q) - block.first + 1 : 0;
    }

    __device__ void save_reflectors(Real* Q, int steps, const RowBlock& block) const {
#pragma unroll
        for (int i = 0; i < Rows; i++)
#pragma unroll
            for (int q = 0; q < Columns; q++)
                if (column(q) < block.pivots && i + begin(q, block) < block.live)
                    Q[static_cast<long long>(block.first + i + begin(q, block)) * steps + column(q)] = x[q][i];
    }

    // The reflectors of a block to shared memory, from Q unless they are in x still.
    __device__ void stage(const Real* Q, bool saved, int steps, const RowBlock& block, Real* staged, Real* taus) {
#pragma unroll
        for (int q = 0; q < Columns; q++) {
            const int t = column(q), skip = begin(q, block);
            if (t >= block.pivots) continue;
            Real sum = 0;
#pragma unroll
            for (int i = 0; i < Rows; i++) {
                if (saved)
                    x[q][i] = i + skip < block.live ? Q[static_cast<long long>(block.first + i + skip) * steps + t] : Real(0);
                sum += x[q][i] * x[q][i];
            }
            write_wide(staged + t * PITCH, x[q]);
            taus[t] = 2 / (1 + sum);
        }
    }
};

// A: rows × columns each   Q: rows × min(rows, columns) each (unused without WantQ)   R: min(rows, columns) × columns each
// table: 5 × batch (ragged; else null): first entries of A_b, Q_b, R_b, rows, columns   m, n: the shape otherwise
// shared_entries: of one team (shared memory: 2 EXCHANGE, with WantQ a block of reflectors and their τ, the triangle if InShared)
// Resident: warps that a multiprocessor shall hold, which decides on the registers of a thread
template <typename Real, int Rows, int Columns, int Threads, int Resident, bool InShared, bool WantQ>
__global__ __launch_bounds__(Team<Threads>::BLOCK, (Resident + Team<Threads>::WARPS - 1) / Team<Threads>::WARPS)
void householder_qr(const Real* A, Real* Q, Real* R, const long long* table, long long batch, int m, int n,
                    int shared_entries) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int scratch[Team<Threads>::WARPS];
    using Factorization = HouseholderQR<Real, Rows, Columns, Threads, InShared>;
    Factorization qr;
    const Team<Threads>& team = qr.team;
    const long long b = static_cast<long long>(blockIdx.x) * team.COUNT + team.index;
    if (b >= batch) return;
    if (table) {
        A += table[b], Q += table[batch + b], R += table[2 * batch + b];
        m = table[3 * batch + b], n = table[4 * batch + b];
    } else {
        A += b * m * n, Q += b * m * min(m, n), R += b * min(m, n) * n;
    }
    const int steps = min(m, n), blocks = (m + Rows - 1) / Rows;
    Real* exchange = reinterpret_cast<Real*>(memory) + static_cast<long long>(team.index) * shared_entries;
    Real *staged = exchange + 2 * qr.EXCHANGE, *taus = staged + steps * qr.PITCH;
    Real* triangle = exchange + qr.before_triangle(steps, WantQ);
    const Triangle<InShared, Real> slots{InShared ? triangle : R, n};

    for (int k = 0; k < blocks; k++) {
        const RowBlock block(k, Rows, m, steps);
        qr.load(A, n, block, slots, scratch);
        qr.factor_all(block, n, slots, exchange);
        team.sync();
        if (WantQ && k + 1 < blocks) qr.save_reflectors(Q, steps, block);
    }
    for (int t = team.member; t < n; t += team.size())
        for (int j = 0; j < steps; j++)
            if (j > t) R[static_cast<long long>(j) * n + t] = 0;
            else if (InShared || qr.shift) R[static_cast<long long>(j) * n + t] = scalbn(slots.row(j)[t], qr.shift);
    if (!WantQ) return;

    const Triangle<InShared, Real> S{InShared ? triangle : Q, steps};
    team.sync();  // all have read R before S takes its place
    for (int t = team.member; t < steps; t += team.size())
        for (int j = 0; j <= t; j++) S.row(j)[t] = j == t;
    for (int k = blocks - 1; k >= 0; k--) {
        const RowBlock block(k, Rows, m, steps);
        qr.stage(Q, k + 1 < blocks, steps, block, staged, taus);
        team.sync();
#pragma unroll
        for (int q = 0; q < Columns; q++)
#pragma unroll
            for (int i = 0; i < Rows; i++) qr.x[q][i] = 0;
        qr.template form_all<1>(block.stacked, block.pivots, steps, S, staged, taus);
        qr.template form_all<0>(0, block.stacked, steps, S, staged, taus);
#pragma unroll
        for (int i = 0; i < Rows; i++)
#pragma unroll
            for (int q = 0; q < Columns; q++)
                if (i < block.live && qr.column(q) < steps)
                    Q[static_cast<long long>(block.first + i) * steps + qr.column(q)] = qr.x[q][i];
        team.sync();
    }
}

}  // namespace qr
