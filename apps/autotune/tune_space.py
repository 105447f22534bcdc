"""What `tune` tries: for a row of a tuning table, the candidates that the hardware admits and the problems they meet.

A row's limits (columns `max_…`) say for which matrices it is; they stay. Its knobs are varied within

    registers of a lane ≤ 255,   lanes · registers ≤ those of a multiprocessor,   shared memory of a block,   threads

with registers estimated from what a thread holds; what the compiler then really needs is asked later, on the device.
"""

from itertools import product

from h2gpu.apps.autotune import tune_fixed, tune_linear
from h2gpu.apps.autotune.tune_limits import (
    OTHER_WORDS,
    SLACK,
    TRIED_RESIDENT,
    UNLIMITED,
    WARP,
    itemsize,
    limits,
    resident_warps,
)
from h2gpu.apps.benchmarks.routines.batched import Case
from h2gpu.batched.products import choice

KNOBS = {
    "qr": ("register_rows", "register_columns", "resident", "shared_r", "shared_q"),
    "qr_blocked": ("warps", "tiles", "resident", "split"),
    "qr_tree": ("warps", "tiles", "resident", "share"),
    "qr_tall": ("ways", "strips", "register_rows", "register_columns", "lanes", "warps", "resident"),
    "svd": ("method", "columns"),
    "gemm": ("method",),
    **tune_fixed.KNOBS,
} | tune_linear.KNOBS
ROWS, COLUMNS = (8, 16, 32, 48), (1, 2, 4)  # that a thread holds
TILES, TILE_ROWS, TILE_SHARE = (4, 8), 8, 4  # of a warp's strip; rows of one, entries of it that a lane holds
BLOCKS = (1, 2, 4, 8, 12, 16)  # of a multiprocessor
TREE_WARPS, TREE_TILES, TREE_PITCH = (4, 8, 16), (8, 16), 17  # of a piece of a high matrix; shared entries of a row
SHARES = (1, 2, 4)  # blocks of a piece, fewer than it has strips
WAYS, STRIPS, CHAIN_WARPS = (2, 4), (1, 2), (1, 2, 4)  # of the blocked chain
WARPS = (1, 2, 4, 8)
LARGEST = {
    "qr": 1024,
    "qr_blocked": 1024,
    "qr_tree": 512,
    "qr_tall": 128,
    "svd": 512,
    "gemm": 256,
}  # sizes that stand for unlimited ones
METHODS = {"register": 32, "shared": 192, "block-gram": 512, "block-direct": 512}  # sizes up to which they are tried
LEAST_BLOCKED_CHAIN = 32  # columns from which the blocked chain is tried
LEAST_BLOCKED = 48  # size from which block methods are tried
MOST_ENTRIES = 1 << 29  # of a batch
MATRICES = ((64, 20000), (128, 1000), (UNLIMITED, 200))  # of a batch without limit, by columns


def candidates(routine, row, hardware):
    """Values of the row's knobs that the hardware admits, its own first: dictionaries of text, as in the table."""
    missing = [knob for knob in KNOBS[routine] if knob not in row]
    if missing:
        raise ValueError(f"tune: the table {routine}.csv has no column {', '.join(missing)}")
    own = {knob: row[knob] for knob in KNOBS[routine]}
    found = [{k: str(v) for k, v in knobs.items()} for knobs in _SPACES[routine](row, hardware)]
    return [own] + [knobs for knobs in found if knobs != own]


def problems(routine, row, before):
    """Cases that the row decides about, the one whose rate is written first.

    before   the rows of the table above it, which take what they admit
    """
    above = [limits(other) for other in before if other["dtype"] == row["dtype"]]

    def free(**sizes):
        return _admits(limits(row), sizes) and not any(_admits(other, sizes) for other in above)

    found = list(_PROBLEMS[routine](row["dtype"], limits(row), free))
    if not found:
        raise ValueError(f"tune: no problem for the row {limits(row)} of {routine}.csv: rows above it take all")
    return found


def relevant(routine, case, knobs):
    """The knobs that a case's time depends on."""
    other = {"qr": {"qr": "shared_r", "qr_r": "shared_q"}}.get(routine, {}).get(case.routine)
    return tuple(value for knob, value in knobs.items() if knob != other)


