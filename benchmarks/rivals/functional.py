"""diffprivlib's LinearRegression as installed: the functional mechanism of a common library.

Zhang et al. 2012 (arXiv 1208.0219): Laplace noise on the coefficients of the squared loss. It is
pure ε-DP by its own account, which is not checked here, and its means divide by the true number of
rows, so its neighbours are replace: of all methods it alone is not held to add_remove.

It needs an old scikit-learn, so it lives in an environment of its own.
"""

from functools import cache

from benchmarks.rivals.common import Array, Line
from benchmarks.rivals.worker import Environment, Worker
from dplinear.noise.simulation import Generator
from dplinear.privacy import ApproxDP, Guarantee

ENVIRONMENT = Environment(
    "diffprivlib",
    ("diffprivlib==0.6.5", "scikit-learn<1.6", "numpy<2"),
    "functional_worker.py",
)


@cache
def _worker() -> Worker:
    return Worker(ENVIRONMENT)


def fit(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return diffprivlib's line at ε; it does not use δ.

    Requires: an (ε, δ) guarantee; cells and targets in [-1, 1].
    Promises: what diffprivlib promises. Raises MissingError where it cannot be installed.
    """
    if not isinstance(guarantee, ApproxDP):
        raise TypeError("diffprivlib's regression takes ε.")
    seed = int(generator.integers(2**31))
    found = _worker().fit(rows, target, epsilon=guarantee.epsilon, seed=seed)
    return Line(float(found[0]), found[1:])
