// products/gemv_run.cuh — out_b = α A_b x_b + β y_b, transposed or of symmetric A_b, for small matrices that lie one behind the other.
//
// A block copies the run of its matrices to shared memory, in pieces of 16 bytes from a multiple of 16 on, whatever rows begin
// where; then a thread adds up one entry of a result. Threads start at different entries of their sums, so that those who read
// together read from different banks.
#pragma once
#include "common/thread/copy.cuh"
#include "products/thread/multiply_add.cuh"

namespace products {
using namespace common;

enum RunWay { BY_ROWS_OF_A, BY_COLUMNS_OF_A, BY_LOWER_TRIANGLE, BY_UPPER_TRIANGLE };
constexpr int RUN_PIECE = 16, BANK_BYTES = 128;  // bytes of a copy; of all banks

// Shared memory: a run of entries behind fewer than a piece of others, and its x.
template <typename Entry>
__host__ __device__ constexpr int run_bytes(int entries, int vectors) {
    return ((entries * static_cast<int>(sizeof(Entry)) + 2 * RUN_PIECE - 1) / RUN_PIECE * RUN_PIECE) + vectors * static_cast<int>(sizeof(Entry));
}

// A: batch × m × n   x, y, out: their entries each   each: matrices of a block   shared memory: run_bytes of them
template <typename Entry, int Threads, int Way>
__global__ __launch_bounds__(Threads)
void gemv_run(const Entry* A, const Entry* x, const Entry* y, Entry* out, long long batch, int each, int m, int n, Entry alpha, Entry beta) {
    extern __shared__ __align__(16) unsigned char memory[];
    constexpr bool COLUMNS = Way == BY_COLUMNS_OF_A;
    constexpr int BANKS = BANK_BYTES / sizeof(Entry);
    const int results = COLUMNS ? n : m, terms = COLUMNS ? m : n, size = m * n;
    const long long first = static_cast<long long>(blockIdx.x) * each;
    const int count = static_cast<int>(min(static_cast<long long>(each), batch - first));
    const unsigned long long begin = reinterpret_cast<unsigned long long>(A + first * size), from = begin / RUN_PIECE * RUN_PIECE;
    const int skew = static_cast<int>(begin - from), bytes = skew + count * size * static_cast<int>(sizeof(Entry));
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(memory));
    for (int at = threadIdx.x * RUN_PIECE; at < bytes; at += Threads * RUN_PIECE) copy_piece(target + at, reinterpret_cast<const char*>(from) + at, true);
    copies_issued();
    const Entry* run = reinterpret_cast<const Entry*>(memory + skew);
    Entry* known = reinterpret_cast<Entry*>(memory + run_bytes<Entry>(each * size, 0));
    for (int e = threadIdx.x; e < count * terms; e += Threads) known[e] = x[first * terms + e];
    copies_arrived<0>();
    __syncthreads();
    int shared = BANKS;  // threads whose rows begin at one bank: the largest common divisor of a power of two and the rows' length
    while (!COLUMNS && n % shared) shared /= 2;
    for (int e = threadIdx.x; e < count * results; e += Threads) {
        const int b = e / results, i = e - b * results;
        const Entry *a = run + b * size, *factor = known + b * terms;
        Entry sum = {};
        const auto add = [&](int k) {
            const bool across = COLUMNS || Way == BY_LOWER_TRIANGLE && k > i || Way == BY_UPPER_TRIANGLE && k < i;
            sum = multiply_add(sum, a[across ? k * n + i : i * n + k], factor[k]);
        };
        int k = COLUMNS || terms == 0 ? 0 : i / (BANKS / shared) % shared % terms;
#pragma unroll 4
        for (int count = 0; count < terms; count++) {
            add(k);
            k = k + 1 < terms ? k + 1 : 0;
        }
        const long long at = first * results + e;
        out[at] = scaled_sum(alpha, sum, beta, y + at);
    }
}

}  // namespace products
