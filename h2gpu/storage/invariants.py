"""What the arrays of an H²-matrix must satisfy, so that no product ever reads or writes outside of them.

Every check is an array operation: time and memory grow with the number of points, clusters and blocks. Sizes are
compared in floating point before they are multiplied as integers, so that absurd ranks cannot overflow.
"""

import numpy as np

from h2gpu.batched.core.offsets import offsets_of
from h2gpu.storage.layout import parent_ranks

CHUNK = 1 << 22  # entries checked at a time
ROUNDING = 1e4  # in units of eps, how far symmetric blocks that were computed may be from it: sums and products are
PRIME = (1 << 31) - 1  # products of two remainders fit in 63 bits


def check(arrays, symmetric):
    """ValueError, with the name of the array, unless the arrays make an H2Matrix.

    arrays   {name: array} of the types and dimensions of `layout.names`
    """
    for side in ("row",) if symmetric else ("row", "col"):
        check_tree(arrays, f"{side}_tree/")
        check_basis(arrays, side)
    _check_precision(arrays)
    other = "row" if symmetric else "col"
    for part in ("couplings", "nearfield"):
        check_blocks(arrays, part, other, symmetric)
    _check_cover(arrays, other, symmetric)
    if symmetric:
        _check_diagonal(arrays)
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            _check_finite(name, array)


def check_tree(arrays, prefix):
    """A binary tree in level order: the children of the k-th inner cluster are clusters 2k + 1 and 2k + 2."""
    start, stop, parent, child, permutation, offsets, lower, upper = (
        arrays[prefix + name]
        for name in ("start", "stop", "parent", "first_child", "permutation", "level_offsets", "lower", "upper")
    )
    n, clusters = len(permutation), len(start)
    _expect(n >= 1 and clusters >= 1, prefix + "start", "at least one point and one cluster", f"{n} and {clusters}")
    for name, array in (("stop", stop), ("parent", parent), ("first_child", child), ("lower", lower), ("upper", upper)):
        _expect(len(array) == clusters, prefix + name, f"{clusters} clusters", f"{len(array)}")
    _expect(lower.shape == upper.shape and lower.shape[1] >= 1, prefix + "upper", "boxes (clusters, dim)", upper.shape)
    _check_permutation(permutation, prefix + "permutation")
    inner = child != -1
    before = np.concatenate(([0], np.cumsum(inner)))
    _expect(clusters == 1 + 2 * before[-1], prefix + "first_child", "two clusters for every parent", "others")
    _expect((child[inner] == 1 + 2 * np.arange(before[-1])).all(), prefix + "first_child", "level order", "another")
    parents = np.concatenate(([-1], np.repeat(np.flatnonzero(inner), 2)))
    _expect((parent == parents).all(), prefix + "parent", "the inverse of first_child", "something else")
    _check_levels(offsets, before, clusters, prefix + "level_offsets")
    _expect(start[0] == 0 and stop[0] == n, prefix + "start", "a root of all points", (start[0], stop[0]))
    _expect(((start >= 0) & (start < stop) & (stop <= n)).all(), prefix + "stop", "ranges of points", "others")
    first, second = child[inner], child[inner] + 1
    halves = (start[first] == start[inner]) & (stop[first] == start[second]) & (stop[second] == stop[inner])
    _expect(halves.all(), prefix + "start", "children that share out their parent's points", "others")
    _expect((lower <= upper).all(), prefix + "lower", "boxes with lower ≤ upper", "others")


def check_basis(arrays, side):
    """Ranks that fit the entries there are; a parent has no more than its children together."""
    ranks, name = arrays[f"{side}_basis/ranks"], f"{side}_basis/ranks"
    start, stop, parent, child = (arrays[f"{side}_tree/{key}"] for key in ("start", "stop", "parent", "first_child"))
    _expect(len(ranks) == len(start), name, f"{len(start)} clusters", len(ranks))
    leaf, transfer = arrays[f"{side}_basis/leaf"], arrays[f"{side}_basis/transfer"]
    most = len(leaf)
    _expect(((ranks >= 0) & (ranks <= most)).all(), name, f"ranks from 0 to {most}", f"{ranks.min()} to {ranks.max()}")
    inner = child >= 0
    together = ranks[child[inner]] + ranks[child[inner] + 1]
    _expect((ranks[inner] <= together).all(), name, "parents' ranks within their children's together", "larger ones")
    leaves = ~inner
    _expect_entries(leaf, (stop - start)[leaves], ranks[leaves], f"{side}_basis/leaf")
    _expect_entries(transfer, ranks, parent_ranks(ranks, parent), f"{side}_basis/transfer")


