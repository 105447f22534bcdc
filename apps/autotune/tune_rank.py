"""The order in which `tune` tries candidates: the fastest by the model first, where it counts the kernel.

The model foretells QR within a factor of two, which is no verdict, but enough to leave out what lies far
behind: `tune --best N` measures the present values and the N candidates that the model finds fastest. Those that it
cannot tell apart, as by the registers that are left to a thread, stay in their order. Of kernels that it does not count
those come first that are fewest steps of a knob away from the present values.
"""

import statistics

from h2gpu.batched import model
from h2gpu.batched.model import counts

IN_ORDER = ("fixed_gemm",)  # routines whose candidates come with the most promising first
COUNTED = {"qr": counts.column_qr, "qr_blocked": counts.blocked_qr}


def ranked(routine, found, cases, device, most=None):
    """The first of the candidates, then the others by predicted time, `most` of them; the nearest where none is known.

    found     dictionaries of knobs as text, the present values first
    cases     what they are to be fast at; the geometric mean counts
    """
    own, *others = found
    if routine in IN_ORDER:
        return [own, *others[:most]]
    try:
        constants = model.Constants.of(device)
        order = sorted(others, key=lambda knobs: predicted(routine, knobs, cases, constants))
    except (KeyError, ValueError, LookupError):  # a routine or a device that the model does not know
        order = nearest(own, others)
    return [own, *order[:most]]


def nearest(own, others):
    """The candidates by the number of steps to them from `own`, a step from a value of a knob to the next."""
    values = {knob: sorted({found[knob] for found in (own, *others)}, key=number) for knob in own}
    places = {knob: {value: place for place, value in enumerate(known)} for knob, known in values.items()}
    return sorted(others, key=lambda found: sum(abs(places[k][v] - places[k][own[k]]) for k, v in found.items()))


def number(text):
    """What values of a knob are sorted by: words behind numbers."""
    return (0, int(text)) if text.isdigit() else (1, 0)


def predicted(routine, knobs, cases, constants):
    """Seconds, the geometric mean over the cases. Raises KeyError for a routine that is not counted."""
    row = {knob: int(value) for knob, value in knobs.items()}
    works = [COUNTED[routine](case.dtype, *case.shape, row, case.routine == "qr") for case in cases]
    return statistics.geometric_mean(
        model.seconds(work, case.batch, case.dtype, constants) for work, case in zip(works, cases)
    )
