// copies/table.cuh — tables of whole numbers for the matrices of a batch, from columns that are arrays or progressions.
#pragma once

namespace copies {

// step < 0: `first` is an array on the device, of whose numbers every −step-th counts; else number b is first + b · step.
// It goes to out[place + b · along].
struct Column {
    long long first, step, place, along;
    __device__ long long operator[](long long b) const {
        return step < 0 ? reinterpret_cast<const long long*>(first)[-step * b] : first + b * step;
    }
};

constexpr int COLUMNS = 24;  // at most
struct Columns {
    Column each[COLUMNS];
};

// one thread a matrix
__global__ void table(long long* out, int batch, int count, const Columns columns) {
    const long long b = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (b >= batch) return;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
        if (c < count) out[columns.each[c].place + b * columns.each[c].along] = columns.each[c][b];
}

}  // namespace copies
