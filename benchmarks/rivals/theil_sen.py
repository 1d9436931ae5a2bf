"""OpenDP's LinearRegression as installed: a private Theil-Sen line for one predictor.

It pairs rows at random, takes where each pair's line passes two cuts of the predictor's range, and
selects a private median of those values at each cut among evenly spaced candidates within the
target's bounds. Two medians give slope and intercept. Read in version 0.16:

- It has no `epsilon`: it takes a noise scale, and an output measure that is pure ε or ρ-zCDP. Its
  map then tells what one row costs: ε = 2·runs/scale, or ρ = runs²/(4·scale²). For two medians the
  pure account is the cheaper one at every budget of these benchmarks, so it is called with the
  scale that its map gives for ε; δ is not used.
- Neighbours are add_remove, and the number of rows is private. Bounds set the cuts and candidates
  only: rows are not clamped to them, nor need they be.
- Its map lets one row change one pair in each run. The code does not keep that: with an odd number
  of rows the last one is dropped, so a row put in front drops another, and a whole pair is replaced
  (or two pairs are broken up for one). Four rows and a fifth show a loss of 5.2 where its map says
  4: the guarantee is its own word, and it has an easier task here than methods that keep theirs.

Its noise comes from the operating system and its pairing from NumPy's global state, so it cannot be
seeded: alone among the methods it differs from one run to the next.
"""

import importlib
import math
from functools import cache
from typing import Any

import numpy as np

from benchmarks.rivals.common import Array, Line
from dplinear.noise.simulation import Generator
from dplinear.privacy import ApproxDP, Guarantee

# Chosen once by simulation; better here than its defaults (100 candidates, cuts at .25 and .75, one
# run). Few candidates would flatter it besides: with one column the best slope of a simulated table
# is always ±1/√2 in cells, which 70/99 happens to meet.
CANDIDATES = 5000
CUTS = (0.375, 0.625)
RUNS = 4


class MissingError(RuntimeError):
    """The rival is not installed here."""


@cache
def library() -> Any:
    """Return OpenDP, with the features that its regression asks for; raise where it is missing."""
    try:
        importlib.import_module("opendp.extras.sklearn.linear_model")
        opendp = importlib.import_module("opendp.prelude")
    except ImportError as error:
        raise MissingError(f"OpenDP cannot be imported ({type(error).__name__})") from None
    opendp.enable_features("contrib", "honest-but-curious")
    return opendp


def model(scale: float) -> Any:
    """Return OpenDP's regression of cells, to be fitted once."""
    opendp = library()
    return opendp.sklearn.linear_model.LinearRegression(
        opendp.max_divergence(),
        x_bounds=[(-1.0, 1.0)],
        y_bounds=(-1.0, 1.0),
        scale=scale,
        runs=RUNS,
        candidates_count=CANDIDATES,
        fraction_bounds=CUTS,
    )


@cache
def noise_scale(epsilon: float) -> float:
    """Return the least scale, but for rounding, at which OpenDP's own map gives ε for one row."""
    scale = model(1.0).measurement.map(1) / epsilon
    while model(scale).measurement.map(1) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return float(scale)


def fit(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return OpenDP's line at ε; it does not use δ.

    Requires: an (ε, δ) guarantee; one column; cells and targets in [-1, 1].
    Promises: what OpenDP promises; `generator` is ignored. Raises MissingError where it is missing.
    """
    del generator
    if not isinstance(guarantee, ApproxDP):
        raise TypeError("OpenDP's regression is called at ε.")
    if rows.shape[1] != 1:
        raise ValueError("OpenDP's regression takes one column.")
    with np.errstate(divide="ignore", invalid="ignore"):  # of pairs it leaves out afterwards
        found = model(noise_scale(guarantee.epsilon)).fit(rows, target)
    return Line(float(found.intercept_), np.asarray(found.coef_, np.float64))
