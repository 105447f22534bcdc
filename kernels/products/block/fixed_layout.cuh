// products/block/fixed_layout.cuh — op(A) and op(B) of products whose sizes the compiler knows, as they lie in shared memory.
//
// A block takes Group whole matrices at once, or of one matrix Band rows of op(A) and Slab inner indices at a time (Streams).
// Matrices of a group follow one another, in memory as here, as rows of one tall matrix. Pitches keep the reads of
// products/warp/staged_product.cuh free of bank conflicts; whole real matrices of odd rows need none and are copied as one run.
#pragma once
#include "common/thread/constants.cuh"
#include "products/block/staged_rows.cuh"
#include "products/thread/rounded.cuh"

namespace products {
using namespace common;

constexpr int BY_ROWS = 0, BY_LANES = 1, BY_TENSOR = 2;  // a thread a row; a warp on the vector pipe; on the tensor cores
constexpr int TENSOR_TILE = 16, TILE_STRIP = 8;          // rows and columns of the tensor cores' tiles; 8 × 8 otherwise

__host__ __device__ constexpr int least_of(int a, int b) { return a < b ? a : b; }
__host__ __device__ constexpr int most_of(int a, int b) { return a < b ? b : a; }

// The least pitch of at least `length` that leaves `rest` when divided by `unit`.
__host__ __device__ constexpr int pitch_of(int length, int unit, int rest) { return (length + unit - 1 - rest) / unit * unit + rest; }

// The same of matrices for the tensor cores. Eight lines of four lanes read at once, float64 in two halves.
// across: whether the four are lines of it, the eight along them
template <typename Entry>
__host__ __device__ constexpr int tensor_pitch(int length, bool across) {
    return across && sizeof(Entry) < sizeof(double) ? pitch_of(length, 16, 8) : pitch_of(length, 8, 4);
}

// TileRows, TileColumns: of the whole tiles that cover a band   Same: op(B) is op(A)ᵀ, whole rows of which are there once
template <typename Entry, int M, int N, int K, bool TransA, bool TransB, int Method, int Group, bool Streams, int Band, int Slab, int Threads,
          int TileRows, int TileColumns, bool Same = false>
struct FixedLayout {
    static constexpr bool TENSOR = Method == BY_TENSOR;
    static constexpr int CHUNK = WIDEST_COPY / sizeof(Entry), INNER = Slab;
    static constexpr int LEAD_A = TransA ? M : K, LEAD_B = TransB ? K : N;
    // as they lie here: rows and their length
    static constexpr int ROWS_A = TENSOR && TransA ? INNER : Band, LENGTH_A = TENSOR && TransA ? Band : INNER;
    static constexpr int ROWS_B = TENSOR && TransB ? N : INNER, LENGTH_B = TENSOR && TransB ? INNER : N;
    static constexpr bool RUN = TENSOR && !Streams && LEAD_A % 2 == 1 && LEAD_B % 2 == 1;
    static constexpr int PITCH_A = RUN ? LEAD_A : TENSOR ? tensor_pitch<Entry>(LENGTH_A, TransA)
                                   : Method == BY_LANES ? pitch_of(LENGTH_A, 2 * CHUNK, CHUNK) : LENGTH_A | 1;
    static constexpr int PITCH_B = RUN ? LEAD_B : TENSOR ? tensor_pitch<Entry>(LENGTH_B, !TransB)
                                   : Method == BY_LANES ? rounded_up(LENGTH_B, most_of(CHUNK, 2)) : LENGTH_B | 1;
    static constexpr int ENTRIES_A = rounded_up(Group * ROWS_A * PITCH_A + CHUNK, CHUNK);
    static constexpr int ENTRIES_B = Same ? 0 : rounded_up(Group * ROWS_B * PITCH_B + CHUNK, CHUNK);
    static constexpr int TO_B = Same ? 0 : ENTRIES_A;  // from the first entry of op(A) to that of op(B)
    static_assert(!Same || (TENSOR && Band == M && M == N && TransA != TransB && PITCH_A == PITCH_B), "op(A) lies as op(B) would");
    // entries behind the last matrix that reads of whole tiles reach
    static constexpr int MORE_ROWS = most_of(TileRows - Band, 0), MORE_COLUMNS = most_of(TileColumns - N, 0);
    static constexpr int BEYOND_A = (TENSOR && TransA ? MORE_ROWS : MORE_ROWS * PITCH_A) - ENTRIES_B;
    static constexpr int BEYOND_B = TENSOR && TransB ? MORE_COLUMNS * PITCH_B : MORE_COLUMNS;
    static constexpr int STAGE = ENTRIES_A + ENTRIES_B + rounded_up(most_of(most_of(BEYOND_A, BEYOND_B), 0), CHUNK);
    static constexpr int STEP_A = TENSOR && TransA ? 1 : PITCH_A, INNER_A = TENSOR && TransA ? PITCH_A : 1;
    static constexpr int INNER_B = TENSOR && TransB ? 1 : PITCH_B, STEP_B = TENSOR && TransB ? PITCH_B : 1;

