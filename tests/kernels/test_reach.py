"""The page that says which sizes reach which kernel is what host code does."""

import subprocess
import sys

import pytest
from places import NVRTC, ROOT


@pytest.mark.slow
def test_the_page_is_what_routines_launch():
    done = subprocess.run([sys.executable, NVRTC / "reach.py"], capture_output=True, text=True, check=True)
    page = (ROOT / "docs" / "kernels" / "reach.md").read_text(encoding="utf-8")
    assert page[page.index("| routine") :] == done.stdout
