"""The texts of kernels/ for a compiler of C++ alone: `asm` as calls of ptx.h, shared memory as the emulator's."""

import os
import re
import shutil

COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
SHARED = re.compile(r"extern __shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[\];")
ASM = re.compile(r"\basm\s*(?:volatile\s*)?\(")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
NAMES = (  # of instructions by what their texts contain
    (r"mma\.sync\.aligned\.(m\d+n8k\d+)\.row\.col\.f64", r"mma_\1_f64"),
    (r"mma\.sync\.aligned\.(m\d+n8k\d+)\.row\.col\.f32\.(\w+)", r"mma_\1_\2"),
    (r"cp\.async\.c[ag]\.shared\.global \[%0\], \[%1\], 16", "cp_async_16"),
    (r"cp\.async\.ca\.shared\.global", "cp_async"),
    (r"cp\.async\.(commit|wait)_group", r"cp_async_\1_group"),
    (r"setp\.ne\.s32 p, %2, 0; @p st\.shared\.f64", "st_shared_f64_where"),
    (r"mov\.u\d+ %0, %%?(tid|ctaid)\.x", r"mov_\1_x"),
    (r"mov\.u\d+ %0, %%?(warpid|clock)", r"mov_\1"),
    (r"bar\.sync 1", "bar_sync_1"),
    (r"(ld)\.acquire|(st)\.release", lambda found: "ld_acquire" if found[1] else "st_release"),
    (r"prefetch\.global", "prefetch_global"),
    (r"griddepcontrol\.(launch_dependents|wait)", r"\1_of_grids"),
    (r"(sqrt|rsqrt|rcp|ex2)\.approx\.ftz\.(f\d+)", r"\1_approx_\2"),
    (r"cvt\.((?:rn\.)?\w+)\.(\w+)", lambda found: "cvt_" + found[1].replace(".", "_") + "_" + found[2]),
)


def translated(text):
    """A source, line by line where it was."""
    text = SHARED.sub(r"\1* const \2 = reinterpret_cast<\1*>(emulator::shared_memory());", text)
    parts, at = [], 0
    while found := ASM.search(text, at):
        end = _closing(text, found.end())
        parts += [text[at : found.start()], _call(text[found.end() : end])]
        at = end + 1
    return "".join(parts) + text[at:]


def _closing(text, at):
    """Where the parenthesis ends that is open at a place of a text."""
    depth, quoted = 1, False
    for i in range(at, len(text)):
        quoted ^= text[i] == '"' and text[i - 1] != "\\"
        depth += 0 if quoted else (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    raise ValueError("no end of a parenthesis")


def _call(statement):
    """A call in place of what stands between the parentheses of an `asm`."""
    sections = _split(statement, ":")
    instruction = "".join(STRING.findall(sections[0]))
    if not instruction.strip():
        return "((void)0)"  # tells the compiler something: nothing to do
    operands = [part for section in sections[1:3] for part in _split(section, ",") if part.strip()]
    values = [_inside(part) for part in operands]
    return f"{_name(instruction)}({', '.join(values)})"


def _name(instruction):
    for pattern, name in NAMES:
        if found := re.search(pattern, instruction):
            return found.expand(name) if isinstance(name, str) else name(found)
    return "unknown_" + re.sub(r"\W+", "_", instruction)  # does not compile where it is called


def _split(text, mark):
    """The parts of a text between marks that stand in no string and no parenthesis."""
    parts, depth, quoted = [""], 0, False
    for i, character in enumerate(text):
        quoted ^= character == '"' and text[i - 1 : i] != "\\"
        depth += 0 if quoted else (character in "([{") - (character in ")]}")
        if character == mark and not quoted and depth == 0 and not (mark == ":" and _is_choice(parts[-1])):
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _is_choice(text):
    """Whether a colon behind this belongs to a ? of it."""
    return "?" in STRING.sub("", text)


def _inside(operand):
    """What stands in the parentheses of a constraint."""
    begin = operand.index("(", operand.rindex('"') + 1)
    return operand[begin + 1 : operand.rindex(")")].strip()
