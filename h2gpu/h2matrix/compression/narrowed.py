"""A nearfield that will be kept in float32, evaluated once: measured and rounded while its blocks are in a cache.

The budget of a compression needs its norm before all else, the account of rounding the errors of its blocks, and the
result the blocks themselves. Evaluated for each, they took a fifth of `covariance_matrix` on two cores.
"""

from dataclasses import dataclass, fields

import numpy as np

from h2gpu.batched import MatrixBatch
from h2gpu.blocksparse.mixed import copy
from h2gpu.h2matrix.compression.precision import bytes_expected
from h2gpu.h2matrix.nearfield import EvaluatedNearfield
from h2gpu.h2matrix.norms import measures
from h2gpu.progress import phase

KEPT = {"numpy": True, "cupy": False}  # a GPU evaluates faster than it finds room at the peak


@dataclass(frozen=True, eq=False)
class NarrowedNearfield(EvaluatedNearfield):
    """An EvaluatedNearfield with its blocks in float32 beside, until their rounding is decided.

    in_float32  MatrixBatch of all blocks
    measures    {measure: (blocks,)} where the blocks are, see `norms.measures`
    """

    in_float32: MatrixBatch
    measures: dict

    @classmethod
    def of(cls, D):
        """What D, an EvaluatedNearfield, makes of its blocks."""
        blocks = MatrixBatch.empty(*D.shapes, np.float32, D.xp)
        found = measures(D, lambda part, made: copy(made, blocks[part]))
        return cls(**{field.name: getattr(D, field.name) for field in fields(D)}, in_float32=blocks, measures=found)


def with_narrowed(A, accuracy):
    """A, of evaluated nearfield, with it narrowed where much of it will be in float32."""
    if not KEPT[A.xp.__name__] or bytes_expected(accuracy, "auto") == A.dtype.itemsize:
        return A
    with phase("nearfield"):
        return A.replace(nearfield=NarrowedNearfield.of(A.nearfield))
