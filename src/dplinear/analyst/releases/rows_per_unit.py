"""How many rows units have, found privately: a noisy histogram, and the k that it speaks for."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dplinear.analyst import notebook
from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.container import Parts
from dplinear.arguments import integer, positive, rejection

_KEYS = ["certificate", "rows_per_unit", "edges", "deviation"]
_WHERE = "a release of rows_per_unit"
_CLEAR = 3.5  # deviations of noise that a bin must stand out by
_BEYOND = 2  # times the largest edge: what a unit of the open bin is taken to have
_MOST = 2**20


@dataclass(frozen=True, repr=False)
class SuggestedRowsPerUnit:
    """How many rows of a unit should count, and what it was chosen from. Public.

    `counts` are noisy numbers of units, bin by bin: with at most `edges[0]` rows, with more than
    these and at most `edges[1]`, and so on; the last bin is open. The noise of each has the
    standard deviation `deviation`. `rows_per_unit` is the planner's choice.
    """

    rows_per_unit: int
    edges: tuple[int, ...]
    counts: tuple[float, ...]
    deviation: float
    certificate: Certificate
    kind: ClassVar[str] = "rows_per_unit"

    @property
    def rows(self) -> None:
        """The number of rows, which is not released exactly; `expected_rows` is a noisy guess."""
        return

    @property
    def rows_each(self) -> Mapping[int, float]:
        """The share of units that have about so many rows, for `dplinear.plan(rows_each=…)`.

        Bins that do not stand out from the noise are left out; if none does, units have one row.
        """
        return shares_of(self.edges, self.counts, self.deviation)

    @property
    def units(self) -> float:
        """About how many units there are."""
        return max(math.fsum(self.counts), 0.0)

    @property
    def expected_rows(self) -> int:
        """About how many rows there are, for `dplinear.plan`: units times the mean of their rows.

        At least 1.
        """
        mean = math.fsum(rows * share for rows, share in self.rows_each.items())
        return max(round(self.units * mean), 1)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a .json file, which `dplinear.load` reads."""
        file = Path(path)
        if file.suffix != ".json":
            rule = "the path of a .json file"
            raise rejection("path", "SuggestedRowsPerUnit.save", rule, file.name)
        files.save(self, file, overwrite=overwrite)

    def summary(self) -> str:
        """Return the choice and the histogram, line by line."""
        heads = f"rows of one {self.certificate.unit!r}", "units"
        lines = [heads, *((name, f"{count:,.0f}") for name, count in self._lines())]
        wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = [f"{name.ljust(wide[0])}  {count.rjust(wide[1])}" for name, count in lines]
        return "\n".join(
            [
                f"rows_per_unit: {self.rows_per_unit}",
                *shown,
                f"Each number of units has noise of standard deviation {self.deviation:.3g}.",
            ]
        )

    def _lines(self) -> list[tuple[str, float]]:
        starts = (0, *self.edges)
        closed = [
            f"{low + 1}" if low + 1 == high else f"{low + 1} to {high}"
            for low, high in pairwise(starts)
        ]
        names = [*closed, f"more than {self.edges[-1]}"]
        return list(zip(names, self.counts, strict=True))

    def describe(self) -> str:
        """Return the summary, and under which guarantee the numbers were found."""
        return f"{self.summary()}\n{self.certificate}"

    def __str__(self) -> str:
        return self.summary()

    __repr__ = __str__

    def histogram(self) -> list[tuple[str, str]]:
        """Return each bin in words, with its noisy number of units."""
        return [(name, f"{count:,.0f}") for name, count in self._lines()]

    def _repr_html_(self) -> str:
        counts = notebook.table(["rows", "units"], [list(line) for line in self.histogram()])
        title = f"Rows per unit: {self.rows_per_unit}"
        return notebook.card(title, counts, self.certificate._repr_html_())


def shares_of(
    edges: tuple[int, ...], counts: tuple[float, ...], deviation: float
) -> dict[int, float]:
    """Return the share of units with about so many rows, of the bins that stand out.

    A bin stands for the geometric mean of its ends, the open one for twice the last edge.
    """
    ends = (*pairwise((0, *edges)), (edges[-1], _BEYOND**2 * edges[-1]))
    found: dict[int, float] = {}
    for (low, high), count in zip(ends, counts, strict=True):
        if count > _CLEAR * deviation:
            rows = min(round(math.sqrt((low + 1) * high)), _MOST)
            found[rows] = found.get(rows, 0.0) + count
    total = math.fsum(found.values())
    return {rows: count / total for rows, count in found.items()} if found else {1: 1.0}


class RowsPerUnitKind:
    """How such a release is taken apart, and put together again."""

    name = SuggestedRowsPerUnit.kind
    release = SuggestedRowsPerUnit

    def to_parts(self, release: SuggestedRowsPerUnit) -> Parts:
        """Take a release apart."""
        facts = {
            "certificate": release.certificate.to_dict(),
            "rows_per_unit": release.rows_per_unit,
            "edges": list(release.edges),
            "deviation": release.deviation,
        }
        return Parts(self.name, facts, {"counts": np.array([release.counts])})

    def from_parts(self, parts: Parts) -> SuggestedRowsPerUnit:
        """Put a release together, or raise."""
        if list(parts.facts) != _KEYS or list(parts.arrays) != ["counts"]:
            found = ", ".join([*parts.facts, *parts.arrays])
            raise rejection("keys", _WHERE, ", ".join([*_KEYS, "counts"]), found)
        chosen = integer(parts.facts["rows_per_unit"], "rows_per_unit", _WHERE, low=1, high=_MOST)
        edges = _edges(parts.facts["edges"])
        counts = parts.arrays["counts"]
        if counts.shape != (1, len(edges) + 1):
            raise rejection("counts", _WHERE, "one more than there are edges", counts.shape)
        certificate = Certificate.from_dict(parts.facts["certificate"])
        if certificate.unit is None:
            raise rejection("certificate", _WHERE, "of a unit of privacy", "of rows")
        deviation = positive(parts.facts["deviation"], "deviation", _WHERE)
        values = tuple(counts[0].astype(float).tolist())
        return SuggestedRowsPerUnit(chosen, edges, values, deviation, certificate)


def _edges(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise rejection("edges", _WHERE, "a list of rising numbers", value)
    edges = tuple(integer(each, "edges", _WHERE, low=1, high=_MOST) for each in value)
    if any(low >= high for low, high in pairwise(edges)):
        raise rejection("edges", _WHERE, "a list of rising numbers", value)
    return edges


files.register(RowsPerUnitKind())
