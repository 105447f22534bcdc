// qr/warp/complex_strip.cuh — rows of a complex panel V by wide reads, and B − V T' Vᴴ B for strips of columns, a warp each.
// Called by whole warps; nothing is shared between them. The panel and T lie in shared memory as a rule.
#pragma once
#include "common/thread/wide.cuh"
#include "common/warp/part_sums.cuh"
#include "registers/thread/conjugate.cuh"

namespace qr {
using namespace common;
using namespace registers;

template <typename Scalar, int Width>
struct ComplexStrip {
    using Real = typename Field<Scalar>::Real;
    static constexpr int PITCH = Width + 16 / int(sizeof(Scalar));  // of a row: threads' wide reads meet different banks
    static constexpr int NUMBERS = 2 * Width, STRIP = 8;            // real numbers in a row; columns of a warp

    static __device__ void read(Scalar (&x)[Width], const Scalar* row) {
        read_wide(reinterpret_cast<Real(&)[NUMBERS]>(x), reinterpret_cast<const Real*>(row));
    }
    static __device__ void write(Scalar* row, const Scalar (&x)[Width]) {
        write_wide(reinterpret_cast<Real*>(row), reinterpret_cast<const Real(&)[NUMBERS]>(x));
    }

    // B ← B − V T' (Vᴴ B), T' = Tᴴ where Adjoint, else T: a warp a strip of columns, rows dealt out to its quarters.
    //     panel   rows × PITCH: V, with its ones and zeros     B   rows × columns, leading dimension ld
    template <bool Adjoint>
    static __device__ void apply(const Scalar* panel, int rows, const Scalar (&T)[Width][Width], Scalar* B, long long ld, int columns) {
        const int lane = threadIdx.x % WARP, part = lane / STRIP;
        for (int first = threadIdx.x / WARP * STRIP; first < columns; first += blockDim.x / WARP * STRIP) {
            const int column = first + lane % STRIP;
            const bool inside = column < columns;
            Scalar sums[Width], w[Width];
#pragma unroll
            for (int l = 0; l < Width; l++) sums[l] = Scalar();
            for (int r = part; r < rows; r += WARP / STRIP) {
                Scalar v[Width];
                read(v, panel + r * PITCH);
                const Scalar b = inside ? B[r * ld + column] : Scalar();
#pragma unroll
                for (int l = 0; l < Width; l++) sums[l] = plus_dot(sums[l], v[l], b);
            }
#pragma unroll
            for (int l = 0; l < Width; l++) sums[l] = part_sum<STRIP, WARP>(sums[l]);
#pragma unroll
            for (int l = 0; l < Width; l++) {
                w[l] = Scalar();
#pragma unroll
                for (int q = 0; q < Width; q++) {
                    if (Adjoint && q <= l) w[l] = plus_dot(w[l], T[q][l], sums[q]);
                    if (!Adjoint && q >= l) w[l] = multiply_add(w[l], T[l][q], sums[q]);
                }
            }
            for (int r = part; r < rows && inside; r += WARP / STRIP) {
                Scalar v[Width], b = B[r * ld + column];
                read(v, panel + r * PITCH);
#pragma unroll
                for (int l = 0; l < Width; l++) b = less_product(b, v[l], w[l]);
                B[r * ld + column] = b;
            }
        }
    }
};

}  // namespace qr
