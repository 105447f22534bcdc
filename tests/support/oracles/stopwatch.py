"""Rows to tune, and trials whose times are computed."""

from h2gpu.apps.autotune import tune, tune_space
from h2gpu.batched.device import tuning

ROUTINES = tuple(tune_space.KNOBS)


def first(routine, **limits):
    """The first row of the fallback's table with these columns."""
    found = {f"max_{name}": str(value) for name, value in limits.items()}
    return next(row for row in tuning.rows(routine) if found.items() <= row.items())


class Stopwatch:
    """Trials whose times are computed from the knobs: time(knobs, case), or a reason to reject."""

    def __init__(self, time):
        self.time, self.compiled, self.measured, self.calls = time, [], [], []

    def compile(self, jobs):
        self.calls.append(len(jobs))
        self.compiled += jobs

    def measure(self, routine, knobs, case, is_own):
        self.measured.append((knobs, case))
        ms = self.time(knobs, case)
        if isinstance(ms, str):
            raise tune.RejectedError(ms)
        return ms
