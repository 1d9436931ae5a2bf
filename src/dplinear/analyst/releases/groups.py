"""Releases of the groups of one table, made together for one price: from level to release.

The levels are public, so that each has a release, also one that no row holds. All share one
certificate: the guarantee is of everything that is in the mapping (docs/theory/groups.md).
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Generic, TypeVar, Unpack

import numpy as np

from dplinear.analyst import notebook
from dplinear.analyst.regression.difference import Differences, Fitted, difference
from dplinear.analyst.regression.regress import RegressOptions
from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.container import Parts
from dplinear.analyst.releases.model import ModelRelease
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.analyst.releases.pooled import pool, read_blocks
from dplinear.analyst.releases.release import Release
from dplinear.arguments import choice, integer, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.privacy.units import size
from dplinear.schema import Schema

_Level = str | int | float | bool
Level = _Level | tuple[_Level, ...]  # of one column, or one for each of several
_Release_co = TypeVar("_Release_co", bound=Release, covariant=True)

_OF = ("moments", "model", "mean", "covariance")
_FACTS = ["certificate", "by", "levels", "of", "schema", "groups"]
_OWN = ["parameters", "facts", "arrays"]  # of each group
_SHOWN = 100
_WHERE = "a release of groups"
LISTED = "combinations"  # of levels in all, which a certificate tells where groups were listed


@dataclass(frozen=True, eq=False, repr=False)
class Groups(Mapping[Level, _Release_co], Generic[_Release_co]):
    """Releases of disjoint parts of one table, one for each level of the columns `by`.

    `levels` are public, in the schema's order: of one column its levels, of several the tuples of
    theirs. `releases` has the release of each, as if its rows had been a table of their own. The
    guarantee of the `certificate` is of everything here together; a group's release says the same,
    with parameters of its own. Cells that hold no level are in the group "other", unless the schema
    says where they belong. Where groups were `listed`, rows of all other combinations of levels are
    in none of them.
    """

    by: tuple[str, ...]
    levels: tuple[Level, ...]
    certificate: Certificate = field(repr=False)
    releases: tuple[_Release_co, ...] = field(repr=False)
    kind: ClassVar[str] = "groups"

    def __post_init__(self) -> None:
        rule = "one release for each of at least one level, none twice"
        if len(set(self.levels)) != len(self.releases) or len(self.levels) != len(self.releases):
            raise rejection("levels", "Groups", rule, len(self.levels))
        if not self.releases or not self.by:
            raise rejection("releases", "Groups", rule, len(self.releases))
        named = {(release.kind, release.certificate.request) for release in self.releases}
        if len(named) > 1:
            rule = "of one kind, and of one request"
            raise rejection("releases", "Groups", rule, [each.kind for each in self.releases])

    @cached_property
    def _indices(self) -> dict[Level, int]:
        return {level: index for index, level in enumerate(self.levels)}

    def __getitem__(self, level: Level) -> _Release_co:
        try:
            return self.releases[self._indices[level]]
        except (KeyError, TypeError):
            raise KeyError(f"{level!r} is none of the levels of {', '.join(self.by)}") from None

    def __iter__(self) -> Iterator[Level]:
        return iter(self.levels)

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def of(self) -> str:
        """The kind of each group's release, such as "moments"."""
        return self.releases[0].kind

    @property
    def listed(self) -> bool:
        """Whether these are chosen groups, so that some rows of the table are in none of them."""
        return LISTED in self.certificate.parameters

    @property
    def schema(self) -> Schema:
        """The description of each group's rows, without the columns `by`."""
        found: Any = self.releases[0]
        return Schema.of(found.schema, "Groups")

    @property
    def rows(self) -> int | None:
        """None: how many rows a group has is never public."""
        return None

    def labels(self) -> list[str]:
        """Return the levels as words, in their order."""
        return [level_label(level) for level in self.levels]

    def counts(self) -> dict[Level, float | None]:
        """Return about how many rows, or units, each group has; None where that is not known."""
        return {level: getattr(self[level], "count", None) for level in self.levels}

    def _sizes(self) -> list[str]:
        """Return in words how large each group is, about, in the order of the levels."""
        unit, weight = self.certificate.unit, self.schema.weight_name
        return [
            "size not released" if count is None else size(count, unit, weight=weight)
            for count in self.counts().values()
        ]

    def pooled(
        self, levels: Sequence[Level] | None = None, *, fixed_effects: bool = False
    ) -> MomentsRelease:
        """Return the moments of all groups together, or of those of some levels.

        Of groups that were `listed` these are not the moments of the whole table: rows that are in
        none of them are not among the pooled ones, and the certificate says so.
        With `fixed_effects` they have the columns `by` as categories, as if these had been features
        of the table: `pooled(fixed_effects=True).regress("charges", ["age", "hospital"])` has an
        intercept of its own for each hospital, and one slope.
        Requires: moments; an intercept, for fixed effects.
        Promises: the certificate of the groups, as this is computed from them; the noise of each
        group counts once.
        """
        blocks = read_blocks(self, levels, "pooled")
        if self.listed:
            told = "pooled from listed groups only: rows in none of them do not count"
            notes = (*self.certificate.notes, told)
            blocks = replace(blocks, certificate=replace(self.certificate, notes=notes))
        return pool(blocks, fixed_effects=fixed_effects)

    def differences(
        self,
        target: str | None = None,
        features: Sequence[str] | str | None = None,
        *,
        base: Level | None = None,
        **options: Unpack[RegressOptions],
    ) -> Differences:
        """Return how much larger each group's coefficients are than those of the group `base`.

        Requires: moments, with the `target` and what else `regress` takes; or models, with
        neither. `base` is the first level unless it is given.
        Promises: for every other level a difference with `intervals()` and `summary()`. With units
        of privacy these hold for people who are in several groups, too.
        """
        chosen = self.levels[0] if base is None else base
        if chosen not in self:
            raise rejection("base", "differences", "one of the levels", chosen)
        fits = {level: _fitted(self[level], target, features, options) for level in self.levels}
        return Differences(
            chosen,
            {
                level: difference(
                    fit,
                    fits[chosen],
                    labels=(level_label(level), level_label(chosen)),
                )
                for level, fit in fits.items()
                if level != chosen
            },
        )

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write all groups to one file that `dplinear.load` reads anywhere."""
        files.save(self, path, overwrite=overwrite)

    def summary(self) -> str:
        """Return a table of the groups in words: each with what is known of its size."""
        width = max(len(label) for label in self.labels())
        sizes = zip(self.labels(), self._sizes(), strict=True)
        lines = [f"{label:<{width}}  {size_}" for label, size_ in sizes]
        more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        return "\n".join([self._title(), *lines[:_SHOWN], *more])

    def describe(self) -> str:
        """Return in a few lines the groups, what is known of their sizes, and the guarantee."""
        return "\n".join([self.summary(), str(self.certificate)])

    def _title(self) -> str:
        of = f" of {self.certificate.parameters[LISTED]}" if self.listed else ""
        return f"{len(self)}{of} groups by {', '.join(self.by)}, each with a release of {self.of}"

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        rows = [list(pair) for pair in zip(self.labels(), self._sizes(), strict=True)]
        table = notebook.table([", ".join(self.by), "size"], rows)
        return notebook.card(self._title(), table, self.certificate._repr_html_())


def _fitted(release: object, target: Any, features: Any, options: RegressOptions) -> Fitted:
    """Return a group's model: the release itself, or a regression on its moments."""
    if isinstance(release, MomentsRelease):
        if not isinstance(target, str):
            raise wrong_type("target", "differences", "the name of a feature", target)
        return release.regress(target, features, **options)
    if not isinstance(release, ModelRelease):
        got = getattr(release, "kind", type(release).__name__)
        raise wrong_type("groups", "differences", "moments or models", f"one of {got}")
    if target is not None or features is not None or options:
        rule = "left out where each group has a model already"
        raise rejection("target", "differences", rule, target)
    return release


