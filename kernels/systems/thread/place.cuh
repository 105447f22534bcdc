// systems/thread/place.cuh — where a matrix of a batch lies, and where what belongs to it goes.
#pragma once
#include "common/thread/verdicts.cuh"

namespace systems {
using namespace common;

// table   (matrices, 6) int64: entries before the matrix, before its result and before its pivots, rows, columns, index in
//         the caller's batch; or null for matrices m × n packed
struct Place {
    static constexpr int COLUMNS = 6;
    long long source = 0, target = 0, pivots = 0, index = 0;
    int m = 0, n = 0;

    __device__ Place() {}
    __device__ Place(const long long* table, int rows, int columns, long long b) : index(b), m(rows), n(columns) {
        if (table) {
            const long long* row = table + COLUMNS * b;
            source = row[0], target = row[1], pivots = row[2], m = row[3], n = row[4], index = row[5];
        } else {
            source = target = b * m * n;
            pivots = b * min(m, n);
        }
    }

    __device__ int steps() const { return min(m, n); }
};

}  // namespace systems
