// A number from which all that follows is worked out again: the compiler cannot keep it in registers from one round of a loop to the next.
#pragma once

__device__ __forceinline__ int anew(int x) {
    asm volatile("" : "+r"(x));
    return x;
}
