"""Matrices of differing sizes in one buffer.

    A_b = buffer[offsets[b] : offsets[b] + rows[b]·columns[b]]   reshaped to (rows[b], columns[b]), C order

`MatrixBatch` has its sizes on the host and its entries where the buffer lives. Selecting and stacking change sizes
only: matrices that follow one another in the buffer and have equally many columns *are* their vertical stack.
`ResidentBatch` has its sizes on the GPU, with the entries, and bounds of them on the host: all that a launch needs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from h2gpu.arrays import any_array, array_module, moved, to_host
from h2gpu.batched.core.offsets import offsets_of, rounded_up
from h2gpu.batched.core.pointers import addresses, spanned
from h2gpu.typing import Array, ArrayLike, DType, DTypeLike, Integers, Truths

SIDES = "offsets", "rows", "columns"
KEPT, KEPT_LISTS = 1 << 12, 256  # multiples of a number in a list that is kept on a device, at most; lists of them


@dataclass(frozen=True, eq=False)
class MatrixBatch:
    """A ragged batch of dense matrices.

    buffer   (entries,) NumPy or CuPy array
    offsets  (batch,) int64: where each matrix begins in it
    rows     (batch,) int64
    columns  (batch,) int64

    Raises nothing itself; what takes one checks it.
    Source: Boukaram et al. (2018), section 8: the matrices of a level, as one batch.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = batched.MatrixBatch.from_matrices([np.ones((2, 3)), np.ones((4, 1))])
    >>> len(A), A.rows.tolist(), A.columns.tolist()
    (2, [2, 4], [3, 1])
    """

    buffer: object
    offsets: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    # matrices → copies of them, packed: set by h2gpu.batched.copies, which stands above and knows how devices copy
    copied: ClassVar[Callable[["MatrixBatch"], "MatrixBatch"]]

    @staticmethod
    def of(
        buffer: Array, offsets: Integers, rows: Integers, columns: Integers, limits: tuple[int, int] | None
    ) -> "MatrixBatch":
        """A batch of the type that its sizes ask for; limits: rows and columns that no matrix exceeds."""
        if array_module(rows, columns) is np:
            return MatrixBatch(buffer, offsets, rows, columns)
        return ResidentBatch(buffer, offsets, rows, columns, limits)

    @classmethod
    def empty(
        cls,
        rows: ArrayLike,
        columns: ArrayLike,
        dtype: DTypeLike,
        xp: ModuleType = np,
        limits: tuple[int, int] | None = None,
    ) -> "MatrixBatch":
        """Uninitialized matrices, packed one after the other; rows and columns broadcast against each other.

        Where their sizes are on the device they lie as far apart as the largest that the limits allow: see
        `ResidentBatch.spread`.
        """
        if array_module(rows, columns) is not np:
            return ResidentBatch.spread(rows, columns, dtype, xp, limits)
        rows, columns = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
        if rows.shape != columns.shape:
            rows, columns = np.broadcast_arrays(rows, columns)
        sizes = rows * columns
        offsets = offsets_of(sizes)
        batch = cls(xp.empty(int(offsets[-1]), dtype), offsets[:-1], rows, columns)
        vars(batch).update(sizes=sizes, is_packed=True)  # as found: for 2^23 matrices a pass takes 50 ms
        return batch

    @classmethod
    def zeros(cls, rows: ArrayLike, columns: ArrayLike, dtype: DTypeLike, xp: ModuleType = np) -> "MatrixBatch":
        """Matrices of zeros, packed."""
        batch = cls.empty(rows, columns, dtype, xp)
        batch.buffer[:] = 0
        return batch

    @classmethod
    def from_matrices(cls, matrices: Sequence[Array]) -> "MatrixBatch":
        """A batch that copies a non-empty list of 2-D arrays of one dtype."""
        xp = array_module(*matrices)
        shapes = np.array([A.shape for A in matrices], dtype=np.int64).reshape(-1, 2)
        offsets = offsets_of(shapes.prod(axis=1))
        return cls(xp.concatenate([A.ravel() for A in matrices]), offsets[:-1], shapes[:, 0], shapes[:, 1])

    @classmethod
    def from_stack(cls, A: Array) -> "MatrixBatch":
        """The (batch, m, n) array as a batch; shares memory when A is C-contiguous."""
        count, m, n = A.shape
        return cls(A.reshape(-1), m * n * np.arange(count), np.full(count, m), np.full(count, n))

    @classmethod
    def from_rows(cls, A: Array, starts: ArrayLike, counts: ArrayLike) -> "MatrixBatch":
        """Row ranges A[starts[b] : starts[b] + counts[b]] of a C-contiguous (rows, n) array, sharing memory."""
        n = A.shape[1]
        starts, counts = np.asarray(starts, np.int64), np.asarray(counts, np.int64)
        return cls(A.reshape(-1), starts * n, counts, np.full(len(counts), n))

    @classmethod
    @any_array
    def from_pointers(
        cls,
        pointers: ArrayLike,
        rows: ArrayLike,
        columns: ArrayLike,
        owners: Array | Sequence[Array],
        dtype: DTypeLike | None = None,
    ) -> "MatrixBatch":
        """Matrices that lie where the pointers say, C order, sharing memory.

        pointers   (batch,) integers, on the host or the GPU: addresses of the first entries, as batched BLAS takes them
        rows       of each matrix, or one number for all; so columns
        owners     the contiguous arrays in which the matrices lie, NumPy's or CuPy's of one device, or other libraries'
                   by DLPack; kept alive as long as the batch is
        dtype      of the entries; None: that of the owners

        Pointers and sizes come to the host once. Matrices may overlap; pointers of empty ones are not looked at. The
        buffer spans what lies between the owners: use the matrices, and `packed()` where entries are to be in a row.
        Raises ValueError for a matrix that is not wholly in one owner or not aligned to the size of an entry, for sizes
        that are no integers ≥ 0, owners that are not contiguous or of several devices, and other types of entries.
        Source: Dong et al. (2018), whose batched routines take arrays of pointers.

        >>> import numpy as np
        >>> from h2gpu import batched
        >>> X, Y = np.ones((2, 3)), np.zeros((4, 4))
        >>> pointers = np.array([Y.ctypes.data + 2 * Y.itemsize, X.ctypes.data], np.uint64)
        >>> A = batched.MatrixBatch.from_pointers(pointers, [3, 2], [2, 3], owners=[X, Y])
        >>> A[0][...] = 7  # six entries from the third on
        >>> Y[0].tolist(), bool((A.pointers == pointers).all())
        ([0.0, 0.0, 7.0, 7.0], True)
        """
        return cls(*spanned(pointers, rows, columns, owners, dtype))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int | slice | Integers | Truths) -> Any:
        """One matrix as a 2-D view (integer), or a sub-batch sharing the buffer (slice, indices or mask)."""
        if isinstance(index, (int, np.integer)):
            m, n, start = int(self.rows[index]), int(self.columns[index]), int(self.offsets[index])
            return self.buffer[start : start + m * n].reshape(m, n)
        if array_module(index) is not np:
            return ResidentBatch.of_numbers(self.buffer, self.resident.numbers[:, index], self.bounds)
        if isinstance(index, np.ndarray) and index.dtype == bool:
            (index,) = index.nonzero()  # NumPy looks for them again with each of the three
        part = MatrixBatch(self.buffer, self.offsets[index], self.rows[index], self.columns[index])
        if isinstance(index, slice):
            self._pass_on(part, index)
        return part

    def _pass_on(self, part, index):
        """What is known of these matrices, known of a slice of them too."""
        known = vars(self)
        if "numbers" in known or "whole" in known:
            vars(part)["whole"] = self, index  # whose numbers are cut where they are needed
        if "sizes" in known:
            vars(part)["sizes"] = self.sizes[index]
        if known.get("is_packed") and index.step in (None, 1):
            vars(part)["is_packed"] = True

    def matrices(self) -> list[Array]:
        """All matrices as 2-D views, in a list: three times faster than indexing one by one."""
        ends, shapes = (self.offsets + self.sizes).tolist(), zip(self.rows.tolist(), self.columns.tolist())
        return [self.buffer[i:j].reshape(shape) for i, j, shape in zip(self.offsets.tolist(), ends, shapes)]

    def __repr__(self):
        shapes = (
            "empty"
            if not len(self)
            else (f"rows {self.rows.min()}…{self.rows.max()}, columns {self.columns.min()}…{self.columns.max()}")
        )
        return f"MatrixBatch({len(self)} matrices, {shapes}, {self.dtype}, {self.nbytes / 1e6:.3g} MB)"

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    @property
    def xp(self) -> ModuleType:
        """The array module of the buffer: numpy or cupy."""
        return array_module(self.buffer)

    @cached_property
    def sizes(self) -> Integers:
        """Entries of each matrix, (batch,)."""
        return self.rows * self.columns

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """Rows and columns that no matrix exceeds."""
        return int(self.rows.max(initial=0)), int(self.columns.max(initial=0))

    @property
    def resident(self) -> "MatrixBatch":
        """The same matrices with their sizes where the buffer is; itself where that is the host."""
        return self if self.xp is np else self._resident

    @cached_property
    def _resident(self):
        return ResidentBatch.of_numbers(self.buffer, self.numbers, self.bounds)

    @cached_property
    def numbers(self) -> Integers:
        """Offsets, rows and columns where the buffer is, (3, batch)."""
        if "whole" in vars(self):
            whole, index = vars(self)["whole"]
            return whole.numbers[:, index]
        return moved(np.array([self.offsets, self.rows, self.columns]), self.xp)

    def number(self, i: int) -> Integers:
        """Offsets (0), rows (1) or columns (2) of the matrices, where the buffer is, one behind the other."""
        if self.xp is np:
            return np.ascontiguousarray(getattr(self, SIDES[i]))
        found = vars(self).setdefault("there", {})
        if i not in found:
            found[i] = self._number_there(i)
        return found[i]

    def _number_there(self, i):
        """The same on a GPU, which is kept: CuPy takes some microseconds for a view."""
        if "whole" not in vars(self) or "numbers" in vars(self):
            found = self.numbers[i]
        else:
            whole, index = vars(self)["whole"]
            found = whole.number(i)[index]
        return found if found.flags.c_contiguous else self.xp.ascontiguousarray(found)

    @property
    def pointers(self) -> Array:
        """Addresses of the matrices' first entries, (batch,) uint64, where the buffer is."""
        return addresses(self.buffer, self.number(0))

    @property
    def is_placed(self) -> bool:
        """Whether the numbers are where the buffer is, if perhaps on the host as well."""
        return "numbers" in vars(self) or "whole" in vars(self) or self.xp is np

    @staticmethod
    def place(*batches: "MatrixBatch") -> "tuple[MatrixBatch, ...]":
        """The batches themselves, their numbers now where the buffers are as well: by one copy, for all slices."""
        away = [batch for batch in batches if not batch.is_placed]
        if away:
            sides = [side for batch in away for side in (batch.offsets, batch.rows, batch.columns)]
            packed, start = moved(np.concatenate(sides), away[0].xp), 0
            for batch in away:
                stop = start + 3 * len(batch)
                vars(batch)["numbers"], start = packed[start:stop].reshape(3, len(batch)), stop
        return batches

    def on_host(self) -> "MatrixBatch":
        """The same matrices with their sizes on the host: itself."""
        return self

    def bounded(self, bounds: tuple[int, int]) -> "MatrixBatch":
        """The same matrices, of which the caller knows bounds: itself, since these are known."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of the entries that the matrices of this batch cover."""
        return int(self.sizes.sum()) * self.dtype.itemsize

    @cached_property
    def is_packed(self) -> bool:
        """Whether the matrices follow one another in the buffer without gaps."""
        return self._follow()

    def _follow(self):
        return bool((self.offsets[1:] == (self.offsets + self.sizes)[:-1]).all())

    @property
    def entries(self) -> Array:
        """The entries of all matrices in order, (Σ rows·columns,): a view when packed, else a copy."""
        if not len(self):
            return self.buffer[:0]
        if self.is_packed:
            start = int(self.offsets[0])
            return self.buffer[start : start + int(self.sizes.sum())]
        return self.packed().buffer

    def packed(self) -> "MatrixBatch":
        """The same matrices in a buffer of exactly their size; itself when that is so already."""
        if not self.is_packed:
            return MatrixBatch.copied(self)
        if self.buffer.size == self.sizes.sum():
            return self
        return MatrixBatch(self.entries, offsets_of(self.sizes)[:-1], self.rows, self.columns)

    def to(self, xp: ModuleType) -> "MatrixBatch":
        """The same matrices in the memory of the array module xp, packed first where they do not cover the buffer."""
        if xp is self.xp:
            return self
        A = self if self.covers_buffer else self.packed()
        return MatrixBatch(moved(A.buffer, xp), A.offsets, A.rows, A.columns)

    @property
    def covers_buffer(self) -> bool:
        """Whether every entry of the buffer is of a matrix."""
        order = np.argsort(self.offsets, kind="stable")
        begins, ends = self.offsets[order], np.maximum.accumulate((self.offsets + self.sizes)[order])
        before = np.concatenate([[0], ends])
        return bool((begins <= before[:-1]).all() and before[-1] >= self.buffer.size)

    def astype(self, dtype: DTypeLike) -> "MatrixBatch":
        """The same matrices in another precision; itself when that is so already."""
        if self.dtype == np.dtype(dtype):
            return self
        batch = self.packed()
        return MatrixBatch(batch.buffer.astype(dtype), batch.offsets, batch.rows, batch.columns)

    def counterpart(self, dtype: DTypeLike) -> "MatrixBatch":
        """Uninitialized matrices of another precision that lie as these, which are packed, in a buffer of their own."""
        first, numbers = int(self.offsets[0]) if len(self) else 0, None
        if self.is_placed and self.xp is not np:
            numbers = self.numbers
            if first:
                numbers = numbers.copy()
                numbers[0] -= first
        offsets = self.offsets - first if first else self.offsets
        batch = MatrixBatch(self.xp.empty(int(self.sizes.sum()), dtype), offsets, self.rows, self.columns)
        vars(batch).update({"sizes": self.sizes, "is_packed": True} | ({} if numbers is None else {"numbers": numbers}))
        return batch

    def stacked(self, counts: ArrayLike) -> "MatrixBatch":
        """Vertical stacks of consecutive groups of counts[g] matrices, sharing memory.

        Within a group the matrices must be adjacent in the buffer and have equally many columns. A group of none
        becomes a matrix of no rows and no columns.
        """
        first = offsets_of(counts)
        rows = np.diff(offsets_of(self.rows)[first])
        some = np.asarray(counts) > 0
        offsets, columns = np.zeros(len(some), np.int64), np.zeros(len(some), np.int64)
        offsets[some], columns[some] = self.offsets[first[:-1][some]], self.columns[first[:-1][some]]
        return MatrixBatch(self.buffer, offsets, rows, columns)

    def pairs(self) -> "MatrixBatch":
        """Vertical stacks of each two consecutive matrices, on the same terms."""
        sides = self.offsets[::2], self.rows[::2] + self.rows[1::2], self.columns[::2]
        return MatrixBatch.of(self.buffer, *sides, (2 * self.bounds[0], self.bounds[1]))

    def as_stack(self) -> Array | None:
        """The (batch, m, n) view when all matrices have one shape and follow one another; else None."""
        if not len(self):
            return None
        m, n = int(self.rows[0]), int(self.columns[0])
        if (self.rows != m).any() or (self.columns != n).any() or not self.is_packed:
            return None
        return self.entries.reshape(len(self), m, n)

    def halves(self, rows: Integers, columns: Integers | None = None) -> "MatrixBatch":
        """Each matrix cut in two, of rows[2 b] and rows[2 b + 1] rows: 2·batch matrices, sharing memory.

        columns   of these, where rows are, if the caller has them: every column count twice
        """
        xp = array_module(rows)
        offsets = xp.empty(len(rows), np.int64)
        offsets[::2] = self.offsets
        xp.add(self.offsets, rows[::2] * self.columns, out=offsets[1::2])
        columns = xp.repeat(self.columns, 2) if columns is None else columns
        return MatrixBatch.of(self.buffer, offsets, rows, columns, self.bounds)


