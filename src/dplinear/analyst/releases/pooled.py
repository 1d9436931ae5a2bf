"""Groups put together again: their moments added up, with or without a level for each group.

The noise of the groups is independent, and each counts once. The certificate is that of the groups:
whatever is computed from them is post-processing of one release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.analyst.design_effect import POOLED, add_side_sums
from dplinear.analyst.noise_models.grouped import GroupedGaussian
from dplinear.analyst.noise_models.matrices import SymmetricGaussian
from dplinear.analyst.noise_models.sums import add_noise
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arguments import flag, rejection, wrong_type
from dplinear.schema import Schema
from dplinear.schema.factors import Level
from dplinear.schema.terms import OwnTerm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dplinear.analyst.releases.certificate import Certificate
    from dplinear.analyst.releases.groups import Groups
    from dplinear.arrays import Floats

_WHERE = "pooled"
_OTHER = "other"


@dataclass(frozen=True, eq=False)
class Blocks:
    """Moments of groups: `levels` has, for each, the level of every column of `by`."""

    by: tuple[str, ...]
    levels: tuple[tuple[object, ...], ...]
    releases: tuple[MomentsRelease, ...]
    certificate: Certificate

    @property
    def noise(self) -> SymmetricGaussian:
        """The noise model that all groups have."""
        models = {release.noise_model for release in self.releases}
        model = models.pop()
        if models or not isinstance(model, SymmetricGaussian):
            rule = "of Gaussian noise, the same for each, for fixed effects"
            hint = "release the groups with mechanism='analyze_gauss'."
            raise rejection("groups", _WHERE, rule, model.kind, hint)
        return model


def read_blocks(groups: Groups[Any], levels: object, where: str) -> Blocks:
    """Return the groups of the levels that are asked for, or all, if they are moments."""
    chosen = list(groups) if levels is None else levels
    if not isinstance(chosen, list | tuple) or not chosen:
        raise wrong_type("levels", where, "a list of levels", type(levels))
    strange = [level for level in chosen if level not in groups]
    if strange or len(set(chosen)) < len(chosen):
        known = ", ".join(map(repr, list(groups)[:8]))
        raise rejection("levels", where, "levels of the groups, none twice", strange, known)
    releases = [groups[level] for level in chosen]
    for release in releases:
        if not isinstance(release, MomentsRelease):
            hint = "release_moments(…, by=…) has groups that can be added up and compared."
            got = getattr(release, "kind", type(release).__name__)
            raise wrong_type("groups", where, "moments", f"one of {got}", hint)
    tuples = tuple(level if isinstance(level, tuple) else (level,) for level in chosen)
    moments = tuple(each for each in releases if isinstance(each, MomentsRelease))
    return Blocks(groups.by, tuples, moments, groups.certificate)


def pool(blocks: Blocks, *, fixed_effects: bool) -> MomentsRelease:
    """Return the moments of all groups together (`Groups.pooled`)."""
    if flag(fixed_effects, "fixed_effects", _WHERE):
        return _with_levels(blocks)
    models = [release.noise_model for release in blocks.releases]
    noise = add_noise(models, [1.0] * len(models), "groups", _WHERE)
    total = np.sum([release.values for release in blocks.releases], axis=0)
    return MomentsRelease(blocks.releases[0].schema, total, noise, _with_side_sums(blocks))


def _with_levels(blocks: Blocks) -> MomentsRelease:
    """Return the moments with an indicator for each level, as of a table with those columns."""
    first, model = blocks.releases[0], blocks.noise
    if not first.schema.has_intercept:
        hint = (
            "the sums of a level's rows are those with its intercept; declare the schema with it."
        )
        raise rejection("fixed_effects", _WHERE, "False without an intercept", "True", hint)
    schema = schema_with_levels(first.schema, blocks.by, blocks.levels)
    sources, members = _assembly(schema, first.schema, blocks)
    noise = GroupedGaussian(model.diagonal, model.off_diagonal, sources, members)
    values = [release.values for release in blocks.releases]
    return MomentsRelease(schema, assemble(values, noise), noise, _with_side_sums(blocks))


def _with_side_sums(blocks: Blocks) -> Certificate:
    """Return the certificate, with the sums that were released beside each matrix added up."""
    told = [release.certificate.parameters for release in blocks.releases]
    added, whole = add_side_sums(told, [1.0] * len(told)), blocks.certificate
    if not added:
        return whole
    return replace(whole, parameters={**whole.parameters, POOLED: len(told), **added})


def assemble(matrices: Sequence[Floats], noise: GroupedGaussian) -> Floats:
    """Return Σ T M Tᵀ over groups, symmetric to the bit."""
    total = np.zeros((noise.dimension,) * 2)
    for group, matrix in enumerate(matrices):
        own = [index for index, groups in enumerate(noise.members) if group in groups]
        taken = [noise.sources[index] for index in own]
        total[np.ix_(own, own)] += matrix[np.ix_(taken, taken)]
    return total


def schema_with_levels(
    schema: Schema, by: tuple[str, ...], levels: Sequence[tuple[object, ...]]
) -> Schema:
    """Return the schema of the whole table: that of a group, with the columns `by` as categories.

    The first level of each is the one that the others are compared with. A column of which all
    groups have one level is left out beside others: it is the intercept.
    """
    content = schema.to_dict()
    found = {name: own_levels(levels, index) for index, name in enumerate(by)}
    if all(len(own) < 2 for own in found.values()):
        rule = "False for a single level"
        raise rejection("fixed_effects", _WHERE, rule, next(iter(found.values())))
    for name, own in found.items():
        if len(own) < 2:
            continue
        named = [_write_level(level) for level in own if level != _OTHER]
        column: dict[str, Any] = {"type": "category", "levels": named}
        content["columns"][name] = column | ({} if _OTHER in own else {"other": named[0]})
    return Schema.from_release(content)


def own_levels(levels: Sequence[tuple[object, ...]], index: int) -> list[object]:
    """Return the levels of one of the columns, those that cells name before the others."""
    found = dict.fromkeys(level[index] for level in levels)
    return sorted(found, key=lambda level: level == _OTHER)


def _level_of(factors: Sequence[object], levels: Sequence[object]) -> object:
    """Return the level that an indicator is of, by its place among those that cells name."""
    code = next(factor.code for factor in factors if isinstance(factor, Level))
    return levels[code] if code >= 0 else _OTHER


def _write_level(level: object) -> Any:
    return str(level).lower() if isinstance(level, bool) else level


def _assembly(
    whole: Schema, group: Schema, blocks: Blocks
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return where each feature of the whole comes from, and which groups it is in."""
    everywhere = tuple(range(len(blocks.levels)))
    sources, members = [], []
    for feature in whole.features:
        term = feature.term
        if isinstance(term, OwnTerm) and term.column in blocks.by:
            index = blocks.by.index(term.column)
            sources.append(0)
            level = _level_of(feature.factors, own_levels(blocks.levels, index))
            members.append(tuple(g for g in everywhere if blocks.levels[g][index] == level))
        else:
            sources.append(group.names.index(feature.name))
            members.append(everywhere)
    return tuple(sources), tuple(members)
