"""Numbers in tables of README and docs are those of the published tables."""

import re
import shutil

import pytest
from places import ROOT

from h2gpu.apps.benchmarks.report import cited
from h2gpu.apps.command.command import FailureError

DOCUMENTS = sorted({line.document for line in cited.LINES})


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_cite_the_published_numbers(document):
    """Where this fails, tables were measured again: `python -m h2gpu.apps.benchmarks.report.cited` writes them."""
    text = (ROOT / document).read_text(encoding="utf-8").splitlines()
    found = list(cited.lines(ROOT, document))
    assert [text[i] for i, _ in found] == [line.text(ROOT) for _, line in found] and found


def test_what_was_measured_again_is_written(tmp_path, monkeypatch):
    for document in DOCUMENTS:
        (tmp_path / document).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / document, tmp_path / document)
    for folder in ("benchmarks", "apps/benchmarks/peers"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=lambda _, names: [n for n in names if n[-4:] == ".png"]
        )
    table = tmp_path / "benchmarks" / cited.TARGETS
    text, count = re.subn(r"(\n,qr,,float64,1000,512×512,,)[\d.]+", r"\g<1>3.456", table.read_text(encoding="utf-8"))
    table.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = (tmp_path / cited.MEASURED).read_text(encoding="utf-8")
    assert cited.main([]) == 0
    after = (tmp_path / cited.MEASURED).read_text(encoding="utf-8")
    assert count == after.count("| QR with Q, 1000 of 512×512 | 3.46 | ") == 1
    assert len(set(after.splitlines()) - set(before.splitlines())) == 1
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_line_that_is_not_there_is_told(tmp_path):
    (tmp_path / "README.md").write_text("nothing\n")
    with pytest.raises(FailureError, match=r"README.md: expected one line \| 2¹⁷ .* got 0"):
        list(cited.lines(tmp_path, "README.md"))


@pytest.mark.parametrize(
    ("show", "number", "text"),
    [
        (cited.digits, 2906.2, "2906"),
        (cited.digits, 17.33, "17.3"),
        (cited.digits, 0.01039, "0.0104"),
        (cited.two, 5.952, "6.0"),
        (cited.two, 143.9, "144"),
        (cited.megabytes, 2173.0, "2.17 GB"),
        (cited.megabytes, 369.0, "369 MB"),
        (cited.power, 9.806e-08, "9.8·10⁻⁸"),
        (cited.roughly, 1e-06, "10⁻⁶"),
        (cited.roughly, 3.966e-08, "4·10⁻⁸"),
    ],
)
def test_numbers_are_short(show, number, text):
    assert show(number) == text
