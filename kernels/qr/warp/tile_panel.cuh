// qr/warp/tile_panel.cuh — panels of 8 columns of several blocks of rows, each reflected onto 8 × 8 entries of its triangle.
//
//     Qᵀ [R; X] = [R'; 0],   Q = H₀ ⋯ H₇ = I − V T Vᵀ,   V = [diag(a); U],   T⁻¹ = diag(1/t) + strict upper part of UᵀU
//
// H_j = I − t_j v_j v_jᵀ with v_j = [a_j e_j; u_j], u_j the column as step j finds it: nothing is divided (Golub, Van
// Loan: Matrix Computations, 5.1–5.2; Schreiber, Van Loan 1989). A step is a long chain of dependent operations, so a
// warp takes the panels of `Ways` blocks through it together: lane (line, quad) has column `line` of block quad / LANES,
// and those rows of it that its LANES lanes share. Columns that are done get UᵀU from the same sums.
// Called by all lanes of a warp together.
#pragma once
#include "common/thread/householder.cuh"
#include "products/warp/strip_pairs.cuh"

namespace qr {
using namespace common;
using namespace products;

// What a step needs of H: p = ±1/√(α² + σ²), τ = 1 + |α p| and a first 1/τ, 1 / (1 + correction) times the exact one,
// which starts from an approximate root, so that its start is not waited for; see common/thread/householder.cuh.
struct Reflection {
    double p, tau, inverse_tau, correction, square;
    bool none;  // u is negligible: v = [1; 0], t = 2
    __device__ Reflection(double alpha, double sigma2) {
        none = sigma2 < Range<double>::NEGLIGIBLE;
        square = fma(alpha, alpha, sigma2);
        double y;
        asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(square));
        y = none ? 0.0 : y;
        const double size = fabs(alpha), rough = fma(size, y, 1.0), e = fma(-square * y, y, 1.0);
        asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(inverse_tau) : "d"(rough));
        y = fma(y * e, fma(0.375, e, 0.5), y);
        tau = fma(size, y, 1.0);
        p = copysign(y, alpha);
        const double f = fma(-tau, inverse_tau, 1.0);
        correction = fma(f, f, f);
        tau = none ? 2.0 : tau;
    }
    __device__ double beta(double alpha) const { return none ? -alpha : -square * p; }
    __device__ double top(double alpha) const { return none ? 1.0 : fma(square, p, alpha); }
    __device__ double t() const { return none ? 2.0 : p * p * fma(inverse_tau, correction, inverse_tau); }
};

// *target = x where `wanted`, shared memory: one predicated store, where a branch would cost a step a third of its time.
__device__ inline void store_where(bool wanted, double* target, double x) {
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p st.shared.f64 [%0], %1; }"
                 ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(target))), "d"(x), "r"(int(wanted)) : "memory");
}

template <int Strips, int Ways>
struct TilePanels {
    static constexpr int LANES = 4 / Ways, EACH = TILE / LANES, ROWS = Strips * EACH;  // rows of a lane: in a tile, in all
    static constexpr int LINE = TILE + 1;                                     // of the triangle's diagonal tile
    static constexpr int DIAGONAL = TILE * LINE + 2;                          // entries of it: no bank conflicts
    static constexpr int PITCH = 10;                                          // of a line of other tiles
    static constexpr int SHIFT = 16 / Ways;                                   // between ways, beyond whole tiles
    static constexpr int BLOCK = Strips * TILE * PITCH + SHIFT, T = TILE * PITCH + SHIFT;
    static constexpr int SCRATCH = Ways * (BLOCK + T);                        // shared memory of a warp

    double* const blocks;
    double* const ts;
    __device__ explicit TilePanels(double* scratch) : blocks(scratch), ts(scratch + Ways * BLOCK) {}

    // Column `column` of strip i of a block's panel, and of −T.
    __device__ double* line(int way, int i, int column) const { return blocks + way * BLOCK + (i * TILE + column) * PITCH; }
    __device__ double* t_line(int way, int column) const { return ts + way * T + column * PITCH; }

