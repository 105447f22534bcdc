"""Adapters of the protocol: what is sent arrives, and an error on one rank is one error of all."""

import json
import re
import sys

import h5py
import numpy as np
import pytest
from mpiexec import launch, needs_mpi
from places import STANDIN
from threads import on_ranks

import h2gpu
from h2gpu import distributed
from h2gpu.apps import h2compress, h2krige


@pytest.mark.parametrize("size", [2, 3, 4])
def test_what_is_sent_arrives(size):
    def work(comm):
        after, before, found = (comm.rank + 1) % size, (comm.rank - 1) % size, np.zeros(3)
        comm.start({before: np.zeros(0), after: np.full(3, float(comm.rank))}, {before: found}, "ring")()
        return found.tolist(), comm.sum(np.arange(2.0)).tolist(), comm.gather(comm.rank), comm.traffic.exchanges

    for rank, (found, total, numbers, traffic) in enumerate(on_ranks(size, work)):
        assert found == [(rank - 1) % size] * 3 and total == [0, size] and numbers == list(range(size))
        assert traffic == {"ring": [1, 24]}


def test_an_error_of_one_rank_is_that_of_all():
    def work(comm):
        with comm.together("work"):
            if comm.rank == 2:
                raise np.linalg.LinAlgError("singular")
            comm.sum(np.ones(1))

    for error in on_ranks(4, work):
        assert isinstance(error, np.linalg.LinAlgError) and str(error) == "rank 2: singular"


def test_an_interrupt_of_one_rank_is_that_of_all():
    def work(comm):
        try:
            with comm.together("work"):
                if comm.rank == 1:
                    raise KeyboardInterrupt
                comm.sum(np.ones(1))
        except KeyboardInterrupt as error:
            return str(error)

    assert on_ranks(3, work) == ["rank 1: interrupted"] * 3


def test_who_waits_too_long_says_for_what():
    def work(comm):
        with comm.together("work"):
            comm.start({}, {1 - comm.rank: np.zeros(1)}, "numbers of the other")()

    for error in on_ranks(2, work, limit=0.2):
        assert isinstance(error, TimeoutError)
        assert "waited 0.2 s for other ranks in the exchange 'numbers of the other'" in str(error)


def test_one_process_needs_nobody(monkeypatch):
    comm = distributed.communicator()
    assert (comm.rank, comm.size, comm.xp) == (0, 1, np) and comm.gather(3) == [3] and comm.sum([1.0, 2.0])[1] == 2
    with pytest.raises(ValueError, match='device: expected "cpu" or "cuda"'):
        distributed.communicator("gpu")
    with pytest.raises(ValueError, match="limit: expected seconds above 0"):
        distributed.communicator(limit=0)
    with pytest.raises(RuntimeError, match="rank 0: KeyError"), comm.together("work"):
        raise KeyError("x")
    with pytest.raises(RuntimeError, match="rank 0: KeyError"):  # and from then on
        comm.sum(np.ones(1))


