// products/thread/operands.cuh — where the operands of one product of a batch lie.
#pragma once

namespace products {

// table   (6, batch) int64: entries before A_b, x_b, y_b and out_b, rows and columns of A_b; or null for a batch of one shape,
//         whose matrices are m × n and whose other operands have `x`, `y` entries each
struct Operands {
    long long a, x, y, out;
    int m, n;

    __device__ Operands(const long long* table, long long batch, long long b, int rows, int columns, long long size_x, long long size_y)
        : a(b * rows * columns), x(b * size_x), y(b * size_y), out(b * size_y), m(rows), n(columns) {
        if (table) {
            table += b;
            a = table[0], x = table[batch], y = table[2 * batch], out = table[3 * batch];
            m = static_cast<int>(table[4 * batch]), n = static_cast<int>(table[5 * batch]);
        }
    }
};

}  // namespace products
