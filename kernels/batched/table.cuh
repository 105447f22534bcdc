// batched/table.cuh — a table of whole numbers, a line a matrix, from columns that are arrays or progressions.
#pragma once

struct Column {
    const long long* numbers;  // one a matrix; or null: first + b · step
    long long first, step;
    __device__ long long operator[](long long b) const { return numbers ? numbers[b] : first + b * step; }
};

// A column as it is passed: a pointer with step ARRAY, or the first number and the step.
constexpr long long ARRAY = -1;
constexpr int COLUMNS = 8;  // at most
__device__ inline Column column_of(long long word, long long step) {
    return step == ARRAY ? Column{reinterpret_cast<const long long*>(word), 0, 0} : Column{nullptr, word, step};
}

// out[b · along + c · across] = column c of matrix b, for c < count; one thread a matrix
__global__ void table(long long* out, long long batch, long long along, long long across, int count,
                      long long w0, long long s0, long long w1, long long s1, long long w2, long long s2,
                      long long w3, long long s3, long long w4, long long s4, long long w5, long long s5,
                      long long w6, long long s6, long long w7, long long s7) {
    const long long b = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (b >= batch) return;
    const Column columns[COLUMNS] = {column_of(w0, s0), column_of(w1, s1), column_of(w2, s2), column_of(w3, s3),
                                     column_of(w4, s4), column_of(w5, s5), column_of(w6, s6), column_of(w7, s7)};
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
        if (c < count) out[b * along + c * across] = columns[c][b];
}
