"""What the compiler made of the kernels that were launched, and how many of their blocks a multiprocessor holds.

Registers, static shared memory and local memory (spilled registers and indexed arrays) are attributes of the compiled
function; resident blocks come from the driver's occupancy calculator for the launch as it was.
"""

import re

WARP = 32
TYPES = {"d": "double", "f": "float", "i": "int"}


def row(launch, case):
    """The report of one launch.

    launch   h2gpu.batched.device.launch.Launch
    case     where it was met
    """
    import cupy

    function = launch.function
    device = cupy.cuda.Device()
    resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        function.kernel.ptr, launch.threads, launch.shared_bytes
    )
    most = device.attributes["MaxThreadsPerMultiProcessor"] // WARP
    warps = resident * -(-launch.threads // WARP)
    return {
        "kernel": instance(function.name),
        "threads": launch.threads,
        "registers": function.num_regs,
        "local bytes": function.local_size_bytes,
        "static shared": function.shared_size_bytes,
        "dynamic shared": launch.shared_bytes,
        "resident blocks": resident,
        "resident warps": warps,
        "occupancy": warps / most,
        "blocks": launch.blocks,
        "waves": launch.blocks / max(1, resident * device.attributes["MultiProcessorCount"]),
        "met in": case and case.label,
    }


def summary(launches):
    """Registers, local memory and occupancy of the first launch, for the row of a table; nothing without launches."""
    report = row(launches[0], None) if launches else {}
    return {key: report[key] for key in ("registers", "local bytes", "occupancy") if key in report}


def rows(launches, case, known):
    """Reports of the launches whose instance, threads and shared memory are not yet in the set `known`."""
    found = []
    for launch in launches:
        key = launch.function.name, launch.threads, launch.shared_bytes
        if key not in known:
            known.add(key)
            found.append(row(launch, case))
    return found


def name(mangled):
    """_ZN3svd8svd_gramIdLi32E… → svd_gram: the last name, behind those of namespaces."""
    return _divided(mangled)[0]


def _divided(mangled):
    """The last name, and what follows it."""
    word, rest = mangled, mangled.removeprefix("_Z").removeprefix("N") if mangled.startswith("_Z") else ""
    while found := re.match(r"(\d+)", rest):
        rest = rest[found.end() :]
        word, rest = rest[: int(found[1])], rest[int(found[1]) :]
    return word, rest


def instance(mangled):
    """_ZN3svd8svd_gramIdLi32ELb0EEEvPK… → svd_gram<double, 32, false>, of types, numbers and truth values."""
    word, rest = _divided(mangled)
    if not rest.startswith("I"):
        return word
    arguments, rest = [], rest[1:]
    while not rest.startswith("E"):
        found = re.match(r"L(\w)(n?\d+)E|([dfi])", rest)
        if not found:
            return f"{word}<{', '.join([*arguments, '…'])}>"
        kind, value, simple = found.groups()
        arguments.append(TYPES[simple] if simple else _literal(kind, value))
        rest = rest[found.end() :]
    return f"{word}<{', '.join(arguments)}>"


def _literal(kind, value):
    return ("true" if value == "1" else "false") if kind == "b" else value.replace("n", "-")
