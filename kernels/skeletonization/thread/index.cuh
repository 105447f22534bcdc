// skeletonization/thread/index.cuh — integers that places are told by: 32 bits, or 64 if Wide.
#pragma once

namespace skeletonization {

template <bool Wide> struct IndexOf { using Type = int; };
template <> struct IndexOf<true> { using Type = long long; };
template <bool Wide> using Index = typename IndexOf<Wide>::Type;

}  // namespace skeletonization
