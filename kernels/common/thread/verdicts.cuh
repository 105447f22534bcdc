// common/thread/verdicts.cuh — what info holds of a matrix that could not be treated; h2gpu/batched/core/status.py says so in words.
#pragma once

namespace common {

enum Failure { NO_FAILURE = 0, NOT_FINITE = -1, NOT_CONVERGED = -2 };

}  // namespace common
