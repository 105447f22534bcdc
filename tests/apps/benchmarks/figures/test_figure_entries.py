"""Every published table has one entry, whose commands are commands and whose files are written."""

import importlib
import re

import pytest
from places import ROOT

from h2gpu.apps.benchmarks.figures import __main__ as figures
from h2gpu.apps.benchmarks.figures.entry import CARD, entry
from h2gpu.apps.benchmarks.figures.on_cpu import ON_CPU
from h2gpu.apps.benchmarks.figures.on_cuda import ON_CUDA
from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.command.command import InputError, Parser

ALL = [*ON_CPU, *ON_CUDA]
BENCHMARKS = ROOT / "benchmarks"
STEPS = [(p, *command) for one in ALL for p in one.on("h200").divided() for command in p.commands()]
PUBLISHED = sorted(str(path.relative_to(BENCHMARKS)) for path in BENCHMARKS.glob("[!.]*/*.csv"))


class Parsed(BaseException):
    """Arguments were taken; nothing is run."""


def is_written(path, one):
    """Whether an entry writes the file, on some card."""
    return any(re.fullmatch(re.escape(name).replace(CARD, r"[a-z]+\d+"), path) for name in one.outputs)


@pytest.mark.parametrize("path", PUBLISHED)
def test_a_published_table_has_one_entry(path):
    assert len([one for one in ALL if is_written(path, one)]) == 1


def test_no_entry_is_of_what_is_not_published():
    """A file that an entry writes, and that of no card is there, is misspelled; none is awaited that is there."""
    files = [str(path.relative_to(BENCHMARKS)) for path in BENCHMARKS.glob("[!.]*/*.*")]
    for one in ALL:
        alone = (type(one)(one.folder, (name,), 1, (), one.gpus) for name in one.files)
        there = [any(is_written(path, file) for path in files) for file in alone]
        assert not any(there) if one.awaited else all(there), one.files


@pytest.mark.parametrize(("one", "ranks", "module", "arguments"), STEPS, ids=lambda value: getattr(value, "name", ""))
def test_commands_take_their_arguments_and_write_the_files_of_their_entry(monkeypatch, one, ranks, module, arguments):
    seen, parse = [], Parser.parse_args

    def parsed(self, *given):
        seen.append(parse(self, *given))
        raise Parsed

    monkeypatch.setattr(Parser, "parse_args", parsed)
    if module.endswith("defaults"):
        module += ".__main__"
    with pytest.raises(Parsed):
        importlib.import_module(module).main(arguments)
    (options,) = seen
    target = str(options.folder if hasattr(options, "folder") else options.output)
    assert target in [f"benchmarks/{one.folder}", *(f"benchmarks/{name}" for name in one.outputs)]
    assert getattr(options, "device", None) in (None, "cuda" if one.gpus else "cpu")
    assert ranks <= max(one.gpus, 1) or not one.gpus


@pytest.mark.parametrize("one", [one for one in ALL if one.parts], ids=lambda one: one.name)
def test_parts_of_a_table_are_the_fields_that_are_published(one):
    if not one.awaited:
        _, rows = tables.read(BENCHMARKS / one.outputs[0])
        assert list(dict.fromkeys(row["field"] for row in rows)) == list(one.parts)
    parts = one.divided()
    assert [part.steps for part in parts] == [(f"{one.steps[0]} --fields {name}",) for name in one.parts]
    assert sum(part.seconds for part in parts) == pytest.approx(one.seconds)
    assert len({part.name for part in parts}) == len(parts) and all(part.divided() == [part] for part in parts)


@pytest.mark.parametrize("name", ["jacksboro-cpu", "jacksboro-cuda", "kaust-cpu", "kaust-cuda", "heaton-cuda"])
def test_estimates_stand_beside_each_other_by_every_solver(name):
    (one,) = [one for one in ALL if one.name == f"study_{name.replace('-', '-estimated-')}"]
    (step,) = one.steps
    methods = re.search("--methods '?([^']*?)'?(?= --|$)", step)[1].split(",")
    assert [method for method in methods if method != "local 60"] == ["h2gpu", "direct", "iterative"]


def test_what_is_missing_is_told(tmp_path):
    one = entry("a", "t.csv", 1, "x", gpus=2, gigabytes=50, data="sites.h5", packages="h2gpu no_such_package")
    assert one.lacks([80], tmp_path) == "needs 2 GPUs, got 1"
    assert one.lacks([80, 40], tmp_path) == "needs 50 GB of a GPU, got 40"
    assert one.lacks([80, 80], tmp_path) == f"needs no_such_package, {tmp_path / 'sites.h5'}"
    (tmp_path / "sites.h5").touch()
    assert not entry("a", "t.csv", 1, "x", gpus=1, data="sites.h5", packages="h2gpu").lacks([80], tmp_path)


def test_tables_are_chosen_by_name_on_their_card():
    (chosen,) = figures.chosen("cuda", ["compress-h100"], "h100")
    assert chosen.outputs == ["compression/compress-h100.csv"] and chosen.steps[0].endswith("HERE/compress-h100.csv")
    assert {one.name for one in figures.chosen("cuda", ["batched_qr", "pairwise"])} == {"batched_targets", "pairwise"}
    with pytest.raises(InputError, match=r"--only: expected some of .*, got nothing"):
        figures.chosen("cpu", ["nothing"])


def test_a_list_of_all_runs_nothing(capsys):
    assert figures.main(["--list", "--device", "cuda"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for one in ON_CUDA for name in one.tables)
    assert "mpiexec -n 4 python -m h2gpu.apps.benchmarks.distributed --device cuda -o" in told
