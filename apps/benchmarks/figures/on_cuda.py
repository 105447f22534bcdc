"""Which command measures which published table of GPUs: every such table of benchmarks/ has one entry here.

Seconds are rough, as in on_cpu.py, with what compiles. Tables named after a card become those of
the card at hand.
"""

from functools import partial

from h2gpu.apps.benchmarks.figures.entry import BOTH, ELEVATIONS, FIELDS, FIVE, HEATON, KAUST, entry

cuda = partial(entry, gpus=1)

LU, SVD = "batched_lu.csv batched_lu.png", "batched_svd_small.png batched_svd_large.png"
GROUPS = "targets qr qr_ragged svd rsvd lu cholesky gemm gemm_sizes blas block_multiply truncated"  # GEBRD: for itself
PLOTS = "studies.baselines.plots"
RANKED = "benchmarks.distributed --device cuda -o HERE/distributed-four.csv"

ON_CUDA = (
    cuda(
        "batched",
        "batched_targets.csv batched_blas.csv batched_cholesky.csv batched_products.csv batched_profiles.csv"
        " batched_qr.csv batched_qr_ragged.csv batched_rsvd.csv batched_sizes.csv batched_svd.csv batched_truncated.csv"
        f" kernels.csv {LU} {SVD} batched_profiles.png batched_qr.png batched_sizes.png batched.md",
        400,
        f"benchmarks.batched {GROUPS} --figures",
        packages="torch",
        beside="batched_gebrd.csv",
    ),
    cuda(
        "batched",
        "batched_gebrd.csv batched_gebrd.png",
        26,
        "benchmarks.batched gebrd --figures",
        packages="torch",
    ),
    cuda(
        "batched",
        "batched_peers.csv batched_peers.png",
        74,
        "benchmarks.batched peers --figures",
        packages="torch",
    ),
    cuda(
        "batched",
        "as_called-CARD.csv as_called-CARD.png",
        90,
        "benchmarks.as_called --device cuda --batches 500 --sizes 4,8,16,32,33,64,128"
        " --output HERE/as_called-CARD.csv --plot HERE/as_called-CARD.png",
        packages="torch",
    ),
    cuda("batched", "study_latency.csv study_bandwidth.csv study_latency.png", 7, "autotune.memory_curves"),
    cuda(
        "batched",
        "study_small.csv study_panels.csv study_small.png study_panels.png study_small_space.png",
        60,
        "studies.small --figures 9,12,VII,7,4,library,8 --draw",
        beside="batched_lu.csv",
    ),
    cuda(
        "batched",
        "study_small_peers.csv study_small_peers.png",
        42,
        "studies.small --figures 11,12b --draw",
        packages="torch",
    ),
    cuda("batched", "study_radar.csv study_complex.csv", 41, "studies.radar", packages="torch"),
    cuda("batched", "study_gebrd.csv study_gebrd.png", 18, "studies.gebrd --draw"),
    cuda("batched", "study_edges-float64.csv study_edges-float64.png", 27, "studies.edges", PLOTS),
    cuda("batched", "study_edges-float32.csv study_edges-float32.png", 27, "studies.edges --dtype float32", PLOTS),
    cuda("batched", "study_lu-cuda.csv study_lu-cuda.png", 30, "studies.baselines.lu --device cuda", PLOTS),
    cuda(
        "batched",
        "study_gebrd_versions-cuda.csv study_gebrd_versions-cuda.png",
        60,
        "studies.baselines.gebrd --device cuda",
        PLOTS,
    ),
    cuda(
        "batched",
        "study_triangles-cuda.csv study_triangles-cuda.png",
        11,
        "studies.baselines.triangles --device cuda",
        PLOTS,
    ),
    cuda(
        "batched",
        "study_fast_math-cuda.csv study_fast_math-cuda.png",
        25,
        "studies.baselines.fast_math",
        PLOTS,
    ),
    cuda(
        "batched",
        "study_hessenberg-cuda.csv study_hessenberg-cuda.png",
        57,
        "studies.baselines.hessenberg --device cuda",
        PLOTS,
    ),
    cuda(
        "batched",
        "study_qr-cuda.csv study_qr-cuda.png",
        33,
        "studies.baselines.qr --device cuda --sizes 1000,1001,2001,4001",
        PLOTS,
    ),
    cuda("compression", "pairwise.csv", 16, "benchmarks.pairwise --output HERE/pairwise.csv"),
    cuda(
        "compression",
        "compress-CARD.csv",
        12,
        "benchmarks.compress --device cuda --largest 20 --output HERE/compress-CARD.csv",
    ),
    cuda(
        "compression",
        "compress-stored-CARD.csv",
        12,
        "benchmarks.compress --device cuda --largest 20 --stored --output HERE/compress-stored-CARD.csv",
    ),
    cuda(
        "compression",
        "defaults-CARD.csv",
        8,
        "benchmarks.defaults --device cuda --output HERE/defaults-CARD.csv",
    ),
    cuda(
        "compression",
        "scale-cuda.csv scale-cuda.png",
        240,
        "benchmarks.scale --device cuda --largest 25 --output HERE",
        gigabytes=100,
    ),
    cuda(
        "compression",
        "scale-chosen-cuda.csv",
        22,
        "benchmarks.scale --device cuda --problems grid-chosen,grid-large-chosen --largest 25 --name scale-chosen"
        " --output HERE",
    ),
    cuda(
        "compression",
        "study_memory-cuda.csv study_memory-cuda.png",
        15,
        "studies.memory --device cuda --largest 20",
    ),
    cuda("compression", "study_time-cuda.csv study_time-cuda.png", 38, "studies.time --device cuda --largest 19"),
    cuda(
        "distributed",
        "distributed-four.csv distributed-four.png",
        268,
        f"mpiexec -n 4 {RANKED} --log2 22,24 --weak 25",
        f"mpiexec -n 2 {RANKED} --log2 22,24 --weak 20",
        f"{RANKED} --log2 22,24 --weak 25,20",
        gpus=4,
        gigabytes=100,
        packages="mpi4py",
    ),
    cuda("kriging", "first-use-CARD.csv", 16, "benchmarks.first_use --device cuda --output HERE/first-use-CARD.csv"),
    cuda(
        "kriging",
        "kriging-CARD.csv",
        33,
        "benchmarks.kriging --device cuda --sizes 90000,1000000 --output HERE/kriging-CARD.csv",
    ),
    cuda(
        "kriging",
        "study_heaton-given-cuda.csv",
        17,
        f"studies.heaton --file data/{HEATON} --parameters given --device cuda",
        data=HEATON,
    ),
    cuda(
        "kriging",
        "study_heaton-estimated-cuda.csv",
        70,
        f"studies.heaton --file data/{HEATON} --parameters estimated --methods h2gpu,direct,iterative --device cuda",
        data=HEATON,
    ),
    cuda(
        "kriging",
        "study_jacksboro-estimated-cuda.csv",
        63,
        "studies.jacksboro --parameters estimated --methods h2gpu,direct,iterative --device cuda",
        parts=ELEVATIONS,
    ),
    cuda(
        "kriging",
        "study_kaust-estimated-cuda.csv",
        164,
        f"studies.kaust --file data/{KAUST} --parameters estimated --methods h2gpu,direct,iterative --device cuda",
        data=KAUST,
        parts=FIVE,
    ),
    cuda(
        "kriging",
        "study_kaust-given-cuda.csv",
        40,
        f"studies.kaust --file data/{KAUST} --parameters given --methods 'h2gpu,direct,local 60' --device cuda",
        data=KAUST,
    ),
    cuda(
        "solvers",
        "direct-CARD.csv",
        104,
        "benchmarks.direct --device cuda --log2 13,15,17,20 --eta 0.01 --peers 17 --fields none"
        " --output HERE/direct-CARD.csv",
    ),
    cuda(
        "solvers",
        "direct-fields-CARD.csv",
        121,
        f"benchmarks.direct --device cuda --eta 0.01,0.0001 --peers 17 --cases '' {FIELDS}"
        " -o HERE/direct-fields-CARD.csv",
        data=BOTH,
    ),
)
