// covariance/thread/covariance.cuh — covariances of one pair of points as types, composed as the Python values are:
//
//     Sum<Matern<0, Isotropic<2>>, Gaussian<Stretched<2>>>::value(x, y, p, t)
//
// Each has the dimension of its points, the number of its parameters p and of its entries of tables t, and its value; a
// distance has the square of the distance instead. Coordinates are subtracted before anything is scaled: points far from
// the origin keep their digits.
// h2gpu/covariance/device.py writes the types and the parameters. Called by one thread; nothing is shared.
#pragma once
#include "covariance/thread/decay.cuh"
#include "covariance/thread/matern.cuh"

namespace covariance {

// Σ (x_k − y_k)²
template <int Dim>
struct Isotropic {
    static constexpr int dimension = Dim, parameters = 0;
    template <typename Real>
    static __device__ Real square(const Real* x, const Real* y, const Real*) {
        Real s = (x[0] - y[0]) * (x[0] - y[0]);
#pragma unroll
        for (int k = 1; k < Dim; k++) s = fma(x[k] - y[k], x[k] - y[k], s);
        return s;
    }
};

// (x_0 − y_0)² + Σ p_{k−1} (x_k − y_k)²
template <int Dim>
struct Stretched {
    static constexpr int dimension = Dim, parameters = Dim - 1;
    template <typename Real>
    static __device__ Real square(const Real* x, const Real* y, const Real* p) {
        Real s = (x[0] - y[0]) * (x[0] - y[0]);
#pragma unroll
        for (int k = 1; k < Dim; k++) s = fma((x[k] - y[k]) * p[k - 1], x[k] - y[k], s);
        return s;
    }
};

// ‖A (x − y)‖²   p: A by rows, Dim × Dim
template <int Dim>
struct Rotated {
    static constexpr int dimension = Dim, parameters = Dim * Dim;
    template <typename Real>
    static __device__ Real square(const Real* x, const Real* y, const Real* p) {
        Real s = 0;
#pragma unroll
        for (int i = 0; i < Dim; i++) {
            Real part = 0;
#pragma unroll
            for (int k = 0; k < Dim; k++) part = fma(p[i * Dim + k], x[k] - y[k], part);
            s = fma(part, part, s);
        }
        return s;
    }
};

// ψ = 1 + (|u| rate)^exponent of the time u between two points   p: rate, exponent
template <typename Real>
__device__ inline Real spread(Real u, const Real* p) { return 1 + pow(fabs(u) * p[0], p[1]); }

// D² / ψ^β, the last coordinate being time   p: rate, exponent, β, those of D
template <typename D>
struct WithinTime {
    static constexpr int dimension = D::dimension + 1, parameters = 3 + D::parameters;
    template <typename Real>
    static __device__ Real square(const Real* x, const Real* y, const Real* p) {
        return D::square(x, y, p + 3) * pow(spread(x[D::dimension] - y[D::dimension], p), -p[2]);
    }
};

// bᵀ (x − y)
template <int Dim, typename Real>
__device__ inline Real change(const Real* x, const Real* y, const Real* b) {
    Real s = b[0] * (x[0] - y[0]);
#pragma unroll
    for (int k = 1; k < Dim; k++) s = fma(b[k], x[k] - y[k], s);
    return s;
}

// D² 2/(g(x)² + g(y)²) of the first coordinates of Dim, g(x) = exp(bᵀ (x − c))   p: b, c, those of D
template <int Dim, typename D>
struct Varying {
    static constexpr int dimension = Dim, parameters = 2 * Dim + D::parameters;
    template <typename Real>
    static __device__ Real square(const Real* x, const Real* y, const Real* p) {
        const Real g = exp(2 * change<Dim>(x, p + Dim, p)), h = exp(2 * change<Dim>(y, p + Dim, p));
        return D::square(x, y, p + 2 * Dim) / (Real(0.5) * (g + h));
    }
};

// (2R atan2(‖x − y‖, ‖x + y‖))² on a sphere about the origin: exact near antipodes too   p: 2R
struct GreatCircle {
    static constexpr int dimension = 3, parameters = 1;
    template <typename Real>
    static __device__ Real square(const Real* x, const Real* y, const Real* p) {
        const Real across[] = {-y[0], -y[1], -y[2]};
        const Real r = p[0] * atan2(sqrt(Isotropic<3>::square(x, y, p)), sqrt(Isotropic<3>::square(x, across, p)));
        return r * r;
    }
};

// (Σ a_i r^i) 2^(−rate·r): smoothness ½ + Degree   p: rate, largest r², a_0 … a_Degree, the distance's
template <int Degree, typename Distance>
struct Matern {
    static constexpr int dimension = Distance::dimension, parameters = Degree + 3 + Distance::parameters, table = 0;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real*) {
        const Real r = root(within(Distance::square(x, y, p + Degree + 3), p[1]));
        Real polynomial = p[2 + Degree];
#pragma unroll
        for (int i = Degree - 1; i >= 0; i--) polynomial = fma(polynomial, r, p[2 + i]);
        return polynomial * decay(r, p[0]);
    }
};

// σ² 2^(−rate·r²)   p: rate, largest r², σ², the distance's
template <typename Distance>
struct Gaussian {
    static constexpr int dimension = Distance::dimension, parameters = 3 + Distance::parameters, table = 0;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real*) {
        return p[2] * decay(within(Distance::square(x, y, p + 3), p[1]), p[0]);
    }
};

// x^Exponent by its binary digits
template <int Exponent, typename Real>
__device__ inline Real power(Real x) {
    Real result = 1;
#pragma unroll
    for (int digits = Exponent; digits > 0; digits /= 2, x *= x)
        if (digits % 2) result *= x;
    return result;
}

