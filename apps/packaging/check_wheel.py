"""Does a wheel hold what it promises? The sources of this checkout, and machine code of every kernel of their list.

    python -m h2gpu.apps.packaging.check_wheel [--architectures sm_80,sm_90,sm_100] dist/NAME.whl

A wheel is a zip file of at most 40 MB.
"""

import io
import lzma
import struct
import sys
import zipfile
from pathlib import Path

from h2gpu.apps.command.command import FailureError, Parser, run
from h2gpu.apps.packaging.compile_ahead import ARCHITECTURES, architectures, members, read_instances
from h2gpu.batched.device import compiler, machine_code

MOST_BYTES = 40_000_000  # of a wheel
SOURCES = ".cuh", ".cu", ".csv"  # as pyproject.toml packs
INSIDE = "h2gpu/kernels"  # where a wheel holds the kernels
ELF, FLAGS = b"\x7fELF", 48  # how machine code begins; where its header names the architecture


def main(argv=None):
    """The command; returns the exit status."""
    return run("packaging.check_wheel", _work, argv)


def _work(argv):
    parser = Parser(prog="packaging.check_wheel", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--architectures", type=architectures, default=ARCHITECTURES, help="separated by commas")
    parser.add_argument("wheel", type=Path)
    options = parser.parse_args(argv)
    if not zipfile.is_zipfile(options.wheel):
        raise ValueError(f"{options.wheel}: expected a wheel, a zip file")
    with zipfile.ZipFile(options.wheel) as wheel:
        found = [*other_sources(wheel), *(line for name in options.architectures for line in faults(wheel, name))]
    size = options.wheel.stat().st_size
    if size > MOST_BYTES:
        found.append(f"{size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.0f}")
    if found:
        raise FailureError(f"{options.wheel}: {'; '.join(found)}")
    print(f"{options.wheel}: machine code for {', '.join(options.architectures)}, {size / 1e6:.1f} MB")


def other_sources(wheel):
    """A line where files of kernels differ from those of this checkout, whose hash the machine code is named by."""
    here = compiler.source_folder()
    names = [path.relative_to(here).as_posix() for path in sorted(here.rglob("*.*")) if path.suffix in SOURCES]
    held = set(wheel.namelist())
    differ = [n for n in names if f"{INSIDE}/{n}" not in held or wheel.read(f"{INSIDE}/{n}") != (here / n).read_bytes()]
    return [f"{len(differ)} sources absent or others than here, among them {differ[0]}"] if differ else []


def faults(wheel, architecture):
    """What is wrong with the archive of an architecture, a line for each kind."""
    path = machine_code.archive(INSIDE, architecture).as_posix()
    try:
        archive = zipfile.ZipFile(io.BytesIO(wheel.read(path)))
    except (KeyError, zipfile.BadZipFile):
        return [f"no archive {path}"]
    keys = members(read_instances(compiler.source_folder() / "paths.csv"))
    held = {info.filename: info for info in archive.infolist()}
    absent = [name for key, (_, name) in keys.items() if key not in held]
    wrong = [keys[key][1] for key in sorted(keys.keys() & held) if not fits(archive, held[key], architecture)]
    kinds = (absent, "absent"), (wrong, "damaged or of another architecture")
    return [f"{path}: {len(names)} kernels {what}, among them {names[0]}" for names, what in kinds if names]


def fits(archive, info, architecture):
    """Whether a member is machine code of an architecture and holds the function that it names."""
    try:
        code = archive.read(info)
    except (EOFError, lzma.LZMAError, zipfile.BadZipFile):
        return False
    return architecture_of(code) == architecture and info.comment in code


def architecture_of(code):
    """Such as sm_90, of machine code; None of anything else."""
    if code[: len(ELF)] != ELF or len(code) < FLAGS + 4:
        return None
    return f"sm_{struct.unpack_from('<I', code, FLAGS)[0] >> 8 & 0xFF}"


if __name__ == "__main__":
    sys.exit(main())
