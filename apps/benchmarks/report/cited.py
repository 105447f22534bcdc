"""Lines of tables in README and docs, written from the published tables.

    python -m h2gpu.apps.benchmarks.report.cited      rewrites them, in the project's folder

A line is found by its first cells, which it keeps; the others are numbers of published rows. A test holds each line to
its table, so that a table that is measured again asks for this command.
"""

import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import FailureError, Parser, run

ELSEWHERE = "../apps/benchmarks/peers/elsewhere.csv"
CPU, SCALE = "compression/compress-cpu.csv", "compression/scale-cuda.csv"
TARGETS, SOLVERS = "batched/batched_targets.csv", "solvers/solvers-cpu.csv"
PEER = "H2Opus"  # parameters like its own
MEASURED, KRIGING = "docs/measured.md", "docs/solvers-and-kriging.md"


@dataclass(frozen=True)
class Line:
    """A line of a table in Markdown.

    document   README.md, or a file of docs/
    head       its first cells, as "| 2¹⁷ | one H200 |"
    cells      text, or functions of the project's folder to text
    """

    document: str
    head: str
    cells: tuple

    def text(self, root):
        """As it should stand."""
        cells = (cell if isinstance(cell, str) else cell(root) for cell in self.cells)
        return " ".join([self.head, *(f"{text} |" if text else "|" for text in cells)])


def lines(root, document):
    """[(number of the line, the Line)] of a document. FailureError for one that is not there, or twice."""
    text = (Path(root) / document).read_text(encoding="utf-8").splitlines()
    for line in (line for line in LINES if line.document == document):
        found = [i for i, there in enumerate(text) if there.startswith(line.head)]
        if len(found) != 1:
            raise FailureError(f"{document}: expected one line {line.head} …, got {len(found)}")
        yield found[0], line


def value(root, table, column, **where):
    """The number of the one row of a published table whose columns have these texts."""
    _, rows = tables.read(Path(root) / "benchmarks" / table)
    found = {row[column] for row in rows if all(row[name] == text for name, text in where.items())}
    if len(found) != 1:
        raise FailureError(f"{table}: expected one {column} where {where}, got {len(found)}")
    return float(found.pop())


def cell(table, column, show=None, **where):
    """A number of a table, as `show` writes it: three digits if None."""
    return lambda root: (show or digits)(value(root, table, column, **where))


def digits(x, count=3):
    """So many digits, and all of those before the point: 2906, 17.3, 0.107."""
    return f"{x:.{max(count - 1 - math.floor(math.log10(x)), 0)}f}"


def two(x):
    """Two digits."""
    return digits(x, 2)


def seconds(x):
    """Two digits and the unit, as the next ones."""
    return f"{two(x)} s"


def milliseconds(x):
    return f"{two(x)} ms"


def megabytes(x):
    """Megabytes, from 1,000 on as gigabytes."""
    return f"{digits(x / 1000)} GB" if x >= 1000 else f"{digits(x)} MB"


def gigabytes(x):
    return f"{two(x / 1000)} GB"


def power(x):
    """As 9.8·10⁻⁸."""
    mantissa, exponent = f"{x:.1e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if mantissa == "1.0" else f"{mantissa.removesuffix('.0')}·10{raised}"


def roughly(x):
    """As 4·10⁻⁸."""
    return power(float(f"{x:.0e}"))


def kernel(head, routine, shape, batch, peer=None, **where):
    """A line of the kernels' table: float64, float32, and the peer: KBLAS in float64, or cuBLAS in the same run."""
    where |= {"routine": routine, "shape": shape, "batch": str(batch)}
    own = [cell(TARGETS, "ms", dtype=dtype, **where) for dtype in ("float64", "float32")]
    if routine == "lu":
        theirs = [cell(TARGETS, "peer ms", two, dtype=dtype, **where) for dtype in ("float64", "float32")]
        return Line(MEASURED, head, (*own, lambda root: f"cuBLAS {' and '.join(each(root) for each in theirs)}"))
    m, n = re.findall(r"\d+", shape)
    known = {"library": "KBLAS", "routine": routine, "dtype": "float64", "batch": str(batch), "m": m, "n": n}
    return Line(MEASURED, head, (*own, "" if peer is None else cell(ELSEWHERE, "value", **known, **peer)))


def compressed(n, head):
    """Seconds, peak, bytes and error of a compression on the CPU."""
    columns = {"total s": seconds, "peak MB": gigabytes, "total after MB": megabytes, "error of compression": power}
    cells = [cell(CPU, column, show, n=str(n), parameters=PEER) for column, show in columns.items()]
    cells.insert(3, f"{digits(8e-9 * n * n) if n > 1 << 16 else two(8e-9 * n * n)} GB")
    return Line(MEASURED, head, tuple(cells))


def scaled(head, n, problem):
    """Seconds, bytes, peak and a product of one size on a GPU."""
    columns = {"total s": seconds, "total after MB": megabytes, "peak MB": megabytes, "A x ms": milliseconds}
    return Line(MEASURED, head, tuple(cell(SCALE, c, show, n=str(n), problem=problem) for c, show in columns.items()))


def in_short(head, table, dense, beside="", **where):
    """A line of the README: seconds, bytes, those of the dense matrix, a product."""
    cells = [
        cell(table, column, show, **where) for column, show in (("total after MB", megabytes), ("A x ms", milliseconds))
    ]
    return Line(
        "README.md",
        head,
        (lambda root: two(value(root, table, "total s", **where)) + beside, cells[0], dense, cells[1]),
    )