// σ² t^Exponent Σ a_i z^i, z = min(r/l, 1), t = 1 − z   p: 1/l, σ², a_0 … a_Degree, the distance's
template <int Exponent, int Degree, typename Distance>
struct Compact {
    static constexpr int dimension = Distance::dimension, parameters = Degree + 3 + Distance::parameters, table = 0;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real*) {
        const Real z = fmin(sqrt(Distance::square(x, y, p + Degree + 3)) * p[0], Real(1));
        Real polynomial = p[2 + Degree];
#pragma unroll
        for (int i = Degree - 1; i >= 0; i--) polynomial = fma(polynomial, z, p[2 + i]);
        return p[1] * polynomial * power<Exponent>(1 - z);
    }
};

// σ² exp(−(r/l)^e)   p: 1/l, σ², e, the distance's
template <typename Distance>
struct PoweredExponential {
    static constexpr int dimension = Distance::dimension, parameters = 3 + Distance::parameters, table = 0;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real*) {
        return p[1] * exp(-pow(sqrt(Distance::square(x, y, p + 3)) * p[0], p[2]));
    }
};

// σ² (1 + c r²)^(−α)   p: c, σ², α, the distance's
template <typename Distance>
struct RationalQuadratic {
    static constexpr int dimension = Distance::dimension, parameters = 3 + Distance::parameters, table = 0;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real*) {
        return p[1] * exp(-p[2] * log1p(Distance::square(x, y, p + 3) * p[0]));
    }
};

// σ²   p: σ²
template <typename Distance>
struct Constant {
    static constexpr int dimension = Distance::dimension, parameters = 1, table = 0;
    template <typename Real>
    static __device__ Real value(const Real*, const Real*, const Real* p, const Real*) { return p[0]; }
};

// A + B   p, t: those of A, then those of B
template <typename A, typename B>
struct Sum {
    static constexpr int dimension = A::dimension, parameters = A::parameters + B::parameters, table = A::table + B::table;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real* t) {
        return A::value(x, y, p, t) + B::value(x, y, p + A::parameters, t + A::table);
    }
};

// A B   p, t: those of A, then those of B
template <typename A, typename B>
struct Product {
    static constexpr int dimension = A::dimension, parameters = A::parameters + B::parameters, table = A::table + B::table;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real* t) {
        return A::value(x, y, p, t) * B::value(x, y, p + A::parameters, t + A::table);
    }
};

// A of all coordinates but the last, times B of that   p, t: those of A, then those of B
template <typename A, typename B>
struct SpaceTime {
    static constexpr int dimension = A::dimension + 1, parameters = A::parameters + B::parameters, table = A::table + B::table;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real* t) {
        constexpr int d = A::dimension;
        return A::value(x, y, p, t) * B::value(x + d, y + d, p + A::parameters, t + A::table);
    }
};

// s(x) s(y) F, s(x) = exp(bᵀ (x − c))   p: b, c, those of F
template <typename F>
struct Modulated {
    static constexpr int dimension = F::dimension, parameters = 2 * dimension + F::parameters, table = F::table;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real* t) {
        Real s = 0;
#pragma unroll
        for (int k = 0; k < dimension; k++) s += p[k] * ((x[k] - p[dimension + k]) + (y[k] - p[dimension + k]));
        return exp(s) * F::value(x, y, p + 2 * dimension, t);
    }
};

// F of the first coordinates of Dim   p, t: those of F
template <int Dim, typename F>
struct Leading {
    static constexpr int dimension = Dim, parameters = F::parameters, table = F::table;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real* t) { return F::value(x, y, p, t); }
};

// q^(Space/2), q = sech bᵀ (x − y)   p: b
template <int Dim, int Space>
struct Overlap {
    static constexpr int dimension = Dim, parameters = Dim, table = 0;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real*) {
        const Real q = 1 / cosh(change<Dim>(x, y, p));
        return power<Space / 2>(q) * (Space % 2 ? sqrt(q) : Real(1));
    }
};

// ψ^(−e) of the last of Dim coordinates   p: rate, exponent of ψ, e
template <int Dim>
struct PowersOfTime {
    static constexpr int dimension = Dim, parameters = 3, table = 0;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real*) {
        return pow(spread(x[Dim - 1] - y[Dim - 1], p), -p[2]);
    }
};

// F of coordinates times the units they were divided by   p: units, those of F
template <typename F>
struct InUnits {
    static constexpr int dimension = F::dimension, parameters = dimension + F::parameters, table = F::table;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real* t) {
        Real u[dimension], v[dimension];
#pragma unroll
        for (int k = 0; k < dimension; k++) u[k] = x[k] * p[k], v[k] = y[k] * p[k];
        return F::value(u, v, p + dimension, t);
    }
};

// A caller's text: Text::value(r, x, y, p), r exactly 0 for equal points   p: the text's, then the distance's
template <typename Text, typename Distance>
struct Expression {
    static constexpr int dimension = Distance::dimension, parameters = Text::parameters + Distance::parameters, table = 0;
    template <typename Real>
    static __device__ Real value(const Real* x, const Real* y, const Real* p, const Real*) {
        constexpr Real MOST = static_cast<Real>(sizeof(Real) == sizeof(double) ? 0x1.fffffffffffffp1023 : 0x1.fffffep127);
        const Real square = Distance::square(x, y, p + Text::parameters);
        const Real r = square > 0 ? root(within(square, MOST)) : Real(0);
        return Text::value(r, x, y, p);
    }
};

}  // namespace covariance
