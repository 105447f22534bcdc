"""Kernels compiled ahead: which archive a device takes; anything amiss with it leads to compiling, not to errors."""

import sys
import types
import zipfile
from pathlib import Path

import pytest

from h2gpu.batched.device import compiler, machine_code


@pytest.fixture
def folder(tmp_path):
    """A folder of sources with an archive of one member."""
    path = machine_code.archive(tmp_path, "sm_80")
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as file:
        info = zipfile.ZipInfo("key")
        info.comment = b"mangled"
        file.writestr(info, b"code" * 100)
        file.writestr("packed", b"code" * 100, zipfile.ZIP_LZMA)
    machine_code.opened.cache_clear()
    yield tmp_path
    machine_code.opened.cache_clear()


@pytest.mark.parametrize(
    ("capability", "best"),
    (("80", "sm_80"), ("86", "sm_80"), ("89", "sm_80"), ("90", "sm_90"), ("100", "sm_100"), ("103", "sm_103")),
)
def test_a_device_takes_the_latest_code_of_its_major_number(capability, best):
    assert machine_code.usable(capability, ["sm_80", "sm_90", "sm_100", "sm_103"])[0] == best


@pytest.mark.parametrize("capability", ("75", "120"))
def test_code_of_another_major_number_is_not_taken(capability):
    assert machine_code.usable(capability, ["sm_80", "sm_90", "sm_100"]) == []


def test_a_member_is_read_with_the_name_of_its_function(folder):
    assert machine_code.read(folder, "80", "key") == (b"code" * 100, "mangled")


def test_what_is_absent_is_none(folder, tmp_path):
    assert machine_code.read(folder, "80", "other") is None
    assert machine_code.read(folder, "90", "key") is None
    assert machine_code.read(tmp_path / "nowhere", "80", "key") is None


@pytest.mark.parametrize("kept", (0, 10, 200))
def test_a_truncated_archive_is_none(folder, kept):
    path = machine_code.archive(folder, "sm_80")
    path.write_bytes(path.read_bytes()[:kept])
    assert machine_code.read(folder, "80", "key") is None


def test_a_damaged_member_is_none(folder):
    path = machine_code.archive(folder, "sm_80")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"code" * 100, b"codE" * 100))
    assert machine_code.read(folder, "80", "key") is None
    begin = whole.index(b"packed") + len("packed")
    assert machine_code.read(folder, "80", "packed")[0] == b"code" * 100
    for place in range(begin, whole.index(b"PK\x01\x02")):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        machine_code.opened.cache_clear()
        assert machine_code.read(folder, "80", "packed") in (None, (b"code" * 100, ""))


class RefusedError(Exception):
    """As CUDADriverError."""


@pytest.mark.parametrize("accepted", (True, False))
def test_a_member_is_loaded_from_a_file_of_its_own(folder, accepted, monkeypatch):
    """A stand-in for CuPy reads what it is to load; what the driver refuses is to be compiled."""
    seen = []

    def get_function(name):
        if not accepted:
            raise RefusedError
        seen.append((Path(path_of[0]).read_bytes(), name))
        return name

    path_of = []

    def raw_module(path):
        path_of.append(path)
        return types.SimpleNamespace(get_function=get_function)

    cuda = types.SimpleNamespace(driver=types.SimpleNamespace(CUDADriverError=RefusedError))
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(RawModule=raw_module, cuda=cuda))
    monkeypatch.setattr(machine_code, "compute_capability", lambda device: "80")
    before = machine_code.taken()
    assert machine_code.function(0, folder, "key") == ("mangled" if accepted else None)
    assert machine_code.taken() - before == accepted and not Path(path_of[0]).exists()
    assert seen == ([(b"code" * 100, "mangled")] if accepted else [])


def test_a_member_is_named_by_all_that_it_is_compiled_from(monkeypatch):
    header, instance = "products/gemm.cuh", "products::gemm<double, 16, 16, false, false>"
    names = {compiler.member(header, instance), compiler.member("products/fixed_gemm.cuh", instance)}
    names.add(compiler.member(header, instance.replace("16", "32")))
    monkeypatch.setattr(compiler, "source_hash", lambda header: "changed")
    names.add(compiler.member(header, instance))
    monkeypatch.setattr(compiler, "STANDARD", "-std=c++20")
    names.add(compiler.member(header, instance))
    assert len(names) == 5