def solved(head, field):
    """A line of the solvers' table."""
    shown = {"rtol": roughly, "factor s": two, "matrix s": two, "solve s": two, "iterations": lambda x: f"{x:.0f}"}
    return Line(KRIGING, head, tuple(cell(SOLVERS, column, show, field=field) for column, show in shown.items()))


def kriged(head, study, field, parameters="given"):
    """A line of predictions: errors, coverage, and seconds where parameters are given."""
    here, there = (f"kriging/study_{study}-{parameters}-{device}.csv" for device in ("cpu", "cuda"))
    ours = {"field": field, "method": "h2gpu"}
    cells = [cell(here, "rmse", str, field=field, method=method) for method in ("h2gpu", "local 60")]
    cells.append(cell(here, "coverage", lambda x: f"{x:.3f}", **ours))
    times = [whole(table, ours) for table in (here, there)] if parameters == "given" else ["–", "–"]
    return Line(KRIGING, head, (*cells, *times))


def whole(table, where):
    """Seconds of fit and prediction together, of the wall or of processors, as the table has them."""

    def shown(root):
        columns = tables.read(Path(root) / "benchmarks" / table)[1][0]
        times = [name for name in columns if name.split(" ")[0] in ("fit", "predict")]
        return two(sum(value(root, table, name, **where) for name in times))

    return shown


DECAYING = {"spectrum": "decaying"}
LINES = (
    compressed(16384, "| 2¹⁴ = 16,384 |"),
    compressed(32768, "| 2¹⁵ = 32,768 |"),
    compressed(131072, "| 2¹⁷ = 131,072 |"),
    scaled("| 2¹⁷ |", 131072, "grid-peer"),
    scaled("| 2²⁰ |", 1048576, "grid-peer"),
    scaled("| 2²⁵, rtol 10⁻⁶ |", 33554432, "grid-large"),
    kernel("| QR with Q, 1000 of 64×64 |", "qr", "64×64", 1000, {}),
    kernel("| QR with Q, 1000 of 512×512 |", "qr", "512×512", 1000, {}),
    kernel("| QR with Q, 1000 of 1024×32 |", "qr", "1024×32", 1000, {}),
    kernel("| SVD, 1000 of 32×32 |", "svd", "32×32", 1000, DECAYING, **DECAYING),
    kernel("| SVD, 1000 of 64×64 |", "svd", "64×64", 1000, DECAYING, **DECAYING),
    kernel("| SVD, 200 of 512×512 |", "svd", "512×512", 200, DECAYING, **DECAYING),
    kernel("| randomized SVD, 64 triplets of 64 samples, 200 of 512×512 |", "rsvd", "512×512", 200, {}, samples="64"),
    kernel("| the same of 72 samples, more accurate |", "rsvd", "512×512", 200, samples="72"),
    kernel("| LU with partial pivoting, 500 of 32×32 |", "lu", "32×32", 500),
    kernel("| LU with partial pivoting, 500 of 128×128 |", "lu", "128×128", 500),
    solved("| Jacksboro elevations | 138,632 | Matérn 1, no nugget |", "jacksboro"),
    solved("| Heaton et al. (2019), simulated | 105,569 | exponential, nugget |", "heaton_simulated"),
    solved("| KAUST 2021, smooth, short range | 90,000 | Matérn 2.3, no nugget |", "kaust_smooth_short"),
    solved("| KAUST 2021, rough, long range | 90,000 | Matérn 0.6, no nugget |", "kaust_rough_long"),
    solved("| KAUST 2021, smooth, nugget | 90,000 | Matérn 2.3, nugget |", "kaust_nugget_smooth_medium"),
    kriged("| Heaton et al. (2019), simulated | 105,569, 44,431 | true |", "heaton", "simulated"),
    kriged("| the same | | estimated |", "heaton", "simulated", "estimated"),
    kriged(
        "| the same, satellite temperatures, on the sphere | 105,569, 42,740 | estimated |",
        "heaton",
        "satellite",
        "estimated",
    ),
    kriged("| KAUST 2021, smooth, nugget | 90,000, 10,000 | true |", "kaust", "nugget_smooth_medium"),
    kriged("| KAUST 2021, rough, long range | 90,000, 10,000 | true |", "kaust", "rough_long"),
    kriged("| KAUST 2021, smooth, short range | 90,000, 10,000 | true |", "kaust", "smooth_short"),
    in_short("| 2¹⁷ = 131,072 | two CPU cores |", CPU, "137 GB", " (H2Opus 5.3)", n="131072", parameters=PEER),
    in_short("| 2¹⁷ | one H200 |", SCALE, "137 GB", n="131072", problem="grid-peer"),
    in_short("| 2²⁰ = 1,048,576 | one H200 |", SCALE, "8.8 TB", " (H2Opus 20.2)", n="1048576", problem="grid-peer"),
    in_short("| 2²⁵ = 33,554,432, rtol 10⁻⁶ | one H200 |", SCALE, "", n="33554432", problem="grid-large"),
)


def main(argv=None):
    """The command; returns the exit status."""
    return run("benchmarks.report.cited", _work, argv)


def _work(argv):
    Parser(prog="benchmarks.report.cited", description=__doc__.splitlines()[0], allow_abbrev=False).parse_args(argv)
    for document in dict.fromkeys(line.document for line in LINES):
        path = Path(document)
        text = path.read_text(encoding="utf-8").splitlines()
        for i, line in lines(".", document):
            if text[i] != (new := line.text(".")):
                print(f"{document}\n  - {text[i]}\n  + {new}")
                text[i] = new
        path.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
