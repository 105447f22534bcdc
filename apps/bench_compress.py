"""How long and how much memory from points to the compressed covariance matrix?

The problem of Boukaram et al., section 8.3: 2-D exponential covariance of length 0.1 on a perturbed grid, rtol 1e-7;
with 8×8 points at eta 1, and at eta 1.5, which admits nearly the blocks of H2Opus's rule (distance of centres, its eta
0.9: interpolation error 3e-7), and with the parameters that the one accuracy knob chooses. On the CPU
every row is a process of its own, so that its peak memory is its own; on a GPU the memory pool tells.

    python -m h2gpu.apps.bench_compress [--device cpu|cuda] [--largest 17] [--rtol 1e-7] [--output benchmarks/…csv]
"""

import argparse
import json

from h2gpu.apps import compress_row, problems, tables

PARAMETERS = {
    "paper": {"leaf_size": 64, "eta": 1.0, "order": 8},
    "H2Opus": {"leaf_size": 64, "eta": 1.5, "order": 8},
    "one knob": {},
}
SMALLEST = 14  # log2 of the first n


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--largest", type=int, default=17, help="log2 of the largest n")
    parser.add_argument("--rtol", type=float, default=1e-7)
    parser.add_argument("-o", "--output", help="CSV file to write")
    parser.add_argument(
        "--row", nargs=3, metavar=("LOG2N", "PARAMETERS", "RTOL"), help="measure one row, print it as JSON"
    )
    options = parser.parse_args(arguments)
    if options.row:
        log2n, name, rtol = options.row
        print(json.dumps(measure(int(log2n), name, float(rtol), options.device)))
        return
    rows = []
    for log2n in range(SMALLEST, options.largest + 1):
        for name in PARAMETERS:
            words = log2n, name, options.rtol
            if options.device == "cpu":
                rows.append(compress_row.of_own_process("h2gpu.apps.bench_compress", options.device, *words))
            else:
                rows.append(measure(*words, options.device))
            print(tables.text(rows[-1:]), flush=True)
    print(tables.text(rows))
    if options.output:
        tables.write(options.output, rows, tables.device_name(options.device))


def measure(log2n, name, rtol, device):
    """One row of the table; on a GPU a first run loads its kernels."""
    points = problems.perturbed_grid(2**log2n)
    row = compress_row.measure(points, problems.paper_covariance(), PARAMETERS[name], rtol, device, points)
    return {"n": row["n"], "parameters": name} | row


if __name__ == "__main__":
    main()
