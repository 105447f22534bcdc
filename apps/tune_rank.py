"""The order in which `tune` tries candidates: the fastest by the model first, where it counts the kernel.

h2gpu/batched/model.py foretells QR within a factor of two, which is no verdict, but enough to leave out what lies far
behind: `tune --best N` measures the present values and the N candidates that the model finds fastest. Those that it
cannot tell apart, as by the registers that are left to a thread, stay in their order.
"""

import statistics

from h2gpu.batched import counts, model

COUNTED = {"qr": counts.column_qr, "qr_blocked": counts.blocked_qr}


def ranked(routine, found, cases, device, most=None):
    """The first of the candidates, then the others by predicted time, `most` of them; as they are where none is known.

    found     dictionaries of knobs as text, the present values first
    cases     what they are to be fast at; the geometric mean counts
    """
    own, *others = found
    try:
        constants = model.Constants.of(device)
        order = sorted(others, key=lambda knobs: predicted(routine, knobs, cases, constants))
    except (KeyError, ValueError, LookupError):  # a routine or a device that the model does not know
        order = others
    return [own, *order[:most]]


def predicted(routine, knobs, cases, constants):
    """Seconds, the geometric mean over the cases. Raises KeyError for a routine that is not counted."""
    row = {knob: int(value) for knob, value in knobs.items()}
    works = [COUNTED[routine](case.dtype, *case.shape, row, case.routine == "qr") for case in cases]
    return statistics.geometric_mean(
        model.seconds(work, case.batch, case.dtype, constants) for work, case in zip(works, cases)
    )