def level_label(level: Level) -> str:
    """Return a level as words: those of several columns with commas between them."""
    return ", ".join(map(str, level)) if isinstance(level, tuple) else str(level)


class GroupsKind:
    """Groups in files: what all share once, and the arrays of all groups one below the other."""

    name = Groups.kind
    release = Groups

    def to_parts(self, release: Groups[Any]) -> Parts:
        """Take the groups apart."""
        inner = files.kind_of(release.of)
        taken = [inner.to_parts(each) for each in release.releases]
        facts = {
            "certificate": release.certificate.to_dict(),
            "by": list(release.by),
            "levels": [
                list(level) if isinstance(level, tuple) else level for level in release.levels
            ],
            "of": release.of,
            "schema": taken[0].facts["schema"],
            "groups": [_own_facts(parts) for parts in taken],
        }
        names = list(dict.fromkeys(name for parts in taken for name in parts.arrays))
        arrays = {
            name: np.vstack([parts.arrays[name] for parts in taken if name in parts.arrays])
            for name in names
        }
        return Parts(self.name, facts, arrays)

    def from_parts(self, parts: Parts) -> Groups[Any]:
        """Put the groups together, or raise."""
        facts = parts.facts
        if list(facts) != _FACTS:
            raise rejection("keys", _WHERE, ", ".join(_FACTS), ", ".join(facts))
        inner = files.kind_of(choice(facts["of"], "of", _WHERE, _OF))
        by = tuple(_text(name) for name in _list(facts["by"], "by"))
        levels = tuple(_level(level, len(by)) for level in _list(facts["levels"], "levels"))
        groups = [_read_own(own) for own in _list(facts["groups"], "groups")]
        taken = _deal(parts.arrays, [group["arrays"] for group in groups])
        certificate = Certificate.from_dict(facts["certificate"])
        releases = []
        for group, arrays in zip(groups, taken, strict=True):
            own = facts["certificate"] | {"parameters": group["parameters"]}
            whole = {"certificate": own, "schema": facts["schema"]} | group["facts"]
            releases.append(inner.from_parts(Parts(inner.name, whole, arrays)))
        return Groups(by, levels, certificate, tuple(releases))


