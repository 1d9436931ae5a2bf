"""Sums that are released beside second moments, as further coordinates of the same noise."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.exact.design import Design
from dplinear.exact.grid import plain_shape
from dplinear.exact.shape import Statistic
from dplinear.mechanisms import AnalyzeGauss
from dplinear.mechanisms.adassp import AdaSSP
from dplinear.mechanisms.moments.analyze_gauss import Difference
from dplinear.noise import simulation
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.neighbours import Neighbours

NAMES = ("rows_left_out", "squared_weights")
SHAPE = plain_shape(4)


def gauss(neighbours: str = "add_remove", epsilon: float = 1.0) -> AnalyzeGauss:
    return AnalyzeGauss(
        guarantee=ApproxDP(epsilon, 1e-6), neighbours=Neighbours.parse(neighbours, "test")
    )


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 50.0])
@pytest.mark.parametrize("count", [1, 2])
def test_the_noise_is_for_the_matrix_and_all_sums_together(
    neighbours: str, epsilon: float, count: int
) -> None:
    method = gauss(neighbours, epsilon)
    ready = method.prepare_with(SHAPE, NAMES[:count])
    alone = Difference.of(SHAPE, ready.step, method.neighbours, ready.weight)
    moved = Fraction(alone.norm) ** 2 + count * (ready.side_scale + 1) ** 2
    profile: Any = ready.account.profile
    assert Fraction(profile.mu) ** 2 >= moved / Fraction(ready.variance)
    assert profile.keeps(method.guarantee)
    plain = method.prepare(SHAPE)
    wider = ready.variance * 4.0**ready.step / (plain.variance * 4.0**plain.step)
    assert 1 <= wider < 1.006


def test_the_sums_have_the_noise_that_is_told() -> None:
    """Five deviations of the mean and of the variance: a false alarm in 400,000 runs of the two."""
    ready, entropy = gauss().prepare_with(SHAPE, NAMES), simulation.entropy(3)
    whole = np.zeros((4, 4), object)
    exact = Statistic(SHAPE, whole, side=(Fraction(10**6), Fraction(10**6, 3)))
    runs = [ready.run(exact, entropy).parameters for _ in range(400)]
    for name, value in zip(NAMES, exact.side, strict=True):
        errors = np.array([said[name] - float(value) for said in runs]) / runs[0][f"{name}_noise"]
        assert abs(errors.mean()) < 5 / math.sqrt(len(runs))
        assert abs(np.square(errors).mean() - 1) < 5 * math.sqrt(2 / len(runs))


def test_without_further_sums_nothing_changes() -> None:
    exact = Statistic(SHAPE, np.eye(4, dtype=int).astype(object) * SHAPE.unit)
    one, other = (
        ready.run(exact, simulation.entropy(5))
        for ready in (gauss().prepare(SHAPE), gauss().prepare_with(SHAPE, ()))
    )
    assert (one.values == other.values).all()
    assert dict(one.parameters) == dict(other.parameters)


@pytest.mark.parametrize("neighbours", list(map(Neighbours, ("add_remove", "replace"))))
def test_adassp_pays_for_the_number_of_rows_left_out(neighbours: Neighbours) -> None:
    square = SHAPE.steps_per_unit**2
    facts: dict[str, Any] = {"intercept": False, "indicators": (False,) * 3}
    designs = [
        Design(SHAPE, (0, 1, 2), 3, 3 * square, square, leaves_out=leaves, **facts)
        for leaves in (False, True)
    ]
    method = AdaSSP(guarantee=ApproxDP(1.0, 1e-6), neighbours=neighbours)
    without, ready = (method.prepare(design) for design in designs)
    apart, variances = ready.distance, ready.variances
    moved = without.distance.squared_distance(variances)
    assert apart.squared_distance(variances) == moved + Fraction(
        (apart.left_scale + 1) ** 2
    ) / Fraction(variances.cross)
    profile: Any = ready.account.profile
    assert Fraction(profile.mu) ** 2 >= apart.squared_distance(variances)
    assert 1 <= float(variances.cross / without.variances.cross) < 1.01


def unit_sums(random: Any, groups: int) -> list[Fraction]:
    """Return what a row or a unit adds to one sum in each group: at most 1 in all of them."""
    parts = [Fraction(int(part), 997) for part in random.integers(0, 997, groups)]
    kept = [part if random.uniform() < 0.5 else Fraction(0) for part in parts]
    whole = max(sum(kept), Fraction(1))
    chosen = int(random.integers(groups))
    alone = [Fraction(int(index == chosen)) for index in range(groups)]
    return alone if random.uniform() < 0.3 else [part / whole for part in kept]


def apart(scale: int, before: list[Fraction], one: list[Fraction], other: list[Fraction]) -> int:
    """Return the squared distance of rounded sums, in units of 1/scale, by the definition."""
    total = 0
    for rest, more, less in zip(before, one, other, strict=True):
        first, second = ((rest + each) * scale + Fraction(1, 2) for each in (more, less))
        total += (
            first.numerator // first.denominator - second.numerator // second.denominator
        ) ** 2
    return total


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("groups", [2, 5])
@pytest.mark.parametrize("scale", [1, 2, 7, 1000])
def test_sums_of_groups_are_no_farther_apart_than_their_noise_is_for(
    neighbours: str, groups: int, scale: int
) -> None:
    """Units in several groups, and sums that stand at the edges of rounding."""
    random, relation = simulation.generator(scale), Neighbours(neighbours)
    found = Difference.of(SHAPE, 0, relation, 2, groups)
    alone = replace(found, norm=(scale + 0.1) * 16 * math.sqrt(found.ends))
    joint = alone.with_side(1)
    assert joint.side_scale == scale
    allowed = Fraction(joint.norm) ** 2 - Fraction(alone.norm) ** 2
    tiny, most = Fraction(1, 10**6), 0
    for _ in range(300):
        one, other = unit_sums(random, groups), [Fraction(0)] * groups
        if relation is Neighbours.REPLACE:
            other = unit_sums(random, groups)
        # Just below an edge, or at it, whichever moves a group more.
        edges = [
            Fraction(1, 2 * scale) - (tiny if a > b else 0) - (min(a, b) if scale == 1 else 0)
            for a, b in zip(one, other, strict=True)
        ]
        for before in (edges, [Fraction(0)] * groups):
            found_now = apart(scale, before, one, other)
            assert found_now <= allowed
            most = max(most, found_now)
    # Nothing that is paid for is out of reach, but for roundings that never come together.
    assert most >= found.ends * scale**2


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("moved", [1, 2, 1000])
@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 50.0])
def test_groups_pay_for_the_sums_of_all_that_move(
    neighbours: str, moved: int, epsilon: float
) -> None:
    method = gauss(neighbours, epsilon)
    ready = method.prepare_groups(SHAPE, moved, NAMES)
    alone = Difference.of(SHAPE, ready.step, method.neighbours, ready.weight, moved)
    ends = 2 if neighbours == "replace" and moved > 1 else 1
    each = ends * (ready.side_scale + 1) ** 2 + moved - ends
    profile: Any = ready.account.profile
    assert Fraction(profile.mu) ** 2 * Fraction(ready.variance) >= (
        Fraction(alone.norm) ** 2 + len(NAMES) * each
    )
    entries = moved * (SHAPE.dimension**2 + len(NAMES))
    assert Fraction(profile.inverse_variance) >= Fraction(entries) / Fraction(ready.variance)
    assert profile.keeps(method.guarantee)
    plain = method.prepare_groups(SHAPE, moved)
    wider = ready.variance * 4.0**ready.step / (plain.variance * 4.0**plain.step)
    assert 1 <= wider < 1.006


def test_sums_of_groups_are_not_cut_off_at_0() -> None:
    """Of 200 sums of 0 about half come out below it: none does in 10^60 runs."""
    exact = Statistic(SHAPE, np.zeros((4, 4), object), side=(Fraction(0),))
    for ready, below in (
        (gauss().prepare_groups(SHAPE, 3, NAMES[:1]), True),
        (gauss().prepare_with(SHAPE, NAMES[:1]), False),
    ):
        entropy = simulation.entropy(4)
        found = [ready.run(exact, entropy).parameters[NAMES[0]] for _ in range(200)]
        assert (min(found) < 0) == below


CELLS = ("filled_in:a", "filled_in:b", "filled_in:c")
UNIT = SHAPE.unit


def joint(shape: Any, relief: list[int], neighbours: str, epsilon: float = 1.0) -> Any:
    names = tuple(f"filled_in:{index}" for index in range(len(relief)))
    return gauss(neighbours, epsilon).prepare_with(shape, names, relief)


def farthest(ready: Any, relief: list[int], *, twice: bool) -> Fraction:
    """The oracle: rows lack any columns J, and are as long as they then can be; all subsets.

    A replaced row has a matrix that is orthogonal to the other's, and lacks other columns.
    """
    coarse = 1 << ready.step

    def square(lacking: tuple[int, ...], told: tuple[int, ...]) -> Fraction:
        length = Fraction(SHAPE.sensitivity - sum(relief[j] for j in lacking), coarse)
        return length**2 + sum(int(ready.filled_scales[j]) ** 2 for j in told)

    columns = range(len(relief))
    subsets = [s for size in range(len(relief) + 1) for s in itertools.combinations(columns, size)]
    if not twice:
        return max(square(s, s) for s in subsets)
    pairs = itertools.product(subsets, subsets)
    return max(
        square(a, tuple(set(a) - set(b))) + square(b, tuple(set(b) - set(a))) for a, b in pairs
    )


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 50.0])
@pytest.mark.parametrize(
    "relief", [[UNIT] * 3, [UNIT, UNIT // 2, 0], [0, 0, 0], [UNIT // 9, UNIT, UNIT // 7]]
)
def test_no_row_with_gaps_moves_matrix_and_counts_too_far(
    neighbours: str, epsilon: float, relief: list[int]
) -> None:
    ready = joint(SHAPE, relief, neighbours, epsilon)
    profile: Any = ready.account.profile
    moved = farthest(ready, relief, twice=neighbours == "replace")
    assert Fraction(profile.mu) ** 2 >= moved / Fraction(ready.variance)
    assert profile.keeps(gauss(neighbours, epsilon).guarantee)


def test_counts_of_cells_that_shorten_rows_are_free() -> None:
    plain = gauss().prepare(SHAPE)
    for relief, least, most in (([UNIT] * 3, 1, 1 + 1e-9), ([0] * 3, 1.006, 1.009)):
        ready = joint(SHAPE, relief, "add_remove")
        wider = ready.variance * 4.0**ready.step / (plain.variance * 4.0**plain.step)
        assert least <= wider < most


def test_counts_that_are_free_are_as_exact_as_may_be() -> None:
    """One row without any cell of a schema's columns uses up all of the distance."""
    shape = plain_shape(4)  # an intercept, and three columns that are 0 where they are missing
    relief = [shape.unit] * 3
    ready = joint(shape, relief, "add_remove")
    whole = farthest(ready, relief, twice=False)
    every = Fraction(SHAPE.sensitivity - sum(relief), 1 << ready.step) ** 2 + sum(
        scale**2 for scale in ready.filled_scales
    )
    assert every > Fraction(999, 1000) * whole
    assert math.sqrt(ready.variance) / ready.filled_scales[0] < 2.5 / 0.2367  # rows, at ε = 1


