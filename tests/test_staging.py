"""Arrays that go up through kept pinned memory arrive as they are, whatever happens to host and device meanwhile."""

import numpy as np
import pytest

from h2gpu import staging
from h2gpu.arrays import moved, moved_together, to_host

pytestmark = pytest.mark.gpu


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 1024 bytes, three of them at most."""
    for name, value in (("BLOCK", 1024), ("MOST", 3), ("LARGEST", 1024), ("_rings", {})):
        monkeypatch.setattr(staging, name, value)
    return staging._rings


@pytest.mark.parametrize("array", [
    np.arange(5), np.arange(12.0).reshape(3, 4), np.zeros((0, 3)), np.float32(2.5), np.array(7), np.arange(6) > 2,
    np.arange(12.0).reshape(3, 4).T, np.arange(10)[::2], np.arange(4) * 1j, np.arange(1 << 18),
    np.arange(3, dtype=">i8"),
])  # fmt: skip
def test_arrays_arrive_as_cupy_brings_them(array):
    import cupy

    try:
        expected = cupy.asarray(array)
    except ValueError:  # another order of bytes
        pytest.skip("none of CuPy's types")
    found = staging.to_device(array, cupy)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(to_host(found), array)


def test_what_is_sent_may_be_changed_at_once(small_blocks):
    """More than all blocks hold, from one array whose numbers change."""
    import cupy

    array, found = np.zeros(40), []
    for i in range(50):
        array[:] = i
        found.append(moved(array, cupy))
    assert [to_host(there).tolist() for there in found] == [[i] * 40 for i in range(50)]
    assert 1 < len(small_blocks[cupy.cuda.runtime.getDevice()].blocks) <= 3


def test_blocks_are_used_again_when_their_copies_are_over_and_passed_by_until_then(small_blocks, monkeypatch):
    import cupy

    waited, over = [], [True]
    events = {"record": lambda self: None, "done": property(lambda self: over[0])}
    events["synchronize"] = lambda self: waited.append(self)
    monkeypatch.setattr(cupy.cuda, "Event", lambda **_: type("Event", (), events)())
    blocks = []
    for done in (True, True, True, False, False, False):
        over[0] = done
        moved(np.zeros(128), cupy)
        blocks.append(small_blocks[cupy.cuda.runtime.getDevice()].blocks[0])
    first, second, third = list(dict.fromkeys(blocks))
    assert blocks == [first, second, first, third, second, first] and len(waited) == 3


def test_streams_of_users_are_left_to_cupy(small_blocks, monkeypatch):
    import cupy

    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: type("Stream", (), {"ptr": 5}))
    monkeypatch.setattr(cupy, "asarray", lambda array: "CuPy's")
    assert moved(np.arange(3), cupy) == "CuPy's" and not small_blocks


def test_arrays_that_go_together_share_a_copy(small_blocks):
    import cupy

    sent = np.arange(5), np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(0)
    for array, there in zip(sent, moved_together(cupy, *sent)):
        assert (there.dtype, there.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(to_host(there), array)
    assert small_blocks[cupy.cuda.runtime.getDevice()].used == 512
