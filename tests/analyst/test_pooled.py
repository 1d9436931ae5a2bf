"""Groups together again: sums, fixed effects and differences, with the noise of each group once."""

import itertools
import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import dplinear as dpl
from dplinear.analyst.noise_models.contract import NoiseModel
from dplinear.analyst.noise_models.grouped import GroupedGaussian
from dplinear.analyst.noise_models.matrices import SymmetricGaussian
from dplinear.analyst.releases.groups import Groups
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arguments import ArgumentTypeError
from dplinear.arrays import Floats
from dplinear.noise import simulation
from refusals import refused

from .tables import least_squares

LEVELS = ("north", "south", "east")
COLUMNS: dict[str, Any] = {"x": (-1, 1), "y": (-3, 3)}
SITES = {"type": "category", "levels": list(LEVELS), "other": "north"}
SCHEMA = dpl.Schema({**COLUMNS, "site": SITES})
PLAIN = dpl.Schema(COLUMNS)
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
SILENT = SymmetricGaussian(1e-18, 1e-18)
FALSE_ALARM = 1e-6


def table(seed: int = 0, rows: int = 600) -> pa.Table:
    draw = simulation.generator(seed)
    site = draw.integers(0, 3, rows)
    x = draw.uniform(-1, 1, rows) * 0.7 + 0.15 * site
    y = 0.5 * site + (0.4 + 0.2 * site) * x + draw.normal(0, 0.3, rows)
    ids = [f"p{i}" for i in draw.integers(0, rows // 3, rows)]
    return pa.table({"x": x, "y": y, "site": [LEVELS[i] for i in site], "id": ids})


def arrays(data: pa.Table) -> tuple[Floats, Floats, list[str]]:
    return np.array(data["x"]), np.array(data["y"]), data["site"].to_pylist()


@cache
def released(seed: int = 0, epsilon: float = 1e9) -> Groups[MomentsRelease]:
    return dpl.release_moments(table(seed), SCHEMA, by="site", epsilon=epsilon, delta=1e-6)


def noisy(
    grams: list[Floats], law: SymmetricGaussian, draw: simulation.Generator, **certified: Any
) -> Groups[MomentsRelease]:
    """Return groups as a gate would release them, from their exact moments."""
    held = replace(released().certificate, **certified)
    releases = []
    for level, gram in zip(LEVELS, grams, strict=False):
        own = replace(held, parameters={**held.parameters, "group": level})
        releases.append(MomentsRelease(PLAIN, law.draw(gram, draw), law, own))
    return Groups(("site",), LEVELS[: len(grams)], held, tuple(releases))


def gram(x: Floats, y: Floats) -> Floats:
    cells = np.column_stack([np.ones(len(x)), x, y / 3])
    return np.asarray(cells.T @ cells)


def assert_covers(hits: list[bool], level: float = 0.95) -> None:
    law = binom(len(hits), level)
    assert law.ppf(FALSE_ALARM / 2) <= sum(hits) <= law.isf(FALSE_ALARM / 2)


# Sums.


def test_pooled_moments_are_those_of_the_whole_table() -> None:
    whole = dpl.release_moments(table().drop(["site"]), PLAIN, epsilon=1e9, delta=1e-6)
    groups = released()
    pooled = groups.pooled()
    assert pooled.values == pytest.approx(whole.values, abs=1e-3)
    model: Any = groups["north"].noise_model
    assert pooled.noise_model == SymmetricGaussian(3 * model.diagonal, 3 * model.off_diagonal)
    said = pooled.certificate.parameters  # with counts of filled cells, added up
    assert replace(pooled.certificate, parameters={}) == replace(groups.certificate, parameters={})
    told: list[Any] = [release.certificate.parameters for release in groups.values()]
    for name in ("filled_in:x", "filled_in:y"):
        assert said[name] == pytest.approx(math.fsum(each[name] for each in told))
    two = groups.pooled(["north", "east"])
    assert np.array_equal(two.values, groups["north"].values + groups["east"].values)
    assert two.noise_model == SymmetricGaussian(2 * model.diagonal, 2 * model.off_diagonal)


def test_fixed_effects_are_those_of_a_regression_with_indicators() -> None:
    x, y, site = arrays(table())
    dummies = [[own == level for own in site] for level in LEVELS[1:]]
    expected = least_squares(np.column_stack([x, *np.array(dummies, float)]), y)
    pooled = released().pooled(fixed_effects=True)
    fit = pooled.regress("y", ["x", "site"])
    assert fit.names == ("x", "site=south", "site=east")
    found = [fit["intercept"], *fit.coefficients.values]
    assert found == pytest.approx(expected, abs=1e-4)
    errors = fit.intervals().standard_errors
    design = np.column_stack([np.ones(len(x)), x, *np.array(dummies, float)])
    left = y - design @ expected
    exact = left @ left / (len(x) - 4) * np.linalg.inv(design.T @ design)
    assert errors == pytest.approx(np.sqrt(np.diag(exact)), rel=1e-4)
    rows = {"x": [0.5, 0.5], "site": ["south", "north"]}
    gap = float(np.subtract(*fit.predict(rows)))
    assert gap == pytest.approx(fit["site=south"])
    slope = released().pooled().regress("y", ["x"])["x"]
    assert slope == pytest.approx(least_squares(x[:, None], y)[1], abs=1e-4)


def test_two_columns_have_effects_each() -> None:
    data = table(3)
    late = simulation.generator(4).integers(0, 2, 600).astype(bool)
    data = data.append_column("late", pa.array(late))
    schema = dpl.Schema({**COLUMNS, "site": SITES, "late": "boolean"})
    groups = dpl.release_moments(data, schema, by=["site", "late"], epsilon=1e9, delta=1e-6)
    fit = groups.pooled(fixed_effects=True).regress("y", ["x", "site", "late"])
    x, y, site = arrays(data)
    dummies = [[own == level for own in site] for level in LEVELS[1:]]
    expected = least_squares(np.column_stack([x, *np.array([*dummies, late], float)]), y)
    assert fit.coefficients.values == pytest.approx(expected[1:], abs=1e-4)
    assert fit.names[-1] == "late=true"


def test_wishart_noise_is_pooled_and_has_no_fixed_effects() -> None:
    groups = dpl.release_moments(
        table(), SCHEMA, by="site", mechanism="additive_wishart", epsilon=1.0, delta=1e-6
    )
    own: Any = groups["north"].noise_model
    pooled: Any = groups.pooled().noise_model
    assert (pooled.degrees, pooled.scale) == (3 * own.degrees, own.scale)
    with refused("groups", "pooled", "Gaussian noise"):
        groups.pooled(fixed_effects=True)
    sketches = dpl.release_moments(
        table(), SCHEMA, by="site", mechanism="sketch", epsilon=1.0, delta=1e-6
    )
    with refused("groups", "pooled", "of Gaussian noise"):
        sketches.pooled()


# The noise of what is assembled.


def covariance(model: GroupedGaussian, groups: int, width: int) -> Floats:
    """Return that of the entries, from the linear map of all groups' independent noise."""
    d = len(model.sources)
    total = np.zeros((d, d, d, d))
    for group, (i, j) in itertools.product(
        range(groups), itertools.combinations_with_replacement(range(width), 2)
    ):
        unit = np.zeros((width, width))
        unit[i, j] = unit[j, i] = 1.0
        moved = np.array(
            [
                [
                    unit[model.sources[a], model.sources[b]]
                    * (group in model.members[a])
                    * (group in model.members[b])
                    for b in range(d)
                ]
                for a in range(d)
            ]
        )
        variance = model.diagonal if i == j else model.off_diagonal
        total += variance * np.einsum("ij,kl->ijkl", moved, moved)
    return total


def test_each_groups_noise_counts_once() -> None:
    everywhere = (0, 1, 2)
    model = GroupedGaussian(2.0, 0.7, (0, 1, 2, 0, 0), (everywhere,) * 3 + ((1,), (0, 2)))
    exact = covariance(model, 3, 3)
    draw = simulation.generator(8)
    square = draw.standard_normal((4, 5, 5))
    middle = square + np.swapaxes(square, -1, -2)
    nothing = np.zeros((5, 5))
    variance = np.einsum("nij,ijkl,nkl->n", middle, exact, middle)
    assert model.variance(middle, nothing) == pytest.approx(variance)
    expected = np.einsum("ijkl,njk->nil", exact, middle)
    assert model.sandwich(middle, nothing) == pytest.approx(expected)
    part = model.part(5, [1, 3, 4])
    corner = np.ix_([1, 3, 4], [1, 3, 4])
    bigger = np.zeros((5, 5))
    bigger[corner] = middle[0][:3, :3]
    inner = middle[0][:3, :3]
    assert part.variance(inner, inner) == pytest.approx(model.variance(bigger, nothing))
    drawn = model.draw(np.zeros((4_000, 5, 5)), draw)
    assert np.array_equal(drawn, np.swapaxes(drawn, -1, -2))
    spread = np.einsum("nij,ij->n", drawn, middle[0])
    # A chi-square with 4,000 degrees strays by 4.9·√(2/4,000) once in a million.
    assert np.mean(spread**2) == pytest.approx(variance[0], rel=4.9 * math.sqrt(2 / 4_000))
    largest = np.mean([np.abs(np.linalg.eigvalsh(each)).max() for each in drawn[:200]])
    assert 0.5 * model.spread(nothing) < largest < model.spread(nothing)


def test_the_model_is_the_usual_one_where_there_are_no_indicators() -> None:
    model, usual = GroupedGaussian(2.0, 0.7, (0, 1), ((0, 1),) * 2), SymmetricGaussian(4.0, 1.4)
    middle = np.array([[1.0, 2.0], [2.0, -1.0]])
    assert model.variance(middle, middle) == pytest.approx(usual.variance(middle, middle))
    assert model.sandwich(middle, middle) == pytest.approx(usual.sandwich(middle, middle))


def test_assembled_moments_are_saved(tmp_path: Path) -> None:
    pooled = released(0, 1.0).pooled(fixed_effects=True)
    pooled.save(tmp_path / "pooled.json")
    again = dpl.load(tmp_path / "pooled.json", kind="moments")
    assert again.noise_model == pooled.noise_model
    assert np.array_equal(again.values, pooled.values)
    written = json.loads(json.dumps(pooled.noise_model.to_dict()))
    assert NoiseModel.from_dict(written) == pooled.noise_model
    for wrong in ({"members": [[0]]}, {"sources": 3}, {"sources": [-1]}, {"members": [[0, 0]] * 6}):
        with pytest.raises((ValueError, TypeError)):
            NoiseModel.from_dict(written | wrong)


# Coverage.


def fixed_effects_hold(seed: int) -> bool:
    draw = simulation.generator(seed)
    grams = []
    for group in range(3):
        x = draw.uniform(-1, 1, 900) * 0.8 + 0.1 * group
        grams.append(gram(x, group + 0.5 * x + draw.normal(0, 0.4, 900)))
    pooled = noisy(grams, SymmetricGaussian(120.0, 60.0), draw).pooled(fixed_effects=True)
    found = pooled.regress("y").intervals()
    assert found.swamped is None
    at = found.names.index("x")
    return bool(found.low[at] <= 0.5 <= found.high[at])


def differences_hold(seed: int) -> bool:
    draw = simulation.generator(seed)
    grams = []
    for slope, rows, error in ((0.5, 900, 0.3), (-0.2, 1_800, 0.8)):
        x = draw.uniform(-1, 1, rows)
        grams.append(gram(x, slope * x + draw.normal(0, error, rows)))
    groups = noisy(grams, SymmetricGaussian(120.0, 60.0), draw)
    found = groups.differences("y", ["x"])["south"].intervals()
    at = found.names.index("x")
    return bool(found.low[at] <= -0.7 <= found.high[at])


def shared_units_hold(seed: int) -> bool:
    """Everybody is in both groups, with errors of opposite signs: nothing is worse."""
    draw = simulation.generator(seed)
    x, error = draw.uniform(-1, 1, 900), draw.normal(0, 0.8, 900)
    # Two rows each, at two rows to the unit: every row has the weight 1/2.
    grams = [gram(x, 0.5 * x + error) / 2, gram(x, 0.5 * x - error) / 2]
    groups = noisy(grams, SymmetricGaussian(4.0, 2.0), draw, unit="id", rows_per_unit=2)
    found = groups.differences("y", ["x"])["south"].intervals()
    at = found.names.index("x")
    return bool(found.low[at] <= 0.0 <= found.high[at])


SIMULATIONS = [fixed_effects_hold, differences_hold, shared_units_hold]


@pytest.mark.parametrize("simulate", SIMULATIONS)
def test_intervals_cover(simulate: Any) -> None:
    assert_covers([simulate(seed) for seed in range(200)])


@pytest.mark.long
@pytest.mark.parametrize("simulate", SIMULATIONS)
def test_intervals_cover_to_a_percent(simulate: Any) -> None:
    hits = [simulate(10_000 + seed) for seed in range(4_000)]
    assert 0.93 <= np.mean(hits) <= 0.97
    assert_covers(hits)


# Differences.


def test_differences_are_those_of_the_coefficients() -> None:
    groups = released()
    fits = {level: groups[level].regress("y", ["x"]) for level in LEVELS}
    found = groups.differences("y", ["x"], base="south")
    assert list(found) == ["north", "east"]
    for level, each in found.items():
        assert each["x"] == fits[level]["x"] - fits["south"]["x"]
        one, other = fits[level].intervals(), fits["south"].intervals()
        errors = np.hypot(one.standard_errors, other.standard_errors)
        assert each.intervals().standard_errors == pytest.approx(errors)
        by_hand = fits[level].difference(fits["south"])
        assert str(by_hand) == str(each)
        assert f"Difference ({level} − south)" in str(each)
        assert level in each._repr_html_()
    assert "upper bounds" not in repr(found)


def test_errors_of_fits_that_may_share_people_add_up() -> None:
    one, two = (
        dpl.release_moments(table(i), PLAIN, **BUDGET, dataset=f"month {i}").regress("y", ["x"])
        for i in (1, 2)
    )
    first, second = one.intervals(), two.intervals()
    apart = one.difference(two, disjoint=True).intervals()
    assert apart.standard_errors**2 == pytest.approx(
        first.standard_errors**2 + second.standard_errors**2
    )
    assert apart.low + apart.high == pytest.approx(
        first.low + first.high - second.low - second.high
    )
    shared = one.difference(two)
    found = shared.intervals()
    assert found.sampling == pytest.approx((first.sampling**0.5 + second.sampling**0.5) ** 2)
    assert found.privacy == pytest.approx(first.privacy + second.privacy)
    assert "upper bounds" in str(shared)
    assert "(month 1 − month 2)" in str(shared)
    same = one.difference(one).intervals()  # of one release: its noise is behind both
    assert same.standard_errors == pytest.approx(2 * first.standard_errors)
    assert (same.estimates == 0).all()


def test_differences_of_models() -> None:
    models = [dpl.release_model(table(i), PLAIN, "y", epsilon=100.0, delta=1e-6) for i in range(2)]
    found = models[0].difference(models[1], disjoint=True)
    assert found["x"] == pytest.approx(models[0]["x"] - models[1]["x"])
    errors = [model.intervals().standard_errors for model in models]
    assert found.intervals().standard_errors == pytest.approx(np.hypot(*errors))


@pytest.mark.parametrize("clustered", [False, True])
def test_errors_that_are_no_bounds_add_up_for_groups_with_units(clustered: bool) -> None:
    """Clustered ones are none, so that people in both groups may make the difference worse."""
    schema = SCHEMA.with_unit("id")
    asked: dict[str, Any] = {"rows_per_unit": 3, "epsilon": 50.0, "delta": 1e-6}
    models = dpl.release_model(table(0, 3_000), schema, "y", ["x"], by="site", **asked)
    one, two = models["south"], models["north"]
    if clustered:  # as the gate would say, if it released them for groups
        one, two = (
            replace(each, certificate=replace(each.certificate, parameters=said))
            for each in (one, two)
            for said in [{**each.certificate.parameters, "clustered_errors": 1.0}]
        )
    found = one.difference(two).intervals()
    first, second = one.intervals(), two.intervals()
    assert first.swamped is None
    together = (first.sampling**0.5 + second.sampling**0.5) ** 2
    expected = together if clustered else first.sampling + second.sampling
    assert found.sampling == pytest.approx(expected)
    assert found.privacy == pytest.approx(first.privacy + second.privacy)


def test_a_level_that_looks_like_html_is_shown_as_text() -> None:
    """A file may come from a stranger, and a notebook runs what it shows."""
    word = "<script>alert(1)</script>"
    renamed = replace(released(), levels=(word, *LEVELS[1:]))
    shown = renamed.differences("y")._repr_html_()
    assert word not in shown
    assert "&lt;script&gt;" in shown


def test_a_group_lost_in_noise_has_no_difference() -> None:
    draw = simulation.generator(1)
    x = draw.uniform(-1, 1, 900)
    groups = noisy([gram(x, x), np.zeros((3, 3))], SymmetricGaussian(100.0, 50.0), draw)
    found = groups.differences("y", ["x"])["south"]
    assert found.intervals().swamped is not None
    assert "Of south: " in str(found)


# Groups of several tables.


@pytest.mark.parametrize("disjoint", [True, False])
def test_groups_are_joined_level_by_level(disjoint: bool) -> None:
    months = [released(i, 1.0) for i in (1, 2)]
    joined = dpl.join(months, disjoint=disjoint)
    assert joined.levels == months[0].levels
    for level in joined:
        own = dpl.join([month[level] for month in months], disjoint=disjoint)
        assert np.array_equal(joined[level].values, own.values)
        assert joined[level].certificate == own.certificate
        assert own.certificate.parameters["group"] == level
    assert joined.certificate.holds == joined["north"].certificate.holds
    assert "group" not in joined.certificate.parameters
    together = dpl.join([month.pooled() for month in months], disjoint=disjoint)
    assert joined.pooled().values == pytest.approx(together.values)
    assert together.certificate.holds == joined.certificate.holds
    assert joined.differences("y", ["x"])["east"].disjoint


# Refusals.


def test_what_cannot_be_put_together_is_refused_in_words() -> None:
    groups = released()
    fit = groups["north"].regress("y", ["x"])
    with refused("levels", "pooled", "levels of the groups"):
        groups.pooled(["west"])
    with refused("levels", "pooled", "none twice"):
        groups.pooled(["north", "north"])
    with refused("base", "differences"):
        groups.differences("y", base="west")
    with refused("target", "differences", "the name of a feature", kind=ArgumentTypeError):
        groups.differences()
    with refused("fixed_effects", "pooled", "a single level"):
        groups.pooled(["north"], fixed_effects=True)
    with refused("disjoint", "difference", "False for these fits"):
        fit.difference(groups.pooled().regress("y", ["x"]), disjoint=True)
    with refused("other", "difference", "of the same names"):
        fit.difference(released().pooled(fixed_effects=True).regress("y"))
    with refused("other", "difference", "of the same target"):
        fit.difference(groups["south"].regress("x", ["y"]))
    with refused("other", "difference", "a Fit", kind=ArgumentTypeError):
        fit.difference(3)  # type: ignore[arg-type]
    with refused("releases", "join", "of different requests"):
        dpl.join([groups["north"], groups["south"]], disjoint=True)
    with refused("releases", "join", "of the same levels"):
        few = Groups(groups.by, LEVELS[:2], groups.certificate, groups.releases[:2])
        dpl.join([groups, few], disjoint=True)
    with refused("releases", "join", "groups of moments", kind=ArgumentTypeError):
        dpl.join([groups, groups["north"]], disjoint=True)  # type: ignore[list-item]
    through = dpl.Schema({**COLUMNS, "site": SITES}, intercept=False)
    bare = dpl.release_moments(table(), through, by="site", **BUDGET)
    with refused("fixed_effects", "pooled", "False without an intercept"):
        bare.pooled(fixed_effects=True)
