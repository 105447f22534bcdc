"""Launches behind others: what the driver is asked for, when it is asked, and the bits of a product by graph."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

pytestmark = pytest.mark.gpu
KERNEL, MEMSET = 0, 2  # CUgraphNodeType


@pytest.fixture
def chains(monkeypatch):
    """The module, its driver one that says what it was asked for in `.asked`, and what stands before by `.before`."""
    import cupy

    from h2gpu.batched.device import chains

    told = SimpleNamespace(asked=[], before=[KERNEL], status=0, sizes=(), capturing=True)

    def info(stream, status, identity, graph, nodes, edges, count):
        assert (stream.value, identity, graph, edges) == (5, None, None, None)
        told.nodes = (ctypes.c_void_p * 2)(*[1 + kind for kind in told.before])
        nodes._obj.contents = ctypes.cast(told.nodes, ctypes.POINTER(ctypes.c_void_p)).contents
        count._obj.value = len(told.before)
        return 0

    def kind(node, found):
        found._obj.value = node.value - 1 if node.value else KERNEL
        return 0

    def start(config, function, places, extra):
        config, at = config._obj, (ctypes.c_void_p * len(told.sizes)).from_address(places.value)
        grid = [getattr(config, name) for name, _ in chains.Config._fields_[:7]]
        attribute, how = config.attributes[0], (config.stream, config.count)
        arguments = [ctypes.string_at(place, size) for place, size in zip(at, told.sizes)]
        told.asked.append((function.value, grid, *how, attribute.id, list(attribute.value), extra))
        told.arguments = arguments
        return told.status

    driver = SimpleNamespace(cuLaunchKernelEx=start, cuStreamGetCaptureInfo_v3=info, cuGraphNodeGetType=kind)
    stream = SimpleNamespace(ptr=5, is_capturing=lambda: told.capturing)
    monkeypatch.setattr(chains, "_driver", lambda: driver)
    monkeypatch.setattr(chains, "compute_capability", lambda device: told.capability)
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: stream)
    told.capability, told.launch_behind = "90", chains.launch_behind
    return told


class Function:
    """A kernel of the driver's, and how often CuPy was asked for it."""

    kernel, count = SimpleNamespace(ptr=77), 0

    def __call__(self, grid, block, arguments, shared_mem=0):
        self.count += 1


def test_the_structs_are_those_of_cuda_h():
    """CUlaunchConfig and CUlaunchAttribute of CUDA 12 and 13, by a compiler of C++."""
    from h2gpu.batched.device.chains import Attribute, Config

    assert ctypes.sizeof(Config) == 56 and ctypes.sizeof(Attribute) == 72 and Attribute.value.offset == 8
    assert [getattr(Config, name).offset for name in ("grid_x", "block_x", "shared")] == [0, 12, 24]
    assert [getattr(Config, name).offset for name in ("stream", "attributes", "count")] == [32, 40, 48]


def test_the_driver_is_asked_for_an_early_launch(chains):
    import cupy

    array, function = cupy.asarray(np.ones(3)), Function()
    arguments = array, 7, np.int64(2**40), np.float32(1.5), np.uint64(0)
    chains.sizes = 8, 4, 8, 4, 8
    chains.launch_behind(function, 12, 64, arguments, 1024)
    serialization = 6
    assert chains.asked == [(77, [12, 1, 1, 64, 1, 1, 1024], 5, 1, serialization, [1, *[0] * 15], None)]
    words = [np.int64(array.data.ptr), np.int32(7), *arguments[2:]]
    assert chains.arguments == [word.tobytes() for word in words] and not function.count


@pytest.mark.parametrize(
    "what", [*({"before": kinds} for kinds in ([], [MEMSET], [KERNEL] * 2)), {"capturing": False}, {"capability": "86"}]
)
def test_elsewhere_a_launch_is_cupys(what, chains):
    vars(chains).update(what)
    function = Function()
    chains.launch_behind(function, 12, 64, (np.int64(1),))
    assert function.count == 1 and not chains.asked


def test_a_launch_of_no_blocks_is_none(chains):
    function = Function()
    chains.launch_behind(function, 0, 64, ())
    assert not function.count and not chains.asked


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_by_graph_has_the_bits_of_launches_one_after_the_other(dtype, monkeypatch):
    """The first product of a matrix is launched kernel by kernel, the others are a graph, with chains in it."""
    import cupy

    import h2gpu
    from h2gpu.covariance import Exponential

    rng = np.random.default_rng(0)
    sites = cupy.asarray(rng.random((6000, 2)).astype(dtype))
    A = h2gpu.covariance_matrix(sites, Exponential(length_scale=0.3), rtol=1e-4)
    vectors = [cupy.asarray(rng.standard_normal(6000).astype(dtype)) for _ in range(20)]
    by_graph = [(A @ x).get() for x in vectors]
    plain = [(A.replace() @ x).get() for x in vectors]
    assert all((y == z).all() for y, z in zip(by_graph, plain))
