// One sweep of the implicit QR algorithm on a bidiagonal matrix: Golub & Reinsch 1970; with zero shift, Demmel & Kahan 1990.
//
// Rotations from the right and from the left chase an entry along B, from its larger end to its smaller one: for a chase
// upwards, J Bᵀ J is upper bidiagonal too, J the reversal, and left and right change roles. Entries are below 1; what is
// below FLOOR counts as zero, since B is known to no more.
// Called by bidiagonal/bidiagonal_svd.cuh, by one thread; rotations go to shared memory.
#pragma once
#include "common/thread/householder.cuh"
#include "common/thread/jacobi_rotation.cuh"

namespace bidiagonal {
using namespace common;

// Rows first … last of B, and whether they are taken backwards; none: all is diagonal
struct Sweep {
    int first, last;
    bool backward, some;
    __device__ int row(int i) const { return backward ? first + last - i : i; }
    __device__ int gap(int i) const { return backward ? first + last - 1 - i : i; }  // of e, between rows i and i + 1
};

template <typename Real>
struct Turn {
    Real c, s, length;
};

// c, s with c f + s g = length, c g − s f = 0
template <typename Real>
__device__ Turn<Real> turn(Real f, Real g) {
    const Real square = fma(f, f, g * g);
    if (square < Range<Real>::NEGLIGIBLE) return {Real(1), Real(0), f};
    const Real inverse = inverse_sqrt(square);
    return {f * inverse, g * inverse, square * inverse};
}

// The smaller singular value of [f g; 0 h]: |f h| over the larger, which no rounding spoils.
template <typename Real>
__device__ Real smaller_value(Real f, Real g, Real h) {
    const Real plus = fma(g, g, (fabs(f) + fabs(h)) * (fabs(f) + fabs(h)));
    const Real minus = fma(g, g, (fabs(f) - fabs(h)) * (fabs(f) - fabs(h)));
    const Real larger = Real(0.5) * (sqrt(plus) + sqrt(minus));
    return larger > 0 ? fabs(f) / larger * fabs(h) : Real(0);
}

template <typename Real>
struct BidiagonalSweeps {
    static constexpr Real EPSILON = Floating<Real>::epsilon, FLOOR = EPSILON / 16;  // values reach a quarter
    Real *const d, *const e;
    Sweep latest;

    // e: n − 1
    __device__ BidiagonalSweeps(Real* d, Real* e, int n) : d(d), e(e), latest{0, n - 1, false, true} {}

    __device__ bool negligible(int i) const {
        const Real size = fabs(e[i]);
        return size <= FLOOR || size <= EPSILON * (fabs(d[i]) + fabs(d[i + 1]));
    }

    // The last rows that are not diagonal yet; zeros on the diagonal made exact and told of.
    __device__ Sweep find(bool& singular) {
        int last = latest.last;
        while (last > 0 && negligible(last - 1)) last--;
        if (last == 0) return {0, 0, false, false};
        int first = last - 1;
        while (first > 0 && !negligible(first - 1)) first--;
        singular = false;
        for (int i = first; i <= last; i++)
            if (fabs(d[i]) <= FLOOR) d[i] = 0, singular = true;
        const bool fresh = !latest.some || first > latest.last || last < latest.first || latest.first == latest.last;
        return {first, last, fresh ? fabs(d[first]) < fabs(d[last]) : latest.backward, true};
    }

    // The next sweep; c, s of right and left rotation i in turns[4 (i − first) …], right and left as the sweep sees them.
    __device__ Sweep next(Real* turns) {
        bool singular;
        const Sweep sweep = find(singular);
        latest = sweep;
        if (!sweep.some) return sweep;
        const int first = sweep.first, last = sweep.last;
        const Real top = d[sweep.row(first)];
        Real shift = singular ? Real(0)
                              : smaller_value(d[sweep.row(last - 1)], e[sweep.gap(last - 1)], d[sweep.row(last)]);
        if (shift * shift < EPSILON * top * top) shift = 0;
        if (shift > 0) shifted(sweep, shift, turns);
        else unshifted(sweep, turns);
        return sweep;
    }

    __device__ void shifted(const Sweep& sweep, Real shift, Real* turns) {
        Real d_i = d[sweep.row(sweep.first)], e_i = e[sweep.gap(sweep.first)];
        Real f = (fabs(d_i) - shift) * (copysign(Real(1), d_i) + shift / d_i), g = e_i;
        for (int i = sweep.first; i < sweep.last; i++, turns += 4) {
            const Turn<Real> right = turn(f, g);
            if (i > sweep.first) e[sweep.gap(i - 1)] = right.length;
            Real below = d[sweep.row(i + 1)];
            f = fma(right.c, d_i, right.s * e_i);
            e_i = fma(right.c, e_i, -right.s * d_i);
            const Turn<Real> left = turn(f, right.s * below);
            below *= right.c;
            d[sweep.row(i)] = left.length;
            f = fma(left.c, e_i, left.s * below);
            d_i = fma(left.c, below, -left.s * e_i);
            if (i + 1 < sweep.last) e_i = e[sweep.gap(i + 1)], g = left.s * e_i, e_i *= left.c;
            turns[0] = right.c, turns[1] = right.s, turns[2] = left.c, turns[3] = left.s;
        }
        d[sweep.row(sweep.last)] = d_i, e[sweep.gap(sweep.last - 1)] = f;
    }

    __device__ void unshifted(const Sweep& sweep, Real* turns) {
        Turn<Real> right{1, 0, 0}, left{1, 0, 0};
        for (int i = sweep.first; i < sweep.last; i++, turns += 4) {
            right = turn(d[sweep.row(i)] * right.c, e[sweep.gap(i)]);
            if (i > sweep.first) e[sweep.gap(i - 1)] = left.s * right.length;
            left = turn(left.c * right.length, d[sweep.row(i + 1)] * right.s);
            d[sweep.row(i)] = left.length;
            turns[0] = right.c, turns[1] = right.s, turns[2] = left.c, turns[3] = left.s;
        }
        const Real h = d[sweep.row(sweep.last)] * right.c;
        d[sweep.row(sweep.last)] = h * left.c, e[sweep.gap(sweep.last - 1)] = h * left.s;
    }
};

}  // namespace bidiagonal
