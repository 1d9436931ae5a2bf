"""More simulated panels, of other shapes: none was looked at before the plan's rule was settled.

Each has its own spread of rows per person, number of columns, correlations of features and of
errors, condition number and tails. `python benchmarks/panels.py --anew` compares all k on them.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.panel_data import CANDIDATES, Array, Panel, Table
from dplinear.noise import simulation
from dplinear.planner.populations import seed_of

WIDTH = 4.0  # standard deviations from the middle to a bound
_DEGREES = 5.0  # of the t distribution of errors with heavy tails

Sizes = Callable[[simulation.Generator, int], Array]


def _even(generator: simulation.Generator, persons: int) -> Array:
    return generator.integers(2, 41, persons)


def _geometric(generator: simulation.Generator, persons: int) -> Array:
    return np.minimum(generator.geometric(0.2, persons), 30)


def _lognormal(generator: simulation.Generator, persons: int) -> Array:
    return np.clip(np.rint(np.exp(generator.normal(1, 1, persons))), 1, 60).astype(int)


def _two_kinds(generator: simulation.Generator, persons: int) -> Array:
    return np.where(generator.random(persons) < 0.5, 6, 1)


def _many(generator: simulation.Generator, persons: int) -> Array:
    return generator.integers(10, 21, persons)


@dataclass(frozen=True)
class Kind:
    """What a panel is drawn from; features and errors of two rows of a person correlate."""

    name: str
    sizes: Sizes
    persons: int
    columns: int
    of_features: float
    of_errors: float
    condition: float = 1.0
    heavy: bool = False

    @property
    def correlation(self) -> float:
        """That of a feature times an error; the lengths of heavy tails are each row's own."""
        half = _DEGREES / 2
        length = math.sqrt(half - 1) * math.gamma(half - 0.5) / math.gamma(half)
        return self.of_features * self.of_errors * (length**2 if self.heavy else 1.0)


KINDS = (
    Kind("2 to 40 rows, even", _even, 1_200, 3, 0.4, 0.4),
    Kind("2 to 40 rows, even", _even, 800, 10, 0.95, 0.5, condition=10.0),
    Kind("1 to 30 rows, 5 on average", _geometric, 2_500, 4, 0.0, 0.6, heavy=True),
    Kind("1 to 30 rows, 5 on average", _geometric, 1_500, 7, 0.6, 0.6),
    Kind("1 to 60 rows, lognormal", _lognormal, 2_000, 5, 0.2, 0.2, condition=10.0),
    Kind("1 to 60 rows, lognormal", _lognormal, 2_000, 2, 0.8, 0.8, heavy=True),
    Kind("1 or 6 rows", _two_kinds, 3_000, 6, 0.1, 0.9),
    Kind("1 or 6 rows", _two_kinds, 1_500, 3, 0.7, 0.9),
    Kind("10 to 20 rows, even", _many, 1_000, 8, 0.5, 0.2, heavy=True),
    Kind("10 to 20 rows, even", _many, 1_500, 4, 0.9, 0.9),
)


def _panel(kind: Kind) -> Panel:
    own, d = simulation.generator(seed_of("anew", kind.name, kind.columns)), kind.columns
    rotation = np.linalg.qr(own.standard_normal((d, d)))[0]
    root = rotation * np.sqrt(np.geomspace(1, 1 / kind.condition, d))
    slopes = own.standard_normal(d)
    slopes /= float(np.linalg.norm(slopes @ root))

    def draw(generator: simulation.Generator) -> Table:
        ids = np.repeat(np.arange(kind.persons), kind.sizes(generator, kind.persons))

        def correlated(shape: tuple[int, ...], r: float) -> Array:
            shared = generator.standard_normal((kind.persons, *shape))[ids]
            each = generator.standard_normal((len(ids), *shape))
            return np.asarray(math.sqrt(r) * shared + math.sqrt(1 - r) * each)

        features = correlated((d,), kind.of_features) @ root.T
        errors = correlated((), kind.of_errors)
        if kind.heavy:
            errors *= np.sqrt((_DEGREES - 2) / generator.chisquare(_DEGREES, len(ids)))
        return Table(ids.astype(float), features, features @ slopes + errors)

    expected = kind.sizes(simulation.generator(0), kind.persons)
    covariance = root @ root.T
    ends = (WIDTH * np.sqrt(np.diag(covariance))).tolist()
    bounds = {f"x{i}": (-end, end) for i, end in enumerate(ends)}
    bounds["y"] = (-WIDTH * math.sqrt(2), WIDTH * math.sqrt(2))
    moments = np.eye(d + 1)
    moments[1:, 1:] = covariance
    best: Array = np.r_[0.0, slopes]
    lines = dict.fromkeys((0, *CANDIDATES), best)
    rows = round(int(expected.sum()), -3)
    guess = (int(expected.min()), int(expected.max()))
    name = f"{kind.name}, {d} features, {kind.correlation:.2g}"
    return Panel(name, draw, bounds, rows, guess, lines, moments, 1.0, kind.correlation)


def panels_anew() -> Iterator[Panel]:
    """Yield the panels."""
    yield from map(_panel, KINDS)
