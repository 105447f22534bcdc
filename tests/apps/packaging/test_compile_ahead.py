"""Kernels compiled ahead: archives hold what was asked for, for the architecture in their names."""

import zipfile

import pytest

from h2gpu.apps.packaging import check_wheel, compile_ahead, nvrtc
from h2gpu.batched.device import compiler, machine_code

ARCHITECTURES = compile_ahead.ARCHITECTURES
SMALL = (("copies/table.cuh", "table"), ("copies/owners.cuh", "owners<8>"))
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="no NVRTC: pip install nvidia-cuda-nvrtc")


def key(header, name):
    return compiler.member(header, compiler.qualified(header, name))


@needs_nvrtc
@pytest.mark.parametrize("target", ARCHITECTURES)
def test_an_archive_holds_machine_code_of_its_architecture(target, tmp_path):
    path = machine_code.archive(tmp_path, target)
    assert compile_ahead.write(path, target, SMALL) == len(SMALL)
    with zipfile.ZipFile(path) as file:
        assert {i.filename for i in file.infolist()} == {key(*each) for each in SMALL}
        for header, name in SMALL:
            code, function = file.read(key(header, name)), file.getinfo(key(header, name)).comment
            assert (
                check_wheel.architecture_of(code) == target
                and function in code
                and name.partition("<")[0].encode() in function
            )


@needs_nvrtc
def test_equal_sources_give_equal_archives_and_what_is_held_is_not_compiled_again(tmp_path):
    path, other = tmp_path / "machine_code/sm_90.zip", tmp_path / "other/sm_90.zip"
    assert compile_ahead.write(path, "sm_90", SMALL[:1]) == 1
    assert compile_ahead.write(path, "sm_90", SMALL) == 1
    assert compile_ahead.write(other, "sm_90", SMALL) == 2
    assert path.read_bytes() == other.read_bytes()
    assert compile_ahead.write(path, "sm_90", SMALL[1:]) == 0
    assert list(compile_ahead.held(path, {key(*each): each for each in SMALL})) == [key(*SMALL[1])]


@needs_nvrtc
def test_a_source_that_does_not_compile_leaves_the_archive_as_it_was(tmp_path):
    path = tmp_path / "machine_code/sm_90.zip"
    compile_ahead.write(path, "sm_90", SMALL[:1])
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="error"):
        compile_ahead.write(path, "sm_90", [*SMALL, ("copies/owners.cuh", "owners<none>")])
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "message"),
    (
        (["--architectures", "sm90"], "expected architectures such as sm_80,sm_90, got 'sm90'"),
        (["--instances", "nowhere.csv"], "nowhere.csv"),
        (["--instances", __file__], "expected the columns header and instance"),
    ),
)
def test_wrong_input_is_told_in_a_line(arguments, message, capsys, monkeypatch):
    monkeypatch.setattr(nvrtc, "library", lambda: object())
    assert compile_ahead.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_every_instance_of_the_list_is_a_kernel_of_the_sources():
    """paths.csv names headers that exist and kernels that they declare."""
    wanted = compile_ahead.read_instances(compiler.source_folder() / "paths.csv")
    texts = {header: "".join(compiler.sources(header).values()) for header, _ in wanted}
    assert len(wanted) > 100
    assert [each for each in wanted if f" {each[1].partition('<')[0]}(" not in texts[each[0]]] == []


@needs_nvrtc
def test_a_wheel_is_checked_against_the_sources(tmp_path, monkeypatch, capsys):
    """Sources, list and machine code of two kernels make a wheel; each thing that is amiss with it is told."""
    here, good = compiler.source_folder(), tmp_path / "good.whl"
    monkeypatch.setattr(check_wheel, "read_instances", lambda path: list(SMALL))
    for target in ARCHITECTURES[:2]:
        compile_ahead.write(machine_code.archive(tmp_path, target), target, SMALL)
    archives = {target: machine_code.archive(tmp_path, target).read_bytes() for target in ARCHITECTURES[:2]}
    sources = {p.relative_to(here).as_posix(): p.read_bytes() for p in here.rglob("*.c*") if p.is_file()}

    def told(path, changed_sources=(), **archives):
        with zipfile.ZipFile(path, "w") as wheel:
            for name, text in (sources | dict(changed_sources)).items():
                wheel.writestr(f"h2gpu/kernels/{name}", text)
            for name, code in archives.items():
                wheel.writestr(f"h2gpu/kernels/machine_code/{name}.zip", code)
        status = check_wheel.main(["--architectures", ",".join(ARCHITECTURES[:2]), str(path)])
        return status, "".join(capsys.readouterr())

    sm_80, sm_90 = archives.values()
    status, text = told(good, sm_80=sm_80, sm_90=sm_90)
    assert status == 0 and "machine code for sm_80, sm_90" in text
    assert "no archive" in told(tmp_path / "a.whl", sm_80=sm_80)[1]
    assert "2 kernels damaged or of another architecture" in told(tmp_path / "b.whl", sm_80=sm_80, sm_90=sm_80)[1]
    assert (
        "1 sources absent or others" in told(tmp_path / "c.whl", {"copies/table.cuh": b""}, sm_80=sm_80, sm_90=sm_90)[1]
    )
    compile_ahead.write(machine_code.archive(tmp_path, "sm_90"), "sm_90", SMALL[:1])
    few = machine_code.archive(tmp_path, "sm_90").read_bytes()
    status, text = told(tmp_path / "d.whl", sm_80=sm_80, sm_90=few)
    assert status == 1 and "1 kernels absent" in text and text.count("\n") == 1


@pytest.mark.gpu
@needs_nvrtc
def test_machine_code_of_an_archive_runs_on_the_device(tmp_path):
    """The function of an archive finds the one number that is none, as the compiled one does."""
    cupy = pytest.importorskip("cupy")
    device = cupy.cuda.Device()
    target, each = f"sm_{device.compute_capability}", ("copies/all_finite.cuh", "find_not_finite<double>")
    compile_ahead.write(machine_code.archive(tmp_path, target), target, [each])
    function = machine_code.function(device.id, tmp_path, key(*each))
    for bad in (False, True):
        x, found = cupy.ones(1000), cupy.zeros(1, cupy.int32)
        x[777] = cupy.nan if bad else 1
        function((2,), (256,), (x, cupy.int64(x.size), found))
        assert int(found[0]) == bad
