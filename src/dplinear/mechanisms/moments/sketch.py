"""Gaussian sketch: release RA' with R a Gaussian matrix and A' the table above a ridge.

Sheffet 2015 (arXiv 1507.00056v1), Algorithm 1, after Blocki, Blum, Datta and Sheffet 2012. The rows
of RA' are independent draws of N(0, G + w²I), so R is never built and the cost does not depend on
the number of rows of the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.analyst.noise_models.matrices import SketchNoise
from dplinear.arrays import Floats
from dplinear.exact.gaussian_draws import sketch_matrix
from dplinear.exact.products import square
from dplinear.exact.roots import Root
from dplinear.exact.shape import Shape, Statistic
from dplinear.exact.sketch_rows import sketch_rows
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account, Measurement, MomentsMechanism, PreparedMoments
from dplinear.mechanisms.moments.least_eigenvalue import Variant, ready
from dplinear.mechanisms.moments.ridged import Fixed, Ready, Ridged, Setting
from dplinear.mechanisms.release_grid import cells, matrix_step, row_step
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate

_WHERE = "GaussianSketch"
_RELEASES = ("matrix", "sketch")
# A matrix costs the same whatever its rows; a sketch is as large as they are many.
_MOST_ROWS = {"matrix": calibrate.MOST_DEGREES, "sketch": 100_000}

_BLOCK = 1 << 20  # numbers drawn at a time


@dataclass(frozen=True, kw_only=True)
class GaussianSketch(MomentsMechanism):
    """A sketch S of `rows` rows, or its matrix SᵀS/rows.

    Requires: rows of norm at most B; `rows` is public, by default twice the dimension.
    Promises: `ApproxDP` as asked. `release="sketch"` gives the rows themselves, which promise the
    same. Numerics are exact: what is released is a sketch of real numbers rounded to a public grid
    (`release_grid`), and rounding a release costs no privacy. With rows ≥ d the matrix is positive
    definite but for that rounding, which moves no eigenvalue by more than d/2 steps, and float64's;
    with fewer it is that of the rounded rows, which is positive semi-definite.
    With `least_eigenvalue_share`, that part of ε (and a tenth of δ) buys a lower bound on the least
    eigenvalue of G, published as `lambda_lower`. Then `adjust="ridge"` lowers the ridge by it;
    `adjust="rows"` keeps the public `ridge` and takes as many rows as are private, at most
    `most_rows`, or, where not even `rows` are, raises the ridge.
    Departs from the paper: the ridge w² is the least by the exact profile, 5 to 10 times less,
    rounded up to the grid of G.
    """

    rows: int | None = None
    release: str = "matrix"
    least_eigenvalue_share: float | None = None
    adjust: str = "ridge"
    ridge: float = 0.0
    most_rows: int | None = None
    name: ClassVar[str] = "sketch"
    numerics: ClassVar[str] = "exact"

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        checks.approximate(self.guarantee, _WHERE, "a Gaussian sketch")
        arguments.choice(self.release, "release", _WHERE, _RELEASES)
        self._variant()

    def prepare(self, shape: Shape) -> "PreparedSketch":
        """Choose the ridge."""
        calibrated = self._ready(shape, self._rows(shape))
        return PreparedSketch(shape, calibrated.account, self.release, calibrated)

    def _ready(self, shape: Shape, rows: int) -> Ready:
        asked = checks.approximate(self.guarantee, _WHERE, "a Gaussian sketch")
        ridged = Ridged(_WHERE, shape, self.neighbours, inverse=False)
        return ready(ridged, self._variant(), asked, rows)

    def _variant(self) -> Variant | None:
        most = _MOST_ROWS[self.release]
        if self.most_rows is not None:
            limit = calibrate.MOST_DEGREES
            most = arguments.integer(self.most_rows, "most_rows", _WHERE, low=1, high=limit)
        return Variant.read(_WHERE, self.least_eigenvalue_share, self.adjust, self.ridge, most)

    def _rows(self, shape: Shape) -> int:
        if self.rows is None:
            return max(2 * shape.dimension, 2)
        return arguments.integer(self.rows, "rows", _WHERE, low=1, high=calibrate.MOST_DEGREES)


@dataclass(frozen=True)
class PreparedSketch(PreparedMoments):
    """A sketch whose ridge is known."""

    shape: Shape
    account: Account
    release: str
    ready: Ready

    @property
    def noise_model(self) -> SketchNoise | None:
        """The noise model of what will be released; None where the table settles the ridge."""
        return _noise_model(self.ready.setting) if isinstance(self.ready, Fixed) else None

    def run(self, statistic: Statistic, entropy: Entropy) -> Measurement:
        """Draw the sketch, or its matrix."""
        checks.same_shape(statistic, self.shape, _WHERE)
        setting = self.ready.settle(statistic, entropy)
        step, values = self._draw(setting.root(statistic), setting, entropy)
        parameters = {
            "rows": setting.degrees,
            "ridge": setting.ridge,
            "bound": float(self.shape.bound),
            "release": self.release,
            "grid_step": float(step),
            **setting.parameters,
        }
        return Measurement(values, _noise_model(setting), setting.account, parameters)

    def _draw(self, root: Root, setting: Setting, entropy: Entropy) -> tuple[Fraction, Floats]:
        """Return the step of the grid, and what is released."""
        rows, unit = setting.degrees, self.shape.unit
        if self.release == "matrix" and rows >= len(root):
            step = matrix_step(setting.least, rows)
            drawn = sketch_matrix(root, rows, 1 / (unit * rows * step), entropy=entropy)
            return step, cells(drawn, step)
        step = row_step(setting.least)
        factor = 1 / (self.shape.steps_per_unit * step)
        if self.release == "matrix":
            few = sketch_rows(root, rows, factor, entropy=entropy)
            finer = step**2 / rows
            return finer, cells(square(few.T), finer)
        return step, np.concatenate(list(row_blocks(root, rows, factor, step, entropy)))


def row_blocks(
    root: Root, rows: int, factor: Fraction, step: Fraction, entropy: Entropy
) -> Iterator[Floats]:
    """Yield round(factor·S)·step for a sketch S, a block of rows at a time."""
    # Python's integers take ten times the memory of what is released.
    block = max(_BLOCK // len(root), 1)
    for start in range(0, rows, block):
        drawn = sketch_rows(root, min(block, rows - start), factor, entropy=entropy)
        yield cells(drawn, step)


def _noise_model(setting: Setting) -> SketchNoise:
    return SketchNoise(setting.degrees, setting.ridge)
