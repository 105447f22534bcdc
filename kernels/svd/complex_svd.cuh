// svd/complex_svd.cuh — U_b diag(s_b) Vt_b = A_b of complex matrices by one-sided Jacobi: a thread block a matrix, any size.
//
//     X = A or Aᴴ, as many rows as columns or more;   X V = U_X Σ   by the sweeps of svd/block/complex_jacobi.cuh
//
// V is accumulated behind the columns of X where it is wanted. Where Inside, all lies in shared memory, else in W. Traffic of device
// memory: A once, U, s, Vt once; outside, W twice a round besides.
//     A   matrices × m × n     U   matrices × m × k     s   matrices × k, real     Vt   matrices × k × n     U and Vt may be null
//     W   matrices × columns_entries, or null     info   matrices: sweeps, or a Failure     table   matrices × 7: offsets of A, U,
//     s, Vt, rows, columns, which of info; or null
#pragma once
#include "common/thread/power_of_two.cuh"
#include "common/thread/verdicts.cuh"
#include "svd/block/complex_jacobi.cuh"

namespace svd {
using namespace common;

constexpr int COMPLEX_WARPS = 16;  // of a thread block at most

template <typename Scalar>
struct ComplexSVD {
    using Real = typename Field<Scalar>::Real;

    // Entries of the columns, and what the rest of shared memory takes, of matrices of `longer` and k sides.
    static __host__ __device__ long long entries(int longer, int k, bool both) {
        return static_cast<long long>(k) * ((longer + (both ? k : 0)) | 1);
    }
    static __host__ __device__ int beside(int longer, int k) {
        const int bytes = k * int(sizeof(Scalar)) + (2 * k + longer) * int(sizeof(Real)) + (k + COMPLEX_WARPS) * int(sizeof(int));
        return (bytes + 15) / 16 * 16;
    }

    const Scalar* A;
    Scalar *U, *Vt;
    Real* s;
    int m, n;
    bool wide, both;
    ComplexColumns<Scalar> w;
    Scalar* dots;
    Real* far;
    int *order, *exponents, exponent;

    __device__ void lay_out(void* memory, Scalar* outside) {
        const int longer = max(m, n), k = min(m, n);
        dots = static_cast<Scalar*>(memory);
        w.norms = reinterpret_cast<Real*>(dots + k), w.floors = w.norms + k, far = w.floors + k;
        order = reinterpret_cast<int*>(far + longer), exponents = order + k;
        w.X = outside ? outside : reinterpret_cast<Scalar*>(static_cast<char*>(memory) + beside(longer, k));
        w.rows = longer, w.columns = k, w.all = longer + (both ? k : 0), w.ld = w.all | 1;
    }

    // X ← 2^exponent of A or Aᴴ, and the identity behind it. False for NaN and Inf.
    __device__ bool load() {
        const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
        auto largest = bits_of_size(Real(0));
        bool finite = true;
        for (int e = threadIdx.x; e < m * n; e += blockDim.x) {
            const Scalar a = A[e];
            finite &= is_finite(a);
            largest = max(largest, max(bits_of_size(a.re), bits_of_size(a.im)));
        }
        int found = __reduce_max_sync(EVERY_LANE, exponent_of(widened(size_of_bits(largest))));
        if (lane == 0) exponents[warp] = found;
        if (__syncthreads_or(!finite)) return false;
        for (int i = 0; i < warps; i++) found = max(found, exponents[i]);
        exponent = found == NO_EXPONENT ? 0 : Floating<Real>::scaled_exponent - found;
        const PowerOfTwo scale(exponent);
        for (int e = threadIdx.x; e < m * n; e += blockDim.x) {
            const int i = e / n, j = e % n;
            const Scalar a = A[e], scaled = {scale(a.re), scale(a.im)};  // first: a change of sign flushes denormal floats to zero
            const Scalar x = wide ? conjugate(scaled) : scaled;
            w.X[wide ? static_cast<long long>(i) * w.ld + j : static_cast<long long>(j) * w.ld + i] = x;
        }
        if (both)
            for (int e = threadIdx.x; e < w.columns * w.columns; e += blockDim.x) {
                const int j = e / w.columns, i = e % w.columns;
                w.X[static_cast<long long>(j) * w.ld + w.rows + i] = i == j ? one<Scalar>() : Scalar();
            }
        __syncthreads();
        return true;
    }

