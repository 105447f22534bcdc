"""Fixtures for all tests: the array module, and how hypothesis draws."""

import gc
import importlib
import os
import sys
from functools import cache

import pytest
from hypothesis import settings

collect_ignore = ["support"]
collect_ignore_glob = ["*conftest.py"]  # they hold no doctests, and share one name
if "emulated" not in sys.modules:
    collect_ignore += ["kernels/test_emulator.py", "kernels/test_races.py"]  # see kernels/test_emulated.py

gc.disable()  # while tests are collected nothing becomes garbage: measured, 3 of 8 seconds

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@cache
def no_device():
    """Why GPU tests cannot run here, or None when they can."""
    try:
        cupy = importlib.import_module("cupy")
        return None if cupy.cuda.runtime.getDeviceCount() else "no CUDA device"
    except Exception as error:  # CuPy absent, or no driver
        return f"no CUDA device: {type(error).__name__}"


@pytest.hookimpl(trylast=True)  # after -m has deselected
def pytest_collection_modifyitems(items):
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and no_device():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason=no_device()))


def pytest_collection_finish():
    """What was imported stays: the collector need not look at it again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gpu)])
def xp(request):
    """The array module in which a theorem is tried: numpy, and cupy where there is a device."""
    return importlib.import_module(request.param)


@pytest.fixture(autouse=True)
def allocator(request):
    """Commands let CuPy allocate from another pool: not beyond the test that runs them."""
    yield
    if request.node.get_closest_marker("gpu"):
        cupy = importlib.import_module("cupy")
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)


@pytest.fixture
def drawn(tmp_path):
    """Asserts that the pictures of the tables in tmp_path are drawn, those of some names among them."""

    def check(*names):
        pytest.importorskip("matplotlib")
        from h2gpu.apps.studies.baselines import plots

        assert plots.main([str(tmp_path)]) == 0
        assert all((tmp_path / f"{name}.png").stat().st_size > 10_000 for name in names)

    return check


@pytest.fixture
def untimed(monkeypatch):
    """Studies on a device without its clock, its name, graphs, caches and processes that compile."""
    from h2gpu.apps.benchmarks import timing
    from h2gpu.apps.studies.baselines import timed

    monkeypatch.setattr(timing, "device_ms", lambda *_: 1.0)
    monkeypatch.setattr(timed, "recorded", lambda work: work)
    monkeypatch.setattr(timing, "gpu_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(timing, "side_by_side", lambda *_: None)
    monkeypatch.setattr(timing, "CACHE_BYTES", 1)
