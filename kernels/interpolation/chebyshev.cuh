// interpolation/chebyshev.cuh — Lagrange polynomials of Chebyshev points on boxes, and their tensor products.
//     ℓ_p(z) = (w_p / (z − t_p)) / Σ_q w_q / (z − t_q),   z the place within the box's side [−1, 1]
// Barycentric formula of the second kind: Berrut & Trefethen (2004). Sides of no length have the first polynomial alone.
#pragma once
#include "clustering/thread/segment.cuh"

namespace interpolation {
using namespace clustering;

// x: items × dim × each   out: items × dim × each × order   lower, upper: boxes × dim   t, w: order
// first: boxes + 1, items before each box; or null: item i is of box i
template <typename Real>
__global__ void polynomials(const Real* x, const Real* lower, const Real* upper, const long long* first, const Real* t,
                            const Real* w, long long count, int dim, int each, int boxes, int order, Real* out) {
    const long long k = own_number();
    if (k >= count) return;
    const long long side = k / each, i = side / dim;
    const int j = static_cast<int>(side - i * dim);
    const long long box = (first ? segment_of(first, boxes, i) : i) * dim + j;
    const Real a = lower[box], b = upper[box];
    const Real z = a == b ? t[0] : (2 * x[k] - (a + b)) / (b - a);
    out += k * order;
    Real sum = 0;
    int hit = -1;
    for (int p = 0; p < order; p++) {
        if (z == t[p]) hit = p;
        else sum += w[p] / (z - t[p]);
    }
    for (int p = 0; p < order; p++) out[p] = hit >= 0 ? Real(p == hit) : w[p] / (z - t[p]) / sum;
}

// out_i = ⊗_j F_ij, the last factor fastest   F: items × dim × rows × columns   out: items × rows^dim × columns^dim
// size: entries of an out_i, width: columns^dim
template <typename Real>
__global__ void tensor_products(const Real* F, long long count, int dim, int rows, int columns, int size, int width, Real* out) {
    const long long k = own_number();
    if (k >= count) return;
    const long long i = k / size;
    const int within = static_cast<int>(k - i * size);
    int row = within / width, column = within - row * width;
    F += i * dim * rows * columns;
    Real product = 1;
    for (int j = dim - 1; j >= 0; j--) {
        product *= F[(j * rows + row % rows) * columns + column % columns];
        row /= rows;
        column /= columns;
    }
    out[k] = product;
}

// The points of tensor grids, the last direction fastest   along: items × dim × order   out: items × order^dim × dim
template <typename Real>
__global__ void grids(const Real* along, long long count, int dim, int order, int size, Real* out) {
    const long long k = own_number();
    if (k >= count) return;
    const long long i = k / size;
    int place = static_cast<int>(k - i * size);
    for (int j = dim - 1; j >= 0; j--) {
        out[k * dim + j] = along[(i * dim + j) * order + place % order];
        place /= order;
    }
}

}  // namespace interpolation
