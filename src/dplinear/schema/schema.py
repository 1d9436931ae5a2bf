"""The public description of a private table: which columns, within which bounds, in which order.

Everything about the shape of what is computed (names, order, number of features, bounds, the grid)
comes from here and never from the rows.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from dplinear.arguments import listed, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.schema.assembly import build_features, read_columns, read_row_norm
from dplinear.schema.columns import (
    WHERE,
    Category,
    Column,
    Numeric,
    check_levels,
    read_before,
    write_column,
    write_number,
)
from dplinear.schema.encoding import Encoder
from dplinear.schema.features import (
    Feature,
)
from dplinear.schema.schema_files import read_content, read_declaration
from dplinear.schema.survey_weights import SurveyWeight, is_name
from dplinear.schema.terms import (
    DerivedTerm,
    OwnTerm,
    Term,
)

Declaration = Sequence[Any] | Mapping[str, Any]  # of one column: see Schema


class Schema:
    """Bounds, categories and derived features of a table, declared in public.

    Requires: one declaration per column, by name, from a mapping or keywords: `(low, high)`, a list
    of category names, "boolean", or a mapping with `type` and options (docs/schema.md). `derived`
    lists products, powers, comparisons and functions: "age*smoker", "age^2", "age>=65", "log(age)",
    "bins(age, 30, 50)". `row_norm` clips rows below their worst-case norm. `unit` names the column
    that says whom a row belongs to, such as "patient": guarantees are then for all rows of a unit,
    and a release says how many of them count (`rows_per_unit`). Its ids may be of any type, and
    need no declaration. `weight` is a column of survey weights with its bounds, `("wght", 0, 20)`:
    rows then count by their clamped weights.
    Promises: `features`, in an order that the declarations alone decide, with exact bounds and
    affine maps to [−1, 1]; `encode`, a bitwise function of each row alone that no cell can make
    raise, warn or change shape. Wrong declarations raise here, before any row is read.
    """

    _by: tuple[str, ...] = ()
    _listed: tuple[int, ...] | None = None
    _of_groups: "tuple[Schema, ...]" = ()

    def __init__(
        self,
        mapping: Mapping[str, Any] | None = None,
        /,
        *,
        derived: Sequence[str] = (),
        intercept: bool = True,
        row_norm: float | Fraction | None = None,
        unit: str | None = None,
        weight: Sequence[Any] | SurveyWeight | None = None,
        **columns: Declaration,
    ) -> None:
        read = read_columns(mapping, columns)
        if not isinstance(intercept, bool):
            raise wrong_type("intercept", WHERE, "True or False", intercept)
        if isinstance(derived, str) or not isinstance(derived, Sequence):
            raise wrong_type("derived", WHERE, "a list of terms", derived)
        self._intercept, self._unit = intercept, unit
        self._weight = None if weight is None else SurveyWeight.of(weight)
        self._assemble(read, tuple(derived), row_norm)

    def _assemble(
        self, columns: Mapping[str, Column], derived: tuple[str, ...], row_norm: Any
    ) -> None:
        if self._unit is not None and not is_name(self._unit):
            raise wrong_type("unit", WHERE, "the name of a column", self._unit)
        self._columns, self._derived = dict(columns), derived
        own = [name for name in columns if name not in self._by]
        self._features = build_features(self._columns, own, derived, constant=self._intercept)
        self._norm_squared = sum(term.square for term in self.terms)
        self._row_norm = read_row_norm(row_norm, self._norm_squared)

    @staticmethod
    def of(value: Any, where: str, parameter: str = "schema") -> "Schema":
        """Return a schema as it is, or the one that a mapping of names to declarations describes.

        `where` takes it, as its `parameter`: an error says so.
        """
        if isinstance(value, Schema):
            return value
        if isinstance(value, Mapping):
            return Schema(value)
        rule = "a Schema, or a mapping of column names to declarations"
        hint = 'write {"age": (0, 100), "smoker": ["no", "yes"]}, or dplinear.Schema of that.'
        # Labels may stand here by mistake, as in release_model(X, y): only their type is told.
        raise wrong_type(parameter, where, rule, type(value), hint)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a schema from a .toml or .json file with a table `columns` (docs/schema.md)."""
        return cls.from_dict(read_content(path, "Schema.from_file"))

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """Build a schema from the content of a schema file; the inverse of `to_dict`."""
        columns, options = read_declaration(content, "Schema.from_dict")
        return cls(columns, **options)

    @classmethod
    def from_release(cls, content: Any) -> Self:
        """Build the schema of a table that was read before, perhaps by an older version.

        Its levels may be ones that are refused where a table is yet to be read.
        """
        with read_before():
            return cls.from_dict(content)

    def leaving_out(self) -> Self:
        """Return the same schema, of rows that are left out where a number is missing.

        Columns for which something else is said, or that have an indicator of missing cells, stay
        as they are. In a category a missing cell is a level of its own.
        """
        columns = {
            name: replace(column, leave_out=True)
            if isinstance(column, Numeric)
            and column.leave_out is None
            and not column.missing_indicator
            else column
            for name, column in self._columns.items()
        }
        return self._changed(columns=columns)

    @property
    def count_varies(self) -> bool:
        """Whether replacing a row, or a unit's rows, may change how much all rows count for."""
        return bool(self.needed_features) or self.is_weighted

    @cached_property
    def needed_features(self) -> tuple[int, ...]:
        """The indices of features whose missing cells leave a row out: those of such columns."""
        return tuple(
            index
            for name, column in self._columns.items()
            if isinstance(column, Numeric) and column.leave_out
            for index in self.own_features(name)
        )

    def check_levels(self) -> None:
        """Raise unless the levels of every category stay apart, whatever library reads them."""
        for name, column in self._columns.items():
            if isinstance(column, Category):
                check_levels(column.levels, name, WHERE)

    def select(
        self, names: Sequence[str], *, intercept: bool | None = None, clip: bool = True
    ) -> Self:
        """Return the part of the schema that a few of its features are made from.

        Requires: names of features. `intercept` is whether the part has one: as the whole, unless
        given. Without `clip` the part has no `row_norm`.
        Promises: the columns and derived terms of those features and no others, declared and
        ordered as in the whole. Their maps are those of the whole, unless the intercept comes or
        goes: without one nothing can undo a shift, so cells are then scaled but not centred.
        """
        if intercept is not None and not isinstance(intercept, bool):
            raise wrong_type("intercept", "Schema.select", "True, False or None", intercept)
        known = {feature.name: feature for feature in self._features}
        strange = [name for name in names if name not in known]
        if strange:
            raise rejection("names", "Schema.select", "names of the schema's features", strange)
        features = [known[name] for name in names]
        needed = {factor.column for feature in features for factor in feature.factors}
        terms = {f.term.index for f in features if isinstance(f.term, DerivedTerm)}
        needed |= set(self._by)
        return self._changed(
            columns={name: column for name, column in self._columns.items() if name in needed},
            derived=tuple(text for index, text in enumerate(self._derived) if index in terms),
            row_norm=self._row_norm if clip else None,
            intercept=self._intercept if intercept is None else intercept,
        )

    def with_unit(self, unit: str | None) -> Self:
        """Return the same schema of rows that belong to units: the column that says to which."""
        return self._changed(unit=unit)

    def split_by(self, by: tuple[str, ...], listed: tuple[int, ...] | None = None) -> Self:
        """Return the same schema of rows in groups: its columns `by` say which, and no more.

        They are read, and no feature is made of them. `listed` are the combinations of their levels
        that are groups, as schema/groups.py counts them; None: all of them are.
        """
        return self._changed(by=by, listed=listed)

    def seen_through(self, schemas: "Sequence[Schema]") -> Self:
        """Return the same schema, whose groups are seen through one of `schemas` each.

        Those are of the same columns, within other bounds.
        """
        return self._changed(of_groups=tuple(schemas))

    def _changed(self, **facts: Any) -> Self:
        """Return the same schema, but for some of its facts."""
        part = object.__new__(type(self))
        columns = facts.get("columns", self._columns)
        part._by = facts.get("by", tuple(name for name in self._by if name in columns))
        part._listed = facts.get("listed", self._listed if part._by == self._by else None)
        part._of_groups = facts.get("of_groups", ())
        part._intercept = facts.get("intercept", self._intercept)
        part._unit = facts.get("unit", self._unit)
        part._weight = self._weight
        part._assemble(
            columns, facts.get("derived", self._derived), facts.get("row_norm", self._row_norm)
        )
        return part

    def to_dict(self) -> dict[str, Any]:
        """Return the whole declaration as plain JSON, exactly."""
        content: dict[str, Any] = {
            "columns": {name: write_column(column) for name, column in self._columns.items()},
            "derived": list(self._derived),
            "intercept": self._intercept,
        }
        if self._row_norm is not None:
            content["row_norm"] = write_number(self._row_norm)
        content |= {} if self._unit is None else {"unit": self._unit}
        return content | ({} if self._weight is None else {"weight": self._weight.written()})

    @property
    def declared(self) -> Mapping[str, Column]:
        """What each source column was declared to hold."""
        return dict(self._columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The source columns that features are made of."""
        return tuple(self._columns)

    @property
    def unit(self) -> str | None:
        """The column that says whom a row belongs to; None: a row stands for itself."""
        return self._unit

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that say which group a row is in; none: all rows are in one."""
        return self._by

    @property
    def listed(self) -> tuple[int, ...] | None:
        """Which combinations of the levels of `by` are groups, in order; None: all of them."""
        return self._listed

    def of_group(self) -> Self:
        """Return the schema of the rows of one group, as of a table without the columns `by`."""
        columns = {n: column for n, column in self._columns.items() if n not in self._by}
        return self._changed(columns=columns)

    @property
    def group_schemas(self) -> "tuple[Schema, ...]":
        """What each group is seen through; none: all alike."""
        return self._of_groups

    @property
    def row_size(self) -> int:
        """How many numbers the exact pass keeps of a row: its features, and the group it is in."""
        return self.dimension + bool(self._by)

    @property
    def weight(self) -> SurveyWeight | None:
        """The column of survey weights, with its bounds; None: every row counts as one."""
        return self._weight

    @property
    def weight_name(self) -> str | None:
        """The name of the column of survey weights, if there is one."""
        return None if self._weight is None else self._weight.column

    @property
    def is_weighted(self) -> bool:
        """Whether rows carry weights: survey weights, shares of a unit's weight, or both."""
        return self._unit is not None or self._weight is not None

    @cached_property
    def read_columns(self) -> tuple[str, ...]:
        """The source columns that are read, weight and unit last; all others are ignored."""
        weight = () if self._weight is None else (self._weight.column,)
        unit = () if self._unit is None else (self._unit,)
        return tuple(dict.fromkeys((*self._columns, *weight, *unit)))

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns of the Gram matrix, in order."""
        return self._features

    @cached_property
    def terms(self) -> Mapping[Term, tuple[int, ...]]:
        """What features belong to, in order, each with the indices of its features."""
        found: dict[Term, list[int]] = {}
        for index, feature in enumerate(self._features):
            found.setdefault(feature.term, []).append(index)
        return {term: tuple(indices) for term, indices in found.items()}

    def own_features(self, column: str) -> tuple[int, ...]:
        """Return the indices of the features that are a declared column's own."""
        own = (t for t in self.terms if isinstance(t, OwnTerm) and t.column == column)
        return next((self.terms[term] for term in own), ())

    @property
    def derived_terms(self) -> tuple[DerivedTerm, ...]:
        """The terms whose features are made of other columns."""
        return tuple(term for term in self.terms if isinstance(term, DerivedTerm))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(feature.name for feature in self._features)

    @property
    def dimension(self) -> int:
        """The number of features."""
        return len(self._features)

    @property
    def has_intercept(self) -> bool:
        """Whether the first feature is 1 in every row."""
        return self._intercept

    @property
    def norm_squared(self) -> int:
        """The square of the largest norm a row of cells can have before clipping."""
        return self._norm_squared

    @property
    def row_norm(self) -> Fraction | None:
        """The norm rows are clipped to, if that is below the worst case; otherwise None."""
        return self._row_norm

    @property
    def bound(self) -> float:
        """The norm no row exceeds: `row_norm`, or the worst case."""
        return float(self._norm_squared**0.5 if self._row_norm is None else self._row_norm)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the features are the source columns, plain numbers, behind the intercept."""
        numbers = all(
            isinstance(c, Numeric) and c.type == "number" and not c.missing_indicator
            for c in self._columns.values()
        )
        return numbers and not self.derived_terms

    def encode(self, batch: pa.RecordBatch, *, scale: float = 1.0) -> Floats:
        """Return the cells of a batch of rows, times a public `scale`.

        Requires: a batch with the schema's columns, each of a type it can be read from.
        Promises: shape (dimension, rows); every cell in [−scale, scale]; column j is a bitwise
        function of row j alone; nothing raises or warns because of a value.
        """
        columns = {name: batch.column(name) for name in self._columns}
        encoder = Encoder(self, scale)
        return encoder.finish(encoder.columns(columns, batch.num_rows))

    @cached_property
    def _text(self) -> str:
        # As text, since the order of columns counts.
        groups = [group.to_dict() for group in self._of_groups]
        return json.dumps([self.to_dict(), self._by, self._listed, groups])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self is other or self._text == other._text

    def __hash__(self) -> int:
        return hash((self.names, self._row_norm))

    def __repr__(self) -> str:
        shown = listed(self._columns, 12)
        facts = f"{self.dimension} features, rows of norm at most {self.bound:.6g}"
        unit = "" if self._unit is None else f", units by {self._unit!r}"
        weight = "" if self._weight is None else f", weights by {self._weight.column!r}"
        return f"Schema({shown}; {facts}{unit}{weight})"


SchemaLike = Schema | Mapping[str, Any]
