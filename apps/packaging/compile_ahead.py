"""Compile kernels ahead, for every architecture, into kernels/machine_code: no GPU needed.

    python -m h2gpu.apps.packaging.compile_ahead [--architectures sm_80,sm_90,sm_100] [--instances FILE.csv]

FILE.csv has the columns header and instance, as kernels/paths.csv. What an archive already holds of the same sources
stays; what is not asked for goes.
"""

import argparse
import csv
import re
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tqdm import tqdm

from h2gpu.apps.command.command import Parser, run
from h2gpu.apps.packaging import nvrtc
from h2gpu.batched.device import compiler, machine_code
from h2gpu.batched.device.threads import thread_count
from h2gpu.storage.whole_file import whole_file

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
OLDEST_DATE = (1980, 1, 1, 0, 0, 0)  # of members: equal sources give equal archives
SAME_NAMES = "--frandom-seed=h2gpu"  # internal names hold the time and the process of the compilation otherwise


def main(argv=None):
    """The command; returns the exit status."""
    return run("packaging.compile_ahead", _work, argv)


def _work(argv):
    parser = Parser(prog="packaging.compile_ahead", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--architectures", type=architectures, default=ARCHITECTURES, help="separated by commas")
    parser.add_argument(
        "--instances", type=Path, default=compiler.source_folder() / "paths.csv", help="what to compile"
    )
    parser.add_argument(
        "--folder", type=Path, default=compiler.source_folder(), help="archives go to its machine_code/"
    )
    options = parser.parse_args(argv)
    if nvrtc.library() is None:
        raise ValueError("compiling needs NVRTC; install it: pip install nvidia-cuda-nvrtc")
    wanted = read_instances(options.instances)
    for architecture in options.architectures:
        path = machine_code.archive(options.folder, architecture)
        new = write(path, architecture, wanted)
        print(f"{path}: {len(wanted)} kernels, {new} compiled now, {path.stat().st_size / 1e6:.1f} MB", flush=True)


def architectures(text):
    """Names separated by commas, as a tuple."""
    names = tuple(text.split(","))
    if not all(re.fullmatch(r"sm_\d{2,3}", name) for name in names):
        raise argparse.ArgumentTypeError(f"expected architectures such as sm_80,sm_90, got {text!r}")
    return names


def read_instances(path):
    """[(header, name expression), …] of a CSV file, each once, in order."""
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file; write it by python -m h2gpu.apps.packaging.record, on a GPU")
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if not {"header", "instance"} <= set(reader.fieldnames or ()):
            raise ValueError(f"{path}: expected the columns header and instance, got {reader.fieldnames}")
        return sorted({(row["header"], row["instance"]) for row in reader})


def write(path, architecture, wanted):
    """Make the archive of an architecture hold the wanted instances; returns how many were compiled for it."""
    keys = members(wanted)
    kept = held(path, keys)
    missing = [key for key in keys if key not in kept]
    with ThreadPoolExecutor(thread_count()) as pool:
        results = pool.map(lambda key: compiled(architecture, *keys[key]), missing)
        bar = tqdm(results, path.name, len(missing), disable=not sys.stderr.isatty())
        found = kept | dict(zip(missing, bar))
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_LZMA) as file:
        for key in sorted(found):
            info = zipfile.ZipInfo(key, OLDEST_DATE)
            code, info.comment = found[key][0], found[key][1].encode()
            file.writestr(info, code, zipfile.ZIP_LZMA)
    return len(missing)


def members(wanted):
    """{name in an archive: (header, name expression)} of instances."""
    return {compiler.member(header, compiler.qualified(header, name)): (header, name) for header, name in wanted}


def held(path, keys):
    """{key: (machine code, function's name)} of those that an archive holds; {} where there is none."""
    if not path.exists():
        return {}
    with zipfile.ZipFile(path) as file:
        return {i.filename: (file.read(i), i.comment.decode()) for i in file.infolist() if i.filename in keys}


def compiled(architecture, header, name):
    """(machine code, function's name) of an instance."""
    name = compiler.qualified(header, name)
    options = [*compiler.options(header), nvrtc.CUPYS_OWN, f"-arch={architecture}", SAME_NAMES]
    result = nvrtc.compiled(compiler.program(header), options, [name])
    return result.code, result.names[name]


if __name__ == "__main__":
    sys.exit(main())
