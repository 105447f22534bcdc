"""Gaussian samples from a counter-based generator: every number depends on the seed and its place alone.

    Ω[i, j] = √(−2 ln x) cos 2πy,   x, y uniform from the words of Philox4x32-10 at counter (i, j, 0, 0)

Those of float32 are rounded to 11 bits, as TF32 has them, so that a product with them needs no second part.
Salmon, Moraes, Dror & Shaw (2011); Box & Muller (1958). kernels/products/gaussian.cuh makes the same words on the GPU,
and the same numbers to rounding.
"""

from functools import lru_cache

import numpy as np

from h2gpu.texts import brief

THREADS = 256  # of a block of the kernel
ROUNDS = 10
FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = np.array([0x9E3779B9, 0xBB67AE85], np.uint32)
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
DROPPED = np.uint64(11)  # bits of 64 that a float64 does not hold
HALF_STEP, KEPT = np.uint32(1 << 12), np.uint32(~0 << 13 & 0xFFFFFFFF)  # of the bits of a float32: those of TF32


def gaussian(rows, columns, random_state, dtype, xp):
    """(rows, columns) normal numbers as an array of the module xp; more of either leave the others as they are.

    random_state   what numpy.random.SeedSequence takes: an integer ≥ 0, or None for numbers never seen before
    """
    key = _known_key(random_state) if type(random_state) is int else _key(random_state)
    if xp is np:
        i, j = np.indices((rows, columns), np.uint32)
        words = philox((i, j, np.zeros_like(i), np.zeros_like(i)), key)
        x, y = (uniform(*words[pair]) for pair in (slice(0, 2), slice(2, 4)))
        z = (np.sqrt(-2 * np.log(x)) * np.cos(2 * np.pi * y)).astype(dtype)
        return z if dtype == np.float64 else (z.view(np.uint32) + HALF_STEP & KEPT).view(dtype)
    from h2gpu.batched.device.compiler import kernel
    from h2gpu.batched.device.launch import launch

    out = xp.empty((rows, columns), dtype)
    function = kernel("products/gaussian.cuh", "gaussian", dtype, THREADS)
    launch(function, -(-out.size // THREADS), THREADS, (out, np.int64(out.size), columns, *key))
    return out


def seed_of(random_state):
    """An integer, or None, from what NumPy and scikit-learn call random_state; ValueError for others."""
    if isinstance(random_state, (np.random.Generator, np.random.RandomState)):
        draw = random_state.integers if isinstance(random_state, np.random.Generator) else random_state.randint
        return int(draw(2**31 - 1))
    if random_state is not None and not (isinstance(random_state, (int, np.integer)) and random_state >= 0):
        raise ValueError(
            "random_state: expected an integer ≥ 0, a NumPy Generator or RandomState, or None, "
            f"got {brief(random_state)}"
        )
    return random_state if random_state is None else int(random_state)


def _key(random_state):
    return np.random.SeedSequence(random_state).generate_state(2, np.uint32)


_known_key = lru_cache(maxsize=1024)(_key)


def philox(counter, key):
    """The four words of each counter: four equal uint32 arrays in, (4, …) uint32 out. key: two uint32."""
    c, k = [np.asarray(word, np.uint64) for word in counter], np.array(key, np.uint32)
    for _ in range(ROUNDS):
        first, second = FACTORS[0] * c[0], FACTORS[1] * c[2]
        c = [second >> HALF ^ c[1] ^ k[0], second & LOW, first >> HALF ^ c[3] ^ k[1], first & LOW]
        k = k + WEYL
    return np.array(c).astype(np.uint32)


def uniform(high, low):
    """Of 53 bits, in (0, 1)."""
    bits = (high.astype(np.uint64) << HALF | low) >> DROPPED
    return (bits.astype(np.float64) + 0.5) * 2.0**-53
