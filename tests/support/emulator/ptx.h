// ptx.h — instructions of PTX that kernels/ has as `asm`, by the operands in their order; named by translate.py.
//
// Products of warps by the tables of the PTX ISA, "Matrix Fragments for mma": lane (g, t) = (lane / 4, lane % 4).
#pragma once
#include "emulator.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace emulator {

// Whether denormal numbers are kept or flushed to zero while this lives: kernels with floats are compiled to flush them, but for
// conversions that PTX has without .ftz. Doubles are flushed too, which the device does not do.
class Denormals {
public:
#if defined(__SSE2__)
    explicit Denormals(bool kept) : before(_mm_getcsr()) { _mm_setcsr(kept ? before & ~FLUSH : before | FLUSH); }
    ~Denormals() { _mm_setcsr(before); }

private:
    static constexpr unsigned FLUSH = 0x8040;
    const unsigned before;
#else
    explicit Denormals(bool) {}
#endif
};

template <typename T>
T* in_shared(unsigned address) { return reinterpret_cast<T*>(shared_memory() + static_cast<int>(address)); }

// c += A B of a warp, each lane with NA numbers of A, NB of B and 4 or 2 of C; (row, k) and (k, column) of those by a and b.
template <int Rows, int Depth, int NA, int NB, typename Real, typename PlaceA, typename PlaceB>
void multiply(Real** c, const Real (&a)[NA], const Real (&b)[NB], PlaceA place_a, PlaceB place_b) {
    struct Factors { Real a[8], b[8]; };
    Factors own{};
    for (int e = 0; e < NA; e++) own.a[e] = a[e];
    for (int e = 0; e < NB; e++) own.b[e] = b[e];
    const Factors* all = exchanged(~0u, own).first;
    double A[Rows][Depth], B[Depth][8];
    for (int l = 0; l < LANES; l++) {
        for (int e = 0; e < NA; e++) { const auto [i, k] = place_a(l / 4, l % 4, e); A[i][k] = all[l].a[e]; }
        for (int e = 0; e < NB; e++) { const auto [k, j] = place_b(l / 4, l % 4, e); B[k][j] = all[l].b[e]; }
    }
    const int g = lane() / 4, t = lane() % 4;
    for (int e = 0; e < Rows / 4; e++) {
        double sum = *c[e];
        for (int k = 0; k < Depth; k++) sum += A[g + e / 2 * 8][k] * B[k][2 * t + e % 2];
        *c[e] = static_cast<Real>(sum);
    }
}

struct Place { int first, second; };
inline Place across(int g, int t, int e) { return {g + e % 2 * 8, t + e / 2 * 4}; }        // of A by single numbers
inline Place down(int g, int t, int e) { return {t + e * 4, g}; }                          // of B
inline Place across_pairs(int g, int t, int e) { return {g + e / 2 % 2 * 8, 2 * t + e % 2 + e / 4 * 8}; }
inline Place down_pairs(int g, int t, int e) { return {2 * t + e % 2 + e / 2 * 8, g}; }

inline float tf32(unsigned x) { return __uint_as_float(x & ~0u << 13); }
inline float low_bf16(unsigned x) { return __uint_as_float(x << 16); }
inline float high_bf16(unsigned x) { return __uint_as_float(x & ~0u << 16); }
inline unsigned to_bf16(float x) {  // to the nearest, ties to even
    const unsigned bits = __float_as_uint(x);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline double rough(double x) { return emulator_bits<double>(emulator_bits<unsigned long long>(x) & ~0ull << 32); }  // 20 bits

}  // namespace emulator

