"""Made-up rows of a schema, on which a formula and the features are compared.

Promises: enough of them that features which differ as functions differ there. Every combination of
levels that some feature tells apart is held by as many rows as there are features to tell apart
within it, and numbers lie in every piece between thresholds, edges and knots.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.analyst.regression.formula_words import call_text
from dplinear.noise import simulation
from dplinear.schema.columns import Category, Numeric
from dplinear.schema.encoding import Encoder
from dplinear.schema.factor_values import FactorValues
from dplinear.schema.factors import Bin, Comparison, Level, SplineFunction
from dplinear.schema.transforms import read_transform

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from dplinear.arrays import Floats
    from dplinear.schema import Feature, Schema

_MORE = 8  # rows beyond as many as there are features
_TIMES = 6  # rows in each piece of a column, or of a product of pieces
_OTHER = "other"


class MadeUpRows:
    """Rows of the columns of some features, the `candidates`, as tables of several kinds.

    `left_out` are levels that no row holds, by column and code; `named`, features that a formula
    names by themselves; `jumps`, numbers that it compares with.
    """

    def __init__(
        self,
        schema: Schema,
        candidates: Sequence[Feature],
        columns: Sequence[str],
        *,
        left_out: Collection[tuple[str, int]],
        named: Collection[str],
        jumps: Collection[float],
    ) -> None:
        self.schema, self.candidates = schema, tuple(candidates)
        self._columns, self._named, self._jumps = tuple(columns), tuple(named), tuple(jumps)
        self._codes = {
            name: [code for code in _codes(column) if (name, code) not in left_out]
            for name, column in schema.declared.items()
            if isinstance(column, Category) and name in columns
        }

    @cached_property
    def _table(self) -> Mapping[str, Floats]:
        """Numbers, and codes of levels, by column."""
        random = simulation.generator(1)
        blocks = [self._draw(random, dict(held), size) for held, size in self._plan()]
        return {name: np.concatenate([block[name] for block in blocks]) for name in self._columns}

    def _plan(self) -> list[tuple[tuple[tuple[str, int], ...], int]]:
        """Return which levels some rows hold, and how many such rows there are."""
        most: Counter[tuple[str, ...]] = Counter()
        for feature in self.candidates:
            most[tuple(dict.fromkeys(f.column for f in _levels(feature)))] += 1
        least = max((_TIMES * _pieces(feature) for feature in self.candidates), default=0)
        least = max([least, *(_TIMES * len(ends) for ends in self._ends.values())])
        planned = []
        for columns, count in most.items():
            combinations = list(itertools.product(*(self._codes[name] for name in columns)))
            size = max(least, _MORE + 2 * -(-count // max(len(combinations), 1)))
            planned += [(tuple(zip(columns, codes, strict=True)), size) for codes in combinations]
        return planned

    def _draw(self, random: Any, held: Mapping[str, int], size: int) -> dict[str, Floats]:
        found = {}
        for name in self._columns:
            column = self.schema.declared[name]
            if isinstance(column, Category):
                codes = [held[name]] if name in held else self._codes[name]
                found[name] = random.choice(codes, size).astype(np.float64)
            else:
                found[name] = _numbers(random, column, self._ends[name], size)
        return found

    @cached_property
    def _ends(self) -> dict[str, Floats]:
        """The bounds of each column of numbers, and where features or the formula jump between."""
        found: dict[str, set[float]] = {}
        for name in self._columns:
            column = self.schema.declared[name]
            if isinstance(column, Numeric):
                low, high = float(column.low), float(column.high)
                found[name] = {low, high, *(jump for jump in self._jumps if low < jump < high)}
        for feature in self.candidates:
            for factor in feature.factors:
                found.get(factor.column, set()).update(map(float, _breaks(factor)))
        return {name: np.array(sorted(ends)) for name, ends in found.items()}

    @cached_property
    def cells(self) -> Floats:
        """The scaled features of the rows: rows x candidates."""
        names = [feature.name for feature in self.candidates if feature.factors]
        part = self.schema.select(names, clip=False)
        needed = {name: self._table.get(name, self._absent()) for name in part.declared}
        encoder = Encoder(part)
        found = encoder.finish(encoder.map_values(needed, len(self._absent())))
        chosen = [part.names.index(feature.name) for feature in self.candidates]
        return np.asarray(found[chosen].T)

    def _absent(self) -> Floats:
        return np.zeros(len(next(iter(self._table.values()))))

    def frame(self) -> Any:
        """Return the rows as a pandas data frame, categories with their levels in order."""
        import pandas as pd

        columns = {name: self._cells_of(name) for name in self._columns}
        places = {feature.name: index for index, feature in enumerate(self.candidates)}
        for name in self._named:
            feature = self.candidates[places[name]]
            width, centre = float(feature.half_width), float(feature.centre)
            columns[name] = self.cells[:, places[name]] * width + centre
        return pd.DataFrame(columns)

    def _cells_of(self, name: str) -> Any:
        import pandas as pd

        column, values = self.schema.declared[name], self._table[name]
        if not isinstance(column, Category):
            return values.astype(np.int64) if column.type == "boolean" else values
        codes = self._codes[name]
        places = {code: place for place, code in enumerate(codes)}
        labels = [_label(column, code) for code in codes]
        return pd.Categorical.from_codes([places[int(code)] for code in values], labels)

    def functions(self, where: str) -> dict[str, Any]:
        """Return what formulas may call beside the formula library's own functions."""
        return {
            "log1p": np.log1p,
            "sqrt": np.sqrt,
            "bins": self._function("bins", "{name}{field}", where),
            "spline": self._function("spline", "{name}[{field}]", where),
        }

    def _function(self, name: str, form: str, where: str) -> Callable[..., Any]:
        """Return a set of functions of a column, by what tells them apart."""

        def call(values: Any, *arguments: Any) -> Any:
            from formulaic.materializers.types import FactorValues as Columns

            column = self._column_of(values)
            text = call_text(name, column, arguments)
            options = read_transform(text, self.schema.declared, text) or []
            table = FactorValues(self.schema, self._table)
            found = {_field(label): table.factor(factor) for label, factor in options}
            return Columns(found, kind="numerical", format=form, spans_intercept=False)

        return call

    def _column_of(self, values: Any) -> str:
        name = str(getattr(values, "name", ""))
        if name not in self._columns:
            raise ValueError(name)
        return name