    __device__ void store(int way, const double (&x)[Strips][2]) const {
#pragma unroll
        for (int i = 0; i < Strips; i++)
            *reinterpret_cast<double2*>(line(way, i, tile_line()) + 2 * tile_quad()) = {x[i][0], x[i][1]};
    }

    // A lane's rows of a column of its block.
    __device__ void read(double (&v)[ROWS], int column) const {
        const int way = tile_quad() / LANES, part = tile_quad() % LANES;
#pragma unroll
        for (int i = 0; i < Strips; i++)
#pragma unroll
            for (int e = 0; e < EACH; e += 2) {
                const double2 two = *reinterpret_cast<const double2*>(line(way, i, column) + part * EACH + e);
                v[i * EACH + e] = two.x, v[i * EACH + e + 1] = two.y;
            }
    }

    // Over the lanes that share a column.
    __device__ static double total(const double (&parts)[4]) {
        double sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
#pragma unroll
        for (int distance = 1; distance < LANES; distance *= 2) sum += __shfl_xor_sync(EVERY_LANE, sum, distance);
        return sum;
    }

    // R, X ← Qᵀ [R; X] for every block, U in the place of X, and −T.   R: diagonal tile of the lane's block, column i at
    // i · LINE; below the diagonal it receives t_i u_iᵀu_k as entry (k, i), after the column a_i
    __device__ void reduce(double* R) const {
        const int own = tile_line(), way = tile_quad() / LANES, part = tile_quad() % LANES;
        double* const column = R + own * LINE;
        double v[ROWS], own_top = 0, own_t = 0, r = column[0], alpha = R[0];
        read(v, own);
        __syncwarp();
#pragma unroll
        for (int j = 0; j < TILE; j++) {
            double u[ROWS], d[4] = {}, own_square[4] = {};
            read(u, j);
#pragma unroll
            for (int i = 0; i < ROWS; i++) own_square[i % 4] += v[i] * v[i], d[i % 4] += u[i] * v[i];
            // σ² does not wait for u: it is the pivot lanes' own
            const double sigma2 = __shfl_sync(EVERY_LANE, total(own_square), 4 * j + way * LANES), dot = total(d);
            const Reflection h(alpha, sigma2);
            const double near = h.p * dot * h.inverse_tau, sum = fma(near, h.correction, r + near);
            const double w = own > j ? h.p * sum : double(0);
#pragma unroll
            for (int i = 0; i < ROWS; i++) v[i] -= w * u[i];
            if (own == j + 1)
#pragma unroll
                for (int i = 0; i < ROWS; i += 2)
                    *reinterpret_cast<double2*>(line(way, i / EACH, j + 1) + part * EACH + i % EACH) = {v[i], v[i + 1]};
            const double top = h.top(alpha), t = h.t(), beta = h.beta(alpha), moved = fma(-h.tau, sum, r);
            own_top = own == j ? top : own_top;
            own_t = own == j ? t : own_t;
            const double product = own_t * dot;
            if (j + 1 < TILE) r = column[j + 1], alpha = R[(j + 1) * (LINE + 1)];
            store_where(part == 0, column + j, own < j ? product : own == j ? beta : moved);
            __syncwarp();
        }
        store_where(part == 0, column + TILE, own_top);
        double y[TILE];  // by back substitution with T⁻¹
#pragma unroll
        for (int i = TILE - 1; i >= 0; i--) {
            double sum = 0;
#pragma unroll
            for (int k = TILE - 1; k > i; k--) sum -= R[i * LINE + k] * y[k];
            y[i] = own == i ? -own_t : sum;  // sum is 0 for i > own
        }
        if (part == 0)
#pragma unroll
            for (int i = 0; i < TILE; i += 2) *reinterpret_cast<double2*>(t_line(way, own) + i) = {y[i], y[i + 1]};
        __syncwarp();
    }
};

}  // namespace qr
