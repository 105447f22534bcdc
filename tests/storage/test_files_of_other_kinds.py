"""What is looked at before a file is opened or read: its kind, and the memory that there is."""

import os
import threading

import numpy as np
import pytest

import h2gpu
from h2gpu.storage import is_matrix_file, read_header, reading


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("ask", [h2gpu.load, read_header, is_matrix_file])
def test_a_pipe_without_writer_is_refused_at_once(ask, tmp_path):
    pipe, found = tmp_path / "pipe.h5", []
    os.mkfifo(pipe)

    def look():
        try:
            found.append(ask(pipe))
        except ValueError as error:
            found.append(str(error))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(5)
    assert found and (found[0] is False or "expected a regular file" in found[0])


def test_ranks_that_exceed_the_free_memory_are_not_read(tmp_path, monkeypatch):
    path = tmp_path / "matrix.h5"
    points = np.random.default_rng(0).random((300, 2))
    A = h2gpu.covariance_matrix(points, h2gpu.covariance.Exponential(), 1e-3)
    h2gpu.save(A, path)
    assert read_header(path).shape == (300, 300)
    monkeypatch.setattr(reading, "free_memory", lambda: 40)
    with pytest.raises(ValueError, match="row_basis/ranks: expected at most 40 bytes, which is free, got"):
        read_header(path)