def check_blocks(arrays, part, other, symmetric):
    """Blocks of existing clusters, sorted by (column, row), each once; lower half of a symmetric matrix."""
    t, s = arrays[f"{part}/rows"], arrays[f"{part}/columns"]
    rows, cols = len(arrays["row_tree/start"]), len(arrays[f"{other}_tree/start"])
    _expect(len(t) == len(s), f"{part}/columns", f"{len(t)} blocks", len(s))
    _expect(((t >= 0) & (t < rows)).all(), f"{part}/rows", f"clusters 0 to {rows - 1}", "others")
    _expect(((s >= 0) & (s < cols)).all(), f"{part}/columns", f"clusters 0 to {cols - 1}", "others")
    later = (s[1:] > s[:-1]) | ((s[1:] == s[:-1]) & (t[1:] > t[:-1]))
    _expect(later.all(), f"{part}/rows", "blocks sorted by (column, row)", "another order")
    if part == "couplings":
        _expect(not symmetric or (t > s).all(), f"{part}/rows", "row > column", "others")
        shape = arrays["row_basis/ranks"][t], arrays[f"{other}_basis/ranks"][s]
    else:
        leaves = (arrays["row_tree/first_child"][t] < 0) & (arrays[f"{other}_tree/first_child"][s] < 0)
        _expect(leaves.all(), f"{part}/rows", "pairs of leaves", "inner clusters")
        _expect(not symmetric or (t >= s).all(), f"{part}/rows", "row ≥ column", "others")
        shape = _sizes(arrays, "row")[t], _sizes(arrays, other)[s]
    narrowed = arrays.get(f"{part}/narrowed", np.zeros(len(t), np.int64))
    _expect(len(narrowed) == len(t), f"{part}/narrowed", f"{len(t)} blocks", len(narrowed))
    _expect(((narrowed == 0) | (narrowed == 1)).all(), f"{part}/narrowed", "0 or 1 for each block", "others")
    for name, kind in {"entries": 0, "entries32": 1}.items():
        if f"{part}/{name}" in arrays:
            _expect_entries(arrays[f"{part}/{name}"], *(side[narrowed == kind] for side in shape), f"{part}/{name}")


def _check_cover(arrays, other, symmetric):
    """The blocks have every entry of the matrix once, and every leaf of a symmetric one its diagonal block."""
    rows, cols, area = _sizes(arrays, "row"), _sizes(arrays, other), 0.0
    for part in ("couplings", "nearfield"):
        t, s = arrays[f"{part}/rows"], arrays[f"{part}/columns"]
        area += float((rows[t].astype(float) * cols[s] * np.where(symmetric & (t != s), 2, 1)).sum())
    n, m = rows[0], cols[0]
    whole = float(n) * float(m)
    _expect(abs(area - whole) <= 1e-9 * whole, "nearfield/rows", f"blocks that cover {n} × {m}", f"{area:.16g} entries")
    if symmetric:
        t, leaves = arrays["nearfield/rows"], np.flatnonzero(arrays["row_tree/first_child"] < 0)
        diagonal = t[t == arrays["nearfield/columns"]]
        _expect(np.array_equal(diagonal, leaves), "nearfield/rows", "the diagonal block of every leaf", "others")
    _check_once(arrays, other, symmetric)


def _check_diagonal(arrays):
    """Diagonal blocks of a symmetric matrix are symmetric, to rounding; NaN are told by `_check_finite`."""
    t, s, size = arrays["nearfield/rows"], arrays["nearfield/columns"], _sizes(arrays, "row")
    narrowed = arrays.get("nearfield/narrowed", np.zeros(len(t), np.int64))
    for kind, name in enumerate(("nearfield/entries", "nearfield/entries32")):
        if name not in arrays:
            continue
        entries, of_kind = arrays[name], narrowed == kind
        rows, first = size[t[of_kind]], offsets_of(size[t[of_kind]] * size[s[of_kind]])
        for b in np.flatnonzero(t[of_kind] == s[of_kind]):
            block = entries[first[b] : first[b + 1]].reshape(rows[b], rows[b])
            with np.errstate(all="ignore"):
                apart, most = np.abs(block - block.T).max(initial=0), np.abs(block).max(initial=0)
            bound = ROUNDING * np.finfo(entries.dtype).eps * most
            _expect(not apart > bound, name, "diagonal blocks that are symmetric", f"{apart:.3g} between twins")


