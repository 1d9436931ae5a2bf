"""The seeded door: reproducible randomness for tests, bootstrap and planning.

What is drawn here protects nobody. An entropy from this door says so (`simulated`), and a release
made with it carries that on its certificate.
"""

import hashlib

import numpy as np

from dplinear import arguments
from dplinear.noise.entropy import Entropy, SeededEntropy


def entropy(seed: int) -> Entropy:
    """Return the entropy that belongs to a seed, marked as simulated."""
    seed = arguments.integer(seed, "seed", "simulation.entropy", low=0)
    return SeededEntropy(hashlib.sha256(f"dplinear simulation {seed}".encode()).digest())


def generator(seed: int) -> np.random.Generator:
    """Return NumPy's generator for a seed: fast, floating point, for simulation only."""
    seed = arguments.integer(seed, "seed", "simulation.generator", low=0)
    return np.random.default_rng(seed)
