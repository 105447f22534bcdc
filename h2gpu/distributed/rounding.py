"""Parts of a distributed matrix in float32: as `compression.precision`, each rank with its share of the account.

    Σ_ranks rounded²  ≤  Σ_ranks storage ‖rows of the rank‖²  =  storage ‖A‖²

The leaf bases of all ranks are rounded or none.
"""

from dataclasses import replace

import numpy as np

from h2gpu.blocksparse import MixedBlocks
from h2gpu.h2matrix.compression.precision import cheapest, leaves_fit, worthwhile
from h2gpu.h2matrix.compression.squares import squares_of, worst_rounding
from h2gpu.h2matrix.norms import MEASURES


def rounded(comm, parts, weights, bases, accuracy):
    """(parts, bases) with what may be in float32; arguments as for `precision.rounded`.

    parts     {name: blocks, stored or evaluated} of this rank; names of couplings begin with "far"
    weights   {name: 2 where a block stands for its transpose too, and is with no other rank}
    bases     list of one ClusterBasis a side, orthonormal over all ranks
    """
    asked = {name: (part, MEASURES) for name, part in parts.items()}
    found, worst = squares_of(asked, weights, [worst_rounding(basis) for basis in bases])
    squares, errors = ({name: measured[i] for name, measured in found.items()} for i in range(2))
    whole, far = (sum(square.total for name, square in squares.items() if name.startswith(of)) for of in ("", "far"))
    choices, spent = cheapest(parts, errors, accuracy.storage * whole), 0.0
    del asked
    for name, chosen in choices.items():
        if worthwhile(chosen, parts[name].sizes):
            parts[name] = MixedBlocks.of(parts[name], chosen)
            spent += errors[name].of(chosen)
    whole, far, spent = comm.sum(np.array([whole, far, spent]), "rounding")
    rest = accuracy.rtol * whole**0.5 - np.sqrt(accuracy.unrounded.rtol**2 * whole + spent)
    if not leaves_fit(np.max(comm.gather(worst, "rounding"), axis=0), far**0.5, rest):
        return parts, bases
    return parts, [replace(basis, leaf=basis.leaf.astype(np.float32)) for basis in bases]
