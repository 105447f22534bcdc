"""What is common to the batched routines as benchmarks and tuning meet them; see batched.py."""

from typing import ClassVar

from h2gpu.apps.benchmarks import timing
from h2gpu.apps.benchmarks.routines.spectra import matrices


class Routine:
    """Uniform batches of one matrix each; `call` is the public function of an input, nominal and criterion its own.

    kernels   method → kernels, one of which is launched where the size admits the method
    """

    kernels: ClassVar = {}

    def shown(self, shape):
        """The sizes in words."""
        return "×".join(map(str, shape))

    def inputs(self, case, rotate=True):
        """Inputs in rotation."""
        A = matrices(case.batch, *case.shape, case.dtype, case.spectrum or "flat")
        return timing.rotation(A) if rotate else [A]

    def work(self, case):
        """A function of an input that waits for nothing; by default the public one."""
        return self.call(case)

    def facts(self, case, result):
        """More columns of the row, from a result of work."""
        return {}

    def columns(self, case):
        """Samples that the peer shall take."""
        return None


class Paired(Routine):
    """Uniform batches of pairs: a matrix and what it meets."""

    def inputs(self, case, rotate=True):
        """Pairs in rotation."""
        import cupy

        A = self.prepared(matrices(case.batch, *case.shape[:2], case.dtype))
        other = cupy.random.standard_normal((case.batch, *self.other(case.shape)), dtype=case.dtype)
        if not rotate:
            return [(A, other)]
        return list(zip(timing.rotation(A), timing.rotation(other)))

    def prepared(self, A):
        """The matrices as the routine needs them."""
        return A
