// products/syrk_entries.cuh — out_b = α op(A_b) op(A_b)ᵀ + β C_b in one triangle, C_b or zeros in the other, for a batch of one shape
// and few inner indices: rank-one updates and the like, which take as long as memory takes to store them.
//
// The results are one run of memory: a thread stores pieces of 16 bytes of it, whatever rows begin where, and reads the few entries of
// op(A) that they need from the L1 cache.
#pragma once
#include "common/thread/wide.cuh"

namespace products {
using namespace common;

constexpr int ENTRIES_THREADS = 256, ENTRIES_STEPS = 4, ENTRIES_PIECE = 16;  // pieces of a thread; bytes of each
template <typename Real> constexpr int ENTRIES_RUN = ENTRIES_THREADS * ENTRIES_STEPS * ENTRIES_PIECE / sizeof(Real);  // of a block

// A: batch × n × k, or k × n if Trans   C (may be null), out: batch × n × n   out begins at a multiple of 16 bytes
template <typename Real, bool Trans, bool Lower>
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
        const Real *left[EACH], *right[EACH];
        bool counts[EACH];
        Real piece[EACH] = {};
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