def _check_once(arrays, other, symmetric):
    """Every entry once, by sums of random weights: Σ over blocks (t, s) of u(t) v(s) is u(all) v(all), modulo a prime.

    u(t) is the sum over the points of t. A cover with holes or overlaps passes with probability 2/PRIME (Schwartz and
    Zippel); the weights are drawn anew each time, so that no file can be made to fit them.
    """
    rng = np.random.default_rng()
    u, v = _random_sums(arrays, "row", rng), _random_sums(arrays, other, rng)
    total = 0
    for part in ("couplings", "nearfield"):
        t, s = arrays[f"{part}/rows"], arrays[f"{part}/columns"]
        total += int((u[t] * v[s] % PRIME).sum())
        if symmetric:
            total += int((u[s] * v[t] % PRIME)[t != s].sum())
    once = total % PRIME == int(u[0]) * int(v[0]) % PRIME
    _expect(once, "nearfield/rows", "blocks that hold every entry once", "overlaps and holes")


def _random_sums(arrays, side, rng):
    """(clusters,) sums of one random weight a point, modulo PRIME."""
    before = np.concatenate(([0], np.cumsum(rng.integers(PRIME, size=_sizes(arrays, side)[0]))))
    return (before[arrays[f"{side}_tree/stop"]] - before[arrays[f"{side}_tree/start"]]) % PRIME


def _check_levels(offsets, inner_before, clusters, name):
    """Level l + 1 holds the children of level l, and the last level ends the tree."""
    _expect(2 <= len(offsets) <= clusters + 1, name, "a start for every level", f"{len(offsets)} numbers")
    ends = offsets[0] == 0 and offsets[1] == 1 and offsets[-1] == clusters and (offsets[1:] > offsets[:-1]).all()
    _expect(ends, name, f"growing numbers from 0, 1 to {clusters}", "others")
    _expect(
        (offsets[2:] == 1 + 2 * inner_before[offsets[1:-1]]).all(), name, "the children of the level above", "others"
    )


def _check_permutation(permutation, name):
    n = len(permutation)
    _expect(((permutation >= 0) & (permutation < n)).all(), name, f"points 0 to {n - 1}", "others")
    seen = np.zeros(n, bool)
    seen[permutation] = True
    _expect(seen.all(), name, "every point once", f"{n - np.count_nonzero(seen)} missing")


def _check_precision(arrays):
    """One precision of all entries, boxes aside; of mixed ones float64, but for what may be in float32."""
    mixed = "nearfield/narrowed" in arrays
    wanted = np.dtype(np.float64) if mixed else arrays["row_basis/transfer"].dtype
    for name, array in arrays.items():
        free = mixed and name.endswith(("/entries32", "/leaf"))
        if array.dtype.kind == "f" and "_tree/" not in name and not free:
            _expect(array.dtype == wanted, name, f"{wanted} as {'products' if mixed else 'transfers'}", array.dtype)


def _check_finite(name, array):
    flat = array.reshape(-1)
    for first in range(0, flat.size, CHUNK):
        if not np.isfinite(flat[first : first + CHUNK]).all():
            raise ValueError(f"{name}: expected finite numbers, got NaN or infinity")


def _expect_entries(entries, rows, columns, name):
    """Σ rows · columns entries."""
    estimate = float((rows.astype(float) * columns).sum())
    exact = estimate < 2**60 and int((rows * columns).sum()) == len(entries)
    _expect(exact, name, f"{estimate:.16g} entries by the sizes of its blocks", len(entries))


def _sizes(arrays, side):
    return arrays[f"{side}_tree/stop"] - arrays[f"{side}_tree/start"]


def _expect(holds, name, wanted, got):
    if not holds:
        raise ValueError(f"{name}: expected {wanted}, got {got}")
