// svd/block/complex_jacobi.cuh — sweeps of one-sided Jacobi over complex columns, and columns that complete a unitary matrix.
//
//     γ = xᴴ y = |γ| e^{iφ},   [x y] ← [c x − s e^{−iφ} y,  s e^{iφ} x + c y],   c, s the real rotation of ‖x‖², ‖y‖², |γ|
//
// Golub & Van Loan (2013), section 8.6; Drmač & Veselić (2008). All pairs once a sweep, round robin; a team of lanes takes a pair, and
// a round ends with a barrier. A column below its floor, what rounding may have left in it, becomes zero: errors of errors of a
// deficient matrix would cost a sweep each sixteen digits. Called by all threads of a block.
#pragma once
#include "common/thread/jacobi_rotation.cuh"
#include "common/warp/part_sums.cuh"
#include "registers/thread/conjugate.cuh"

namespace svd {
using namespace common;
using namespace registers;

// Columns of `rows` entries and behind each, to entry `all`, what is turned along; column-major, leading dimension ld.
template <typename Scalar>
struct ComplexColumns {
    using Real = typename Field<Scalar>::Real;
    Scalar* X;
    int ld, rows, all, columns;
    Real *norms, *floors;  // squares, one a column
};

// Lanes of a team, and entries of each column that a lane holds in registers between dot products and the rotation.
template <typename Scalar, int Lanes, int Held>
struct ComplexJacobi {
    using Real = typename Field<Scalar>::Real;
    using Columns = ComplexColumns<Scalar>;
    static constexpr Real LEAST = Floating<Real>::vanishing;
    static constexpr int FLOOR = 4;  // roundings of a column's norm

    // Whether the pair was turned. Lanes of a warp come together; a team without a pair does nothing.
    static __device__ bool turn(const Columns& w, int i, int j, bool active, Real tolerance) {
        const int lane = threadIdx.x % Lanes;
        Scalar *x = w.X + (active ? static_cast<long long>(i) * w.ld : 0), *y = w.X + (active ? static_cast<long long>(j) * w.ld : 0);
        const int rows = active ? w.rows : 0, all = active ? w.all : 0;
        Scalar a[Held], b[Held], gamma = Scalar();
        Real alpha = 0, beta = 0;
#pragma unroll
        for (int h = 0; h < Held; h++) {
            const int r = lane + h * Lanes;
            a[h] = r < all ? x[r] : Scalar(), b[h] = r < all ? y[r] : Scalar();
            if (r < rows) {
                alpha = plus_square(alpha, a[h]), beta = plus_square(beta, b[h]);
                gamma = plus_dot(gamma, a[h], b[h]);
            }
        }
        for (int r = lane + Held * Lanes; r < rows; r += Lanes) {
            const Scalar p = x[r], q = y[r];
            alpha = plus_square(alpha, p), beta = plus_square(beta, q);
            gamma = plus_dot(gamma, p, q);
        }
        alpha = part_sum<1, Lanes>(alpha), beta = part_sum<1, Lanes>(beta), gamma = part_sum<1, Lanes>(gamma);
        const Real low = active ? w.floors[i] : Real(0), lower = active ? w.floors[j] : Real(0);
        __syncwarp();
        if (alpha <= low || beta <= lower) {
            for (int r = lane; r < rows; r += Lanes) {
                if (alpha <= low) x[r] = Scalar();
                if (beta <= lower) y[r] = Scalar();
            }
            return false;
        }
        if (!(alpha > LEAST && beta > LEAST)) return false;
        const Real over_x = 1 / sqrt(alpha), over_y = 1 / sqrt(beta);
        const Scalar cosine = stretched(stretched(gamma, over_x), over_y);
        const Real square = plus_square(Real(0), cosine);
        if (!(square > tolerance * tolerance)) return false;
        const Real size = sqrt(square);
        const auto rotation = jacobi_rotation(alpha, beta, size * (alpha * over_x) * (beta * over_y));
        const Real c = rotation.c;
        const Scalar turned = stretched(cosine, rotation.s / size), back = {-turned.re, turned.im};
#pragma unroll
        for (int h = 0; h < Held; h++) {
            const int r = lane + h * Lanes;
            if (r >= all) continue;
            x[r] = multiply_add(stretched(a[h], c), back, b[h]);
            y[r] = multiply_add(stretched(b[h], c), turned, a[h]);
        }
        for (int r = lane + Held * Lanes; r < all; r += Lanes) {
            const Scalar p = x[r], q = y[r];
            x[r] = multiply_add(stretched(p, c), back, q);
            y[r] = multiply_add(stretched(q, c), turned, p);
        }
        if (lane == 0) {
            const Real cc = c * c, ss = rotation.s * rotation.s;
            w.floors[i] = fma(cc, low, ss * lower), w.floors[j] = fma(ss, low, cc * lower);
        }
        return true;
    }

