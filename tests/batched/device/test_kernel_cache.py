"""CuPy keeps compiled kernels on disk: where it cannot, they are compiled all the same."""

import errno
import os
import sys
import types

import pytest

from h2gpu.batched.device import compiler

HEADER, NAME = "products/gemm.cuh", "gemm<double, 16, 16, false, false>"


class CompileError(Exception):
    """As CuPy's CompileException."""

    def get_message(self):
        return "text(1): error: no such thing"


@pytest.fixture
def cupy(monkeypatch):
    """A stand-in whose modules fail as `cupy.fails(in_memory)` says."""

    def raw_module(code, options, name_expressions):
        def get_function(name):
            error = module.fails(os.environ.get(compiler.IN_MEMORY) == "1")
            if error:
                raise error
            return name

        return types.SimpleNamespace(get_function=get_function)

    cuda = types.SimpleNamespace(compiler=types.SimpleNamespace(CompileException=CompileError))
    module = types.SimpleNamespace(RawModule=raw_module, cuda=cuda)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EISDIR])
@pytest.mark.parametrize("before", [None, "0"])
def test_what_cannot_be_kept_on_disk_is_compiled_in_memory(cupy, number, before, monkeypatch):
    if before is None:
        monkeypatch.delenv(compiler.IN_MEMORY, raising=False)
    else:
        monkeypatch.setenv(compiler.IN_MEMORY, before)
    cupy.fails = lambda in_memory: None if in_memory else OSError(number, os.strerror(number))
    assert compiler._compiled(HEADER, NAME, ()) == NAME
    assert os.environ.get(compiler.IN_MEMORY) == before


def test_a_program_that_is_refused_is_refused_in_memory_too(cupy, monkeypatch):
    monkeypatch.delenv(compiler.IN_MEMORY, raising=False)
    cupy.fails = lambda in_memory: CompileError() if in_memory else OSError(errno.ENOSPC, "full")
    with pytest.raises(CompileError):
        compiler._compiled(HEADER, NAME, ())
    with pytest.raises(ValueError, match="no such thing"):
        compiler._compiled(HEADER, NAME, ("struct Own {};",))
    assert compiler.IN_MEMORY not in os.environ