def test_a_matrix_of_one_number_pays_for_its_counts() -> None:
    shape = plain_shape(1)
    ready = joint(shape, [shape.unit], "replace")
    alone = Difference.of(shape, ready.step, Neighbours.REPLACE, ready.weight)
    moved = Fraction(alone.norm) ** 2 + ready.filled_scales[0] ** 2
    assert Fraction(ready.account.profile.mu) ** 2 >= moved / Fraction(ready.variance)


def test_counts_of_cells_have_the_noise_that_is_told() -> None:
    """Five deviations of the mean and of the variance: a false alarm in 400,000 runs of the six."""
    ready = gauss().prepare_with(SHAPE, CELLS, [UNIT, UNIT // 2, 0])
    entropy, whole = simulation.entropy(4), np.zeros((4, 4), object)
    exact = Statistic(SHAPE, whole, side=(Fraction(10**6), Fraction(10**6, 3), Fraction(10**7)))
    runs = [ready.run(exact, entropy).parameters for _ in range(400)]
    for name, value in zip(CELLS, exact.side, strict=True):
        errors = np.array([said[name] - float(value) for said in runs]) / runs[0][f"{name}_noise"]
        assert abs(errors.mean()) < 5 / math.sqrt(len(runs))
        assert abs(np.square(errors).mean() - 1) < 5 * math.sqrt(2 / len(runs))


@pytest.mark.parametrize("neighbours", list(map(Neighbours, ("add_remove", "replace"))))
def test_adassp_pays_for_counts_of_cells(neighbours: Neighbours) -> None:
    square = SHAPE.steps_per_unit**2
    facts: dict[str, Any] = {"intercept": False, "indicators": (False,) * 3}
    designs = [
        Design(SHAPE, (0, 1, 2), 3, 3 * square, square, filled=filled, **facts)
        for filled in ((), CELLS)
    ]
    method = AdaSSP(guarantee=ApproxDP(1.0, 1e-6), neighbours=neighbours)
    without, ready = (method.prepare(design) for design in designs)
    apart, variances = ready.distance, ready.variances
    moved = without.distance.squared_distance(variances)
    assert apart.squared_distance(variances) == moved + 3 * Fraction(
        (apart.filled_scale + 1) ** 2
    ) / Fraction(variances.cross)
    profile: Any = ready.account.profile
    assert Fraction(profile.mu) ** 2 >= apart.squared_distance(variances)
    assert 1 <= float(variances.cross / without.variances.cross) < 1.01
