// U_b diag(s_b) Vt_b = A_b for matrices of at most P × N (or N × P): N lanes a matrix, 32/N matrices a warp, Warps warps a
// block. Columns live in registers, one a lane; the stages are those of svd/block/svd_stages.cuh:
//
//     W = Q R pivoted,   R = L Q₂ᵀ,   L V_L = U_L Σ,   W = (Q U_L) Σ (Q₂ V_L)ᵀ,   W = A or Aᵀ, scaled
//
// For the left vectors of a wide A, W becomes R₀ᵀ of Aᵀ = Q₀ R₀ first. Arguments as in svd/svd_shared.cuh, and steps:
// no rank is more.
#pragma once

#include "svd/block/svd_stages.cuh"
#include "svd/warp/lane_jacobi.cuh"

namespace svd {

// Shared memory of one matrix: reflectors of Q and Q₂, a triangle, and small arrays.
template <int P, int N, bool Both>
struct LaneMemory {
    static constexpr int FIRST = N * (P + 1), SECOND = N * (N + 1), TRIANGLE = N * (N + 1);
    static constexpr int REALS = FIRST + SECOND + TRIANGLE + 2 * N;
};

// column `lane` of A, or row `lane`
template <int P, typename Real>
__device__ bool load_column(const Problem<Real>& p, bool columns, int lane, Real (&X)[P], int& largest_exponent) {
    bool finite = true;
    double largest = 0;
    long long step = columns ? p.n : 1, start = columns ? lane : static_cast<long long>(lane) * p.n;
#pragma unroll
    for (int i = 0; i < P; i++) {
        X[i] = lane < p.rank() && i < p.longer() ? p.A[start + i * step] : Real(0);
        finite &= fabs(X[i]) <= Floating<Real>::largest;
        largest = fmax(largest, fabs(widened(X[i])));
    }
    largest_exponent = exponent_of(largest);
    return finite;
}

// the largest over the N lanes of a matrix
template <int N>
__device__ int group_max(int value) {
#pragma unroll
    for (int distance = N / 2; distance > 0; distance /= 2) value = max(value, __shfl_xor_sync(EVERY_LANE, value, distance));
    return value;
}

// this lane's place in the descending order of sigma
template <int N, typename Real>
__device__ int place_of(Real sigma) {
    int lane = threadIdx.x % N, place = 0;
    for (int r = 1; r < N; r++) {
        Real other = __shfl_xor_sync(EVERY_LANE, sigma, r);
        place += other > sigma || (other == sigma && (lane ^ r) < lane);
    }
    return place;
}

// Column `missing` of N becomes orthonormal to the other columns, by Gram-Schmidt, twice, on the unit vector farthest from
// their span. X in shared memory, column-major of leading dimension N + 1, r rows and columns in use; one warp a matrix at a
// time, its lanes over rows. Rare: Jacobi annihilated a column.
template <int N, typename Real>
__device__ void complete_lane_column(Real* X, int r, int missing, unsigned known) {
    int lane = threadIdx.x % WARP;
    Real square = lane < r ? Real(0) : Real(2), x = 0;
    for (int l = 0; l < r; l++)
        if (known >> l & 1 && lane < r) square = fma(X[l * (N + 1) + lane], X[l * (N + 1) + lane], square);
    Real negative = -square;
    int farthest = largest_lane<WARP>(negative);
    x = lane == farthest ? 1 : 0;
    for (int pass = 0; pass < 2; pass++)
        for (int l = 0; l < r; l++) {
            if (!(known >> l & 1)) continue;
            Real y = lane < r ? X[l * (N + 1) + lane] : Real(0);
            x = fma(-warp_sum(x * y), y, x);
        }
    x /= sqrt(warp_sum(x * x));
    if (lane < r) X[missing * (N + 1) + lane] = x;
    __syncwarp();
}

// Columns of which sigma is 0: those past the rank are unit vectors, others are completed. Collective over the warp.
template <int N, typename Real>
__device__ void complete_lanes(Real (&X)[N], Real sigma, int rank, Real* triangle) {
    int lane = threadIdx.x % N;
    if (lane >= rank) {
#pragma unroll
        for (int i = 0; i < N; i++) X[i] = i == lane ? Real(1) : Real(0);
    }
    unsigned missing = __ballot_sync(EVERY_LANE, lane < rank && sigma == 0);
    if (!missing) return;
#pragma unroll
    for (int i = 0; i < N; i++) triangle[lane * (N + 1) + i] = X[i];
    __syncwarp();
    for (int first = 0; first < WARP; first += N) {        // the matrices of the warp in turn
        unsigned lost = N == WARP ? missing : missing >> first & ((1u << N % WARP) - 1);
        int r = __shfl_sync(EVERY_LANE, rank, first);
        unsigned long long base = __shfl_sync(EVERY_LANE, reinterpret_cast<unsigned long long>(triangle), first);
        unsigned known = ~lost;
        for (int l = 0; l < r; l++)
            if (lost >> l & 1) {
                complete_lane_column<N>(reinterpret_cast<Real*>(base), r, l, known);
                known |= 1u << l;
            }
    }
#pragma unroll
    for (int i = 0; i < N; i++) X[i] = triangle[lane * (N + 1) + i];
}

template <typename Real, int P, int N, bool Both, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void svd_register(const Real* A, Real* U, Real* s, Real* Vt, int* info, int* worst, const long long* table, int m, int n,
                  int vectors, int sweeps, int above, int steps, int matrices) {
    using Memory = LaneMemory<P, N, Both>;
    extern __shared__ double memory[];
    int group = threadIdx.x / N, lane = threadIdx.x % N, b = blockIdx.x * (Warps * WARP / N) + group;
    bool present = b < matrices;
    Problem<Real> p = problem(A, U, s, Vt, table, m, n, present ? b : matrices - 1);
    present = present && p.rank() > above && p.rank() <= steps;
    if (!__any_sync(EVERY_LANE, present)) return;
    if (!present) p.m = p.n = 0;
    Real* first = reinterpret_cast<Real*>(memory) + group * Memory::REALS;
    Real *second = first + Memory::FIRST, *triangle = second + Memory::SECOND, *tau = triangle + Memory::TRIANGLE, *tau2 = tau + N;
    Vectors wanted = static_cast<Vectors>(vectors);

    Real Y[P], X[N], V[Both ? N : 1];
    int exponent;
    bool finite = load_column(p, p.tall() && wanted != OF_TRIANGLE, lane, Y, exponent);
    unsigned bad = __ballot_sync(EVERY_LANE, !finite) >> (threadIdx.x % WARP - lane);
    finite = (N == WARP ? bad : bad & ((1u << N % WARP) - 1)) == 0;
    exponent = group_max<N>(exponent);
    exponent = exponent == NO_EXPONENT ? 0 : Floating<Real>::scaled_exponent - exponent;
    PowerOfTwo scale(exponent);
#pragma unroll
    for (int i = 0; i < P; i++) Y[i] = finite ? scale(Y[i]) : Real(0);

    bool wide = wanted == LEFT_VECTORS && !p.tall();
    if (__any_sync(EVERY_LANE, wide)) {                    // W ← R₀ᵀ where wide
        Real Z[P];
#pragma unroll
        for (int i = 0; i < P; i++) Z[i] = Y[i];
        lane_qr<P, N, true>(Z, first, tau, triangle, steps);
#pragma unroll
        for (int i = 0; i < P; i++)
            if (wide) Y[i] = i < N && lane < steps ? triangle[lane * (N + 1) + i] : Real(0);
        __syncwarp();
    }
    int rank = p.rank();
    if (wanted == OF_TRIANGLE) {
#pragma unroll
        for (int i = 0; i < N; i++) X[i] = Y[i];
    } else {
        rank = lane_qr<P, N, true>(Y, first, tau, triangle, steps);
#pragma unroll
        for (int i = 0; i < N; i++) X[i] = lane < rank ? triangle[lane * (N + 1) + i] : Real(0);
        __syncwarp();
        lane_qr<N, N, false>(X, second, tau2, triangle, steps);
#pragma unroll
        for (int i = 0; i < N; i++) X[i] = lane < rank ? triangle[lane * (N + 1) + i] : Real(0);
        __syncwarp();
    }
#pragma unroll
    for (int i = 0; i < (Both ? N : 1); i++) V[i] = i == lane ? Real(1) : Real(0);

    int sweep = 0, own = 0;
    unsigned turned = EVERY_LANE;
    while (turned && sweep < sweeps) {
        turned = __ballot_sync(EVERY_LANE, lane_sweep<N, Both>(X, V, orthogonality_tolerance<Real>(rank)));
        sweep++;
        unsigned mine = turned >> (threadIdx.x % WARP - lane);
        if ((N == WARP ? mine : mine & ((1u << N % WARP) - 1)) != 0) own = sweep;
    }
    Failure failure = !finite ? NOT_FINITE : own == sweeps ? NOT_CONVERGED : NO_FAILURE;

    int k = p.rank();
    Real square = dot(X, X), sigma = lane >= k ? Real(-1) : square > Floating<Real>::vanishing ? sqrt(square) : Real(0);
    int place = place_of<N>(sigma);
    Real nan = Floating<Real>::largest * Real(0) / Real(0);
    if (present && lane < k) p.s[place] = failure ? nan : PowerOfTwo(-exponent)(sigma);
    if (present && lane == 0) {
        info[p.index] = failure ? failure : own + 1;
        if (failure) atomicMin(worst, failure);
    }
    if (wanted == NO_VECTORS) return;
    Real inverse = failure ? nan : sigma > 0 ? 1 / sigma : Real(0);
#pragma unroll
    for (int i = 0; i < N; i++) X[i] *= inverse;
    complete_lanes<N>(X, sigma, rank, triangle);
    if (Both) {
        Real T[N];
#pragma unroll
        for (int i = 0; i < N; i++) T[i] = failure ? nan : V[Both ? i : 0];
        if (wanted != OF_TRIANGLE) lane_reflect<N>(second, tau2, steps, T);
#pragma unroll
        for (int i = 0; i < N; i++)
            if (present && lane < k && i < k) (p.tall() ? p.Vt[place * p.n + i] : p.U[i * k + place]) = T[i];
    }
#pragma unroll
    for (int i = 0; i < P; i++) Y[i] = failure ? nan : i < N ? X[i < N ? i : 0] : Real(0);
    if (wanted != OF_TRIANGLE) lane_reflect<P>(first, tau, steps, Y);
    bool to_left = p.tall() || wanted == LEFT_VECTORS;
    int rows = p.tall() ? p.m : to_left ? k : p.n;
#pragma unroll
    for (int i = 0; i < P; i++)
        if (present && lane < k && i < rows) (to_left ? p.U[i * k + place] : p.Vt[place * p.n + i]) = Y[i];
}

}  // namespace svd