def _own_facts(parts: Parts) -> dict[str, Any]:
    """Return what is a group's own, and how many rows of each array are."""
    own = {key: fact for key, fact in parts.facts.items() if key not in {"certificate", "schema"}}
    heights = {name: len(array) for name, array in parts.arrays.items()}
    parameters = parts.facts["certificate"]["parameters"]
    return dict(zip(_OWN, (parameters, own, heights), strict=True))


def _read_own(content: Any) -> dict[str, dict[str, Any]]:
    """Return what is a group's own, if it is that."""
    if not isinstance(content, dict) or list(content) != _OWN:
        raise wrong_type("groups", _WHERE, "made of " + ", ".join(_OWN), type(content))
    if not all(isinstance(part, dict) for part in content.values()):
        raise wrong_type("groups", _WHERE, "made of mappings", type(content))
    if set(content["facts"]) & {"certificate", "schema"}:
        raise rejection("groups", _WHERE, "without a certificate of their own", "one")
    for height in content["arrays"].values():
        integer(height, "arrays", _WHERE, low=1)
    return content


def _deal(
    arrays: Mapping[str, Floats], heights: Sequence[Mapping[str, int]]
) -> list[dict[str, Floats]]:
    """Return each group's arrays, of those that stand one below the other."""
    found: list[dict[str, Floats]] = [{} for _ in heights]
    for name, whole in arrays.items():
        holders = [index for index, own in enumerate(heights) if name in own]
        ends = np.cumsum([0, *(heights[index][name] for index in holders)]).tolist()
        if ends[-1] != len(whole):
            raise rejection("arrays", _WHERE, "as high as its groups say", len(whole))
        for index, (start, stop) in zip(holders, pairwise(ends), strict=True):
            found[index][name] = whole[start:stop]
    if any(set(own) != set(named) for own, named in zip(found, heights, strict=True)):
        raise rejection("arrays", _WHERE, "those that its groups name", ", ".join(arrays))
    # In the order that each group names them, which its own kind checks.
    return [{name: own[name] for name in named} for own, named in zip(found, heights, strict=True)]


def _list(value: Any, parameter: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise wrong_type(parameter, _WHERE, "a list of at least one entry", type(value))
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise wrong_type("by", _WHERE, "names of columns", type(value))
    return value


def _level(value: Any, columns: int) -> Level:
    """Return the level that a file names: of several columns a list of theirs."""
    parts = [value] if columns == 1 else _list(value, "levels")
    if len(parts) != columns or not all(_is_level(part) for part in parts):
        raise rejection("levels", _WHERE, f"texts or numbers, {columns} for each group", value)
    return parts[0] if columns == 1 else tuple(parts)


def _is_level(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and value.isprintable())


files.register(GroupsKind())
