"""Populations that look like real tables: 0/1 and skewed columns, clusters, curves, uneven errors.

A population is finite: its rows are drawn once, tables have rows of it with replacement, and the
best line is that of all its rows. So misfit and clamped cells are part of it, and the truth is
exact. Columns share a few factors, whose rows come in clusters. Some are 0/1, alone or as levels of
one category; others are bell-shaped, skewed amounts, or counts. The target follows a line and a
curve; it is "even" (bell-shaped, perhaps capped) or "skewed" (amounts and counts, most of them near
the low bound, few far from it). The ranges of all this are those of survey tables in general.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dplinear.arrays import Floats
from dplinear.exact.design import Design
from dplinear.noise import simulation
from dplinear.planner.simulated import SimulatedRows, plain_design

TARGETS = ("even", "skewed", "counts", "long")
PEOPLE = 40_000  # rows of a population
_BLOCK = 4 * 4096
_LOADING = 0.7  # of a column's variance that comes from factors, at most
_RAREST = 2.5  # of the logarithm of how often a 0/1 column is 1, below a half
_SHARES = (math.log(0.07), math.log(0.9))  # of the target's variance that columns explain
_FAR = 6.0  # standard deviations that nothing is beyond
_RIDGE = 1e-9  # of the rows: columns that say the same have one best line all the same


@dataclass(frozen=True)
class Likeness:
    """What a population is like: its columns, the share of 0/1 ones, its target's shape."""

    columns: int
    zero_one: float
    target: str


@dataclass(frozen=True, eq=False)
class RealLike:
    """A finite population in cells, and its best line.

    `explained` is the share of the target's variance that the best line explains, `target_width`
    the standard deviations of the target between the middle of its bounds and each of them.
    """

    likeness: Likeness
    cells: Floats = field(repr=False)  # the features and the target, in [−1, 1]
    design: Design = field(repr=False)
    line: Floats = field(repr=False)
    moments: Floats = field(repr=False)  # of the constant and the features, by rows
    variance: float
    explained: float

    @classmethod
    def draw(cls, likeness: Likeness, generator: simulation.Generator) -> "RealLike":
        """Draw columns, a target that follows them, and find the best line."""
        columns = _columns(likeness, generator)
        target = _target(likeness, columns, generator)
        wide = np.column_stack([np.ones(PEOPLE), columns])
        moments = wide.T @ wide / PEOPLE
        ridged = moments + _RIDGE * np.eye(len(moments))
        line = np.asarray(np.linalg.solve(ridged, wide.T @ target / PEOPLE), np.float64)
        variance = float(target.var())
        explained = 1 - float(np.mean((target - wide @ line) ** 2)) / variance
        cells = np.column_stack([columns, target])
        design = plain_design(likeness.columns)
        return cls(likeness, cells, design, line, moments, variance, explained)

    @property
    def target_width(self) -> float:
        """Half the distance between the target's bounds, in its standard deviations."""
        return float(1 / np.sqrt(self.variance))

    def table(self, rows: int, generator: simulation.Generator) -> SimulatedRows:
        """Return so many rows, drawn with replacement."""
        return SimulatedRows(self.design.shape, self._blocks(rows, generator))

    def _blocks(self, rows: int, generator: simulation.Generator) -> Iterator[Floats]:
        for start in range(0, rows, _BLOCK):
            count = min(_BLOCK, rows - start)
            chosen = generator.integers(PEOPLE, size=count)
            yield np.column_stack([np.ones(count), self.cells[chosen]])

    def excess(self, coefficients: Floats) -> float:
        """Return what a line adds to the best risk, as a share of what the best line explains."""
        wrong = coefficients - self.line
        return float(wrong @ self.moments @ wrong) / (self.variance * self.explained)


def _standard(values: Floats) -> Floats:
    """Return columns with mean 0 and variance 1; constant ones are 0."""
    scale = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(scale > 0, scale, 1.0))


def _columns(likeness: Likeness, generator: simulation.Generator) -> Floats:
    """Return the features: those of 0 and 1 first."""
    latent = _latent(likeness.columns, generator)
    ones = round(likeness.zero_one * likeness.columns)
    made, at = np.empty_like(latent), 0
    while at < ones:
        levels = min(int(generator.choice((1, 1, 2, 4))), ones - at)
        made[:, at : at + levels] = _levels(latent[:, at : at + levels], generator)
        at += levels
    for column in range(ones, likeness.columns):
        made[:, column] = _numeric(latent[:, column], generator)
    return made


def _latent(columns: int, generator: simulation.Generator) -> Floats:
    """Return normal numbers with some factors in common, whose rows come in clusters."""
    factors, clusters = int(generator.integers(1, 4)), int(generator.integers(1, 5))
    middles = generator.uniform(0, 1.5) * generator.standard_normal((clusters, factors))
    shares = generator.dirichlet(np.ones(clusters))
    cluster = generator.choice(clusters, size=PEOPLE, p=shares)
    common = _standard(middles[cluster] + generator.standard_normal((PEOPLE, factors)))
    directions = generator.standard_normal((factors, columns))
    directions /= np.linalg.norm(directions, axis=0)
    loading = generator.uniform(0, _LOADING, columns)
    own = generator.standard_normal((PEOPLE, columns))
    return np.asarray(np.sqrt(loading) * (common @ directions) + np.sqrt(1 - loading) * own)


