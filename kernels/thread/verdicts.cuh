// thread/verdicts.cuh — what info holds of a problem beside 0 and the step, one-based, that broke down.
#pragma once

constexpr int NOT_FINITE = -1;  // NaN or Inf in A