CHECKS = """
import sys
import numpy as np
import h2gpu
from h2gpu import distributed
from h2gpu.distributed.communicators import mpi

kind, size = sys.argv[1:]
if kind == "NCCL":
    import nccl_by_mpi
    import cupy as xp
    comm = distributed.NCCL(limit=20)
else:
    xp, comm = np, distributed.communicator(limit=20)
assert (type(comm).__name__, comm.xp, comm.size) == (kind, xp, int(size))
after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
for dtype in (np.float64, np.float32, np.int64, np.uint8):
    sent, found = xp.asarray(np.full(3, comm.rank, dtype)), xp.empty(3, dtype)
    comm.start({after: sent, before: sent[:0]}, {before: found, after: found[:0]}, "ring")()
    assert (found == before).all()
    total = comm.start_sum(xp.asarray(np.full(3, comm.rank + 1, dtype)), "total")
    other = comm.start_sum(sent, "ranks")
    assert (other() == sum(range(comm.size))).all() and (total() == sum(range(comm.size + 1))).all()
comm.start({}, {}, "nothing")()
host = np.zeros(2)
comm.start({after: np.full(2, 7.0)}, {before: host}, "host")()
assert host.tolist() == [7, 7] and comm.sum(np.ones(2)).tolist() == [comm.size] * 2
for mpi.MOST in mpi.MOST, 0:  # by one call, and from each to each
    texts, arrays = comm.gather("one" * comm.rank), comm.gather(np.arange(comm.rank))
    assert texts == ["one" * q for q in range(comm.size)] and [len(a) for a in arrays] == list(range(comm.size))

if kind == "MPI":
    A = h2gpu.covariance_matrix(np.random.default_rng(0).random((900, 2)), h2gpu.covariance.Exponential(), 1e-4)
    B = distributed.distribute(A, comm)
    x = np.random.default_rng(1).standard_normal((900, 2))
    y = A @ x
    assert abs(B.gather(B @ B.scatter(x)) - y).max() < 1e-13 * abs(y).max()
else:
    def late(done, name):
        raise TimeoutError(name)

    pending = type("Event", (), {"done": False})()
    one = distributed.NCCL(limit=0.2)
    one.begun(pending, "a product")  # by all: its end is not waited for
    group = one._group
    try:
        one.begun(pending, "the next product")
        raise AssertionError("the one before had not ended")
    except TimeoutError as error:
        assert "0.2 s for other ranks in the exchange 'the next product'" in str(error) and group.aborted
    one, pending.done = distributed.NCCL(limit=20), True
    one.begun(pending, "a product")
    one.begun(pending, "a product after it")
    one._until, group = late, one._group
    end = one.start({after: sent}, {before: found}, "ring")
    try:
        end()
        raise AssertionError("nobody was late")
    except TimeoutError:
        assert group.aborted
    try:
        one.start({after: sent}, {before: found}, "ring")
        raise AssertionError("the group has ended")
    except RuntimeError as error:
        assert "exchanges between GPUs have ended" in str(error), error
    group = comm._group

try:
    with comm.together("work"):
        if comm.rank == 1:  # once all are here: before, they would hear of it in what they still wait for
            comm.start({}, {q: np.empty(1) for q in range(comm.size) if q != 1}, "all are here")()
            raise ValueError("points: expected finite numbers")
        comm.start({1: np.ones(1)}, {}, "all are here")()
        comm.sum(np.ones(1))
except ValueError as error:
    assert str(error) == "rank 1: points: expected finite numbers", error
    assert kind == "MPI" or group.aborted  # on all ranks: NCCL ends those of a host together
    print("all well")
"""


