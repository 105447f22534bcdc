// products/syrk_entries.cuh — out_b = α op(A_b) op(A_b)ᵀ + β C_b in one triangle, C_b or zeros in the other, for a batch of one shape
// and few inner indices: rank-one updates and the like, which take as long as memory takes to store them.
//
// The results are one run of memory: a thread stores pieces of 16 bytes of it, whatever rows begin where, and reads the few entries of
// op(A) that they need from the L1 cache. Where pieces lie within rows and their columns' entries of A follow one another, it reads two
// for a piece: that of the row, and those of the columns as a piece.
#pragma once
#include "common/thread/wide.cuh"

namespace products {
using namespace common;

constexpr int ENTRIES_THREADS = 256, ENTRIES_STEPS = 4, ENTRIES_PIECE = 16;  // pieces of a thread; bytes of each
template <typename Real> constexpr int ENTRIES_RUN = ENTRIES_THREADS * ENTRIES_STEPS * ENTRIES_PIECE / sizeof(Real);  // of a block

// piece += Σ_l a[l n + i] a[l n + j …] where it counts; a + j begins at a piece
template <int Each, typename Real>
__device__ __forceinline__ void add_columns(Real (&piece)[Each], const bool (&counts)[Each], const Real* a, unsigned i, unsigned j, int n, int k) {
    if (!counts[0] && !counts[Each - 1]) return;
    for (int l = 0; l < k; l++, a += n) {
        const Real left = a[i];
        Real right[Each];
        read_wide(right, a + j);
#pragma unroll
        for (int c = 0; c < Each; c++)
            if (counts[c]) piece[c] += left * right[c];
    }
}

// A: batch × n × k, or k × n if Trans   C (may be null), out: batch × n × n   out begins at a multiple of 16 bytes
// Rows: n is a multiple of a piece, A begins at one, and Trans or k = 1
template <typename Real, bool Trans, bool Lower, bool Rows>
__global__ __launch_bounds__(ENTRIES_THREADS)
void syrk_entries(const Real* A, const Real* C, Real* out, long long batch, int n, int k, Real alpha, Real beta) {
    constexpr int EACH = ENTRIES_PIECE / sizeof(Real);
    const unsigned size = static_cast<unsigned>(n) * n;
    const long long begin = static_cast<long long>(blockIdx.x) * ENTRIES_RUN<Real>, first = begin / size, count = batch * size;
    const unsigned behind = static_cast<unsigned>(begin - first * size);
    const int along = Trans ? n : 1, down = Trans ? 1 : k;  // steps of A from an inner index to the next, from a row of the result
    A += first * n * k;
#pragma unroll
    for (int s = 0; s < ENTRIES_STEPS; s++) {
        const unsigned local = (s * ENTRIES_THREADS + threadIdx.x) * EACH, at = behind + local;
        const long long e = begin + local;
        if (e >= count) return;
        unsigned b = at / size, i = (at - b * size) / n, j = at - b * size - i * n;
        bool counts[EACH];
        Real piece[EACH] = {};
        if constexpr (Rows) {
#pragma unroll
            for (int c = 0; c < EACH; c++) counts[c] = Lower ? j + c <= i : j + c >= i;
            add_columns(piece, counts, A + static_cast<long long>(b) * n * k, i, j, n, k);
        } else {
            const Real *left[EACH], *right[EACH];
#pragma unroll
            for (int c = 0; c < EACH; c++) {
                const Real* a = A + static_cast<long long>(b) * n * k;
                left[c] = a + i * down, right[c] = a + j * down;
                counts[c] = (Lower ? j <= i : j >= i) && e + c < count;
                if (++j == n) {
                    j = 0;
                    if (++i == n) i = 0, b++;
                }
            }
            for (int l = 0; l < k; l++)
#pragma unroll
                for (int c = 0; c < EACH; c++)
                    if (counts[c]) piece[c] += left[c][l * along] * right[c][l * along];
        }
#pragma unroll
        for (int c = 0; c < EACH; c++) {
            piece[c] *= alpha;
            if (C && e + c < count) piece[c] = !counts[c] ? C[e + c] : beta == 0 ? piece[c] : piece[c] + beta * C[e + c];
        }
        if (e + EACH <= count) write_wide(out + e, piece);
        else {
#pragma unroll
            for (int c = 0; c < EACH; c++)
                if (e + c < count) out[e + c] = piece[c];
        }
    }
}

}  // namespace products
