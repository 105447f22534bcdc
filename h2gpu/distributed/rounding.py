"""Parts of a distributed matrix in float32: as `compression.precision`, each rank with its share of the account.

    Σ_ranks rounded²  ≤  Σ_ranks storage ‖rows of the rank‖²  =  storage ‖A‖²

The leaf bases of all ranks are rounded or none.
"""

from dataclasses import replace

import numpy as np

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.blocksparse import MixedBlocks
from h2gpu.h2matrix.compression.precision import WORTHWHILE, cheapest, squares_of
from h2gpu.h2matrix.norms import MEASURES


def rounded(comm, parts, weights, bases, accuracy):
    """(parts, bases) with what may be in float32; arguments as for `precision.rounded`.

    parts     {name: blocks, stored or evaluated} of this rank; names of couplings begin with "far"
    weights   {name: 2 where a block stands for its transpose too, and is with no other rank}
    bases     list of one ClusterBasis a side, orthonormal over all ranks
    """
    found = squares_of({name: (part, MEASURES) for name, part in parts.items()})
    squares = {name: weights[name] * norms.sum() for name, (norms, _) in found.items()}
    errors = {name: weights[name] * rounding for name, (_, rounding) in found.items()}
    choices, spent = cheapest(parts, errors, accuracy.storage * sum(squares.values())), 0.0
    for name, chosen in choices.items():
        sizes = parts[name].sizes
        if chosen @ sizes > WORTHWHILE * sizes.sum():
            parts[name] = MixedBlocks.of(parts[name], chosen)
            spent += errors[name][chosen].sum()
    far = sum(square for name, square in squares.items() if name.startswith("far"))
    whole, far, spent = comm.sum(np.array([sum(squares.values()), far, spent]), "rounding")
    rest = accuracy.rtol * whole**0.5 - np.sqrt(accuracy.unrounded.rtol**2 * whole + spent)
    worst = [float(to_host(batched.rounding_errors(basis.leaf)).max(initial=0)) for basis in bases]
    worst = np.max(comm.gather(worst, "rounding"), axis=0)
    if not far or ((1 + worst[0]) * (1 + worst[-1]) - 1) * far**0.5 > rest:
        return parts, bases
    return parts, [replace(basis, leaf=basis.leaf.astype(np.float32)) for basis in bases]
