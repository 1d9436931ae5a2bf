"""Levels that were found privately: declarations of categories, and their guarantee."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dplinear.analyst import notebook
from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.container import Parts
from dplinear.arguments import rejection
from dplinear.schema import Schema
from dplinear.schema.describe import shorten

_KEYS = ["certificate", "schema", "levels"]
_SHOWN = 8
_OTHER = "other"


@dataclass(frozen=True, repr=False)
class SuggestedLevels:
    """Levels of columns that were paid for, the most frequent first. Public.

    `levels["city"]` declares the column for a schema; cells that hold none of its levels are
    `other` there. `counts` are about how many rows, or units of privacy, hold each, with noise of
    the standard deviation `sigma`; levels below about `threshold` are not told.
    """

    found: Mapping[str, tuple[str, ...]]
    counts: Mapping[str, tuple[float, ...]]
    certificate: Certificate
    kind: ClassVar[str] = "levels"

    def __getitem__(self, column: str) -> dict[str, Any]:
        """Return the declaration of a column, for `Schema`."""
        where = "suggested levels"
        if column not in self.found:
            raise rejection("column", where, f"one of {', '.join(self.found)}", column)
        if not self.found[column]:
            hint = "leave it out, or look again with a larger budget: rare levels are never told."
            raise rejection("column", where, "one of which levels were found", column, hint)
        levels = list(self.found[column])
        # A level of that name is joined by all cells that hold no other one.
        joined = {"other": _OTHER} if _OTHER in levels else {}
        return {"type": "category", "levels": levels, **joined}

    @property
    def schema(self) -> Schema | None:
        """The schema of the columns of which levels were found; None if there is none."""
        columns = {name: self[name] for name, levels in self.found.items() if levels}
        return Schema(columns, unit=self.certificate.unit) if columns else None

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise of a count."""
        return self._parameter("sigma")

    @property
    def threshold(self) -> float:
        """What a noisy count must reach for its level to be released."""
        return self._parameter("threshold")

    def _parameter(self, name: str) -> float:
        value = self.certificate.parameters.get(name)
        if not isinstance(value, float | int):
            raise rejection(name, "a release of levels", "a number on the certificate", "none")
        return float(value)

    @property
    def rows(self) -> None:
        """The number of rows, which is not released with levels."""
        return

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a .json file: `Schema.from_file` reads its schema, and `dplinear.load` all."""
        file = Path(path)
        if file.suffix != ".json":
            raise rejection("path", "SuggestedLevels.save", "the path of a .json file", file.name)
        files.save(self, file, overwrite=overwrite)

    def describe(self) -> str:
        """Return the levels, line by line, and under which guarantee they were found."""
        return f"{self}\n{self.certificate}"

    def __str__(self) -> str:
        lines = [
            f"{name}: {shorten(levels, _SHOWN) if levels else 'no level stood out'}"
            for name, levels in self.found.items()
        ]
        counted = "rows" if self.certificate.unit is None else f"units ({self.certificate.unit})"
        lines.append(f"levels that fewer than about {self.threshold:,.0f} {counted} hold: other")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            [name, level, f"{count:,.0f}"]
            for name, levels in self.found.items()
            for level, count in zip(levels, self.counts[name], strict=True)
        ]
        table = notebook.table(["column", "level", "about how many"], rows)
        return notebook.card("Levels of columns", table, self.certificate._repr_html_())


class LevelsKind:
    """How suggested levels are taken apart, and put together again."""

    name = SuggestedLevels.kind
    release = SuggestedLevels

    def to_parts(self, release: SuggestedLevels) -> Parts:
        """Take levels apart; they are there twice, in a schema too, and have to agree.

        The first of the counts is the threshold, which has to agree with the certificate.
        """
        schema = release.schema
        facts = {
            "certificate": release.certificate.to_dict(),
            "schema": None if schema is None else schema.to_dict(),
            "levels": {name: list(levels) for name, levels in release.found.items()},
        }
        counts = [release.threshold, *(each for some in release.counts.values() for each in some)]
        return Parts(self.name, facts, {"counts": np.array(counts, float).reshape(-1, 1)})

    def from_parts(self, parts: Parts) -> SuggestedLevels:
        """Put levels together, or raise."""
        where = "a release of levels"
        if list(parts.facts) != _KEYS or list(parts.arrays) != ["counts"]:
            found = ", ".join([*parts.facts, *parts.arrays])
            raise rejection("keys", where, ", ".join([*_KEYS, "counts"]), found)
        told: Any = parts.facts["levels"]
        if not _is_levels(told):
            raise rejection("levels", where, "a list of texts for each column", "others")
        counts, sizes = parts.arrays["counts"], [len(levels) for levels in told.values()]
        if counts.shape != (1 + sum(sizes), 1):
            raise rejection("counts", where, "one for each level", counts.shape)
        ends = np.cumsum([1, *sizes]).tolist()
        built = SuggestedLevels(
            {name: tuple(levels) for name, levels in told.items()},
            {
                name: tuple(counts[start : start + size, 0].tolist())
                for name, start, size in zip(told, ends, sizes, strict=False)
            },
            Certificate.from_dict(parts.facts["certificate"]),
        )
        schema = built.schema
        if parts.facts["schema"] != (None if schema is None else schema.to_dict()):
            raise rejection("schema", where, "as the levels say", "another")
        if not 0 < built.sigma < built.threshold == counts[0, 0] <= counts.min():
            raise rejection("threshold", where, "above sigma, and at most any count", "another")
        return built


def _is_levels(told: Any) -> bool:
    return (
        isinstance(told, dict)
        and bool(told)
        and all(isinstance(levels, list) for levels in told.values())
        and all(isinstance(level, str) for levels in told.values() for level in levels)
    )


files.register(LevelsKind())
