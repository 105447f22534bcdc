"""Quick options of h2compress, and one line for whatever is wrong."""

import re

import h5py

from h2gpu.apps import h2compress

FAST = ("--leaf-size", "16", "--eta", "1", "--rtol", "1e-3")


def put(path, name, data):
    with h5py.File(path, "r+") as file:
        file[name] = data


def failed(main, arguments, status, words, capsys):
    """The command ends with the status and one line on stderr that holds the words; stdout has no traceback."""
    assert main([str(a) for a in arguments]) == status
    out, err = capsys.readouterr()
    assert re.fullmatch(rf"{main.__module__.split('.')[-1]}: error: .*\n", err), err
    assert re.search(words, err), err
    assert "Traceback" not in out + err and len(err) < 500


def compressing_fails(arguments, status, words, capsys):
    failed(h2compress.main, arguments, status, words, capsys)
