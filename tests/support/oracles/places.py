"""Where the tests' own files lie."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests"
STANDIN, EMULATOR, NVRTC, LAYOUTS = (TESTS / "support" / name for name in ("standin", "emulator", "nvrtc", "layouts"))
