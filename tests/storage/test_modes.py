"""Modes of files written whole, and the name that an error tells."""

import errno
import os
import sys

import h5py
import pytest

from h2gpu.storage import check_writable, whole_file

module = sys.modules["h2gpu.storage.whole_file"]  # the package has the function by the name


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_an_overwritten_file_keeps_its_permissions_but_not_setuid(tmp_path):
    path = tmp_path / "old"
    path.touch()
    path.chmod(0o4640)
    with whole_file(path) as temporary:
        temporary.write_text("new")
    assert path.stat().st_mode & 0o7777 == 0o640 and path.read_text() == "new"


@pytest.mark.parametrize("ask", [check_writable, lambda path: whole_file(path).__enter__()])
def test_a_folder_that_refuses_is_told_by_the_name_of_the_output(ask, tmp_path, monkeypatch):
    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError) as caught:
        ask(tmp_path / "out.h5")
    assert caught.value.filename == str(tmp_path / "out.h5")


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
@pytest.mark.parametrize("named", [None, "temporary", "another"])
def test_an_error_while_writing_names_the_output_unless_it_names_another_file(named, tmp_path):
    out, other = tmp_path / "out.h5", str(tmp_path / "another")
    with pytest.raises(OSError, match="No space") as caught, whole_file(out) as temporary:
        raise OSError(errno.ENOSPC, "No space left", {"temporary": str(temporary), "another": other}.get(named))
    assert caught.value.filename == (other if named == "another" else str(out)) and not list(tmp_path.iterdir())


def test_temporary_files_of_killed_processes_go_when_the_file_is_written_again(tmp_path):
    path, names = tmp_path / "out.h5", [f".out.h5.{digit * 12}.tmp" for digit in "abcd"]
    strangers = [".out.h5.tmp", f".other.h5.{'a' * 12}.tmp", f".out.h5.{'A' * 12}.tmp"]
    for name in (*names, *strangers):
        (tmp_path / name).touch()
        if name != names[2]:  # which was touched just now
            os.utime(tmp_path / name, (0, 0))
    with h5py.File(tmp_path / names[1], "w") as writing:  # somebody is at it
        writing.flush()
        os.utime(tmp_path / names[1], (0, 0))
        with whole_file(path) as temporary:
            temporary.write_text("new")
        assert {*os.listdir(tmp_path)} == {"out.h5", names[1], names[2], *strangers}


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
@pytest.mark.parametrize("through", ["out.h5", "folder/out.h5", "again"])
def test_links_of_another_user_in_a_sticky_folder_are_not_followed(through, tmp_path, monkeypatch):
    shared, home = tmp_path / "shared", tmp_path / "home"
    shared.mkdir(), home.mkdir()
    (home / "out.h5").write_text("mine")
    (shared / "out.h5").symlink_to(home / "out.h5")
    (shared / "folder").symlink_to(home)
    (home / "again").symlink_to(shared / "out.h5")
    path = (home if through == "again" else shared) / through
    monkeypatch.setattr(module, "_owner", lambda link: os.geteuid() + 1)
    check_writable(path)  # not sticky: as everywhere
    shared.chmod(0o1777)
    monkeypatch.setattr(module, "_owner", lambda link: os.geteuid())
    check_writable(path)
    monkeypatch.setattr(module, "_owner", lambda link: os.geteuid() + 1)
    with pytest.raises(PermissionError, match="link of another user") as caught, whole_file(path):
        pass
    assert caught.value.filename.startswith(str(shared)) and (home / "out.h5").read_text() == "mine"