def _levels(latent: Floats, generator: simulation.Generator) -> Floats:
    """Return 0/1 columns in cells: one alone, or the levels of a category but its first."""
    rates = 0.5 * np.exp(-generator.uniform(0, _RAREST, latent.shape[1]))
    if latent.shape[1] == 1:
        cut = np.quantile(latent, rates[0])
        side = float(generator.choice((-1.0, 1.0)))
        return np.asarray(np.where(latent < cut, side, -side))
    first = 2 * generator.standard_normal(PEOPLE)
    likely = np.column_stack([first, 2 * latent + np.log(rates)])
    return np.where(likely.argmax(axis=1)[:, None] == np.arange(1, likely.shape[1]), 1.0, -1.0)


def _numeric(latent: Floats, generator: simulation.Generator) -> Floats:
    """Return a bell-shaped column, a skewed amount or a count, in cells."""
    shape = generator.choice(("bell", "amount", "count"), p=(0.45, 0.35, 0.2))
    if shape == "bell":
        moved = latent + generator.uniform(-0.8, 0.8)
        return np.clip(moved / generator.uniform(2.0, 4.0), -1, 1)
    amount = np.exp(generator.uniform(0.4, 1.2) * latent)
    if shape == "count":
        amount = np.floor(generator.uniform(0.5, 4.0) * amount)
    return _bounded_below(amount, generator)


def _bounded_below(amount: Floats, generator: simulation.Generator) -> Floats:
    """Return amounts from 0 to a bound that few are beyond, in cells."""
    beyond = 10 ** -generator.uniform(2, 4)
    high = max(float(np.quantile(amount, 1 - beyond)), 1e-9) * generator.uniform(1, 1.7)
    return np.clip(2 * amount / high - 1, -1, 1)


def _target(likeness: Likeness, columns: Floats, generator: simulation.Generator) -> Floats:
    """Return a target that follows a line, a curve and errors of its own, in cells."""
    whole = _standard(columns)
    best = generator.standard_normal(likeness.columns)
    best *= np.abs(best) ** 0.5
    followed = _standard(whole @ best) + generator.uniform(0, 0.7) * _curve(whole, generator)
    followed = _standard(followed)
    share = np.exp(generator.uniform(*_SHARES))
    errors = generator.standard_normal(PEOPLE)
    if likeness.target == "even" and generator.uniform() < 0.5:
        errors *= np.sqrt(3 / generator.chisquare(5, PEOPLE))
    errors *= np.exp(generator.uniform(0, 0.3) * np.clip(followed, -3, 3))
    value = np.sqrt(share) * followed + np.sqrt(1 - share) * _standard(errors)
    return _SHAPES[likeness.target](np.clip(value, -_FAR, _FAR), generator)


def _curve(whole: Floats, generator: simulation.Generator) -> Floats:
    """Return what no line follows: products of columns, some of them with themselves."""
    pairs = generator.integers(whole.shape[1], size=(3, 2))
    weights = generator.standard_normal(3)
    products = np.clip(whole[:, pairs[:, 0]] * whole[:, pairs[:, 1]], -_FAR, _FAR)
    return _standard(products @ weights)


def _even(value: Floats, generator: simulation.Generator) -> Floats:
    """Return scores, shares, logarithms; hours of work, of which many have none."""
    if generator.uniform() < 0.2:
        value = np.maximum(value, np.quantile(value, generator.uniform(0, 0.35)))
    moved = value - value.mean() + generator.uniform(-1, 1)
    cells = moved / (float(value.std()) * generator.uniform(2.3, 7.0))
    return np.asarray(np.clip(cells, -1, 1), np.float64)


def _skewed(value: Floats, generator: simulation.Generator) -> Floats:
    """Return wages and prices."""
    amount = np.exp(generator.uniform(0.15, 0.45) * value)
    if generator.uniform() < 0.3:  # some have none
        amount = np.maximum(amount - np.quantile(amount, generator.uniform(0, 0.4)), 0)
    return _bounded_below(amount, generator)


def _counts(value: Floats, generator: simulation.Generator) -> Floats:
    """Return visits and events."""
    rate = np.exp(generator.uniform(0.5, 0.95) * value) * np.exp(generator.uniform(-0.7, 1.4))
    return _bounded_below(np.minimum(generator.poisson(rate), 1e6), generator)


def _long(value: Floats, generator: simulation.Generator) -> Floats:
    """Return costs and wealth, of which a few have most, and perhaps many none."""
    amount = np.exp(generator.uniform(0.95, 1.4) * value)
    if generator.uniform() < 0.5:
        amount = np.maximum(amount - np.quantile(amount, generator.uniform(0, 0.7)), 0)
    return _bounded_below(amount, generator)


_SHAPES = {"even": _even, "skewed": _skewed, "counts": _counts, "long": _long}
