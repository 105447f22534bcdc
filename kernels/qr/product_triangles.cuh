// qr/product_triangles.cuh — W_bᵀ W_b = Σ_l P_lᵀ P_l, P_l = F_l S_l or F_l S_lᵀ, over the links l of segment b; as
// accurate as a QR of the stack of all P_l, which is never formed. One thread block a segment.
//
//     G₁ = Σ PᵀP of a sample of the rows,      Π G₁ Πᵀ = R₁ᵀR₁  by pivots above s = δ² max G₁,  √s beyond
//     G₂ = Σ QᵀQ,  Q = F S Π R₁⁻¹,             G₂ = R₂ᵀR₂  by pivots,       W = R₂ R₁ Πᵀ
//
// A Gram matrix loses √ε; preconditioned by R₁, that is √ε δ. Pivots make R₁ a diagonal times a well-conditioned matrix,
// so that its explicit inverse is as good as a substitution. Where the sample has missed so much that it matters, all rows
// are taken. In float32, G₁ of all rows in double precision is accurate enough by itself.
// Cholesky QR with a shifted preconditioner: Fukaya et al., SIAM J. Sci. Comput. 42 (2020).
#pragma once
#include "common/thread/range.cuh"
#include "qr/block/product_factors.cuh"

namespace qr {
using namespace common;

constexpr int SAMPLED = 8;                      // links from which on a sample is taken
constexpr double TINY = 0x1p-600;               // of G₁'s diagonal: smaller squares may have underflown
constexpr int RESCALING = 540;                  // binary digits by which F is scaled where squares over- or underflow

// Whether a sample of the rows is enough to begin with.
__device__ inline bool many_links(const LinkList* lists, int count) {
    int links = 0;
    for (int i = 0; i < count; i++) links += lists[i].links(blockIdx.x);
    return links >= SAMPLED;
}

// e with x 4^−e in (¼, 1]
__device__ inline int half_exponent(double x) { return (exponent_of(x) + 1) >> 1; }

// lists: `count` of them   buffer, offsets, sizes: W_b is sizes[b] × sizes[b], or has no rows where rows[b] is 0
// sizes and F's inner dimensions are at most N.   dynamic shared memory: ProductMemory, LinkQueue
template <typename Real, int N>
__global__ __launch_bounds__(2 * N, sizeof(Real) == sizeof(float) ? 3 : 2)
void product_triangles(const LinkList* lists, int count, Real* buffer, const long long* offsets, const long long* rows,
                       const long long* sizes) {
    extern __shared__ __align__(16) unsigned char bytes[];
    using Memory = ProductMemory<N, Real>;
    Memory& memory = *reinterpret_cast<Memory*>(bytes);
    auto& queue = *reinterpret_cast<LinkQueue<Real, Memory::THREADS>*>(bytes + sizeof(Memory));
    const int b = blockIdx.x, columns = static_cast<int>(sizes[b]);
    if (rows[b] == 0 || columns == 0) return;
    Real* W = buffer + offsets[b];
    GramShare<N> G;
    bool every = sizeof(Real) == sizeof(float) || !many_links(lists, count);
    for (int shift = 0;;) {
        const double scale = power_of_two<double>(shift);
        gram_of_links<N, false>(G, queue, memory, lists, count, columns, every, scale);
        const double most = largest_diagonal<N>(memory.gram());
        const bool sound = isfinite(most);
        if ((!sound || most <= TINY) && (!every || (shift == 0 && sizeof(Real) == sizeof(double)))) {
            shift = every ? sound ? RESCALING : -RESCALING : 0;
            every = true;
            continue;
        }
        if (!sound || most == 0) {              // 0 · most is NaN where the input is, or Inf
            for (int i = threadIdx.x; i < columns * columns; i += Memory::THREADS) W[i] = static_cast<Real>(0 * most);
            return;
        }
        if constexpr (sizeof(Real) == sizeof(float)) {
            only_factor<N>(memory, W, columns, most);
            return;
        } else {
            first_factor<N>(memory, W, columns, half_exponent(most), shift);
            gram_of_links<N, true>(G, queue, memory, lists, count, columns, true, scale);
            const bool accurate = SecondFactor<N>::make(memory);
            if (!accurate && !every) {
                every = true;
                continue;
            }
            SecondFactor<N>::multiply(memory, W, columns);
            return;
        }
    }
}

}  // namespace qr
