"""Projected rows: every row times a random matrix, plus noise, so that any algorithm can run on it.

Dhaliwal, So, Parker-Wood and Beck 2019, Algorithm 1. docs/theory/projected-rows.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dplinear import arguments
from dplinear.analyst.noise_models.rows import ProjectedRows as ProjectedRowsNoise
from dplinear.analyst.noise_models.rows import column_names
from dplinear.analyst.releases.outputs import Output
from dplinear.exact.shape import Shape
from dplinear.mechanisms import checks
from dplinear.mechanisms.cells.cell_moves import Bounded, relation_notes
from dplinear.mechanisms.cells.held_cells import Held, cell_sets
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.rows import row_maps
from dplinear.mechanisms.rows.contract import PreparedRows, RowsMechanism
from dplinear.mechanisms.rows.kept_projection import EncryptedFile
from dplinear.mechanisms.rows.reconstruction import attack
from dplinear.mechanisms.rows.row_changes import RELATIONS, Changes, changes_of
from dplinear.mechanisms.rows.row_labels import RowLabel, indices_of, label_of
from dplinear.mechanisms.rows.row_maps import RowMap
from dplinear.mechanisms.rows.row_noise import CHOICES, RowNoise, Setting
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles import Profile, Pure
from dplinear.privacy.profiles.joined import BesidePure, EitherOf
from dplinear.privacy.rounding import down
from dplinear.schema import Schema

_WHERE = "ProjectedRows"
_RULE = "a PureDP, ApproxDP or ZCDP guarantee"
_FIXED = (
    "Holds for tables that were fixed before the projection was drawn, for this release alone; "
    "it may be published afterwards."
)
_KNOWN = "Holds for the projection that was drawn, whoever knows it."


@dataclass(frozen=True, kw_only=True)
class ProjectedRows(RowsMechanism):
    """Z = XP + noise, for P drawn without a look at X: distances are kept on average.

    Requires: `k`, the numbers released for each row; `element` neighbours, where one source cell
    changes (a number by at most `change`, in half-ranges of its column; default: all of its range),
    or `row_l1` or `row_l2`, where a row of cells changes by at most `change` in that norm (row_l2's
    default: any row for any other). A change is one of cells as the table holds them, before whole
    numbers are rounded. A changed cell may also lose its number, or get one: that is a jump to the
    column's `missing` constant, and costs half a range or more, unless `missing_public` says that
    neighbours agree on which cells hold no number. `projection` is "gaussian", "rademacher" or
    "orthonormal"; `noise` "laplace", "quantile", "gaussian", "perturbed" or "auto", the least total
    variance.
    `label`, a column to release beside the rows, for `label_share` of the budget.
    Promises: `PureDP`, `ApproxDP` or `ZCDP`; numerics are exact. Noise is scaled by the matrix that
    was drawn, so that the promise holds even if it is known; "quantile" noise, for tables fixed
    beforehand. The matrix is forgotten, unless it is `public_projection` or `keep_projection` has
    a file for it; `drawn` is one from an earlier release, to map further rows the same way, which
    no "quantile" noise allows. The number of rows and their order are public.
    Departs from the paper: its scale ignores the matrix and may fail with a δ above 1; here nothing
    fails.
    """

    neighbours: Neighbours = Neighbours.ELEMENT
    k: int
    projection: str = "gaussian"
    noise: str = "auto"
    change: float | None = None
    missing_public: bool = False
    label: str | None = None
    label_share: float = 0.2
    public_projection: bool = False
    keep_projection: EncryptedFile | None = None
    drawn: RowMap | None = None
    name: ClassVar[str] = "projection"
    numerics: ClassVar[str] = "exact"

    def __post_init__(self) -> None:
        relation = Neighbours.parse(self.neighbours, _WHERE, RELATIONS)
        object.__setattr__(self, "neighbours", relation)
        arguments.integer(self.k, "k", _WHERE, low=1, high=row_maps.MOST_COLUMNS)
        arguments.choice(self.projection, "projection", _WHERE, row_maps.KINDS)
        arguments.choice(self.noise, "noise", _WHERE, CHOICES)
        Bounded.read(self.change, self.missing_public, _WHERE)
        arguments.real(
            self.label_share, "label_share", _WHERE, low=0, high=1, open_low=True, open_high=True
        )
        if not isinstance(self.public_projection, bool):
            raise arguments.wrong_type(
                "public_projection", _WHERE, "True or False", self.public_projection
            )
        file: Any = self.keep_projection
        if file is not None and not isinstance(file, EncryptedFile):
            raise arguments.wrong_type("keep_projection", _WHERE, "an EncryptedFile, or None", file)
        self._check_guarantee()
        if self.drawn is not None:
            self._check_drawn(self.drawn)

    def _check_drawn(self, drawn: Any) -> None:
        if not isinstance(drawn, RowMap):
            raise arguments.wrong_type("drawn", _WHERE, "a RowMap, or None", drawn)
        if (drawn.kind, drawn.k) != (self.projection, self.k):
            rule = f"a {self.projection} projection to k = {self.k} numbers"
            raise arguments.rejection("drawn", _WHERE, rule, f"{drawn.kind}, k = {drawn.k}")
        if self.noise == "quantile":
            rule = "None, where the promise is for one release of rows fixed before the projection"
            raise arguments.rejection("drawn", _WHERE, rule, drawn)

    def _check_guarantee(self) -> None:
        if not isinstance(self.guarantee, PureDP | ApproxDP | ZCDP):
            hint = checks.GRID_HINTS.get(type(self.guarantee), "")
            raise arguments.wrong_type("guarantee", _WHERE, _RULE, self.guarantee, hint)
        if isinstance(self.guarantee, ApproxDP) and self.guarantee.epsilon == 0:
            hint = "with ε = 0 all is left to δ: give ε a part of the budget."
            raise arguments.rejection("guarantee", _WHERE, _RULE, self.guarantee, hint)

    def prepare(self, schema: Schema, shape: Shape, entropy: Entropy) -> "PreparedProjection":
        """Draw the matrix, and scale the noise by it."""
        if self.keep_projection is not None:
            self.keep_projection.check(_WHERE)
        label_indices = () if self.label is None else indices_of(schema, self.label, _WHERE)
        indices = tuple(
            index
            for index, feature in enumerate(schema.features)
            if feature.factors and index not in label_indices
        )
        if not indices:
            rule = "one with a column besides the label"
            raise arguments.rejection("schema", _WHERE, rule, ", ".join(schema.columns))
        changes = changes_of(schema, shape, self.neighbours, self._change_bound, indices, _WHERE)
        rows, trial = self._maps(len(indices), entropy)
        noise, account = self._choose_noise(schema, changes, rows, trial)
        label = self._label(schema, shape, self._shares().label)
        known = rows if self.public_projection else trial
        if known is None:
            known = row_maps.draw(self.projection, len(indices), self.k, entropy)
        held = cell_sets(schema, shape, indices, changes.row_square, _WHERE)
        return PreparedProjection(self, shape, indices, rows, noise, label, account, known, held)

    @property
    def _change_bound(self) -> Bounded:
        return Bounded.read(self.change, self.missing_public, _WHERE)

    def _maps(self, features: int, entropy: Entropy) -> tuple[RowMap, RowMap | None]:
        """Return the matrix, and one more of its law that decides on "quantile" noise.

        A matrix from an earlier release has none: no chance may be taken on it.
        """
        if self.drawn is None:
            rows, trial = (
                row_maps.draw(self.projection, features, self.k, entropy) for _ in range(2)
            )
            return rows, trial
        if self.drawn.dimension != features:
            rule = f"a projection of {features} features"
            raise arguments.rejection("drawn", _WHERE, rule, self.drawn.dimension)
        return self.drawn, None

    def _shares(self) -> "_Shares":
        """Return what rows and label may spend.

        Where one cell changes, it is the label's or one of the rows', so each may spend all of it.
        """
        guarantee, share = self.guarantee, Fraction(self.label_share)
        if self.label is None:
            return _Shares(guarantee, 0.0)
        together = self.neighbours is not Neighbours.ELEMENT
        if isinstance(guarantee, ZCDP):
            rho = float(Fraction(guarantee.rho) * share) if together else guarantee.rho
            # Laplace noise of scale b on a sensitivity of 1 is 1/b-DP.
            loss = down(1 / calibrate.laplace(ZCDP(rho), 1.0), 8)
            left = ZCDP(down(guarantee.rho - rho)) if together else guarantee
            return _Shares(left, loss)
        assert isinstance(guarantee, PureDP | ApproxDP)  # noqa: S101 - checked when it was made
        if not together:
            return _Shares(guarantee, guarantee.epsilon)
        loss = float(Fraction(guarantee.epsilon) * share)
        left_epsilon = down(guarantee.epsilon - loss)
        if isinstance(guarantee, PureDP):
            return _Shares(PureDP(left_epsilon), loss)
        return _Shares(ApproxDP(left_epsilon, guarantee.delta), loss)

    def _label(self, schema: Schema, shape: Shape, epsilon: float) -> RowLabel | None:
        if self.label is None:
            return None
        return label_of(schema, shape, self.label, self._change_bound, epsilon, _WHERE)

    def _choose_noise(
        self, schema: Schema, changes: Changes, rows: RowMap, trial: RowMap | None
    ) -> tuple[RowNoise, Account]:
        """Return the noise that the matrix needs, and what it promises."""
        share = self._shares()
        noise = Setting(share.rows, self.neighbours, changes, rows).best(self.noise, trial)
        return noise, self._account(noise, share, schema)

    def _account(self, noise: RowNoise, share: "_Shares", schema: Schema) -> Account:
        profile: Profile = noise.profile
        if share.label:
            if self.neighbours is Neighbours.ELEMENT:
                profile = EitherOf(profile, Pure(share.label, self.neighbours))
            else:
                profile = BesidePure(profile, share.label)
        notes: tuple[str, ...] = (_FIXED if noise.kind == "quantile" else _KNOWN,)
        notes += relation_notes(schema, self.neighbours, self._change_bound)
        return checks.exact_account(self.guarantee, profile, notes)


@dataclass(frozen=True)
class _Shares:
    rows: Guarantee
    label: float


class PreparedProjection(PreparedRows):
    """A matrix and the noise that it needs; `projection` is secret unless it was made public."""

    noise_model: ProjectedRowsNoise

    def __init__(  # noqa: PLR0917 - made here alone, by `prepare`
        self,
        asked: ProjectedRows,
        shape: Shape,
        indices: tuple[int, ...],
        rows: RowMap,
        noise: RowNoise,
        label: RowLabel | None,
        account: Account,
        known: RowMap,
        held: Held,
    ) -> None:
        self.projection, self.noise, self.account = rows, noise, account
        self._held = held
        self._label, self._file = label, asked.keep_projection
        # Neighbouring features are a view of the block, which saves a copy.
        joined = indices == tuple(range(indices[0], indices[-1] + 1))
        self._indices = slice(indices[0], indices[-1] + 1) if joined else list(indices)
        self._transposed = np.ascontiguousarray(rows.integers.T)
        self._unit = rows.unit * 2.0**noise.step / shape.steps_per_unit
        fields = [pa.field(name, pa.float64(), nullable=False) for name in column_names(rows.k)]
        if label is not None:
            if label.field.name in column_names(rows.k):
                rule = "of another name than z1, z2, … which the rows have"
                raise arguments.rejection("label", _WHERE, rule, label.field.name)
            fields.append(label.field)
        self.output = pa.schema(fields)
        spread = 1.0 / shape.steps_per_unit if noise.before else self._unit
        variance = noise.total / rows.k * (rows.unit / shape.steps_per_unit) ** 2
        self.noise_model = ProjectedRowsNoise(
            noise="laplace" if noise.kind == "quantile" else noise.kind,
            k=rows.k,
            dimension=rows.dimension,
            scale=noise.scale * spread,
            variance=variance,
            projection=rows.kind,
            public=asked.public_projection,
            matrix=rows.facts() if asked.public_projection else None,
            label=None if label is None else label.facts(),
        )
        self.parameters = self._public_numbers(asked, shape, variance, known)

    def _public_numbers(
        self, asked: ProjectedRows, shape: Shape, variance: float, known: RowMap
    ) -> dict[str, Any]:
        """Return public numbers. Errors of attacks are those under a matrix that is `known`.

        It is another of the same law, unless the matrix is public: singular values of a secret one
        would tell who guesses it.
        """
        noise, rows = self.noise, self.projection
        own = (noise.scale / shape.steps_per_unit) ** 2 * (1 if noise.normal else 2)
        guessed = attack(known.matrix(), own if noise.before else variance, before=noise.before)
        shown = {
            "k": rows.k,
            "projection": rows.kind,
            "noise": noise.kind,
            "scale": self.noise_model.scale,
            "noise_variance": variance,
            "change": asked.change,
            "missing_public": asked.missing_public,
            "public_projection": asked.public_projection,
            "attack_error_least_squares": guessed.least_squares,
            "attack_error_best_linear": guessed.best_linear,
            "attack_error_guessing": guessed.guessing,
        }
        if self.noise_model.label is not None:
            shown |= {
                f"label_{name}": self.noise_model.label[name] for name in ("column", "epsilon")
            }
        return shown

    def release(self, rows: NDArray[np.float64], entropy: Entropy) -> pa.RecordBatch:
        """Multiply exactly, add the noise on integers, and map each sum to the cells' units.

        Where any cell or row may stand for any other, noise is made for cells within their sets, or
        for rows within a ball, to which they are held here; how far a limited change goes is a
        matter of two rows (`row_changes.py`).
        What follows the sum is a function of it alone, so that its rounding reveals nothing.
        """
        rows = self._held.hold(rows)
        kept, noise = rows[self._indices], self.noise
        if noise.before:
            drawn = noise.draw(kept.shape, entropy)
            drawn += kept.astype(np.int64)
            values = self._transposed @ drawn.astype(np.float64)
        else:
            products = (self._transposed @ kept).astype(np.int64)
            if noise.step:
                products += 1 << (noise.step - 1)
                products >>= noise.step
            drawn = noise.draw(products.shape, entropy)
            drawn += products
            values = drawn.astype(np.float64)
        values *= self._unit
        columns = [pa.array(column) for column in values]
        if self._label is not None:
            columns.append(self._label.release(rows, entropy))
        return pa.RecordBatch.from_arrays(columns, schema=self.output)

    def outputs(self) -> Sequence[Output]:
        """Return the file for the matrix, if it is to be kept."""
        return () if self._file is None else (self._file.prepare(self.projection, _WHERE),)
