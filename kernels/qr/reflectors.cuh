// Y_b = H_0 … H_{r−1} [X_b; 0] with the reflectors of qr/pivoted_qr.cuh; X the identity where null: Y is Q then.
//
// reflect_columns holds Y in registers (qr/block/register_qr.cuh), one thread block a matrix; reflect_columns_large takes any size
// and works in Y's own memory, transposed.
//     X  r × r, row-major     V  r × m: row j is u_j     tau  r     Y  m × wide, row-major, zeros from column r on
#pragma once

#include "qr/block/pivoted_qr.cuh"
#include "qr/block/register_qr.cuh"

namespace qr {

template <typename Real>
struct Reflection {
    const Real *X, *V, *tau;
    Real* Y;
    int m, r, wide;
};

// table   (matrices, 7) int64: offsets of X, V, tau, Y, then m, r, wide
template <typename Real>
__device__ Reflection<Real> reflection(const Real* X, const Real* V, const Real* tau, Real* Y, const long long* table) {
    const long long* row = table + 7LL * blockIdx.x;
    return {X ? X + row[0] : nullptr, V + row[1], tau + row[2], Y + row[3], int(row[4]), int(row[5]), int(row[6])};
}

template <typename Real>
__device__ Real given(const Reflection<Real>& p, int i, int l) {
    if (i >= p.r || l >= p.r) return 0;
    return p.X ? p.X[i * p.r + l] : Real(i == l);
}

// Matrices of m or r at most `above` or more than `upto` are left to other launches.
// Shared memory: r columns, leading_dimension apart.
template <typename Real, int Rows, int Slots, int Warps, int Resident>
__global__ __launch_bounds__(Warps * WARP, Resident)
void reflect_columns(const Real* X, const Real* V, const Real* tau, Real* Y, const long long* table, int rows_above, int rows_upto,
                     int rank_above, int rank_upto) {
    extern __shared__ double memory[];
    __shared__ Real numbers[Warps][Slots];
    Reflection<Real> p = reflection(X, V, tau, Y, table);
    if (p.m <= rows_above || p.m > rows_upto || p.r <= rank_above || p.r > rank_upto) return;
    RegisterColumns<Real, Rows, Slots, Warps> columns;
#pragma unroll
    for (int c = 0; c < Slots; c++)
#pragma unroll
        for (int q = 0; q < Rows; q++) columns.X[c][q] = given(p, columns.lane() + q * WARP, columns.column(c));
    columns.apply(p.V, p.m, p.tau, p.r, numbers[columns.warp()]);
    Real* staged = reinterpret_cast<Real*>(memory);
    const int ld = leading_dimension(p.m, p.r, false);
    columns.store(staged, ld, p.m, p.r);
    __syncthreads();
    for (int i = columns.warp(); i < p.m; i += Warps)
        for (int l = columns.lane(); l < p.wide; l += WARP) p.Y[i * p.wide + l] = l < p.r ? staged[l * ld + i] : Real(0);
}

// scratch   matrices × stride entries
template <typename Real, int Threads>
__global__ __launch_bounds__(Threads)
void reflect_columns_large(const Real* X, const Real* V, const Real* tau, Real* Y, const long long* table, Real* scratch,
                           long long stride) {
    Reflection<Real> p = reflection(X, V, tau, Y, table);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = Threads / WARP;
    Real* S = scratch + blockIdx.x * stride;
    for (int l = warp; l < p.r; l += warps)
        for (int i = lane; i < p.m; i += WARP) S[static_cast<long long>(l) * p.m + i] = given(p, i, l);
    __syncthreads();
    for (int l = warp * TOGETHER; l < p.r; l += warps * TOGETHER)
        apply_reflectors(p.V, p.m, p.tau, p.r, S + static_cast<long long>(l) * p.m, p.m, p.r - l, p.m);
    __syncthreads();
    for (int i = warp; i < p.m; i += warps)
        for (int l = lane; l < p.wide; l += WARP)
            p.Y[static_cast<long long>(i) * p.wide + l] = l < p.r ? S[static_cast<long long>(l) * p.m + i] : Real(0);
}

}  // namespace qr
