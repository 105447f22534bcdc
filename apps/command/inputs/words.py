"""Words of a command line as numbers, names and sizes: argparse calls one of these, which tells what is wrong."""

import argparse
import math

from h2gpu.memory import parse_size


def positive(text):
    """A finite number above zero."""
    number = _number(text)
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"expected a finite number above 0, got {text!r:.40}")
    return number


def not_negative(text):
    """A finite number, zero allowed."""
    number = _number(text)
    if not (math.isfinite(number) and number >= 0):
        raise argparse.ArgumentTypeError(f"expected a finite number, 0 or above, got {text!r:.40}")
    return number


def positives(text):
    """Numbers above zero, separated by commas."""
    return tuple(positive(part) for part in text.split(","))


def numbers(text):
    """Finite numbers, separated by commas."""
    found = tuple(_number(part) for part in text.split(","))
    if not all(map(math.isfinite, found)):
        raise argparse.ArgumentTypeError(f"expected finite numbers, got {text!r:.40}")
    return found


def count(text):
    """An integer above zero."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number < 2**31:
        raise argparse.ArgumentTypeError(f"expected an integer above 0, got {text!r:.40}")
    return number


def counts(text):
    """Integers above zero, separated by commas."""
    return [count(part) for part in text.split(",")]


def at_least(least):
    """A function for integers from that on."""

    def checked(text):
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number < 2**31:
            raise argparse.ArgumentTypeError(f"expected an integer from {least} on, got {text!r:.40}")
        return number

    return checked


def names(text):
    """Names of datasets, separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.strip("/") for part in parts):
        raise argparse.ArgumentTypeError(f"expected names of datasets separated by commas, got {text!r:.40}")
    return parts


def size(text):
    """Bytes."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _number(text):
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r:.40}") from None
