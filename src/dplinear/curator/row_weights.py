"""The weights of rows that come as arrays: shares of a unit of privacy, survey weights, or both.

A row of a unit that has m rows weighs min(1/k, 1/m); with survey weights s, s·min(1/k, 1/Σ s). So
the weights of a unit add up to at most 1, and all of its rows together move a sum by at most what
one row moves it by (docs/theory/units.md). A row without an id, or without a number
for its weight, has weight 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dplinear.arguments import real, rejection, wrong_type
from dplinear.arrays import Integers, kind_of
from dplinear.exact.weights import capped_weights, shared_weights, survey_weights
from dplinear.privacy.units import Unit
from dplinear.schema.storage import has_cells
from dplinear.schema.survey_weights import SurveyWeight, is_name
from dplinear.schema.unit_keys import keys_of

_GROUPS, _WEIGHTS = "groups", "sample_weight"
_KINDS = {_GROUPS: "biufOSUMm", _WEIGHTS: "biufOSU"}
_ENDS = (2.0**-400, 2.0**400)  # of bounds: far from where float64 ends


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Whose rows are whose, and for how many each stands.

    `groups` and `sample_weight` are arrays with an entry for each row, or None; they are private,
    and only `read` looks into them. `unit` and `bound`, the largest weight, are public.
    """

    groups: Any = field(repr=False)
    sample_weight: Any = field(repr=False)
    unit: Unit | None
    bound: float | None

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str) -> "RowWeights":
        """Read the arguments of a gate; raise over one that has nothing to go with."""
        groups, weights = given[_GROUPS], given[_WEIGHTS]
        named, rows, bound = given["unit"], given["rows_per_unit"], given["weight_bound"]
        if groups is None:
            hint = "give an id for each row: groups=ids."
            for name, value in (("unit", named), ("rows_per_unit", rows)):
                if value is not None:
                    rule = "left out without groups"
                    raise rejection(name, where, rule, _shown(value), hint)
        elif named is not None and not is_name(named):
            rule = 'the name of what an id stands for, such as "patient"'
            raise wrong_type("unit", where, rule, type(named))
        unit = None if groups is None else Unit.of(named or _GROUPS, rows, where)
        if weights is None and bound is not None:
            raise rejection("weight_bound", where, "left out without sample_weight", _shown(bound))
        if weights is not None:
            hint = "it is public: larger weights are clamped to it."
            bound = real(bound, "weight_bound", where, low=_ENDS[0], high=_ENDS[1], hint=hint)
        return cls(groups, weights, unit, bound)

    @property
    def weighted(self) -> bool:
        """Whether rows carry weights."""
        return self.unit is not None or self.surveyed

    @property
    def surveyed(self) -> bool:
        """Whether the weights are a survey's, perhaps within units."""
        return self.sample_weight is not None

    @property
    def rows_per_unit(self) -> int:
        """How many rows a unit counts as, at the most: 1 where each row is a unit."""
        return 1 if self.unit is None else self.unit.rows

    def check(self, rows: int, where: str) -> None:
        """Raise unless there is an entry for each row, by the arrays' kind and length alone."""
        for name, values in ((_GROUPS, self.groups), (_WEIGHTS, self.sample_weight)):
            if values is not None:
                _check_array(name, values, where)
                if len(values) != rows:
                    raise rejection(name, where, "as long as the rows", "another number of rows")

    @cached_property
    def _survey(self) -> SurveyWeight:
        assert self.bound is not None  # noqa: S101 - `of` asks for it
        return SurveyWeight.of((_WEIGHTS, 0, self.bound))

    def read(self) -> Integers | None:
        """Return the weights of rows, in units of 2^−24; None where they have none. Private.

        Promises: those of a unit add up to at most 1, verified on the integers; each depends on its
        own unit's rows alone, or on its own row where there is no unit. No value raises or warns.
        """
        own = survey_weights(self._survey.shares(self.sample_weight)) if self.surveyed else None
        if self.unit is None:
            return own
        encoded = keys_of(self.groups).dictionary_encode()
        codes = np.asarray(pc.fill_null(pc.cast(encoded.indices, pa.int64()), -1), np.int64)
        known, units = np.flatnonzero(codes >= 0), len(encoded.dictionary)
        weights, codes = np.zeros(len(codes), np.int64), codes[known]
        if own is None:
            counts = np.bincount(codes, minlength=units).astype(np.int64)
            weights[known] = shared_weights(counts, self.unit.rows)[codes]
        else:
            weights[known] = capped_weights(own[known], codes, units, self.unit.rows)[0]
        return weights


def _check_array(name: str, values: Any, where: str) -> None:
    rule = "a NumPy or Arrow array with an entry for each row"
    if isinstance(values, pa.Array | pa.ChunkedArray):
        if not has_cells(values.type):
            hint = "give them as text or whole numbers."
            raise rejection(name, where, f"{rule}, of no lists or structs", type(values.type), hint)
        return
    if not isinstance(values, np.ndarray):
        raise wrong_type(name, where, rule, type(values))
    if values.ndim != 1:
        raise rejection(name, where, "of one dimension", f"{values.ndim} dimension(s)")
    if values.dtype.kind not in _KINDS[name]:
        raise rejection(name, where, rule, kind_of(values.dtype))


def _shown(value: object) -> object:
    """Return what may be shown: a number or a name, and of anything else, such as ids, its type."""
    return value if isinstance(value, int | float | str) else type(value)
