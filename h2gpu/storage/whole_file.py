"""Files that appear whole or not at all.

The new content goes to a temporary file in the same folder, is flushed to the disk and renamed over the target; the
rename is one step, so that a reader sees the old file or the new one and a crash leaves the old one.
"""

import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(path):
    """Yields the path of a new empty file beside `path`; when the block ends without error it becomes `path`.

    On any error the temporary file is removed and what was at `path` stays. A link is followed. Raises OSError.
    """
    target = checked_target(path)
    temporary = target.with_name(f".{target.name[:80]}.{secrets.token_hex(6)}.tmp")
    _create(temporary, path)
    try:
        yield temporary
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)  # new content is not the owner's program: no setuid
        _synchronize(temporary)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.strerror and error.filename in (None, str(temporary)):
            error.filename = str(path)  # a full disk does not tell where
        raise
    if os.name == "posix":
        _synchronize(target.parent)


def check_writable(path):
    """OSError unless a file can be written at `path`; tried with an empty file beside it, which is removed again."""
    target = checked_target(path)
    trial = target.with_name(f".{target.name[:80]}.{secrets.token_hex(6)}.tmp")
    _create(trial, path)
    trial.unlink()


def checked_target(path):
    """The path with links followed. OSError when it is a folder or device, or its folder does not exist."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path}: is a folder; give the name of a file")
    if target.exists() and not target.is_file():
        raise OSError(f"{path}: is not a regular file; give the name of a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {target.parent} does not exist; create it first")
    return target


def _create(temporary, path):
    """An empty file that was not there; an OSError names the path that the user knows."""
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # not mkstemp: the umask decides
    except OSError as error:
        error.filename = str(path)
        raise


def _synchronize(path):
    """Wait until the disk has the file or folder."""
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
