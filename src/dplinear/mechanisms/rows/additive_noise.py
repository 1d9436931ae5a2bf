"""Additive noise: every cell of every row plus Gaussian noise, drawn exactly on the cells' grid.

Showkatbakhsh, Karakus and Diggavi 2018, §III, protects a cell by the bits that are learnt about it.
docs/theory/additive-noise.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dplinear import arguments
from dplinear.analyst.noise_models.rows import AdditiveRows
from dplinear.exact.shape import Shape
from dplinear.mechanisms import checks
from dplinear.mechanisms.cells.held_cells import HeldCells
from dplinear.mechanisms.cells.table_cells import Cell, cells_of
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.rows.contract import PreparedRows, RowsMechanism
from dplinear.noise import discrete
from dplinear.noise.entropy import Entropy
from dplinear.privacy import bits, calibrate
from dplinear.privacy.guarantees import MIDP, ZCDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.gaussian import GRID_LEAST_VARIANCE, GridGaussian
from dplinear.privacy.rounding import ceiling, root_ceiling, up
from dplinear.schema import Schema

_WHERE = "AdditiveNoise"
_RULE = "an MIDP guarantee in bits, a ZCDP guarantee, or an ApproxDP guarantee with ε and δ above 0"
_LARGEST_VARIANCE = 2.0**80  # a million times a column's range


@dataclass(frozen=True, kw_only=True)
class AdditiveNoise(RowsMechanism):
    """Independent noise on every cell, so that any algorithm can run on the rows.

    Requires: a schema without derived features and without `row_norm`; `element` neighbours. With
    `y_public`, the column `target` is published as it is, rounded to the grid.
    Promises: each protected cell by itself keeps `MIDP`, whatever the prior and whatever else is
    known, `ZCDP` or `ApproxDP`; numerics are exact. The number of rows and their order are public.
    Departs from the paper: y is noised like any cell unless `y_public` says otherwise; a category
    is one cell, however many features it has; the cost of the grid is included.
    """

    neighbours: Neighbours = Neighbours.ELEMENT
    target: str | None = None
    y_public: bool = False
    name: ClassVar[str] = "additive_noise"
    numerics: ClassVar[str] = "exact"

    def __post_init__(self) -> None:
        relation = Neighbours.parse(self.neighbours, _WHERE, (Neighbours.ELEMENT,))
        object.__setattr__(self, "neighbours", relation)
        if not isinstance(self.y_public, bool):
            raise arguments.wrong_type("y_public", _WHERE, "True or False", self.y_public)
        if self.y_public and self.target is None:
            rule = "given where y_public is: the column that is published as it is"
            raise arguments.wrong_type("target", _WHERE, rule, self.target)
        self._check_guarantee()

    def _check_guarantee(self) -> None:
        if isinstance(self.guarantee, MIDP | ZCDP):
            return
        hint = checks.GRID_HINTS.get(type(self.guarantee), "")
        if hint:
            raise arguments.wrong_type("guarantee", _WHERE, _RULE, self.guarantee, hint)
        checks.approximate(self.guarantee, _WHERE, "normal noise", _RULE)

    def prepare(self, schema: Schema, shape: Shape, entropy: Entropy) -> "PreparedNoise":
        """Choose a variance for each column, in units of the grid."""
        cells = cells_of(schema, _WHERE)
        public = self._public(schema)
        noised = [Noised.of(cell, shape.steps_per_unit) for cell in cells if cell.column != public]
        if not noised:
            rule = "one with a column to protect"
            raise arguments.rejection("schema", _WHERE, rule, ", ".join(schema.columns))
        # The grid's cost of the worst column, for all: then one profile bounds every column's.
        cost = max(len(cell.indices) / cell.diameter**2 for cell in noised)
        variances = [max(self._variance(cell, cost), GRID_LEAST_VARIANCE) for cell in noised]
        if max(variances) > _LARGEST_VARIANCE:
            hint = "that much noise leaves nothing of any table: ask for more bits, or a larger ε."
            raise arguments.rejection("guarantee", _WHERE, "within reach", self.guarantee, hint)
        return PreparedNoise(
            schema,
            shape,
            self._account(noised, variances, public),
            [(cell.indices, variance) for cell, variance in zip(noised, variances, strict=True)],
            _parameters(noised, variances, shape, public),
        )

    def _public(self, schema: Schema) -> str | None:
        if self.target is None:
            return None
        arguments.choice(self.target, "target", _WHERE, schema.columns)
        return self.target if self.y_public else None

    def _variance(self, cell: "Noised", cost: float) -> float:
        if isinstance(self.guarantee, MIDP):
            return cell.variance_for(self.guarantee.bits)
        least = GRID_LEAST_VARIANCE
        if cell.profile(least, cost).keeps(self.guarantee):
            return least
        coordinates = up(cost * cell.diameter**2, 16)
        return calibrate.grid_gaussian(self.guarantee, cell.diameter, max(coordinates, 1.0))

    def _account(
        self, noised: Sequence["Noised"], variances: Sequence[float], public: str | None
    ) -> Account:
        profile = _worst(noised, variances)
        notes = () if public is None else (_unprotected_note(public),)
        return checks.exact_account(self.guarantee, profile, notes)


def _unprotected_note(public: str) -> str:
    return f"The column '{public}' is published without noise, and nothing protects it."


@dataclass(frozen=True)
class Noised:
    """A cell in units of the grid: `unit` of them, squared, to 1."""

    indices: tuple[int, ...]
    spread: float
    freedom: int
    diameter: float
    unit: int

    @classmethod
    def of(cls, cell: Cell, cells: int) -> "Noised":
        """Return a cell on a grid of so many steps to a half range."""
        unit = cells**2
        spread, diameter = ceiling(cell.spread * unit), root_ceiling(cell.diameter_squared * unit)
        return cls(cell.indices, spread, cell.freedom, diameter, unit)

    def variance_for(self, most: float) -> float:
        """Return the variance that lets at most so many bits through."""
        indices = len(self.indices)
        return bits.grid_variance_for(
            most, spread=self.spread, freedom=self.freedom, places=indices
        )

    def bits_through(self, variance: float) -> float:
        """Return the most bits that noise of this variance lets through."""
        indices = len(self.indices)
        return bits.grid_bits_through(
            variance, spread=self.spread, freedom=self.freedom, places=indices
        )

    def profile(self, variance: float, cost: float = 0.0) -> GridGaussian:
        """Return the profile of this cell: all others are noised alike in both tables."""
        mu = root_ceiling(Fraction(self.diameter) ** 2 / Fraction(variance))
        inverse = ceiling(Fraction(len(self.indices)) / Fraction(variance))
        return GridGaussian(mu, max(inverse, up(cost * mu**2)), Neighbours.ELEMENT)


def _worst(noised: Sequence[Noised], variances: Sequence[float]) -> GridGaussian:
    """Return a profile that bounds every column's: one cell changes, and it may be any."""
    each = [cell.profile(variance) for cell, variance in zip(noised, variances, strict=True)]
    inverse = max(profile.inverse_variance for profile in each)
    return GridGaussian(max(profile.mu for profile in each), inverse, Neighbours.ELEMENT)


