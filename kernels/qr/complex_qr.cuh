// qr/complex_qr.cuh — Q_b R_b = A_b of complex matrices, any size: a thread block a matrix, panel by panel.
//
//     for each panel of Width columns:  panel = Q_p [R; 0],  Q_p = H₀ H₁ ⋯ = I − V T Vᴴ,  columns right of it ← Q_pᴴ of them
//     H = I − τ v vᴴ as LAPACK has it: R's diagonal is real
//     Q, where wanted, in the place of V, from the last panel back:  I − V T Vᴴ of what is there
//
// Golub & Van Loan (2013), section 5.2; Schreiber & Van Loan (1989); LAPACK's xGEQRF and xUNGQR. W, where the matrix is computed
// on, and the panel lie in shared memory or not, as the place says. Traffic of device memory: A, Q and R once, where W lies
// inside; else W twice a panel besides.
//     A   matrices × m × n     Q   matrices × m × k, or null     R   matrices × k × n     W   matrices × m × n, or null; may be Q
//     panels   matrices × m × PITCH where they lie outside     table   matrices × 6: offsets of A, Q, R, W, rows, columns; or null
#pragma once
#include "common/warp/reduce_many.cuh"
#include "qr/warp/complex_strip.cuh"
#include "registers/thread/reflection.cuh"

namespace qr {
using namespace common;
using namespace registers;

enum Place { INSIDE, PANEL_INSIDE, OUTSIDE };  // W and the panel in shared memory, the panel alone, neither

// A panel: its reflections and their triangle. A row belongs to a thread. The products of a column with all others are summed at
// once, those to its left giving T: one barrier a column.
template <typename Scalar, int Width>
struct ComplexPanel {
    using Strip = ComplexStrip<Scalar, Width>;
    using Real = typename Strip::Real;
    static constexpr int PITCH = Strip::PITCH, NUMBERS = Strip::NUMBERS, MOST_WARPS = 8;

    struct Parts {
        Scalar T[Width][Width], M[Width][Width], pivots[2][Width];
        Real sums[2][MOST_WARPS][NUMBERS];
        int exponents[MOST_WARPS];
    };

    // x ← its sums over the block, in every thread.   sums   warps × NUMBERS, shared, not read since the last barrier
    static __device__ void block_sums(Scalar (&x)[Width], Real (*sums)[NUMBERS]) {
        const int lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
        const Real mine = sum_each(reinterpret_cast<Real(&)[NUMBERS]>(x));
        if (lane % (WARP / NUMBERS) == 0) sums[threadIdx.x / WARP][lane * NUMBERS / WARP] = mine;
        __syncthreads();
        Real total = 0;
        for (int w = 0; w < warps; w++) total += sums[w][lane % NUMBERS];
#pragma unroll
        for (int j = 0; j < Width; j++) x[j] = {of_lane<WARP>(total, 2 * j), of_lane<WARP>(total, 2 * j + 1)};
    }

    // R on and above the diagonal, V below it, T in parts (zeros below its diagonal). Ends without a barrier.
    //     panel   rows × PITCH, `columns` of them in use and zeros in the others
    static __device__ void factor(Scalar* panel, int rows, int columns, Parts& parts) {
        for (int e = threadIdx.x; e < Width * Width; e += blockDim.x) parts.T[e / Width][e % Width] = Scalar();
        Reflection<Scalar> h;
        Scalar w[Width];
#pragma unroll
        for (int c = 0; c <= Width; c++) {
            if (c > columns) break;
            Scalar sums[Width];
#pragma unroll
            for (int j = 0; j < Width; j++) sums[j] = Scalar();
            for (int r = threadIdx.x; r < rows; r += blockDim.x) {
                if (r < c - 1) continue;
                Scalar x[Width];
                Strip::read(x, panel + r * PITCH);
                if (c > 0) {
                    const int before = c > 0 ? c - 1 : 0;
                    const bool here = r == before;
                    const Scalar v = here ? one<Scalar>() : times(x[before], h.scale);
#pragma unroll
                    for (int j = c; j < Width; j++) x[j] = less_product(x[j], v, w[j]);
                    x[before] = here ? from_real<Scalar>(h.beta) : v;
                    Strip::write(panel + r * PITCH, x);
                }
                if (c < Width) {
                    const int now = c < Width ? c : 0;
#pragma unroll
                    for (int j = 0; j < Width; j++) {
                        if (r == c) parts.pivots[c % 2][j] = x[j];
                        if (r > c) sums[j] = plus_dot(sums[j], x[now], x[j]);
                    }
                }
            }
            if (c == columns || c == Width) break;
            block_sums(sums, parts.sums[c % 2]);
            const int now = c < Width ? c : 0;
            const Scalar* pivot = parts.pivots[c % 2];
            h = reflection(pivot[now], sums[now].re);
#pragma unroll
            for (int j = c + 1; j < Width; j++) w[j] = times(conjugate(h.tau), plus_dot(pivot[j], h.scale, sums[j]));
            if (threadIdx.x < Width) triangle_column(parts.T[threadIdx.x], pivot, sums, h, now);
        }
    }

