"""The model of a product by ranks, from measurements where there are any.

    seconds = max(floor, n / P · a site) + (P > 1) wait + messages · latency + bytes received / link

where a sum over the ranks of what lies above the cut is 2 log₂ P messages. Nothing of it overlaps: a bound from above
for them. A table of benchmarks.distributed gives all but the floor and what other nodes cost.
"""

from dataclasses import dataclass, field

import numpy as np

from h2gpu.apps.benchmarks.report import tables

MEAN_RANK = 23  # after compression to 1e-7


@dataclass(frozen=True)
class Machine:
    """GPUs and what connects them.

    floor     seconds of a product of few sites on one GPU: one H200 (benchmarks/compression)
    a_site    seconds a site of one of many
    wait      seconds of an exchange with one message of nothing beyond its latency
    latency   seconds a message
    links     {name: bytes a second that a rank receives}
    """

    floor: float = 0.49e-3
    a_site: float = 27e-3 / 2**25
    wait: float = 0.0
    latency: float = 20e-6
    links: dict = field(default_factory=lambda: {"NVLink": 400e9, "InfiniBand": 45e9})

    @classmethod
    def of(cls, path):
        """As the rows of a table of GPUs tell; what they do not tell is assumed, and so is all for None."""
        rows = tables.read(path)[1] if path else []
        known, found = cls(), {}
        alone = [row for row in rows if row["ranks"] == "1"]
        if alone:
            largest = max(alone, key=lambda row: int(row["n"]))
            found["a_site"] = 1e-3 * float(largest["A x ms"]) / int(largest["n"])
        told = [row for row in rows if row.get("latency us") and row["ranks"] != "1"]
        if told:
            ranks = np.array([float(row["ranks"]) for row in told])
            seconds = 1e-6 * np.array([float(row["latency us"]) for row in told])
            found["wait"], found["latency"] = _line(ranks - 1, seconds)
            nvlink = 1e9 * min(float(row["GB/s"]) for row in told)
            found["links"] = {**known.links, "NVLink": nvlink}
        return cls(**found)

    def product(self, n, ranks, messages, size, link, summed=0):
        """Seconds of a product of n sites in all: messages and bytes that the worst rank receives, summed clusters."""
        if summed:
            messages, size = messages + 2 * np.ceil(np.log2(ranks)), size + 2 * 8 * MEAN_RANK * summed
        work = max(self.floor, n / ranks * self.a_site)
        return work + self.wait * (ranks > 1) + messages * self.latency + size / self.links[link]


def _line(messages, seconds):
    """(a, b) of a + b · messages through measured seconds, both at least 0; b alone where there is one number."""
    if len(set(messages)) > 1:
        b, a = np.polyfit(messages, seconds, 1)
        if a >= 0 and b >= 0:
            return float(a), float(b)
    return (0.0, float(messages @ seconds / (messages @ messages)))
