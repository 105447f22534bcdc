"""Modes of files written whole, and the name that an error tells."""

import os

import pytest

from h2gpu.storage import check_writable, whole_file


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
