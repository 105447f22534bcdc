"""Does a wheel hold what it promises? Every kernel of its list, for every architecture, compiled from its own sources.

python -m h2gpu.apps.packaging.check_wheel dist/h2gpu-….whl
"""

import io
import struct
import sys
import tempfile
import zipfile
from pathlib import Path

from h2gpu.apps.command.command import FailureError, Parser, run
from h2gpu.apps.packaging.compile_ahead import ARCHITECTURES, read_instances
from h2gpu.batched.device import compiler, machine_code

MOST_BYTES = 40_000_000  # of a wheel
ELF, FLAGS = b"\x7fELF", 48  # how machine code begins; where its header names the architecture


def main(argv=None):
    """The command; returns the exit status."""
    return run("packaging.check_wheel", _work, argv)


def _work(argv):
    parser = Parser(prog="packaging.check_wheel", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("wheel", type=Path)
    path = parser.parse_args(argv).wheel
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: expected a wheel, a zip file")
    with tempfile.TemporaryDirectory(prefix="h2gpu-") as place, zipfile.ZipFile(path) as wheel:
        names = [name for name in wheel.namelist() if name.startswith("h2gpu/kernels/")]
        wheel.extractall(place, names)
        found = faults(Path(place, "h2gpu", "kernels"))
    size = path.stat().st_size
    if size > MOST_BYTES:
        found.append(f"{size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.0f}")
    if found:
        raise FailureError(f"{path}: {'; '.join(found)}")
    print(f"{path}: {len(names)} files of kernels, machine code for {', '.join(ARCHITECTURES)}, {size / 1e6:.1f} MB")


def faults(kernels):
    """What is wrong with a folder of kernels, a line for each architecture."""
    compiler.source_folder = lambda: kernels
    keys = {compiler.member(h, compiler.qualified(h, name)): name for h, name in read_instances(kernels / "paths.csv")}
    lines = []
    for architecture in ARCHITECTURES:
        try:
            archive = zipfile.ZipFile(io.BytesIO(machine_code.archive(kernels, architecture).read_bytes()))
        except (OSError, zipfile.BadZipFile) as error:
            lines.append(f"{architecture}: {error}")
            continue
        held = {info.filename: info for info in archive.infolist()}
        absent = [name for key, name in keys.items() if key not in held]
        wrong = [keys[key] for key in keys.keys() & held if not fits(archive, held[key], architecture)]
        for names, what in ((absent, "absent"), (wrong, "damaged or of another architecture")):
            if names:
                lines.append(f"{architecture}: {len(names)} kernels {what}, among them {names[0]}")
    return lines


def fits(archive, info, architecture):
    """Whether a member is machine code of an architecture and holds the function that it names."""
    try:
        code = archive.read(info)
    except zipfile.BadZipFile:
        return False
    return architecture_of(code) == architecture and info.comment in code


def architecture_of(code):
    """ "sm_90" of machine code, None of anything else."""
    if code[: len(ELF)] != ELF or len(code) < FLAGS + 4:
        return None
    return f"sm_{struct.unpack_from('<I', code, FLAGS)[0] >> 8 & 0xFF}"


if __name__ == "__main__":
    sys.exit(main())
