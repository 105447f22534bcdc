// common/thread/each_number.cuh — loops whose index is a compile-time number: f(Number<First>{}), …, f(Number<End − 1>{}).
#pragma once

namespace common {

template <int Value>
struct Number {
    static constexpr int value = Value;
};

template <int First, int End, typename F>
__device__ void each_number(F f) {
    if constexpr (First < End) {
        f(Number<First>{});
        each_number<First + 1, End>(f);
    }
}

}  // namespace common
