// common/thread/constants.cuh — numbers of the hardware that every floor knows.
#pragma once

namespace common {

constexpr int WARP = 32;                       // threads of a warp
constexpr unsigned EVERY_LANE = 0xffffffffu;   // the mask of a whole warp

}  // namespace common
