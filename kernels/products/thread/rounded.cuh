// products/thread/rounded.cuh — whole numbers of units.
#pragma once

namespace products {

// The least multiple of `unit` that is no less than count.
__host__ __device__ constexpr int rounded_up(int count, int unit) { return (count + unit - 1) / unit * unit; }

}  // namespace products
