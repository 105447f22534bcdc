"""Which command measures which published table of CPUs: every such table of benchmarks/ has one entry here.

Seconds are rough: sums of the seconds in the tables, with what warms up, and guesses where a table has none;
`benchmarks.figures` tells those of a run at its end, which belong here.
"""

from functools import partial

from h2gpu.apps.benchmarks.figures.entry import BOTH, ELEVATIONS, FIELDS, FIVE, HEATON, KAUST, entry

cpu = partial(entry, gpus=0)

NINE = f"{ELEVATIONS} heaton_simulated heaton_satellite kaust_{FIVE.replace(' ', ' kaust_')}"
SHARED = "benchmarks.distributed --log2 15 --output HERE/distributed-cpu.csv"
MEMORY = "benchmarks.distributed --memory --log2 17 -o HERE/memory-cpu.csv"

ON_CPU = (
    cpu(
        "batched",
        "as_called-cpu.csv as_called-cpu.png",
        430,
        "benchmarks.as_called --batches 1,500 --output HERE/as_called-cpu.csv --plot HERE/as_called-cpu.png",
        packages="torch",
    ),
    cpu("compression", "compress-cpu.csv", 120, "benchmarks.compress --largest 17 --output HERE/compress-cpu.csv"),
    cpu(
        "compression", "defaults-cpu.csv", 110, "benchmarks.defaults --log2 17 --draws 4 --output HERE/defaults-cpu.csv"
    ),
    cpu("compression", "study_memory-cpu.csv study_memory-cpu.png", 120, "studies.memory --largest 16"),
    cpu("compression", "study_time-cpu.csv study_time-cpu.png", 240, "studies.time --largest 16"),
    cpu(
        "distributed",
        "counted.csv",
        14,
        "benchmarks.distributed --count --log2 22 --measured HERE/distributed-four.csv --output HERE/counted.csv",
        beside="distributed-four.csv",
    ),
    cpu(
        "distributed",
        "distributed-cpu.csv",
        33,
        SHARED,
        *(f"mpiexec -n {ranks} {SHARED}" for ranks in (2, 4)),
        packages="mpi4py",
    ),
    cpu(
        "distributed",
        "memory-cpu.csv",
        32,
        MEMORY,
        *(f"mpiexec -n {ranks} {MEMORY}" for ranks in (2, 4, 8)),
        packages="mpi4py",
    ),
    cpu(
        "distributed",
        "study_scaling.csv study_scaling.png",
        93,
        "studies.processes.scaling --largest 24 --measured HERE/distributed-four.csv",
        beside="distributed-four.csv",
    ),
    cpu(
        "kriging",
        "study_classics-cpu.csv",
        130,
        "studies.classics.compare --data data",
        data="meuse.rda jura.rda sic2004.rda walker.rda baltimore.geojson",
        packages="gpboost gstools pykrige rdata sklearn",
    ),
    cpu(
        "kriging",
        "study_heaton-estimated-cpu.csv",
        360,
        f"studies.heaton --file data/{HEATON} --parameters estimated --methods 'h2gpu,iterative,local 60'",
        data=HEATON,
        parts="simulated satellite",
    ),
    cpu(
        "kriging",
        "study_heaton-given-cpu.csv",
        170,
        f"studies.heaton --file data/{HEATON} --parameters given --fields simulated",
        data=HEATON,
        packages="gpboost",
    ),
    cpu(
        "kriging",
        "study_jacksboro-estimated-cpu.csv",
        1500,
        "studies.jacksboro --parameters estimated --methods 'h2gpu,direct,iterative,local 60'",
        parts=ELEVATIONS,
        awaited=True,
    ),
    cpu(
        "kriging",
        "study_kaust-estimated-cpu.csv",
        2100,
        f"studies.kaust --file data/{KAUST} --parameters estimated --methods 'h2gpu,direct,iterative,local 60'",
        data=KAUST,
        parts=FIVE,
    ),
    cpu(
        "kriging",
        "study_kaust-given-cpu.csv",
        630,
        f"studies.kaust --file data/{KAUST} --parameters given",
        data=KAUST,
        parts=FIVE,
        packages="gpboost",
    ),
    cpu(
        "kriging",
        "study_likelihoods-cpu.csv",
        100,
        "studies.likelihoods.compare --data data --sites 400 --targets 200",
        data="meuse.rda sids.dbf NorthAmericanRainfall.rda coalash.rda sic2004.rda",
        packages="gpboost rdata geopandas",
    ),
    cpu(
        "kriging",
        "study_wind-cpu.csv",
        70,
        "studies.spacetime.wind --file data/wind.rda --output HERE",
        data="wind.rda",
        packages="rdata",
    ),
    cpu(
        "solvers",
        "direct-cpu.csv",
        120,
        "benchmarks.direct --log2 12,13,14,15 --peers 15 --fields none --output HERE/direct-cpu.csv",
        packages="gpboost",
    ),
    cpu(
        "solvers",
        "solvers-cpu.csv",
        800,
        f"benchmarks.solvers {FIELDS} --output HERE/solvers-cpu.csv",
        data=BOTH,
        parts=NINE,
    ),
)