def _levels(feature: Feature) -> list[Level]:
    return [factor for factor in feature.factors if isinstance(factor, Level)]


def _codes(column: Category) -> list[int]:
    return [*range(len(column.levels)), *([-1] if column.other is None else [])]


def _label(column: Category, code: int) -> str | int | float:
    level = _OTHER if code < 0 else column.levels[code]
    if not isinstance(level, Fraction):
        return level
    return int(level) if level.denominator == 1 else float(level)


def _numbers(random: Any, column: Numeric, ends: Floats, size: int) -> Floats:
    """Return numbers of which as many are at each end as in the piece before the next one.

    Functions that jump at one end may differ there alone: x > 65 and x >= 65 do.
    """
    if column.type == "boolean":
        return np.asarray(random.permutation(np.arange(size) % 2), np.float64)
    spots = random.permutation(np.arange(size) % (2 * len(ends) - 1))
    pieces, inside = spots // 2, spots % 2 == 1
    found = np.where(inside, random.uniform(ends[pieces], ends[pieces + inside]), ends[pieces])
    return np.asarray(np.rint(found) if column.type == "integer" else found)


def _pieces(feature: Feature) -> int:
    return math.prod(len(_breaks(factor)) + 1 for factor in feature.factors)


def _breaks(factor: object) -> tuple[Fraction, ...]:
    if isinstance(factor, Comparison):
        return (factor.threshold,)
    if isinstance(factor, Bin):
        return factor.edges
    return factor.knots if isinstance(factor, SplineFunction) else ()


def _field(label: str) -> str:
    """Return what tells a function from others of its set: "[30, 50)", or the number of one."""
    tail = label[label.rindex("[") :]
    return tail if "," in tail else tail[1:-1]
