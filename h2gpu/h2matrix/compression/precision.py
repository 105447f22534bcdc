"""Parts of a compressed matrix in float32, where the accuracy allows it.

    ‖A − Ã‖_F² = ‖A − B‖_F² + Σ_b w_b ‖B_b − float32(B_b)‖_F²     B compressed, w_b blocks for which a stored one stands

The squares add exactly: blocks do not overlap, the bases of B are orthonormal, and A − B of a farfield block is
orthogonal to all that has B's bases. Columns of blocks are rounded in the order of least error an entry saved, as long
as their measured errors fit. Rounding a leaf's basis changes all that passes through it, ≤ ‖δU_t‖ ‖Y_t‖, and comes
last; transfer matrices, which act once for every level above them, are few and stay as they are.
"""

from dataclasses import replace

import numpy as np

from h2gpu.batched.core.offsets import runs_of, sums_of_runs
from h2gpu.blocksparse import BlockSparse, MixedBlocks
from h2gpu.h2matrix.compression.squares import squares_of, worst_rounding
from h2gpu.h2matrix.norms import MEASURES
from h2gpu.texts import brief

STORAGES = ("auto", "full")
PARTS = "couplings", "nearfield"  # in this order: the first are there in float64, and make room for the second
ROUNDING = np.finfo(np.float32).eps / np.sqrt(24)  # relative error of a block: rounding of evenly spread mantissas
WORTHWHILE = 0.25  # of the entries of a part, below which it is not split in two: that costs time


def check_storage(storage):
    """ValueError for an unknown one."""
    if storage not in STORAGES:
        raise ValueError(f'storage: expected "auto" or "full", got {brief(storage)}')


def bytes_expected(accuracy, storage):
    """Bytes of an entry of nearfield, couplings and leaves after compression, on average.

    As large a part of their squares as may be rounded is narrow; of entries it is more, as the smallest come first.
    """
    part = min(1.0, accuracy.storage / ROUNDING**2) if accuracy.rounds(storage) else 0.0
    wide, narrow = accuracy.dtype.itemsize, np.dtype(np.float32).itemsize
    return wide - (part if part > WORTHWHILE else 0.0) * (wide - narrow)


def rounded(B, accuracy, but=()):
    """Ã, which is B with parts in float32: accurate for every A of which B is as accurate as `accuracy.unrounded`.

    B         H2Matrix of a compression: its bases orthonormal, its couplings the projection of those of A
    accuracy  Accuracy of Ã
    but       names of parts that stay as they are; evaluated blocks of others are stored where they are rounded
    """
    sides = [B.row_basis] if B.symmetric else [B.row_basis, B.col_basis]
    asked = {name: (getattr(B, name), MEASURES[: 1 if name in but else None]) for name in PARTS}
    rooms, leaves = {}, [worst_rounding(basis) for basis in sides]
    found, worst = squares_of(asked, others=leaves, meanwhile=lambda: rooms.update(_room_early(B, accuracy)))
    squares = {name: measured[0].total for name, measured in found.items()}
    errors = {name: measured[1] for name, measured in found.items() if name not in but}
    norm = np.sqrt(sum(squares.values()))
    parts = {name: getattr(B, name) for name in errors}
    spent, choices = 0.0, cheapest(parts, errors, accuracy.storage * norm**2)
    del parts, asked
    for name, chosen in choices.items():
        if worthwhile(chosen, getattr(B, name).sizes):
            B = B.replace(**{name: MixedBlocks.of(getattr(B, name), chosen, rooms.pop(name, None))})
            spent += errors[name].of(chosen)
    rest = accuracy.rtol * norm - np.sqrt((accuracy.unrounded.rtol * norm) ** 2 + spent)
    if not leaves_fit(worst, np.sqrt(squares["couplings"]), rest):
        return B
    sides = [replace(basis, leaf=basis.leaf.astype(np.float32)) for basis in sides]
    return B.replace(row_basis=sides[0], col_basis=sides[-1])


def _room_early(B, accuracy):
    """{name: room for a part's blocks in float32} on a GPU where all are stored, and expected to be rounded.

    The driver's pool takes 3 ms to find 1.6 GB (H100): better before the GPU is waited for, which is busy then.
    """
    parts = {name: getattr(B, name) for name in PARTS}
    if B.xp is np or accuracy.storage < ROUNDING**2 or not all(isinstance(A, BlockSparse) for A in parts.values()):
        return {}
    return {name: A.blocks.counterpart(np.float32) for name, A in parts.items() if A.blocks.is_packed}


def worthwhile(chosen, sizes):
    """Whether blocks of these sizes, of which some are chosen, are to be split."""
    total = sizes.sum()
    return (total if chosen.all() else chosen @ sizes) > WORTHWHILE * total


def leaves_fit(worst, farfield, allowed):
    """Whether leaf bases in float32 change a farfield of this norm by no more than is allowed.

    worst   the largest error of a leaf of each side
    """
    return bool(farfield) and ((1 + worst[0]) * (1 + worst[-1]) - 1) * farfield <= allowed


def cheapest(parts, errors, allowed):
    """{name: (blocks,) bool}: columns of blocks of least squared error an entry, as many as what is allowed takes.

    errors   {name: Squares}

    Blocks of a column are multiplied together, if they are of one precision.
    """
    if sum(error.total for error in errors.values()) <= allowed:
        return {name: np.ones(len(part), bool) for name, part in parts.items()}
    runs = [runs_of(part.columns) for part in parts.values()]
    sizes = np.concatenate([sums_of_runs(part.sizes, run) for part, run in zip(parts.values(), runs)])
    squares = np.concatenate([sums_of_runs(errors[name].each, run) for name, run in zip(parts, runs)])
    chosen = _least(squares / np.maximum(sizes, 1), squares, allowed)
    ends = np.cumsum([len(run) - 1 for run in runs])
    return {name: np.repeat(kept, np.diff(run)) for name, run, kept in zip(parts, runs, np.split(chosen, ends[:-1]))}


def _least(dear, squares, allowed):
    """Which are less dear than the first whose square no longer fits into what is allowed; equals go together.

    NumPy sorts in any order of equals in a sixth of the time of a stable one.
    """
    order = np.argsort(dear)
    fit = np.count_nonzero(np.cumsum(squares[order]) <= allowed)
    return dear < dear[order[fit]] if fit < len(dear) else np.ones(len(dear), bool)
