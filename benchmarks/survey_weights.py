"""Weighted regressions of a made-up survey: do 95% intervals cover, and how wide are they?

A row stands for w people, w lognormal; the target is linear in two features. "independent": weights
have nothing to do with the row. "by group": they depend on a feature, as where a survey draws some
groups more often. "by error": they grow with the squared residual, which Kish's factor does not
know. Beside the releases stands weighted least squares with robust errors (HC1, as of statsmodels'
WLS) on the rows themselves, and a release without Kish's factor, whose errors are an upper bound.
Nothing is timed. Run: python benchmarks/survey_weights.py [--tables 200] [--rows 20000]
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

import dplinear as dpl
from dplinear.noise import simulation

SLOPE = 0.5
BOUND = 20.0
SCHEMA = dpl.Schema({"x": (-4, 4), "z": (-4, 4), "y": (-8, 8)}, weight=("w", 0, BOUND))
NOT_PRIVATE = "WLS, robust errors"
KINDS = ("independent", "by group", "by error")


def table(kind: str, rows: int, seed: int) -> pa.Table:
    """Return a made-up survey."""
    random = simulation.generator(seed)
    x, z, e = random.normal(size=(3, rows))
    y = 1 + SLOPE * x - 0.3 * z + e
    weights = random.lognormal(0, 0.8, rows)
    if kind == "by group":
        weights = weights * np.where(z > 0, 3.0, 1.0)
    if kind == "by error":
        weights = weights * (0.3 + e**2)
    return pa.table({"x": x, "z": z, "y": y, "w": weights})


@dataclass(frozen=True)
class Found:
    """The slope of x, and its standard error, interval's half-width included."""

    slope: float
    error: float
    reach: float


def robust(data: pa.Table) -> Found:
    """Weighted least squares of the rows themselves, with HC1 errors."""
    x, z, y, w = (np.array(data[name]) for name in ("x", "z", "y", "w"))
    w, design = np.minimum(w, BOUND), np.column_stack([np.ones(len(x)), x, z])
    bread = np.linalg.inv(design.T @ (design * w[:, None]))
    b = bread @ design.T @ (w * y)
    scores = design * (w * (y - design @ b))[:, None]
    variance = bread @ scores.T @ scores @ bread * len(x) / (len(x) - 3)
    error = float(np.sqrt(variance[1, 1]))
    return Found(float(b[1]), error, 1.96 * error)


def _found(fit: Any) -> Found | None:
    told = fit.intervals()
    if told.swamped is not None:
        return None
    at = told.names.index("x")
    reach = float(told.high[at] - told.low[at]) / 2
    middle = float(told.high[at] + told.low[at]) / 2
    return Found(middle, float(told.standard_errors[at]), reach)


def moments(data: pa.Table, epsilon: float) -> Found | None:
    """Return a regression on released second moments."""
    return _found(dpl.release_moments(data, SCHEMA, epsilon=epsilon, delta=1e-6).regress("y"))


def bound(data: pa.Table, epsilon: float) -> Found | None:
    """Return the same without Kish's factor: an upper bound, whatever the weights."""
    found = dpl.release_moments(data, SCHEMA, epsilon=epsilon, delta=1e-6)
    said = {
        name: value for name, value in found.certificate.parameters.items() if "squared" not in name
    }
    certificate = replace(found.certificate, parameters=said)
    return _found(replace(found, certificate=certificate).regress("y"))


def model(data: pa.Table, epsilon: float) -> Found | None:
    """Return a released model."""
    return _found(dpl.release_model(data, SCHEMA, "y", epsilon=epsilon, delta=1e-6))


WAYS: dict[str, Callable[[pa.Table, float], Found | None]] = {
    NOT_PRIVATE: lambda data, _: robust(data),
    "release_moments": moments,
    "release_moments, bound": bound,
    "release_model": model,
}


@dataclass(frozen=True)
class Line:
    """How the intervals of one way did: how often they hold the slope, and how wide they are."""

    kind: str
    way: str
    coverage: float
    error: float
    spread: float
    refused: int


def measure(kind: str, way: str, *, epsilon: float, tables: int, rows: int) -> Line:
    """Return how one way did on so many tables."""
    found = [WAYS[way](table(kind, rows, seed), epsilon) for seed in range(tables)]
    told = [one for one in found if one is not None]
    if not told:
        return Line(kind, way, np.nan, np.nan, np.nan, tables)
    slopes = np.array([one.slope for one in told])
    held = np.mean([abs(one.slope - SLOPE) <= one.reach for one in told])
    error = float(np.sqrt(np.mean([one.error**2 for one in told])))
    spread = float(np.sqrt(np.mean((slopes - SLOPE) ** 2)))
    return Line(kind, way, float(held), error, spread, tables - len(told))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[2.0, 50.0])
    chosen = parser.parse_args()
    print("| weights | way | ε | intervals that hold | std. error | true deviation | refused |")
    print("|---|---|---|---|---|---|---|")
    for kind in KINDS:
        for way in WAYS:
            for epsilon in chosen.epsilon[: 1 if way == NOT_PRIVATE else None]:
                line = measure(kind, way, epsilon=epsilon, tables=chosen.tables, rows=chosen.rows)
                shown = "–" if way == NOT_PRIVATE else f"{epsilon:g}"
                facts = f"{line.coverage:.1%} | {line.error:.4f} | {line.spread:.4f}"
                print(f"| {kind} | {way} | {shown} | {facts} | {line.refused} |", flush=True)


if __name__ == "__main__":
    main()
