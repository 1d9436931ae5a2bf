"""Bounds that were found privately: a schema, and the guarantee it was found under."""

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
from dplinear.schema.columns import Numeric

_KEYS = ["certificate", "schema", "found"]


@dataclass(frozen=True, repr=False)
class SuggestedBounds:
    """A schema that was paid for. Public.

    `found` says for each column whether its rows stood out from the noise: where not, the schema
    has the bounds that were given.
    """

    schema: Schema
    found: Mapping[str, bool]
    certificate: Certificate
    kind: ClassVar[str] = "bounds"

    @property
    def rows(self) -> None:
        """The number of rows, which is not released with bounds."""
        return

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The bounds of each column."""
        columns = self.schema.declared.items()
        return {
            name: (float(each.low), float(each.high))
            for name, each in columns
            if isinstance(each, Numeric)
        }

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a .json file: `Schema.from_file` reads its schema, and `dplinear.load` all."""
        file = Path(path)
        if file.suffix != ".json":
            raise rejection("path", "SuggestedBounds.save", "the path of a .json file", file.name)
        files.save(self, file, overwrite=overwrite)

    def describe(self) -> str:
        """Return the bounds, line by line, and under which guarantee they were found."""
        return f"{self}\n{self.certificate}"

    def __str__(self) -> str:
        lines = [
            f"{name}: {low:g} to {high:g}{'' if self.found[name] else ' (as given: not found)'}"
            for name, (low, high) in self.bounds.items()
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            [name, f"{low:g}", f"{high:g}", "found" if self.found[name] else "as given"]
            for name, (low, high) in self.bounds.items()
        ]
        bounds = notebook.table(["column", "low", "high", "how"], rows)
        return notebook.card("Bounds of columns", bounds, self.certificate._repr_html_())


class BoundsKind:
    """How suggested bounds are taken apart, and put together again."""

    name = SuggestedBounds.kind
    release = SuggestedBounds

    def to_parts(self, release: SuggestedBounds) -> Parts:
        """Take bounds apart; their numbers are there twice, and have to agree."""
        facts = {
            "certificate": release.certificate.to_dict(),
            "schema": release.schema.to_dict(),
            "found": dict(release.found),
        }
        return Parts(self.name, facts, {"bounds": np.array([*release.bounds.values()])})

    def from_parts(self, parts: Parts) -> SuggestedBounds:
        """Put bounds together, or raise."""
        where = "a release of bounds"
        if list(parts.facts) != _KEYS or list(parts.arrays) != ["bounds"]:
            found = ", ".join([*parts.facts, *parts.arrays])
            raise rejection("keys", where, ", ".join([*_KEYS, "bounds"]), found)
        seen: Any = parts.facts["found"]
        if not isinstance(seen, dict) or not all(isinstance(each, bool) for each in seen.values()):
            raise rejection("found", where, "true or false for each column", seen)
        built = SuggestedBounds(
            Schema.from_release(parts.facts["schema"]),
            seen,
            Certificate.from_dict(parts.facts["certificate"]),
        )
        if not list(built.bounds) == list(built.schema.declared) == list(seen):
            raise rejection("found", where, "for the schema's columns, all numbers", list(seen))
        if not np.array_equal(np.array([*built.bounds.values()]), parts.arrays["bounds"]):
            raise rejection("bounds", where, "as the schema says", "others")
        return built


files.register(BoundsKind())
