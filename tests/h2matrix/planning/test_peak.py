"""The peak of memory that a plan foretells is near the one that the system has seen."""

import subprocess
import sys

import pytest

MEASURED = """
import sys
import numpy as np
import h2gpu

def resident():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(sys.argv[1]))

points, cov = np.random.default_rng(1).random((40_000, 2)), h2gpu.covariance.Matern(1.0, 0.1, 0.5)
h2gpu.covariance_matrix(points[:500], cov, 1e-3)
before, plan = resident(), h2gpu.plan(points, cov, 1e-6)  # the job makes one too
sys.argv[1] = "VmHWM"
h2gpu.covariance_matrix(points, cov, 1e-6)
print(plan.bytes_peak / (resident() - before))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_peak_is_within_a_third_of_what_is_measured():
    answer = subprocess.run([sys.executable, "-c", MEASURED, "VmRSS"], capture_output=True, text=True, check=True)
    assert 1 / 1.3 < float(answer.stdout) < 1.3
