"""What a job holds at its peak: on a GPU the largest of its phases, counted; in main memory a sum that was fitted.

    weights    U + E + R + Z + S + stacks     bases, triangles, weights; couplings evaluated, and products with them
    truncate   U + E + Z/4 + 7.5 B            B the basis matrices of a level; a level's SVDs beside the next level
    project    T + S' + S                     changes of basis, couplings in new bases and in old ones
    store      result + D                     nearfield before it is rounded
    check      result + partial sums + 6 X    products with unit vectors X

U, E, R, Z, S and T as in `compression`. Of S, stacks, SVDs and D there is a piece at a time, `memory.piece_bytes`.
"""

import math
from dataclasses import dataclass

from h2gpu.batched.core.offsets import rounded_up
from h2gpu.h2matrix.compression.level_store import ROOM
from h2gpu.h2matrix.compression.together import ROOMY, SMALL

EDGE = 64  # rank up to which products of weights are no stacks: that of batched/qr/product_triangles.py
SIDES, STRIP, PANEL_ENTRIES = 16, 64, 8192  # of products with blocks: those of blocksparse/panels.py
FEW = ROOM["cupy"] // 4  # bytes of B of a level whose ranks stay on the device
POINTS = 3  # copies of the points, and of their order
ONE_SIDE = "triangles", "weights", "level"  # are there of rows or of columns


@dataclass(frozen=True)
class Held:
    """Bytes of what a job holds at one time or another, in the precision of its points; and some numbers.

    points               coordinates
    leaves, transfers    of the bases before compression; leaves that are identities take none
    triangles, weights   R and Z of all clusters
    level                B of the leaves
    changes              T
    couplings            before compression
    levels               of couplings, each as often as it is evaluated for weights, of a symmetric matrix twice: list
                         of (bytes of so many numbers, largest rows, largest columns)
    projected            couplings and leaves after compression, before they are rounded
    near                 the dense blocks
    vectors              X
    result               the compressed matrix
    side, together       numbers: columns of a dense block on average, columns of X
    blocks               number of all
    """

    points: float
    leaves: float
    transfers: float
    triangles: float
    weights: float
    level: float
    changes: float
    couplings: float
    levels: list
    projected: float
    near: float
    vectors: float
    result: float
    side: float
    together: int
    blocks: float


@dataclass(frozen=True)
class MainMemory:
    """A sum: threads take pieces, and phases share what the system has given once.

    results     copies of the result
    transfers   copies of the transfer matrices
    stacks      pieces of work, if there are couplings for so many: at most `products` for each byte of couplings
    block       bytes of each block for its place, its sizes and the lists of pairs
    """

    results: float
    transfers: float
    stacks: float
    products: float
    block: float

    def peak(self, held, piece):
        """Bytes of a job; piece: those of a piece."""
        stacks = min(self.stacks * piece, self.products * held.couplings)
        return self.results * held.result + self.transfers * held.transfers + stacks + self.block * held.blocks


@dataclass(frozen=True)
class DeviceMemory:
    """The largest phase.

    libraries   bytes in use beyond a job's arrays, by the process and not by the job
    block       bytes of each block for its place, its sizes and the lists of pairs
    high        rows of a stack for each row of the triangles that its QR leaves, and of as much workspace
    """

    libraries: float
    block: float
    high: float

    def peak(self, held, piece):
        """Bytes of a job; piece: those of a piece."""
        return self.libraries + max(self.phases(held, piece).values())

    def phases(self, held, piece):
        """Bytes of arrays by phase."""
        always = POINTS * held.points + self.block * held.blocks
        bases = always + held.leaves + held.transfers
        few = min(held.level, FEW)
        return {
            "weights": bases + held.triangles + held.weights + self._products(held, piece),
            "truncate": bases + held.weights / 4 + 5 * few + _room(2.5 * few, piece),
            "project": always + held.changes + held.projected + _room(held.couplings, piece),
            "store": always + held.result + min(held.near, piece),
            "check": always + held.result + partial_sums(held.near, held.side, held.together) + 6 * held.vectors,
        }

    def _products(self, held, piece):
        """Couplings evaluated together, and the stacks of a level's products where ranks of it or above it are wide."""
        most, group, above = 0.0, (), 0
        for count, rows, columns in held.levels:
            apart = count * rows * columns
            stack = (1 + columns / self.high) * _room(apart, piece) if max(above, rows, columns) > EDGE else 0.0
            above = rows
            level = count, rows, columns, apart, stack
            together = _joined(group, level)
            group = together if _go_together(together, piece) else level
            most = max(most, _room(math.prod(group[:3]), piece) + group[4])
        return most


def _joined(group, level):
    """What is told of levels that go together, and of one more."""
    if not group:
        return level
    (number, rows, columns, apart, stack), (count, m, n, entries, one) = group, level
    return number + count, max(rows, m), max(columns, n), apart + entries, max(stack, one)


def _go_together(group, piece):
    """As `compression.together.levels_together` has it."""
    return math.prod(group[:3]) <= min(piece, max(ROOMY * group[3], piece / SMALL))


def _room(size, piece):
    """What is taken for so many bytes, a piece of them at a time: rounded up, as for the pool."""
    return rounded_up(int(min(size, piece)))


def partial_sums(near, side, together):
    """Bytes of those of products of dense blocks, and of their transposes, with so many columns of vectors together.

    Those of a pass of SIDES columns stay until the next has its own.
    """
    strip = min(max(1.0, side), STRIP)
    return near * (1 / strip + strip / PANEL_ENTRIES) * (2 * SIDES if together > SIDES else together)


# CPU: six jobs of 2^15 to 2^17 points, in two and three dimensions, took 0.78 to 1.23 of it
# H200, without the check, which was not measured: 42 jobs of 2^14 to 2^21 points in two and three dimensions
# (scale-cuda; d76af8d) were foretold 0.91 to 1.23 times what they took, 27 of other tables 0.83 to 1.25. Of that 0.21
# to 0.47 GB, by the process, were no arrays counted on the stand-in: see benchmarks/compression/notes.md
ROOMS = {"numpy": MainMemory(1.1, 2.5, 2, 3, 1500), "cupy": DeviceMemory(3.5e8, 100, 512)}
