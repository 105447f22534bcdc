// products/thread/part.cuh — which entries of a product are wanted: all, or those of one triangle and zeros elsewhere.
#pragma once

namespace products {

enum ProductPart { WHOLE_PRODUCT, LOWER_PART, UPPER_PART };

// x at row i and column j where that is wanted, else zero
template <int Part, typename Entry>
__device__ __forceinline__ Entry in_part(int i, int j, Entry x) {
    if constexpr (Part == LOWER_PART) return j > i ? Entry{} : x;
    else if constexpr (Part == UPPER_PART) return j < i ? Entry{} : x;
    else return x;
}

}  // namespace products
