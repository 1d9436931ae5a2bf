"""DD-SSP: sufficient statistics from marginals that a graphical model was fitted to.

Ferrando and Sheldon 2024 (arXiv 2405.15002). AIM (McKenna, Mullins, Sheldon and Miklau 2022, arXiv
2201.12677) picks marginals of pairs of columns by the exponential mechanism, measures them with
Gaussian noise and fits a graphical model; the Gram matrix and the moments are those of the model.
AIM is that of the package dpmm, in an environment of its own, since it pins old packages. Its
account is checked by reading version 0.1.9: of its ρ, nine tenths go to counts, of sensitivity 1
under add_remove, one tenth to choices; ε and δ become ρ by the tightest known conversion.

Cells are cut into equal bins, which stand for their middles. With dpmm's own 1,000 steps of mirror
descent a round, a fit to five columns takes minutes (with a tenth of them the model, and so the
line, is far worse), and many columns are out of reach, so the benchmark tries it where it is asked
to by name.
"""

from functools import cache

from benchmarks.rivals.common import Array, Line
from benchmarks.rivals.worker import Environment, Worker
from dplinear.noise.simulation import Generator
from dplinear.privacy import ApproxDP, Guarantee

ENVIRONMENT = Environment("dpmm", ("dpmm==0.1.9",), "marginals_worker.py")
COLUMNS = 5
BINS = 8  # the best of 8, 16 and 32 on a few tables


@cache
def _worker() -> Worker:
    return Worker(ENVIRONMENT)


def fit(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return the least-squares line of the model's moments.

    Requires: an (ε, δ) guarantee; cells and targets in [-1, 1].
    Promises: the guarantee, add_remove, by dpmm's account. Its noise is seeded in place of
    OpenDP's. Raises MissingError where dpmm cannot be installed.
    """
    if not isinstance(guarantee, ApproxDP):
        raise TypeError("AIM takes ε and δ.")
    found = _worker().fit(
        rows,
        target,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        seed=int(generator.integers(2**31)),
        bins=BINS,
    )
    return Line(float(found[0]), found[1:])