    // Column c of this thread's row of T: −τ T (Vᴴ v), τ on the diagonal.
    static __device__ void triangle_column(Scalar* row, const Scalar* pivot, const Scalar (&sums)[Width],
                                           const Reflection<Scalar>& h, int c) {
        const int l = threadIdx.x;
        Scalar total = Scalar();
#pragma unroll
        for (int q = 0; q < Width; q++)
            if (q >= l && q < c)
                total = multiply_add(total, row[q], plus(conjugate(pivot[q]), times(h.scale, conjugate(sums[q]))));
        if (l < c) row[c] = less_product(Scalar(), h.tau, total);
        if (l == c) row[c] = h.tau;
    }
};

template <typename Scalar, int Width>
struct ComplexQR {
    using Panel = ComplexPanel<Scalar, Width>;
    using Parts = typename Panel::Parts;
    const Scalar* A;
    Scalar *Q, *R, *W, *panel;
    Parts& parts;
    int m, n, k, shift;

    static constexpr int shared_bytes(int place, int m, int n) {
        return int(sizeof(Parts)) + (place == OUTSIDE ? 0 : m * Panel::PITCH + (place == INSIDE ? m * n : 0)) * int(sizeof(Scalar));
    }

    static __device__ Scalar scaled(Scalar x, const PowerOfTwo& by) { return {by(x.re), by(x.im)}; }

    // W ← 2^-shift A
    __device__ void load() {
        int largest = -Range<typename Field<Scalar>::Real>::BIAS;
        const int entries = m * n;
        for (int e = threadIdx.x; e < entries; e += blockDim.x) {
            const Scalar a = A[e];
            largest = max(largest, exponent_of(a));
            W[e] = a;
        }
        largest = __reduce_max_sync(EVERY_LANE, largest);
        if (threadIdx.x % WARP == 0) parts.exponents[threadIdx.x / WARP] = largest;
        __syncthreads();
        for (int w = 0; w < blockDim.x / WARP; w++) largest = max(largest, parts.exponents[w]);
        shift = safe_shift<typename Field<Scalar>::Real>(largest);
        if (!shift) return;
        const PowerOfTwo by(-shift);
        for (int e = threadIdx.x; e < entries; e += blockDim.x) W[e] = scaled(W[e], by);
    }

    __device__ Scalar unscaled(Scalar x) const { return shift ? scaled(x, PowerOfTwo(shift)) : x; }

    // Rows and columns from `first` on of W into the panel: as they are, or V with its ones and zeros and T from above them.
    template <bool Reflectors>
    __device__ void fetch(int first, int columns) {
        const int rows = m - first;
        for (int e = threadIdx.x; e < rows * Width; e += blockDim.x) {
            const int r = e / Width, c = e % Width;
            Scalar x = c < columns ? W[static_cast<long long>(first + r) * n + first + c] : Scalar();
            if constexpr (Reflectors) {
                if (r < Width) parts.T[r][c] = r <= c ? x : Scalar();
                if (r <= c) x = r == c && c < columns ? one<Scalar>() : Scalar();
            }
            panel[r * Panel::PITCH + c] = x;
        }
        if (Reflectors)  // rows of T that the panel has not
            for (int e = threadIdx.x + rows * Width; e < Width * Width; e += blockDim.x) parts.T[e / Width][e % Width] = Scalar();
        __syncthreads();
    }

    // R of the panel's own columns; V and T into W; ones and zeros into the panel.
    __device__ void keep(int first, int columns) {
        for (int e = threadIdx.x; e < (m - first) * Width; e += blockDim.x) {
            const int r = e / Width, c = e % Width;
            if (c >= columns) continue;
            Scalar& x = panel[r * Panel::PITCH + c];
            if (r <= c) {
                R[static_cast<long long>(first + r) * n + first + c] = unscaled(x);
                x = r == c ? one<Scalar>() : Scalar();
            } else if (r < columns) {
                R[static_cast<long long>(first + r) * n + first + c] = Scalar();
            }
            if (Q) W[static_cast<long long>(first + r) * n + first + c] = r <= c ? parts.T[r][c] : x;
        }
        __syncthreads();
    }

