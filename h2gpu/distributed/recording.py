"""A product of all ranks as one CUDA graph a rank, exchange and sums in it: one launch where there were sixty.

The host no longer takes part between two steps, so that the exchange really goes on behind the diagonal product. All
ranks record together or none does: NCCL wants an exchange recorded on all sides or on none.
"""

from contextlib import contextmanager
from copy import deepcopy

from h2gpu.batched.device.graphs import Recording, as_graph


def recorded(comm, owner, key, work, x):
    """work(x) of one vector (n, 1), a product by all ranks, from the second time on as a CUDA graph.

    As `batched.device.graphs.as_graph`; plainly where the ranks' exchanges cannot be recorded.
    """
    return as_graph(owner, key, work, x, lambda: RecordedProduct(comm)) if comm.records else work(x)


class RecordedProduct(Recording):
    """A Recording of work that exchanges."""

    def __init__(self, comm):
        super().__init__()
        self._comm, self._received = comm, None
        comm.recordings.add(self)

    @contextmanager
    def rehearsing(self):
        """Nothing is exchanged, nor counted."""
        comm = self._comm
        kept, comm.mode = deepcopy(comm.traffic), "rehearsed"
        try:
            yield
        finally:
            comm.traffic, comm.mode = kept, "plain"

    @contextmanager
    def capturing(self):
        """Exchanges become part of the graph; what each of its runs receives is noted."""
        comm = self._comm
        kept, comm.mode = comm.traffic, "recorded"
        comm.traffic = type(kept)()
        try:
            yield
        finally:
            self._received, comm.traffic, comm.mode = comm.traffic, kept, "plain"

    def made(self, room):
        """Whether all ranks had room."""
        return all(self._comm.gather(room, "recording of a product"))

    def begun(self, event):
        """Wait until all ranks have begun it, as for any exchange: a rank may be gone."""
        self._comm.traffic.again(self._received)
        self._comm.begun(event, "a recorded product")
