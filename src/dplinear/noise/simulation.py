"""The seeded door: reproducible randomness for tests, bootstrap and planning.

What is drawn here protects nobody. An entropy from this door says so (`simulated`), and a release
made with it carries that on its certificate.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from dplinear import arguments
from dplinear.noise.entropy import Entropy, SeededEntropy, system

Generator = np.random.Generator

_DOOR: ContextVar[int | None] = ContextVar("dplinear simulation door", default=None)


def entropy(seed: int) -> Entropy:
    """Return the entropy that belongs to a seed, marked as simulated."""
    seed = arguments.integer(seed, "seed", "simulation.entropy", low=0)
    return SeededEntropy(hashlib.sha256(f"dplinear simulation {seed}".encode()).digest())


def generator(seed: int) -> np.random.Generator:
    """Return NumPy's generator for a seed: fast, floating point, for simulation only."""
    seed = arguments.integer(seed, "seed", "simulation.generator", low=0)
    return np.random.default_rng(seed)


@contextmanager
def door(seed: int) -> Iterator[None]:
    """Within this block, in this thread, every release draws its noise from `seed`, from the start.

    So two releases of the same table with the same arguments are equal; both say "simulated".
    """
    token = _DOOR.set(arguments.integer(seed, "seed", "simulation.door", low=0))
    try:
        yield
    finally:
        _DOOR.reset(token)


def seed_for_release() -> int | None:
    """Return the seed of `door`, within it; None where releases draw from the system."""
    return _DOOR.get()


def entropy_for_release() -> Entropy:
    """Return the system's entropy; within `door`, the seed's, started afresh."""
    seed = seed_for_release()
    return system() if seed is None else entropy(seed)
