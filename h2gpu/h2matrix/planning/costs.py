"""What a plan takes: seconds, by what a device has taken before; and which plan is best.

    seconds = levels · level + clusters · cluster + blocks · block + multiplications · multiplication + bytes · byte

Small leaves save memory and arithmetic, and cost the host: it has lists of clusters and blocks to make, whatever their
ranks. At 2^25 sites leaves of 16 were seven times as slow as leaves of 64, for 0.4 of the memory.
"""

import math
from dataclasses import dataclass

CLEARLY = 0.9  # times as dear: estimates scatter


@dataclass(frozen=True)
class Pace:
    """Seconds of a job for each of what it has.

    level, cluster, block   of the tree and of the block tree: launches and lists of the host
    many                    blocks of which each takes twice as long, as their lists leave the caches
    multiplication          of weights and projection
    byte                    of the result: on the CPU evaluated, rounded and checked
    nearly, thrift          seconds count times this power of the result's bytes over `nearly` those of a smaller one
    """

    level: float
    cluster: float
    block: float
    many: float
    multiplication: float
    byte: float
    nearly: float
    thrift: float

    def seconds(self, levels, clusters, blocks, multiplications, nbytes):
        """Of a job."""
        host = self.level * levels + self.cluster * clusters + self.block * blocks * (1 + blocks / self.many)
        return host + self.multiplication * multiplications + self.byte * nbytes


# CPU: fitted to 56 jobs of 2^14 to 2^18 points in two and three dimensions, rtol 1e-3 to 1e-9; against
# the mean of the plans for the same points 0.8 to 1.25 times what was measured
# H200: fitted to 38 jobs of 2^16 to 2^23 points, and to 50 s for 3·10^7 blocks at 2^25; its memory is the job's
PACES = {
    "numpy": Pace(0, 0, 4.3e-5, math.inf, 1.6e-10, 9.4e-9, 1.7, 16),
    "cupy": Pace(3e-3, 1e-6, 4.5e-7, 3e7, 2e-13, 1.5e-11, 1, 1),
}


def best(plans, pace, memory):
    """The first of some plans, unless another is clearly better: faster, and not much larger for it.

    memory   those whose peak it admits are compared; where it admits none, the one of the least peak is taken
    """
    admitted = [plan for plan in plans if plan.bytes_peak <= memory]
    if not admitted:
        return min(plans, key=lambda plan: plan.bytes_peak)
    smallest = min(plan.bytes_after for plan in admitted)

    def dear(plan):
        return plan.seconds * max(1.0, plan.bytes_after / (pace.nearly * max(1, smallest))) ** pace.thrift

    return min(admitted, key=lambda plan: dear(plan) * (CLEARLY if plan is admitted[0] else 1))