@needs_mpi
def test_processes_of_mpi(tmp_path):
    script = tmp_path / "checks.py"
    script.write_text(CHECKS)
    done = launch(3, script, "MPI", 3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all well") == 3


COMMANDS = """
import sys
from h2gpu.apps import h2compress, h2info

source, target, smaller, two, report = sys.argv[1:6]
options = sys.argv[6:]
statuses = [
    h2compress.main([source, "-o", target, "--report", report, *options]),
    h2info.main([target, "--check"]),
    h2compress.main([target, "-o", smaller, "--rtol", "1e-2", "--svd", "jacobi", "--quiet"]),
    h2compress.main([two, "-o", two + ".h5", *options, "--quiet"]),
    h2compress.main([source, "-o", source + ".h5", *options, "--method", "basis", "--quiet"]),
    h2compress.main([source + ".h5", "-o", source + ".less.h5", "--rtol", "0.1", "--method", "basis", "--quiet"]),
    h2compress.main([source, "-o", source + ".none.h5", *options, "--max-memory", "1M", "--quiet"]),
]
try:
    h2info.main(["--version"])
except SystemExit as ended:
    print(f"{statuses} {ended.code}")
"""


@needs_mpi
def test_the_commands_by_processes(tmp_path):
    """Files as a serial run writes them, also of fewer points than processes; one line for what is wrong, and nothing
    else on stderr."""
    source, target, smaller, two = (tmp_path / f"{name}.h5" for name in ("places", "matrix", "smaller", "two"))
    points = np.random.default_rng(0).random((900, 2))
    for path, some in ((source, points), (two, points[:2])):
        with h5py.File(path, "w") as file:
            file["points"] = some
    options = "--leaf-size", "32", "--eta", "1.5", "--rtol", "1e-4", "--length-scale", "0.3"
    report, script = tmp_path / "report.json", tmp_path / "commands.py"
    script.write_text(COMMANDS)
    done = launch(3, script, source, target, smaller, two, report, *options)
    assert done.returncode == 0 and done.stdout.count("[0, 0, 0, 0, 0, 0, 1] 0") == 3, done.stderr
    assert re.fullmatch(r"h2compress: error: rank \d: expected a job within --max-memory 1 MB, got .*\n", done.stderr)
    assert done.stdout.count("estimated peak memory") == 1 and "by 3 processes" in done.stdout
    assert done.stdout.count("h2info 0.") == 1
    assert json.loads(report.read_text())["error"]["exact"] < 1e-4
    cov = h2gpu.covariance.Exponential(length_scale=0.3)
    assert h2gpu.sampled_error(h2gpu.load(target), points, cov, random_state=1) < 1e-4
    assert done.stdout.count("in order") == 1
    A, B = h2gpu.load(target), h2gpu.load(smaller)
    C = h2gpu.compress(A, 1e-2, svd="jacobi")
    assert 1e-4 < A.relative_error(B) < 1e-2 and B.nbytes == C.nbytes and C.relative_error(B) < 1e-6
    assert np.allclose(h2gpu.load(f"{two}.h5").to_dense(), cov(points[:2]))
    alone = tmp_path / "alone.h5"
    assert h2compress.main([str(source), "-o", str(alone), *options, "--method", "basis", "--quiet"]) == 0
    C, D, less = (h2gpu.load(path) for path in (alone, f"{source}.h5", f"{source}.less.h5"))
    assert C.memory == D.memory and C.relative_error(D) < 1e-5 and np.array_equal(C.row_basis.ranks, D.row_basis.ranks)
    assert np.array_equal(less.row_basis.ranks, h2gpu.compress(D, 0.1, method="basis").row_basis.ranks)
    assert D.relative_error(less) < 0.1


KRIGED = """
import sys
from h2gpu.apps import h2compress, h2krige
from h2gpu.statistics import systems

systems.DENSE = 50  # of more sites the matrix is by ranks
good, bad = sys.argv[1:3]
print([h2krige.main([source, *sys.argv[3:]]) for source in (good, bad)])
"""


@needs_mpi
def test_kriging_by_processes(tmp_path):
    """The file of a serial run, from shares of the files; what is wrong on one rank is one line that names it."""
    rng, (good, bad, targets) = np.random.default_rng(0), (tmp_path / name for name in ("good.h5", "bad.h5", "X.csv"))
    x, X = rng.random((200, 2)), rng.random((70, 2))
    for source in (good, bad):
        with h5py.File(source, "w") as file:
            file["points"], file["values"] = x, np.sin(5 * x[:, 0]) + x[:, 1]
            file["values"][190] = np.nan if source == bad else file["values"][190]  # in the last share
    truth = np.sin(5 * X[:, 0]) + X[:, 1]
    np.savetxt(targets, np.column_stack([X, truth]), delimiter=",", header="x,y,values", comments="")
    script = tmp_path / "kriged.py"
    script.write_text(KRIGED)
    one, several, report = tmp_path / "one.h5", tmp_path / "several.h5", tmp_path / "report.json"
    told = ["--targets", str(targets), "--covariance", "matern", "--length-scale", "0.4", "--variance", "1"]
    told += ["--nugget", "1e-4", "--rtol", "1e-8"]
    assert h2krige.main([str(good), *told, "-o", str(one), "--quiet"]) == 0
    done = launch(2, script, good, bad, *told, "-o", several, "--report", report)
    assert done.stdout.count("[0, 2]") == 2, done.stderr
    assert done.stdout.count("200 sites in 2D; ") == 1 and "2 processes" in done.stdout
    assert done.stderr.count("\n") == 1 and "h2krige: error: rank 1: " in done.stderr
    assert "first in row 190" in done.stderr
    with h5py.File(one) as a, h5py.File(several) as b:
        assert set(a) == set(b) and set(a.attrs) == set(b.attrs)
        for name in a:
            assert np.allclose(a[name], b[name], rtol=0, atol=1e-5), name
    found = json.loads(report.read_text())
    assert found["processes"] == 2 and found["iterations"] > 0 and found["scores"]["rmse"] < 0.01


OPTIONS = {
    "gaps": ["--values", "gaps", "--missing", "skip", "--target-points", "place/x,place/y", "--truth", "known"],
    "sphere": ["--points", "lonlat", "--sphere", "--trend", "linear", "--length-scale", "2000"],
    "one": ["--targets", "ONE", "--target-points", "place/x,place/y", "--trend", "linear"],
}
VARIED = """
import json, sys
from h2gpu.apps import h2krige
from h2gpu.statistics import systems

systems.DENSE = 50  # of more sites the matrix is by ranks
print([h2krige.main(arguments) for arguments in json.loads(sys.argv[1])])
"""


@pytest.mark.slow
@needs_mpi
def test_kriging_by_processes_with_gaps_other_names_and_longitudes(tmp_path):
    """Missing values, a process with no others; targets and truth by other names, fewer targets than processes."""
    rng, (sites, targets, one) = np.random.default_rng(0), (tmp_path / f"{name}.h5" for name in ("sites", "X", "ONE"))
    x, X = rng.random((210, 2)), rng.random((40, 2))
    for path, points in ((sites, x), (targets, X), (one, X[:1])):
        values = np.sin(5 * points[:, 0]) + points[:, 1]
        with h5py.File(path, "w") as file:
            file["points"], file["values"], file["known"] = points, values, np.where(points[:, 0] < 0.2, np.nan, values)
            file["lonlat"], file["place/x"], file["place/y"] = points * [300, 140] - [150, 70], *points.T
            file["gaps"] = np.where(np.arange(len(points)) // 70 == 1, np.nan, values)
    told = [str(sites), "--targets", str(targets), "--covariance", "matern", "--length-scale", "0.4", "--variance", "1"]
    told += ["--nugget", "1e-4", "--rtol", "1e-8", "--quiet"]
    jobs = {name: [*told, *(str(one) if a == "ONE" else a for a in more)] for name, more in OPTIONS.items()}
    for name, job in jobs.items():
        assert h2krige.main([*job, "-o", str(tmp_path / f"{name}-1.h5")]) == 0
    script = tmp_path / "varied.py"
    script.write_text(VARIED)
    by_three = [[*job, "-o", str(tmp_path / f"{name}-3.h5")] for name, job in jobs.items()]
    done = launch(3, script, json.dumps(by_three))
    assert done.stdout.count("[0, 0, 0]") == 3 and not done.stderr, done.stderr
    for name in jobs:
        with h5py.File(tmp_path / f"{name}-1.h5") as a, h5py.File(tmp_path / f"{name}-3.h5") as b:
            assert set(a) == set(b) and set(a.attrs) == set(b.attrs) and "rmse" in a.attrs
            for column in a:
                assert np.allclose(a[column], b[column], rtol=0, atol=1e-5), (name, column)


def test_launched_processes_need_mpi4py(monkeypatch, capsys):
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match=r'2 processes were launched: pip install "h2gpu\[mpi\]"'):
        distributed.communicator()
    assert h2krige.main(["a.h5", "--values", "z", "--targets", "b.h5"]) == 1
    assert "2 processes were launched: pip install" in capsys.readouterr().err
    monkeypatch.setenv("PMI_RANK", "1")  # which leaves it to the first process to say so
    assert h2krige.main(["a.h5", "--values", "z", "--targets", "b.h5"]) == 1 and capsys.readouterr().err == ""


def test_a_transpose_is_not_gathered():
    points, cov = np.random.default_rng(0).random((60, 2)), h2gpu.covariance.Exponential()
    A = h2gpu.build(points, cov, col_points=points[:40])
    with pytest.raises(ValueError, match="expected a matrix that is not transposed"):
        distributed.gathered_matrix(distributed.distribute(A, distributed.Alone()).T)


@pytest.mark.slow
@needs_mpi
def test_calls_of_nccl_are_those_that_it_takes(tmp_path):
    """On the stand-in for CuPy, NCCL by MPI: order, counts, types and devices' pointers, not NCCL itself."""
    script = tmp_path / "checks.py"
    script.write_text(CHECKS)
    done = launch(3, script, "NCCL", 3, paths=[STANDIN])
    assert done.returncode == 0 and done.stdout.count("all well") == 3, done.stderr
