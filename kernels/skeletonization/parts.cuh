// skeletonization/parts.cuh — matrices A_b that are zero but for some rows and their leading columns, from packed storage:
//     A_b[first_b + i][j] = packed[offset_b + i · columns_b + j],   i < rows_b, j < columns_b
// One warp a row, its lanes along it.
#pragma once
#include "common/thread/constants.cuh"

namespace skeletonization {
using namespace common;

// out: count × m × n, every entry is written; its matrix c is A_b, b = which[c], or c without `which`
// offset, first, rows, columns: one number a matrix   lines: count · m
template <typename Real, int Warps>
__global__ __launch_bounds__(Warps * WARP)
void unpack_parts(const Real* packed, const long long* offset, const long long* first, const long long* rows, const long long* columns,
                  const long long* which, long long lines, int m, int n, Real* out) {
    const long long line = static_cast<long long>(blockIdx.x) * Warps + threadIdx.x / WARP;
    if (line >= lines) return;
    const long long c = line / m, b = which ? which[c] : c, i = line - c * m - first[b];
    const int known = i >= 0 && i < rows[b] ? static_cast<int>(columns[b]) : 0;
    packed += offset[b] + i * known;
    out += line * n;
    for (int j = threadIdx.x % WARP; j < n; j += WARP) out[j] = j < known ? packed[j] : Real(0);
}

}  // namespace skeletonization