    // s, descending, and order[place] = column; columns of unit length, completed where the vectors of X are wanted.
    __device__ void finish(bool vectors) {
        const PowerOfTwo back(-exponent);
        for (int j = threadIdx.x; j < w.columns; j += blockDim.x) {
            const Real mine = w.norms[j];
            int place = 0;
            for (int l = 0; l < w.columns; l++) place += w.norms[l] > mine || (w.norms[l] == mine && l < j);
            order[place] = j;
            s[place] = back(sqrt(mine));
        }
        __syncthreads();
        if (!vectors) return;
        const int lane = threadIdx.x % WARP;
        for (int j = threadIdx.x / WARP; j < w.columns; j += blockDim.x / WARP) {
            const Real over = w.norms[j] > 0 ? 1 / sqrt(w.norms[j]) : Real(0);
            Scalar* x = w.X + static_cast<long long>(j) * w.ld;
            for (int r = lane; r < w.rows; r += WARP) x[r] = stretched(x[r], over);
        }
        __syncthreads();
    }

    // Vectors, from entry `first` of the columns on: into rows of U, or conjugated into columns of Vt.
    __device__ void store(Scalar* out, int length, int first, bool right) {
        const int k = w.columns;
        for (int e = threadIdx.x; e < length * k; e += blockDim.x) {
            const int i = right ? e % length : e / k, place = right ? e / length : e % k;
            const Scalar x = w.X[static_cast<long long>(order[place]) * w.ld + first + i];
            out[e] = right ? conjugate(x) : x;
        }
    }

    __device__ void fail() {
        const int k = w.columns;
        for (int e = threadIdx.x; e < k; e += blockDim.x) s[e] = not_a_number<Real>();
        for (int e = threadIdx.x; U && e < m * k; e += blockDim.x) U[e] = not_a_number<Scalar>();
        for (int e = threadIdx.x; Vt && e < k * n; e += blockDim.x) Vt[e] = not_a_number<Scalar>();
    }

    template <typename Jacobi>
    __device__ int decompose(int sweeps) {
        if (!load()) {
            fail();
            return NOT_FINITE;
        }
        Jacobi::measure(w);
        Jacobi::set_floors(w);
        const Real tolerance = (2 + sqrt(Real(w.rows))) * Floating<Real>::epsilon;
        int sweep = 0;
        bool turned = w.columns > 1;
        while (turned && sweep < sweeps) turned = Jacobi::sweep(w, tolerance), sweep++;
        if (turned) {
            fail();
            return NOT_CONVERGED;
        }
        Jacobi::measure(w);
        const bool of_X = wide ? Vt : U;
        finish(of_X);
        if (of_X) Jacobi::complete(w, dots, far);
        if (U) store(U, m, wide ? w.rows : 0, false);
        if (Vt) store(Vt, n, wide ? 0 : w.rows, true);
        return sweep;
    }
};

template <typename Scalar, int Lanes, int Held, bool Inside>
__global__ __launch_bounds__(COMPLEX_WARPS * WARP)
void complex_svd(const Scalar* A, Scalar* U, typename Field<Scalar>::Real* s, Scalar* Vt, Scalar* W, int* info,
                 const long long* table, int m, int n, long long room, int sweeps) {
    extern __shared__ double2 memory[];
    const long long b = blockIdx.x, k = min(m, n);
    long long at[4] = {b * m * n, b * m * k, b * k, b * k * n}, which = b;
    if (table) {
        for (int i = 0; i < 4; i++) at[i] = table[7 * b + i];
        m = int(table[7 * b + 4]), n = int(table[7 * b + 5]), which = table[7 * b + 6];
    }
    ComplexSVD<Scalar> svd;
    svd.A = A + at[0], svd.U = U ? U + at[1] : nullptr, svd.s = s + at[2], svd.Vt = Vt ? Vt + at[3] : nullptr;
    svd.m = m, svd.n = n, svd.wide = m < n, svd.both = svd.wide ? U != nullptr : Vt != nullptr;
    svd.lay_out(memory, Inside ? nullptr : W + b * room);
    const int verdict = svd.template decompose<ComplexJacobi<Scalar, Lanes, Held>>(sweeps);
    if (threadIdx.x == 0) info[which] = verdict;
}

}  // namespace svd