    // Whether anything was turned, in every thread.
    static __device__ bool sweep(const Columns& w, Real tolerance) {
        const int even = w.columns + w.columns % 2, pairs = even / 2, team = threadIdx.x / Lanes, teams = blockDim.x / Lanes;
        bool any = false;
        for (int round = 0; round < even - 1; round++) {
            for (int first = 0; first < pairs; first += teams) {
                const int p = first + team, i = (round + p) % (even - 1);
                const int j = p == 0 ? even - 1 : (round + even - 1 - p) % (even - 1);
                const bool active = p < pairs && i < w.columns && j < w.columns;
                any |= turn(w, active ? i : 0, active ? j : 0, active, tolerance);
            }
            __syncthreads();
        }
        return __syncthreads_or(any);
    }

    // norms ← squares of the columns' norms; those that are negligible are zero.   Ends with a barrier.
    static __device__ void measure(const Columns& w) {
        const int lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
        for (int j = threadIdx.x / WARP; j < w.columns; j += warps) {
            Real sum = 0;
            for (int r = lane; r < w.rows; r += WARP) sum = plus_square(sum, w.X[static_cast<long long>(j) * w.ld + r]);
            sum = part_sum<1, WARP>(sum);
            if (lane == 0) w.norms[j] = sum > LEAST ? sum : Real(0);
        }
        __syncthreads();
    }

    // floors ← (FLOOR ε)² norms, for columns that have just been measured.   Ends with a barrier.
    static __device__ void set_floors(const Columns& w) {
        constexpr Real SHARE = FLOOR * Floating<Real>::epsilon;
        for (int j = threadIdx.x; j < w.columns; j += blockDim.x) w.floors[j] = SHARE * SHARE * w.norms[j];
        __syncthreads();
    }

    // Every column of norm zero becomes orthonormal to all others, which are so: by Gram-Schmidt, twice, on the unit vector farthest
    // from their span.   dots   columns     far   rows     both shared by the block
    static __device__ void complete(const Columns& w, Scalar* dots, Real* far) {
        const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
        for (int missing = 0; missing < w.columns; missing++) {
            if (w.norms[missing] != 0) continue;  // the same in all threads
            for (int r = threadIdx.x; r < w.rows; r += blockDim.x) {
                Real sum = 0;
                for (int l = 0; l < w.columns; l++)
                    if (w.norms[l] != 0) sum = plus_square(sum, w.X[static_cast<long long>(l) * w.ld + r]);
                far[r] = sum;
            }
            __syncthreads();
            int farthest = 0;
            for (int r = 1; r < w.rows; r++)
                if (far[r] < far[farthest]) farthest = r;
            Scalar* x = w.X + static_cast<long long>(missing) * w.ld;
            for (int r = threadIdx.x; r < w.rows; r += blockDim.x) x[r] = r == farthest ? one<Scalar>() : Scalar();
            __syncthreads();
            for (int pass = 0; pass < 2; pass++) {
                for (int l = warp; l < w.columns; l += warps) {
                    Scalar dot = Scalar();
                    for (int r = lane; r < w.rows; r += WARP) dot = plus_dot(dot, w.X[static_cast<long long>(l) * w.ld + r], x[r]);
                    dot = part_sum<1, WARP>(dot);
                    if (lane == 0) dots[l] = w.norms[l] != 0 ? dot : Scalar();
                }
                __syncthreads();
                for (int r = threadIdx.x; r < w.rows; r += blockDim.x) {
                    Scalar rest = x[r];
                    for (int l = 0; l < w.columns; l++)
                        if (l != missing) rest = less_product(rest, dots[l], w.X[static_cast<long long>(l) * w.ld + r]);
                    x[r] = rest;
                }
                __syncthreads();
            }
            if (warp == 0) {
                Real sum = 0;
                for (int r = lane; r < w.rows; r += WARP) sum = plus_square(sum, x[r]);
                sum = 1 / sqrt(part_sum<1, WARP>(sum));
                for (int r = lane; r < w.rows; r += WARP) x[r] = stretched(x[r], sum);
                if (lane == 0) w.norms[missing] = -1;
            }
            __syncthreads();
        }
    }
};

}  // namespace svd