def _qr_space(row, hardware):
    item, n = itemsize(row), _largest("qr", limits(row)["columns"])
    rows_at_most = max(8, limits(row)["rows"])
    for rows, columns, in_r, in_q in product(ROWS, COLUMNS, (0, 1), (0, 1)):
        threads = -(-n // columns)
        block = max(WARP, -(-threads // WARP) * WARP)
        teams = max(1, WARP // (1 << (threads - 1).bit_length()))
        words = (rows * columns + rows) * item // 4
        triangle = teams * n * (n + 1) // 2 * item
        reflectors = teams * n * (rows + 16 // item) * item
        fits = in_r * triangle <= hardware.shared_bytes and in_q * triangle + reflectors <= hardware.shared_bytes
        if rows <= rows_at_most and block <= hardware.threads and fits:
            for resident in resident_warps(words, block // WARP, hardware):
                values = rows, columns, resident, in_r, in_q
                yield dict(zip(KNOBS["qr"], values))


def _qr_blocked_space(row, hardware):
    rows, item = limits(row)["rows"], itemsize(row)
    for tiles, split in product(TILES, (0, 1)):
        warps, words = rows // (tiles * TILE_ROWS), tiles * TILE_SHARE * item // 4 + OTHER_WORDS
        need = warps * WARP * min(hardware.lane_registers, words)
        if 1 <= warps * WARP <= hardware.threads and int(row["warps"]):
            admitted = [blocks for blocks in BLOCKS if blocks * need <= SLACK * hardware.registers]
            for blocks in admitted[-TRIED_RESIDENT:]:
                yield dict(zip(KNOBS["qr_blocked"], (warps, tiles, blocks, split)))


def _qr_tree_space(row, hardware):
    n, item = _largest("qr_tree", limits(row)["columns"]), itemsize(row)
    for warps, tiles in product(TREE_WARPS, TREE_TILES):
        rows, words = warps * tiles * TILE_ROWS, tiles * TILE_SHARE * item // 4 + OTHER_WORDS
        admitted = [blocks for blocks in BLOCKS if blocks * warps * WARP * words <= SLACK * hardware.registers]
        if int(row["warps"]) and rows >= 2 * n and rows * TREE_PITCH * item <= SLACK * hardware.shared_bytes:
            for blocks, share in product(admitted[-TRIED_RESIDENT:], SHARES):
                yield dict(zip(KNOBS["qr_tree"], (warps, tiles, blocks, share)))


def _qr_tall_space(row, hardware):
    if row["dtype"] == "float64" and limits(row)["columns"] >= LEAST_BLOCKED_CHAIN:
        for ways, strips, warps in product(WAYS, STRIPS, CHAIN_WARPS):
            yield dict(zip(KNOBS["qr_tall"], (ways, strips, 0, 0, 0, warps, 8)))
    item, n = itemsize(row), _largest("qr_tall", limits(row)["columns"])
    for rows, columns, warps in product(ROWS, COLUMNS, WARPS):
        lanes = 1 << (-(-n // columns) - 1).bit_length()
        words = (rows * columns + 2 * rows) * item // 4
        if lanes <= WARP:
            for resident in resident_warps(words, warps, hardware):
                yield dict(zip(KNOBS["qr_tall"], (0, 0, rows, columns, lanes, warps, resident)))


def _svd_space(row, hardware):
    n, item = _largest("svd", limits(row)["rank"]), itemsize(row)
    for method, largest in METHODS.items():
        blocked = method.startswith("block")
        if (
            n > largest
            or (blocked and n < LEAST_BLOCKED)
            or (method == "shared" and n * n * item > hardware.shared_bytes)
        ):
            continue
        for columns in COLUMNS if method in ("shared", "block-direct") else (4,):
            yield {"method": method, "columns": columns}


def _gemm_space(row, hardware):
    methods = ("tiles", "vendor") if int(row["max_cheap"]) else ("tiles", "fixed", "vendor")
    yield from ({"method": method} for method in methods)


def _qr_problems(dtype, size, free):
    n = _largest("qr", size["columns"])
    batch = 1000 if size["matrices"] < UNLIMITED else _matrices(n)
    for rows in dict.fromkeys((min(n, size["rows"]), 4 * n)):
        if free(rows=rows, columns=n, matrices=batch) and rows * n * batch <= MOST_ENTRIES:
            yield Case("qr", dtype, batch, (rows, n))
            if rows <= n:
                yield Case("qr_r", dtype, batch, (rows, n))


def _qr_blocked_problems(dtype, size, free):
    m = _largest("qr_blocked", size["rows"])
    for n in dict.fromkeys((min(m, size["columns"]), min(m, size["columns"], WARP))):
        if free(rows=m, columns=n, matrices=_matrices(m)):
            yield Case("qr", dtype, _matrices(m), (m, n))


def _qr_tree_problems(dtype, size, free):
    n = _largest("qr_tree", size["columns"])
    for batch, rows in ((_matrices(n), 16 * n), (_matrices(n) // 8, 32 * n)):
        batch = min(batch, size["matrices"])
        if free(columns=n, matrices=batch):
            yield Case("qr_r", dtype, batch, (rows, n))


def _qr_tall_problems(dtype, size, free):
    n = _largest("qr_tall", size["columns"])
    batch = min(int(0.7 * size["matrices"]), 5000)
    for rows in (16 * n, 4 * n):
        yield Case("qr_r", dtype, batch, (rows, n))


def _svd_problems(dtype, size, free):
    n = _largest("svd", size["rank"])
    yield Case("svd", dtype, 1000 if n <= 64 else 200, (n, n), method="auto", spectrum="decaying")


def _gemm_problems(dtype, size, free):
    n = _largest("gemm", size["size"])
    admitted = [k for k in range(1, n + 1) if free(**choice.limits(k, k, size["cheap"]))]
    full, above = ([k for k in admitted if k > WARP and k % WARP == rest] for rest in (0, 1))
    for k in dict.fromkeys([*admitted[-1:], *full[:1], *above[:1]]):
        yield Case("gemm", dtype, max(200, (1 << 27) // k**2), (k, k))


def _admits(limits, sizes):
    return all(sizes[name] <= limit for name, limit in limits.items())


def _largest(routine, limit):
    return min(limit, LARGEST[routine])


def _matrices(columns):
    return next(count for most, count in MATRICES if columns <= most)


_SPACES = {
    "qr": _qr_space,
    "qr_blocked": _qr_blocked_space,
    "qr_tree": _qr_tree_space,
    "qr_tall": _qr_tall_space,
    "svd": _svd_space,
    "gemm": _gemm_space,
    **tune_fixed.SPACES,
} | tune_linear.SPACES
_PROBLEMS = {
    "qr": _qr_problems,
    "qr_blocked": _qr_blocked_problems,
    "qr_tree": _qr_tree_problems,
    "qr_tall": _qr_tall_problems,
    "svd": _svd_problems,
    "gemm": _gemm_problems,
    **tune_fixed.PROBLEMS,
} | tune_linear.PROBLEMS
