"""Sizes as people write them, and what is free."""

import pytest

from h2gpu import memory


def test_sizes():
    assert [memory.parse_size(text) for text in ("8G", "500 MB", "1.5GiB", "12", ".5k")] == [
        8 * 10**9,
        500 * 10**6,
        3 * 2**29,
        12,
        500,
    ]
    for text in ("", "8X", "-1G", "G", "1e9", "inf", "0", "8Gi i"):
        with pytest.raises(ValueError, match="expected a size such as"):
            memory.parse_size(text)
    assert [memory.readable(size) for size in (0, 999, 1000, 2**30, 1.6e16)] == [
        "0 bytes",
        "999 bytes",
        "1 kB",
        "1.07 GB",
        "16,000 TB",
    ]
    assert memory.free_memory() > 0 and memory.peak_memory() > 10**6
