"""Packages that only some need, asked for by name."""

from importlib import import_module


def extra(name, what):
    """The module of an optional package; ImportError, one line, where it is missing."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"{what}: needs {name.partition('.')[0]}: pip install 'h2gpu[files]'") from None
