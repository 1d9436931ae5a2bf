"""Populations that tables are simulated from, with a best line that is known.

Features have a covariance with eigenvalues from 1 down to 1/condition in a random rotation; the
best line is random. Rows and errors are normal, or t with four degrees of freedom: a row that is
long is then long in all directions.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dplinear.arguments import choice, integer, real
from dplinear.arrays import Floats
from dplinear.exact.design import Design
from dplinear.noise import simulation
from dplinear.planner.simulated import SimulatedRows, plain_design

TAILS = ("normal", "heavy")
WIDTH = 4.0  # standard deviations from the middle to a bound
_BLOCK = 4 * 4096  # rows drawn at once


def seed_of(*parts: object) -> int:
    """Return a seed that belongs to these words and numbers alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Kind:
    """What is assumed of a table, all of it public.

    `explained` is the share of the target's variance that the best line explains, `condition` the
    condition number of the features' covariance, `width` how many of its standard deviations each
    column's bounds are from its mean.
    """

    columns: int
    explained: float = 0.5
    condition: float = 1.0
    tails: str = "normal"
    width: float = WIDTH

    def check(self, where: str) -> "Kind":
        """Return the kind with its fields as plain numbers; raise where one means nothing."""
        share = self.explained
        return Kind(
            integer(self.columns, "columns", where, low=1),
            real(share, "explained", where, low=0, high=1, open_low=True, open_high=True),
            real(self.condition, "condition", where, low=1),
            choice(self.tails, "tails", where, TAILS),
            real(self.width, "width", where, low=1),
        )


@dataclass(frozen=True, eq=False)
class Population:
    """Where the rows of one table come from. The best line's predictions have variance 1."""

    kind: Kind
    root: Floats  # of the features' covariance: root · rootᵀ
    best: Floats
    design: Design

    @classmethod
    def draw(cls, kind: Kind, generator: simulation.Generator) -> "Population":
        """Draw a rotation and a best line."""
        d = kind.columns
        spectrum = np.geomspace(1.0, 1 / kind.condition, d)
        rotation = np.linalg.qr(generator.standard_normal((d, d)))[0]
        root = rotation * np.sqrt(spectrum)
        best = generator.standard_normal(d)
        return cls(kind, root, best / float(np.linalg.norm(best @ root)), plain_design(d))

    @property
    def half_widths(self) -> Floats:
        """Half the distance between a feature's bounds."""
        return np.asarray(self.kind.width * np.linalg.norm(self.root, axis=1))

    @property
    def target_half_width(self) -> float:
        """Half the distance between the target's bounds."""
        return self.kind.width / math.sqrt(self.kind.explained)

    def cells(self, rows: int, generator: simulation.Generator) -> Iterator[Floats]:
        """Yield a table in cells, in blocks: ones, features, target, clamped to their bounds."""
        d, noise = self.kind.columns, math.sqrt(1 / self.kind.explained - 1)
        for start in range(0, rows, _BLOCK):
            count = min(_BLOCK, rows - start)
            features = generator.standard_normal((count, d)) @ self.root.T
            features *= self._lengths(count, generator)[:, None]
            errors = generator.standard_normal(count) * self._lengths(count, generator)
            target = features @ self.best + noise * errors
            block = np.ones((count, d + 2))
            block[:, 1:-1] = features / self.half_widths
            block[:, -1] = target / self.target_half_width
            yield np.clip(block, -1, 1, out=block)

    def table(self, rows: int, generator: simulation.Generator) -> SimulatedRows:
        """Return a table of so many rows."""
        return SimulatedRows(self.design.shape, self.cells(rows, generator))

    def excess(self, coefficients: Floats) -> float:
        """Return what a line in cells adds to the best risk, as a share of what can be explained.

        So the best line has 0 and the best constant 1.
        """
        own = coefficients * self.target_half_width
        wrong = (own[1:] / self.half_widths - self.best) @ self.root
        return float(wrong @ wrong + own[0] ** 2)

    def _lengths(self, count: int, generator: simulation.Generator) -> Floats:
        """Return a factor for each row that gives it the tails of its kind at variance 1."""
        if self.kind.tails == "normal":
            return np.ones(count)
        return np.asarray(np.sqrt(2 / generator.chisquare(4, count)))
