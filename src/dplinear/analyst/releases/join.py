"""Joining releases: moments of several tables, such as sites or months, added up into one.

This is post-processing: matrices and counts add up, and so do the variances of their noise. What
the sum guarantees follows from the certificates (`joined_certificate.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from dplinear.analyst.design_effect import SQUARES, add_side_sums
from dplinear.analyst.noise_models.matrices import NoiseModel, SymmetricGaussian
from dplinear.analyst.noise_models.sums import add_noise
from dplinear.analyst.releases.certificate import Certificate, Scalar
from dplinear.analyst.releases.groups import LISTED, Groups
from dplinear.analyst.releases.joined_certificate import join_certificates, parts_of
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arguments import flag, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.schema import Schema

_WHERE = "join"
_MOMENTS = (
    "join adds second moments, which sums are made of; release_moments of each table, then join "
    "them and regress on the sum."
)
_LEAST = 2


@overload
def join(releases: Sequence[MomentsRelease], *, disjoint: bool) -> MomentsRelease: ...
@overload
def join(
    releases: Sequence[Groups[MomentsRelease]], *, disjoint: bool
) -> Groups[MomentsRelease]: ...


def join(
    releases: Sequence[MomentsRelease] | Sequence[Groups[MomentsRelease]], *, disjoint: bool
) -> MomentsRelease | Groups[MomentsRelease]:
    """Add up the moments of several tables with one schema, such as those of sites or months.

    Requires: two or more releases of moments, each of another request, of one schema, neighbour
    relation and unit of privacy. `disjoint` states, as a public fact, whether no row (with a unit:
    no unit, such as no patient) is in more than one of the tables.
    Promises: the moments of all tables together, and the certificate that follows. Of disjoint
    tables the worst of their guarantees holds; otherwise they compose. With units, those of
    disjoint tables count as at most the largest `rows_per_unit`, and otherwise as at most the sum
    of them; the sums are scaled to that, so standard errors stay upper bounds. What was released
    beside the moments is added up, but for squared weights of tables that are not disjoint. Groups
    with the same levels are joined level by level, and are groups again.
    """
    flag(disjoint, "disjoint", _WHERE)
    if isinstance(releases, list | tuple) and any(isinstance(each, Groups) for each in releases):
        return _join_groups(_read_groups(releases), disjoint=disjoint)
    return _join_moments(_read(releases), disjoint=disjoint)


def _join_groups(
    listed: Sequence[Groups[MomentsRelease]], *, disjoint: bool
) -> Groups[MomentsRelease]:
    """Return groups whose releases are joined level by level: one certificate is that of all."""
    first = listed[0]
    for other in listed[1:]:
        same = (other.by, other.levels) == (first.by, first.levels)
        total, totals = (each.certificate.parameters.get(LISTED) for each in (first, other))
        if not same or total != totals:
            rule = "groups by the same columns, of the same levels, listed alike"
            raise rejection("releases", _WHERE, rule, f"{len(other)} groups by {other.by}")
    joined = [
        _join_moments(_read([each[level] for each in listed]), disjoint=disjoint)
        for level in first.levels
    ]
    whole = joined[0].certificate
    named = {name: value for name, value in whole.parameters.items() if name != "group"}
    return Groups(first.by, first.levels, replace(whole, parameters=named), tuple(joined))


def _join_moments(listed: Sequence[MomentsRelease], *, disjoint: bool) -> MomentsRelease:
    certificates = [release.certificate for release in listed]
    _check_schemas([release.schema for release in listed])
    _check_certificates(certificates)
    counted = [each.rows_per_unit or 1 for each in certificates]
    largest = max(counted) if disjoint else sum(counted)
    has_unit = certificates[0].unit is not None
    scales = [each / largest if has_unit else 1.0 for each in counted]
    models = [release.noise_model for release in listed]
    noise_model = add_noise(models, scales, "releases", _WHERE)
    side_sums = add_side_sums([each.parameters for each in certificates], scales)
    if not disjoint:  # whose rows may be in several tables: squares would count them as several
        side_sums = {name: sums for name, sums in side_sums.items() if SQUARES not in name}
    certificate = join_certificates(
        certificates,
        listed[0].dimension,
        disjoint=disjoint,
        rows_per_unit=largest if has_unit else None,
        parameters=_noise_parameters(noise_model) | side_sums,
    )
    rows = [release.rows for release in listed]
    return MomentsRelease(
        listed[0].schema,
        _add([release.values for release in listed], scales),
        noise_model,
        certificate,
        None if None in rows else sum(each for each in rows if each is not None),
    )


def _read(releases: Any) -> list[MomentsRelease]:
    rule = "a list of two or more releases of moments"
    if not isinstance(releases, list | tuple):
        raise wrong_type("releases", _WHERE, rule, type(releases))
    for release in releases:
        if not isinstance(release, MomentsRelease):
            kind = getattr(release, "kind", type(release).__name__)
            raise wrong_type("releases", _WHERE, rule, f"one of {kind}", _MOMENTS)
    if len(releases) < _LEAST:
        raise rejection("releases", _WHERE, rule, f"{len(releases)} of them")
    return list(releases)


def _read_groups(releases: Sequence[Any]) -> list[Groups[MomentsRelease]]:
    rule = "groups of moments, if one of them is"
    for release in releases:
        if not isinstance(release, Groups) or release.of != MomentsRelease.kind:
            kind = getattr(release, "of", getattr(release, "kind", type(release).__name__))
            raise wrong_type("releases", _WHERE, rule, f"one of {kind}", _MOMENTS)
    return list(releases)


def _check_schemas(schemas: Sequence[Schema]) -> None:
    first = schemas[0]
    for other in schemas[1:]:
        if other != first:
            hint = "columns, their order, bounds and levels must be those of the first release."
            rule = "of one schema"
            raise rejection("releases", _WHERE, rule, _difference(first, other), hint)


def _difference(one: Schema, other: Schema) -> str:
    """Return in a few words in what two schemas differ."""
    first, second = one.declared, other.declared
    apart = [
        repr(name)
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]
    if apart:
        return f"other declarations of {', '.join(apart[:5])}"
    written = one.to_dict(), other.to_dict()
    keys = [key for key in written[0] | written[1] if written[0].get(key) != written[1].get(key)]
    return f"another {keys[0]}" if keys else "another order of columns"


def _check_certificates(certificates: Sequence[Certificate]) -> None:
    if any(each.holds is None for each in certificates):
        raise rejection("releases", _WHERE, "ones with a proved guarantee", "one without")
    relations = {str(each.neighbours) for each in certificates}
    if len(relations) > 1:
        rule = "of one neighbour relation"
        raise rejection("releases", _WHERE, rule, " and ".join(sorted(relations)))
    units = {each.unit for each in certificates}
    if len(units) > 1:
        hint = "a guarantee for rows says nothing of people who have several of them."
        shown = " and ".join(sorted("single rows" if unit is None else unit for unit in units))
        raise rejection("releases", _WHERE, "of one unit of privacy", shown, hint)
    requests = [(part.request, part.dataset) for each in certificates for part in parts_of(each)]
    if len(set(requests)) < len(requests):
        hint = (
            "a table that is added twice counts twice; groups of one release have pooled(); tables "
            "that have one name for their requests need datasets of different names."
        )
        raise rejection("releases", _WHERE, "of different requests", "one of them twice", hint)


def _add(matrices: Sequence[Floats], scales: Sequence[float]) -> Floats:
    """Return the sum, the same to the bit in any order."""
    scaled = [matrix * scale for matrix, scale in zip(matrices, scales, strict=True)]
    return np.asarray(np.sort(scaled, axis=0).sum(axis=0))


def _noise_parameters(model: NoiseModel) -> dict[str, Scalar]:
    if isinstance(model, SymmetricGaussian):
        return {
            "sigma": math.sqrt(model.diagonal),
            "off_diagonal_sigma": math.sqrt(model.off_diagonal),
        }
    return {name: value for name, value in vars(model).items() if isinstance(value, float | int)}