inline void mma_m8n8k4_f64(double& c0, double& c1, double a, double b) {
    double* c[] = {&c0, &c1};
    emulator::multiply<8, 4>(c, {a}, {b}, emulator::across, emulator::down);
}
inline void mma_m16n8k4_f64(double& c0, double& c1, double& c2, double& c3, double a0, double a1, double b) {
    double* c[] = {&c0, &c1, &c2, &c3};
    emulator::multiply<16, 4>(c, {a0, a1}, {b}, emulator::across, emulator::down);
}
inline void mma_m16n8k8_f64(double& c0, double& c1, double& c2, double& c3, double a0, double a1, double a2, double a3, double b0, double b1) {
    double* c[] = {&c0, &c1, &c2, &c3};
    emulator::multiply<16, 8>(c, {a0, a1, a2, a3}, {b0, b1}, emulator::across, emulator::down);
}
inline void mma_m16n8k8_tf32(float& c0, float& c1, float& c2, float& c3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                             unsigned b1) {
    using emulator::tf32;
    float* c[] = {&c0, &c1, &c2, &c3};
    emulator::multiply<16, 8>(c, {tf32(a0), tf32(a1), tf32(a2), tf32(a3)}, {tf32(b0), tf32(b1)}, emulator::across, emulator::down);
}
inline void mma_m16n8k16_bf16(float& c0, float& c1, float& c2, float& c3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                              unsigned b1) {
    using emulator::high_bf16, emulator::low_bf16;
    float* c[] = {&c0, &c1, &c2, &c3};
    const float a[] = {low_bf16(a0), high_bf16(a0), low_bf16(a1), high_bf16(a1), low_bf16(a2), high_bf16(a2), low_bf16(a3), high_bf16(a3)};
    emulator::multiply<16, 16>(c, a, {low_bf16(b0), high_bf16(b0), low_bf16(b1), high_bf16(b1)}, emulator::across_pairs, emulator::down_pairs);
}
inline void cvt_rn_bf16x2_f32(unsigned& both, float high, float low) { both = emulator::to_bf16(high) << 16 | emulator::to_bf16(low); }

inline void cp_async(unsigned target, const void* source, int whole, int bytes) {
    emulator::set_out(emulator::in_shared<emulator::Bytes>(target), source, bytes, whole);
}
inline void cp_async_16(unsigned target, const void* source, int bytes = 16) { cp_async(target, source, 16, bytes); }
inline void cp_async_commit_group() { emulator::close_group(); }
inline void cp_async_wait_group(int pending) { emulator::await_groups(pending); }
inline void st_shared_f64_where(unsigned target, double x, int wanted) {
    if (wanted) *emulator::in_shared<double>(target) = x;
}
inline void bar_sync_1(int count) { emulator::meet_some(1, count); }

template <typename T>
void mov_tid_x(T& x) { x = threadIdx.x; }
template <typename T>
void mov_ctaid_x(T& x) { x = blockIdx.x; }
template <typename T>
void mov_warpid(T& x) { x = threadIdx.x / emulator::LANES; }
inline void mov_clock(unsigned& now) { now = 0; }
inline void ld_acquire(int& value, const int* flag) { value = *flag; }
inline void st_release(int* flag, int value) { *flag = value; }
inline void prefetch_global(const void*) {}
inline void launch_dependents_of_grids() {}
inline void wait_of_grids() {}                               // launches run one after the other
inline void sqrt_approx_f32(float& y, float x) { y = std::sqrt(x); }
inline void rsqrt_approx_f32(float& y, float x) { y = 1 / std::sqrt(x); }
inline void rcp_approx_f32(float& y, float x) { y = 1 / x; }
inline void ex2_approx_f32(float& y, float x) { y = std::exp2(x); }
inline void rsqrt_approx_f64(double& y, double x) { y = emulator::rough(1 / std::sqrt(x)); }
inline void rcp_approx_f64(double& y, double x) { y = emulator::rough(1 / x); }
inline void cvt_f64_f32(double& y, float x) {
    emulator::Denormals kept(true);
    volatile float given = x;
    volatile double wide = given;
    y = wide;
}
inline void cvt_rn_f32_f64(float& y, double x) {
    emulator::Denormals kept(true);
    volatile double given = x;
    volatile float narrow = static_cast<float>(given);
    y = narrow;
}
