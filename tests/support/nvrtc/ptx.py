"""What PTX tells of a kernel before ptxas makes machine code of it."""

import re

FUNCTION = re.compile(r"\.(?:entry|func)\b")
NEGATION = re.compile(r"\b(?:neg\.s32\s+(%\w+), %\w+|sub\.s32\s+(%\w+), 0, %\w+|mul\.lo\.s32\s+(%\w+), %\w+, -1);")
EXTREME = re.compile(r"\b(min|max)\.s32\s+(%\w+), (%?-?\w+), (%?-?\w+);")


def lost_signs(text):
    """Lines of PTX of which ptxas 13.0 (not 13.5) makes min(min(a, b), c) for min(min(a, −b), c) of int, or so of max.

    It takes three operands together from sm_90 on, and forgets that one has been negated. Loops between several limits
    become such lines; `anew` of kernels/systems/thread/anew.cuh hides a limit from the compiler that makes PTX of them.
    """
    found = []
    for function in FUNCTION.split(text):
        negated = {target for match in NEGATION.finditer(function) for target in match.groups() if target}
        inner = {m[2]: m[1] for m in EXTREME.finditer(function) if {m[3], m[4]} & negated}
        found += [m[0] for m in EXTREME.finditer(function) if m[1] in (inner.get(m[3]), inner.get(m[4]))]
    return found
