"""Texts from files, made safe to show: what a file says must not act on a terminal, nor look like a line of ours."""


def plain(text, most=2000):
    """The text on one line of at most `most` letters; what cannot be printed as Python writes it: \\x1b, \\n.

    >>> plain("two\\nlines", 8)
    'two\\\\nli…'
    """
    text = str(text)
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"
