"""The Python of the guides runs as it stands, page by page; answers of other packages are asserted on the pages."""

import re
from pathlib import Path

import numpy as np
import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
PAGES = sorted(page.stem for page in GUIDES.glob("*.md") if "```python\n" in page.read_text(encoding="utf-8"))


def blocks(page, head="python"):
    """The blocks of Python of a page; those with another head need a package that is rarely there."""
    found = re.findall(rf"```{head}\n(.*?)```", (GUIDES / f"{page}.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert found
    return found


def run(page, names, head="python"):
    """Runs a page in one name space."""
    for number, block in enumerate(blocks(page, head)):
        exec(compile(block, f"docs/guides/{page}.md, block {number}", "exec"), names)
    return names


def test_there_is_a_page_a_task():
    assert {"compress", "solve", "krige", "simulate", "own-covariance", "large", "coming-from"} <= set(PAGES)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ("coming-from", "other-libraries")])
def test_a_guide_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = run(page, {})
    if page == "compress":
        assert names["error"] <= 1e-6 and names["again"].shape == (2000, 2000)
    if page == "own-covariance":
        assert names["same"]
    if page == "solve":
        assert abs(names["G"].log_determinant() - names["told"].value) < 20
        assert np.allclose(names["direct"], names["x"][:, 0], atol=0.05 * abs(names["x"]).max())
    if page == "krige":
        assert 0.85 < names["told"]["coverage"] <= 1 and names["r2"].min() > 0.3


def test_other_packages_give_the_same():
    pytest.importorskip("gstools")
    pytest.importorskip("pykrige")
    names = run("coming-from", {})
    assert np.ptp(names["mean"]) > 0.5


def test_tensors_and_operators_of_pytorch():
    pytest.importorskip("gpytorch", reason="PyTorch and GPyTorch are not installed")
    names = run("other-libraries", {})
    assert names["residual"] < 1e-2 and names["difference"] < 2e-3


def test_gpytorch_gives_the_same():
    pytest.importorskip("gpytorch", reason="PyTorch and GPyTorch are not installed")
    start, *_ = blocks("coming-from")
    names = {}
    exec(start, names)
    run("coming-from", names, head="py")
    assert np.ptp(names["our_mean"]) > 0.5
