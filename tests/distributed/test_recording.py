"""Products that are recorded: what is counted, who decides, and what becomes of graphs when a rank is gone."""

import gc

import numpy as np
import pytest

from h2gpu.batched.device.graphs import Recording
from h2gpu.distributed import Alone
from h2gpu.distributed.recording import RecordedProduct, recorded

NAME = "rows"


class Two(Alone):
    """A rank that receives eight bytes and a sum; `others`: whether the other one had room."""

    others = True

    def _gather(self, value, name):
        return [value, self.others]


def exchanged(comm):
    comm.start({}, {1: np.zeros(1)}, NAME)()
    comm.start_sum(np.zeros(1), NAME)()


def test_a_rehearsal_counts_nothing_and_a_run_what_the_capture_saw():
    comm = Two()
    product = RecordedProduct(comm)
    exchanged(comm)
    with product.rehearsing():
        assert comm.mode == "rehearsed"
        exchanged(comm)
    with product.capturing():
        assert comm.mode == "recorded"
        exchanged(comm)
        exchanged(comm)
    assert comm.mode == "plain" and comm.traffic.exchanges == {NAME: [1, 8]} and comm.traffic.sums == {NAME: 1}
    product.begun(None)
    assert comm.traffic.exchanges == {NAME: [3, 24]} and comm.traffic.sums == {NAME: 3}


@pytest.mark.parametrize("where", ["rehearsing", "capturing"])
def test_an_error_leaves_the_communicator_as_it_was(where):
    comm = Two()
    traffic, product = comm.traffic, RecordedProduct(comm)
    with pytest.raises(MemoryError), getattr(product, where)():
        raise MemoryError
    assert comm.mode == "plain" and comm.traffic == traffic


@pytest.mark.parametrize(("room", "others"), [(True, True), (True, False), (False, True)])
def test_all_ranks_record_or_none(room, others):
    comm = Two()
    comm.others = others
    assert RecordedProduct(comm).made(room) == (room and others)


def test_a_communicator_knows_its_graphs_as_long_as_they_live():
    comm = Two()
    product, other = RecordedProduct(comm), RecordedProduct(comm)
    product._graph = "graph"
    del other
    gc.collect()
    assert list(comm.recordings) == [product]
    product.forget()
    assert product._graph is None


def test_what_cannot_be_recorded_is_done_plainly():
    assert recorded(Two(), object(), "product", lambda x: 2 * x, np.ones((3, 1))).tolist() == [[2]] * 3
    assert Recording().made(True) and not Recording().made(False)