    // whether a group may have fewer matrices, the last band fewer rows, the last slab fewer inner indices
    static constexpr bool FEWER = Group > 1, LAST_BAND = M % Band != 0, LAST_SLAB = K % Slab != 0;

    // Inner indices of slab `slab` that there are.
    static __device__ int inner(int slab) { return LAST_SLAB ? min(Slab, K - slab * Slab) : Slab; }

    // Copies of slab `slab` set out, of `matrices` of the group whose first are A and B, and of `rows` from row0 on; zeros
    // behind the last of a slab's inner indices.
    static __device__ void load(Entry* stage, const Entry* A, const Entry* B, int matrices, int row0, int rows, int slab) {
        const int k0 = slab * Slab, inner = FixedLayout::inner(slab);
        const long long skew_a = skew(A), skew_b = skew(B);
        Entry* stage_b = stage + TO_B;
        if constexpr (RUN) {
            stage_run<Threads, Group * M * K>(stage + skew_a, A, matrices * M * K, skew_a);
            if constexpr (!Same) stage_run<Threads, Group * K * N>(stage_b + skew_b, B, matrices * K * N, skew_b);
            return;
        }
        if constexpr (!TransA)
            stage_rows<Threads, Group * Band, INNER, LEAD_A, PITCH_A, FEWER || LAST_BAND, LAST_SLAB>(stage, A + row0 * K + k0,
                                                                                                    Group > 1 ? matrices * M : rows, inner);
        else if constexpr (TENSOR)
            stage_rows<Threads, Group * INNER, Band, LEAD_A, PITCH_A, FEWER || LAST_SLAB, LAST_BAND>(stage, A + k0 * M + row0,
                                                                                                    Group > 1 ? matrices * K : inner, rows);
        else {
#pragma unroll 1
            for (int q = 0; q < matrices; q++)
                stage_turned<Threads, Band, INNER, LEAD_A, PITCH_A>(stage + q * Band * PITCH_A, A + q * K * M + k0 * M + row0, rows, inner);
        }
        if constexpr (Same) return;
        if constexpr (!TransB)
            stage_rows<Threads, Group * INNER, N, LEAD_B, PITCH_B, FEWER || LAST_SLAB, false>(stage_b, B + k0 * N,
                                                                                             Group > 1 ? matrices * K : inner, N);
        else if constexpr (TENSOR)
            stage_rows<Threads, Group * N, INNER, LEAD_B, PITCH_B, FEWER, LAST_SLAB>(stage_b, B + k0, Group > 1 ? matrices * N : N, inner);
        else {
#pragma unroll 1
            for (int q = 0; q < matrices; q++)
                stage_turned<Threads, INNER, N, LEAD_B, PITCH_B>(stage_b + q * INNER * PITCH_B, B + q * N * K + k0, inner, N);
        }
    }

    // First entries of op(A) and op(B) of matrix q of the group.
    static __device__ const Entry* left(const Entry* stage, const Entry* A, int q) { return stage + (RUN ? skew(A) : 0) + q * ROWS_A * PITCH_A; }
    static __device__ const Entry* right(const Entry* stage, const Entry* B, int q) {
        return stage + TO_B + (RUN ? skew(B) : 0) + q * ROWS_B * PITCH_B;
    }

    // Entries between the last multiple of 16 bytes and an address.
    static __device__ int skew(const Entry* from) {
        return static_cast<int>(reinterpret_cast<unsigned long long>(from) / sizeof(Entry) % CHUNK);
    }
};

}  // namespace products
