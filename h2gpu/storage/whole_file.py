"""Files that appear whole or not at all.

The new content goes to a temporary file in the same folder, is flushed to the disk and renamed over the target; the
rename is one step, so that a reader sees the old file or the new one and a crash leaves the old one.
"""

import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from h2gpu.typing import FileName

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ABANDONED = 3600.0  # seconds after which a temporary file that nobody holds is taken for that of a killed process
MOST_LINKS = 40


@contextmanager
def whole_file(path: FileName) -> Iterator[Path]:
    """Yields the path of a new empty file beside `path`; when the block ends without error it becomes `path`.

    On any error the temporary file is removed and what was at `path` stays. A link is followed. Raises OSError.
    """
    target = checked_target(path)
    _remove_abandoned(target)
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


def check_writable(path: FileName) -> None:
    """OSError unless a file can be written at `path`; tried with an empty file beside it, which is removed again."""
    target = checked_target(path)
    trial = target.with_name(f".{target.name[:80]}.{secrets.token_hex(6)}.tmp")
    _create(trial, path)
    trial.unlink()


def checked_target(path):
    """The path with links followed. OSError when it is a folder or device, or its folder does not exist, or a link
    that another user left in a folder like /tmp leads to it.
    """
    _check_links(path)
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


def _remove_abandoned(target):
    """Remove temporary files of the target that processes left behind when they were killed.

    One that is written at this moment is young, or locked by HDF5 (flock) from when it is opened to when it is closed.
    """
    if fcntl is None:
        return
    ours = re.compile(re.escape(f".{target.name[:80]}.") + r"[0-9a-f]{12}\.tmp")
    with suppress(OSError):
        for place in os.scandir(target.parent):
            if ours.fullmatch(place.name):
                with suppress(OSError):
                    _remove_if_abandoned(place.path)


def _remove_if_abandoned(path):
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or time.time() - found.st_mtime < ABANDONED:
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError where a writer holds it
        os.unlink(path)
    finally:
        os.close(descriptor)


def _check_links(path, left=MOST_LINKS):
    """PermissionError for a link in a sticky folder that all may write to, of neither our user nor the folder's owner.

    The rule of Linux (fs.protected_symlinks), which holds for opening a file but not for renaming one over its target.
    """
    if os.name != "posix" or left == 0:  # realpath tells of circles
        return
    whole = Path(os.path.abspath(path))
    for place in (*reversed(whole.parents), whole):
        if place.is_symlink():
            folder = place.parent.stat()
            shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
            if shared and _owner(place) not in (os.geteuid(), folder.st_uid):
                raise PermissionError(13, "is a link of another user in a folder that all may write to", str(path))
            _check_links(place.parent / os.readlink(place) / whole.relative_to(place), left - 1)
            return


def _owner(link):
    return link.lstat().st_uid


def _synchronize(path):
    """Wait until the disk has the file or folder."""
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
