"""Latency over stride and footprint: cycles visit every place, each is measured alone; the tables and their picture."""

import numpy as np
import pytest

from h2gpu.apps.autotune import memory_curves
from h2gpu.apps.benchmarks.report import tables


@pytest.mark.parametrize(("count", "step"), [(8, 4), (1000, 32), (1 << 15, 1), (3, 1 << 19)])
def test_a_cycle_visits_every_place_a_stride_apart(count, step):
    following, at, seen = memory_curves.cycle(count, step, np), 0, []
    for _ in range(count):
        seen.append(at)
        at = int(following[at // step])
    assert seen == list(range(0, count * step, step)) and at == 0 and following.dtype == np.uint32
    assert memory_curves.FOOTPRINTS[-1] // 4 <= 1 << 32  # words that an address of 32 bits reaches


class Walked(memory_curves.Curves):
    """A GPU whose reads take 100 cycles within 64 KiB, 500 beyond, and whose multiprocessors copy 10 bytes a second."""

    def __init__(self):
        self.arrays, self.repeats, self.clock, self.multiprocessors = np, 1, 1e9, 20
        self._cycles, self.chain, self.walks = np.zeros(2, np.int64), np.full(1 << 18, 1 << 30, np.uint32), []

    def launch(self, name, instance, blocks, threads, arguments, shared=0):
        chain, warm, steps, cycles, _ = arguments
        assert (name, blocks, threads) == ("chase_latency", 1, 1)
        at, seen = 0, set()
        for _ in range(warm):
            seen.add(at)
            at = int(chain[at])
        self.walks.append((instance, len(seen), max(seen)))
        cycles[0] = steps * (100 if max(seen) < 16 << 10 else 500)

    def timed(self, name, instance, blocks, threads, arguments, shared=0):
        source, target, count, times = arguments
        assert name == "copy_rate" and source.nbytes == target.nbytes == 16 * count and 2 * shared > 228 << 10
        return 2 * source.nbytes * times / (10 * blocks)


def test_the_tables(tmp_path, monkeypatch):
    """A row each stride and footprint, the walk through all of the one and no further; a row a share of the GPU."""
    monkeypatch.setattr(memory_curves, "FOOTPRINTS", [16 << 10, 64 << 10, 1 << 20])
    monkeypatch.setattr(memory_curves, "RATES", {"memory": (1 << 20, 1), "common cache": (1 << 16, 4)})
    monkeypatch.setattr(memory_curves.timing, "gpu_name", lambda: "Some GPU")
    bench = Walked()
    monkeypatch.setattr(memory_curves, "Curves", lambda repeats: bench)
    assert memory_curves.main(["-o", str(tmp_path)]) == 0
    _, rows = tables.read(tmp_path / "study_latency.csv")
    pairs = [(int(r["stride"]), int(r["footprint"])) for r in rows]
    assert len(set(pairs)) == len(pairs) == 18 and (64 << 10, 1 << 20) in pairs
    walks = [
        (instance, footprint // stride, (footprint - stride) // 4)
        for stride, footprint in pairs
        for instance in ((True,), (False,))
    ]
    assert bench.walks == walks
    assert all(float(r["past it, ns"]) == (100 if int(r["footprint"]) <= 64 << 10 else 500) for r in rows)
    _, rows = tables.read(tmp_path / "study_bandwidth.csv")
    assert [int(r["multiprocessors"]) for r in rows] == [1, 2, 4, 8, 16, 20]
    assert all(float(r["memory, GB/s each"]) == pytest.approx(1e-8) for r in rows)
    pytest.importorskip("matplotlib")
    (tmp_path / "study_latency.png").unlink()
    assert memory_curves.main(["-o", str(tmp_path), "--draw"]) == 0 and (tmp_path / "study_latency.png").is_file()
    assert len(bench.walks) == len(walks)