def _multiples(xp, count, step):
    """0, step, …, `count` of them, where xp computes. Those of few, which each level asks for again, are kept.

    Other streams than the default one make their own: what another has been given may not be there yet.
    """
    if count > KEPT or xp.cuda.get_current_stream().ptr:
        return _made_multiples(xp, count, step)
    return _kept_multiples(xp, xp.cuda.runtime.getDevice(), count, step)


def _made_multiples(xp, count, step):
    return xp.arange(0, count * step, step) if step else xp.zeros(count, np.int64)


@lru_cache(KEPT_LISTS)
def _kept_multiples(xp, device, count, step):
    """Of the current device, whose number this is."""
    return _made_multiples(xp, count, step)


@dataclass(frozen=True, eq=False)
class ResidentBatch(MatrixBatch):
    """A ragged batch on the GPU whose sizes only the device knows, as ranks that a kernel has just found.

    offsets, rows, columns   (batch,) int64 with the buffer
    bounds                   rows and columns that no matrix exceeds
    """

    bounds: tuple = (0, 0)

    @classmethod
    def of_numbers(cls, buffer, numbers, bounds):
        """A batch of the offsets, rows and columns in (3, batch) numbers, of which views are made on demand."""
        return cls._with(buffer=buffer, numbers=numbers, bounds=bounds)

    @classmethod
    def _with(cls, **known):
        batch = object.__new__(cls)
        vars(batch).update(known)
        return batch

    def __getattr__(self, name):
        """Offsets, rows or columns, where they were not asked for before."""
        if name not in SIDES:
            raise AttributeError(name)
        if "numbers" in vars(self):
            found = self.numbers[SIDES.index(name)]
        else:
            whole, index = vars(self)["whole"]
            found = getattr(whole, name)[index]
        vars(self)[name] = found
        return found

    def __len__(self):
        if "numbers" in vars(self):
            return self.numbers.shape[1]
        if "whole" in vars(self):
            whole, index = vars(self)["whole"]
            return len(range(*index.indices(len(whole))))
        return len(self.rows)

    @classmethod
    def spread(cls, rows, columns, dtype, xp, bounds):
        """Uninitialized matrices as far apart as the bounds allow them to be large.

        The buffer is rounded up, so that CuPy's memory pool can give what one batch leaves to the next.
        """
        count, room = len(rows), bounds[0] * bounds[1]
        offsets = _multiples(xp, count, room)
        return cls(xp.empty(rounded_up(count * room), dtype), offsets, rows, columns, bounds)

    def __getitem__(self, index):
        """A sub-batch sharing the buffer: a slice, or indices on the device."""
        if isinstance(index, (int, np.integer)):
            return super().__getitem__(index)
        if isinstance(index, slice):
            return ResidentBatch._with(buffer=self.buffer, bounds=self.bounds, whole=(self, index))
        return ResidentBatch.of_numbers(self.buffer, self.numbers[:, index], self.bounds)

    @property
    def resident(self):
        """Itself."""
        return self

    @property
    def is_packed(self):
        """Whether the matrices follow one another; looked at each time, since kernels may write the sizes."""
        return self._follow()

    @cached_property
    def numbers(self):
        """Offsets, rows and columns, (3, batch)."""
        if "whole" in vars(self):
            whole, index = vars(self)["whole"]
            if "numbers" in vars(whole):
                return whole.numbers[:, index]
        return self.xp.stack([self.offsets, self.rows, self.columns])

    def _number_there(self, i):
        """See `number`."""
        found = getattr(self, SIDES[i])
        return found if found.flags.c_contiguous else self.xp.ascontiguousarray(found)

    @property
    def is_placed(self):
        """Whether the numbers are where the buffer is."""
        return True

    def on_host(self):
        """The same matrices with their sizes on the host; waits for the device."""
        return MatrixBatch(self.buffer, *map(to_host, (self.offsets, self.rows, self.columns)))

    def with_sizes(self, rows, columns):
        """The same matrices, which are packed, with their sizes on the host too, which the caller knows."""
        sizes = rows * columns
        batch = MatrixBatch(self.buffer, offsets_of(sizes)[:-1], rows, columns)
        vars(batch).update(numbers=self.numbers, sizes=sizes, is_packed=True)
        return batch

    def bounded(self, bounds):
        """The same matrices with narrower bounds, which the caller knows."""
        known = dict(vars(self), bounds=bounds)
        return self._with(**known)