    // Rows of R left and right of the panel; zeros in their place.
    __device__ void hand_over(int first, int columns) {
        for (int i = first; i < first + columns; i++) {
            Scalar *row = W + static_cast<long long>(i) * n, *out = R + static_cast<long long>(i) * n;
            for (int j = threadIdx.x; j < n; j += blockDim.x) {
                if (j < first) out[j] = Scalar();
                if (j >= first + columns) {
                    out[j] = unscaled(row[j]);
                    row[j] = Scalar();
                }
            }
        }
        __syncthreads();
    }

    __device__ void factor() {
        load();
        __syncthreads();
        for (int first = 0; first < k; first += Width) {
            const int columns = min(Width, k - first), rows = m - first;
            fetch<false>(first, columns);
            Panel::factor(panel, rows, columns, parts);
            __syncthreads();
            keep(first, columns);
            Scalar* right = W + static_cast<long long>(first) * n + first + columns;
            Panel::Strip::template apply<true>(panel, rows, parts.T, right, n, n - first - columns);
            __syncthreads();
            hand_over(first, columns);
        }
    }

    // The panel's columns of Q: those of I − V (T Vᴴ).
    __device__ void own_columns(int first, int columns) {
        for (int e = threadIdx.x; e < Width * Width; e += blockDim.x) {
            const int l = e / Width, c = e % Width;
            Scalar total = Scalar();
            for (int q = l; q < Width && q <= c && c < columns; q++)
                total = multiply_add(total, parts.T[l][q], conjugate(panel[c * Panel::PITCH + q]));
            parts.M[l][c] = total;
        }
        __syncthreads();
        for (int e = threadIdx.x; e < (m - first) * Width; e += blockDim.x) {
            const int r = e / Width, c = e % Width;
            Scalar x = r == c ? one<Scalar>() : Scalar();
#pragma unroll
            for (int l = 0; l < Width; l++) x = less_product(x, panel[r * Panel::PITCH + l], parts.M[l][c]);
            if (c < columns) W[static_cast<long long>(first + r) * n + first + c] = x;
        }
        __syncthreads();
    }

    __device__ void form() {
        for (int first = (k - 1) / Width * Width; first >= 0; first -= Width) {
            const int columns = min(Width, k - first), right = first + columns;
            fetch<true>(first, columns);
            Panel::Strip::template apply<false>(panel, m - first, parts.T, W + static_cast<long long>(first) * n + right, n, k - right);
            own_columns(first, columns);
        }
        if (W == Q) return;
        for (int i = 0; i < m; i++)
            for (int j = threadIdx.x; j < k; j += blockDim.x) Q[static_cast<long long>(i) * k + j] = W[static_cast<long long>(i) * n + j];
    }
};

template <typename Scalar, int Width, int Where>
__global__ __launch_bounds__(ComplexPanel<Scalar, Width>::MOST_WARPS * WARP, 2)
void complex_qr(const Scalar* A, Scalar* Q, Scalar* R, Scalar* W, Scalar* panels, const long long* table, int m, int n,
                int tallest) {
    using QR = ComplexQR<Scalar, Width>;
    extern __shared__ double2 memory[];
    const long long b = blockIdx.x;
    long long at[4] = {b * m * n, b * m * min(m, n), b * min(m, n) * n, b * m * n};
    if (table) {
        for (int i = 0; i < 4; i++) at[i] = table[6 * b + i];
        m = int(table[6 * b + 4]), n = int(table[6 * b + 5]);
    }
    auto& parts = *reinterpret_cast<typename QR::Parts*>(memory);
    Scalar* inside = reinterpret_cast<Scalar*>(&parts + 1);
    Scalar* panel = Where == OUTSIDE ? panels + b * tallest * QR::Panel::PITCH : inside;
    Scalar* work = Where == INSIDE ? inside + m * QR::Panel::PITCH : W + at[3];
    QR qr = {A + at[0], Q ? Q + at[1] : nullptr, R + at[2], work, panel, parts, m, n, min(m, n), 0};
    qr.factor();
    if (Q) qr.form();
}

}  // namespace qr
