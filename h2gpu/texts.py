"""Texts that are safe to show: one line, nothing that acts on a terminal or looks like a line of ours."""


def plain(text, most=2000):
    """The text on one line of at most `most` letters; what cannot be printed as Python writes it: \\x1b, \\n.

    >>> plain("two\\nlines", 8)
    'two\\\\nli…'
    """
    text = str(text)
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def brief(value, most=200):
    """A value as messages tell what was got: as Python writes it, on one line, of at most `most` letters.

    >>> import numpy as np
    >>> brief(np.eye(2))
    'array([[1., 0.], [0., 1.]])'
    """
    return plain(" ".join(repr(value).split()), most)


def described(error):
    """The message of an error; of an OSError without its number: file, then reason.

    >>> described(FileNotFoundError(2, "No such file or directory", "sites.h5"))
    'sites.h5: No such file or directory'
    """
    words = getattr(error, "filename", None), getattr(error, "strerror", None)
    return f"{words[0]}: {words[1]}" if all(words) else str(error)