def bits_of(noised: Sequence[Noised], variances: Sequence[float]) -> float:
    """Return the bits that the least protected column lets through."""
    return max(cell.bits_through(v) for cell, v in zip(noised, variances, strict=True))


def _parameters(
    noised: Sequence[Noised], variances: Sequence[float], shape: Shape, public: str | None
) -> dict[str, Any]:
    mu = _worst(noised, variances).mu
    shown = {
        "bits": bits_of(noised, variances),
        "mu": mu,
        "rho": up(mu**2 / 2),
        "sigma": math.sqrt(max(variances)) / shape.steps_per_unit,
        "grid_step": 1 / shape.steps_per_unit,
    }
    return shown if public is None else shown | {"public": public}


class PreparedNoise(PreparedRows):
    """Noise of a variance for each group of features; the others are published as they are."""

    noise_model: AdditiveRows

    def __init__(
        self,
        schema: Schema,
        shape: Shape,
        account: Account,
        noise: Sequence[tuple[tuple[int, ...], float]],
        parameters: dict[str, Any],
    ) -> None:
        self.account, self.parameters = account, parameters
        self._held = HeldCells.of(schema, shape, _WHERE)
        by_variance: dict[float, list[int]] = {}
        for indices, variance in noise:
            by_variance.setdefault(variance, []).extend(indices)
        self._noise = [(Fraction(v), np.array(sorted(p))) for v, p in by_variance.items()]
        features = schema.features
        self._indices = [index for index, feature in enumerate(features) if feature.factors]
        self._centre = [float(feature.centre) for feature in features]
        self._step = [float(feature.half_width / shape.steps_per_unit) for feature in features]
        names = [features[index].name for index in self._indices]
        self.output = pa.schema([pa.field(name, pa.float64(), nullable=False) for name in names])
        spread = np.zeros(len(features))
        for exact, own in self._noise:
            spread[own] = float(exact / shape.unit)
        self.noise_model = AdditiveRows(tuple(spread.tolist()))

    def release(self, rows: NDArray[np.float64], entropy: Entropy) -> pa.RecordBatch:
        """Add the noise on integers, then map each sum to the column's own units.

        The noise is made for cells within their sets, to which rows are held here.
        What follows the sum is a function of it alone, so that its rounding reveals nothing.
        """
        rows = self._held.hold(rows)
        released: dict[int, NDArray[np.float64]] = {}
        for variance, indices in self._noise:
            noise = discrete.gaussian(variance, (len(indices), rows.shape[1]), entropy=entropy)
            for index, drawn in zip(indices.tolist(), noise, strict=True):
                released[index] = (rows[index].astype(np.int64) + drawn).astype(np.float64)
        columns = []
        for index in self._indices:
            values = released.get(index, rows[index])
            values = values * self._step[index]
            values += self._centre[index]
            columns.append(pa.array(values))
        return pa.RecordBatch.from_arrays(columns, schema=self.output)
