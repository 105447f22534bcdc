// systems/solve_register.cuh — X_b = A_b⁻¹ B_b, or A_b⁻¹, for matrices that a warp, or a part of one, holds in registers.
//
//     P [A | B] = L [U | Y],   X = U⁻¹ Y
//
// Elimination with partial pivoting takes the right-hand sides along; what is left is to go back through U. Nothing but A and B
// is read, nothing but X is written. Rows never move: systems/warp/eliminate.cuh.
#pragma once

#include "systems/thread/place.cuh"
#include "systems/warp/eliminate.cuh"
#include "systems/warp/small_stage.cuh"

namespace systems {

// x[0][N…] = U⁻¹ x[0][N…], U in x[0][0…N), row k in the lane whose position is k; steps and most as for eliminate
template <int Lanes, int N, int Width, typename Scalar>
__device__ void go_back(Scalar (&x)[1][Width], int position, int steps, int most) {
    const unsigned own = Lanes == WARP ? EVERY_LANE : ((1u << Lanes % WARP) - 1) << threadIdx.x % WARP / Lanes * Lanes;
#pragma unroll
    for (int k = N - 1; k >= 0; k--) {
        if (k >= most) continue;
        const bool is_row = position == k && k < steps, is_above = position >= 0 && position < k && k < steps;
        const int from = max(0, __ffs(__ballot_sync(EVERY_LANE, is_row) & own) - 1) % Lanes;
        const Divisor<Scalar> divided(x[0][k]);
#pragma unroll
        for (int j = N; j < Width; j++) {
            if (is_row) x[0][j] = divided(x[0][j]);
            const Scalar known = of_lane<Lanes>(x[0][j], from);
            if (is_above) x[0][j] = less_product(x[0][j], x[0][k], known);
        }
    }
}

// Of shared memory for a matrix: A and B pass through it one after the other.
template <typename Scalar, int N, int K, int Lanes>
__host__ __device__ constexpr int solve_entries() {
    using Left = SmallStage<Scalar, N, Lanes, 1, false>;
    using Right = SmallStage<Scalar, K, Lanes, 1, false>;
    return Left::ENTRIES > Right::ENTRIES ? Left::ENTRIES : Right::ENTRIES;
}

// A     matrices × n × n, n ≤ N ≤ Lanes          B, X   matrices × n × columns, columns ≤ K; of Inverse n × n, B is not read
// info  matrices: 0, or k where pivot k − 1 is the first that is zero, or NOT_FINITE: X is NaN then          found   or null: see common/thread/verdicts.cuh
// Shared memory: solve_entries for each of Warps · WARP / Lanes matrices.
template <typename Scalar, int N, int K, int Lanes, int Warps, bool Inverse>
__global__ __launch_bounds__(Warps * WARP)
void solve_register(const Scalar* A, const Scalar* B, Scalar* X, int* info, int* found, int n, int columns, long long count) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int part = threadIdx.x / Lanes, lane = threadIdx.x % Lanes;
    const long long b = static_cast<long long>(blockIdx.x) * (Warps * WARP / Lanes) + part;
    const int rows = b < count ? n : 0;
    Scalar* entries = reinterpret_cast<Scalar*>(memory) + part * solve_entries<Scalar, N, K, Lanes>();
    const SmallStage<Scalar, N, Lanes, 1, false> left(entries, 0);
    const SmallStage<Scalar, K, Lanes, 1, false> right(entries, 0);
    Scalar a[1][N], y[1][K], x[1][N + K];
    const bool finite = left.load(A + b * n * n, rows, rows, a);
    if constexpr (Inverse) {
#pragma unroll
        for (int j = 0; j < K; j++) y[0][j] = j == lane ? one<Scalar>() : Scalar();
    } else right.load(B + b * n * columns, rows, columns, y);
#pragma unroll
    for (int j = 0; j < N; j++) x[0][j] = a[0][j];
#pragma unroll
    for (int j = 0; j < K; j++) x[0][N + j] = y[0][j];
    int position[1] = {lane < rows ? lane : -1}, verdict = finite ? 0 : NOT_FINITE;
    const int steps = finite ? rows : 0, most = __reduce_max_sync(EVERY_LANE, steps);
    eliminate<Lanes, N>(x, position, 0, steps, most, [&](int k, int, bool zero) {
        if (zero && verdict == 0) verdict = k + 1;
    });
    go_back<Lanes, N>(x, position[0], steps, most);
#pragma unroll
    for (int j = 0; j < K; j++) y[0][j] = verdict == 0 ? x[0][N + j] : not_a_number<Scalar>();
    right.store(X + b * n * columns, rows, Inverse ? rows : columns, y, position);
    if (b < count && lane == 0) info[b] = verdict, tell(found, verdict);
}

}  // namespace systems
