"""Objective perturbation: its profile against the densities of whole mechanisms, row by row."""

import math
from collections.abc import Callable, Sequence

import mpmath
import numpy as np
import pytest

from dplinear.arrays import Floats
from dplinear.privacy import ApproxDP, Neighbours
from dplinear.privacy.profiles import Objective
from dplinear.privacy.profiles.objective import largest_mu
from refusals import refused

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0])
SUMMED = 1e-5  # what sums over a grid may be off

Row = tuple[float, float, float]  # norm c, knee of a Huber slope in θ, and where it is centred


def slope(row: Row, place: Floats) -> Floats:
    """Return a row's gradient: steep from −c to c, over a width of two knees in the margin."""
    norm, knee, label = row
    return norm * np.clip((norm * place - label) / knee, -1, 1)


def bend(row: Row, place: Floats) -> Floats:
    norm, knee, label = row
    return np.where(np.abs(norm * place - label) < knee, norm**2 / knee, 0.0)


def density(rows: Sequence[Row], weight: float, sigma: float, place: Floats) -> Floats:
    """Return the density of the minimum: the noise that leads there, times how it is stretched."""
    slopes = weight * place + sum((slope(row, place) for row in rows), np.zeros_like(place))
    bends = weight + sum((bend(row, place) for row in rows), np.zeros_like(place))
    return np.exp(-0.5 * (slopes / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi)) * bends


def excess(first: Floats, second: Floats, epsilon: float, step: Floats | float) -> float:
    return float((np.maximum(first - math.exp(epsilon) * second, 0) * step).sum())


def grid(rows: Sequence[Row], weight: float, sigma: float) -> tuple[Floats, Floats]:
    """Return the middles of cells, and their widths: densities jump at their edges alone."""
    reach = (12 * sigma + sum(row[0] for row in rows)) / weight
    jumps = [(label + side * knee) / norm for norm, knee, label in rows for side in (-1, 1)]
    edges = np.union1d(np.linspace(-reach, reach, 100_001), jumps)
    return (edges[1:] + edges[:-1]) / 2, np.diff(edges)


TABLES: dict[str, tuple[list[Row], Row, float, float]] = {
    "gentle": ([], (1.0, 1.0, 0.0), 2.0, 3.0),
    "steep": ([], (1.0, 0.02, 0.0), 1.0, 4.0),
    "aside": ([], (1.0, 0.2, 0.7), 0.5, 2.0),
    "far": ([], (1.0, 0.5, 8.0), 0.7, 2.0),
    "others": ([(1.0, 0.3, 0.5), (0.6, 0.2, -0.4)], (1.0, 0.25, 0.1), 1.5, 1.5),
    "short": ([(1.0, 2.0, 0.1)], (0.5, 0.1, 0.1), 0.3, 1.0),
}


@pytest.mark.parametrize("name", TABLES)
def test_no_row_shows_more_than_the_profile_says(name: str) -> None:
    rows, row, weight, sigma = TABLES[name]
    place, step = grid([*rows, row], weight, sigma)
    absent = density(rows, weight, sigma, place)
    present = density([*rows, row], weight, sigma, place)
    assert float(absent @ step) == pytest.approx(1, abs=SUMMED)
    assert float(present @ step) == pytest.approx(1, abs=SUMMED)
    profile = Objective(row[0] / sigma, row[0] ** 2 / row[1] / weight)
    removing, adding = profile.directions(EPSILONS)
    for epsilon, most_removing, most_adding in zip(EPSILONS, removing, adding, strict=True):
        assert excess(present, absent, epsilon, step) <= most_removing + SUMMED
        assert excess(absent, present, epsilon, step) <= most_adding + SUMMED


def test_a_steep_row_shows_all_that_the_profile_says_of_an_absent_one() -> None:
    rows, row, weight, sigma = TABLES["steep"]
    place, step = grid([*rows, row], weight, sigma)
    absent = density(rows, weight, sigma, place)
    present = density([*rows, row], weight, sigma, place)
    most = Objective(1 / sigma, 50.0).directions(np.array([0.5])).adding[0]
    assert excess(absent, present, 0.5, step) == pytest.approx(most, rel=1e-4)


def test_an_understated_bend_and_a_single_tail_are_seen() -> None:
    rows, row, weight, sigma = TABLES["steep"]
    place, step = grid([*rows, row], weight, sigma)
    absent = density(rows, weight, sigma, place)
    present = density([*rows, row], weight, sigma, place)
    forgotten = Objective(1 / sigma, 0.0).directions(np.array([1.0])).removing[0]
    assert excess(present, absent, 1.0, step) > 2 * forgotten
    half = Objective(1 / sigma, 50.0).directions(np.array([0.5])).adding[0] / 2
    assert excess(absent, present, 0.5, step) > 1.9 * half


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.2, math.pi / 2, 2.5, math.pi])
def test_no_replaced_row_shows_more_than_the_profile_says(angle: float) -> None:
    weight, sigma, knee = 0.8, 1.2, 0.6
    axis = np.linspace(-12, 12, 401)
    step = (axis[1] - axis[0]) ** 2
    x, y = np.meshgrid(axis, axis)

    def law(degrees: float, label: float) -> Floats:
        u, v = math.cos(degrees), math.sin(degrees)
        pull = np.tanh((u * x + v * y - label) / knee)
        bends = (1 - pull**2) / knee
        squares = (weight * x + pull * u) ** 2 + (weight * y + pull * v) ** 2
        determinant = weight * (weight + bends)
        return np.exp(-squares / (2 * sigma**2)) / (2 * math.pi * sigma**2) * determinant

    first, second = law(0.0, 0.3), law(angle, -0.2)
    profile = Objective(1 / sigma, 1 / knee / weight, 0.0, Neighbours.REPLACE)
    assert float(first.sum() * step) == pytest.approx(1, abs=SUMMED)
    for epsilon in (0.0, 0.5, 1.0, 2.0, 3.0):
        found = max(excess(first, second, epsilon, step), excess(second, first, epsilon, step))
        assert found <= profile.delta(epsilon) + 1e-3


def test_two_rows_that_pull_apart_show_more_than_one_does() -> None:
    """Far from their knees the slopes are ±1: two normal laws, 2/σ apart."""
    pair = [(1.0, 0.1, -30.0)], [(1.0, 0.1, 30.0)]
    place, step = grid([*pair[0], *pair[1]], 1.0, 2.0)
    first, second = (density(rows, 1.0, 2.0, place) for rows in pair)
    found = excess(first, second, 1.0, step)
    assert found > 2 * Objective(0.5, 0.0).delta(1.0)
    assert found <= Objective(0.5, 10.0, 0.0, Neighbours.REPLACE).delta(1.0)
    bound = Objective(0.5, 0.0, 0.0, Neighbours.REPLACE).delta(1.0)
    assert 2 * found <= bound <= 3 * found


@pytest.mark.parametrize("name", ["steep", "aside"])
def test_a_wrong_minimum_is_hidden_by_noise_of_its_own(name: str) -> None:
    """The minimum is missed by r, on one side if the row is absent and on the other if not."""
    rows, row, weight, sigma = TABLES[name]
    missed, spread, reach = 1.0, 1.5, 12 * sigma / weight
    place = np.linspace(-reach, reach, 1201)
    step = place[1] - place[0]
    fine, width = grid([*rows, row], weight, sigma)
    bins = np.append(place - step / 2, place[-1] + step / 2)

    def released(law: Floats, error: float) -> Floats:
        masses = np.histogram(fine, bins, weights=law * width)[0]
        away = place[:, None] - place - error
        kernel = np.exp(-0.5 * (away / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
        return np.asarray(kernel @ masses)

    profile = Objective(row[0] / sigma, row[0] ** 2 / row[1] / weight, 2 * missed / spread)
    forgotten = Objective(row[0] / sigma, row[0] ** 2 / row[1] / weight)
    removing, adding = profile.directions(EPSILONS)
    seen = False
    for side in (-1.0, 1.0):
        absent = released(density(rows, weight, sigma, fine), side * missed)
        present = released(density([*rows, row], weight, sigma, fine), -side * missed)
        for at, epsilon in enumerate(EPSILONS):
            # The cells of the coarse grid are a fiftieth of the noise.
            assert excess(present, absent, epsilon, step) <= removing[at] + 1e-3
            assert excess(absent, present, epsilon, step) <= adding[at] + 1e-3
        without = forgotten.directions(np.array([2.0])).adding[0]
        seen = seen or excess(absent, present, 2.0, step) > 1.5 * without
    assert seen or name == "steep"


def gaussian(epsilon: mpmath.mpf, mu: mpmath.mpf) -> mpmath.mpf:
    near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return mpmath.ncdf(near) - mpmath.exp(epsilon) * mpmath.ncdf(far)


@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
@pytest.mark.parametrize(
    ("epsilon", "mu", "ratio", "output"),
    [(1.0, 0.2, 0.1, 0.01), (0.1, 0.02, 0.01, 0.002), (4.0, 0.7, 0.3, 0.04), (0.2, 0.5, 1.0, 0.1)],
)
def test_the_floats_are_the_formula_rounded_up(
    relation: Neighbours, epsilon: float, mu: float, ratio: float, output: float
) -> None:
    with mpmath.workdps(60):
        left = mpmath.mpf(epsilon) - mpmath.log1p(mpmath.mpf(ratio))
        joint = [mpmath.sqrt(k * mpmath.mpf(mu) ** 2 + mpmath.mpf(output) ** 2) for k in (1, 2, 4)]
        if relation is Neighbours.REPLACE:
            both = 2 * (gaussian(left, joint[1]) + gaussian(left, joint[2]))
            exact = (both, both)
        else:
            present = gaussian(left, joint[0]) + gaussian(left, mpmath.mpf(output))
            exact = (present, 2 * gaussian(mpmath.mpf(epsilon), joint[0]))
        found = Objective(mu, ratio, output, relation).directions(np.array([epsilon]))
        for value, truth in zip(found, exact, strict=True):
            most = min(truth, mpmath.mpf(1))
            assert most <= mpmath.mpf(float(value[0])) <= most * (1 + mpmath.mpf(10) ** -9)


@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_the_largest_mu_is_private_and_no_larger_one_is(relation: Neighbours) -> None:
    for epsilon, delta, ratio in [(0.1, 1e-6, 0.01), (1.0, 1e-9, 0.3), (8.0, 1e-5, 2.0)]:
        mu = largest_mu(ApproxDP(epsilon, delta), ratio, 0.1, relation)

        def of(size: float, ratio: float = ratio) -> Objective:
            return Objective(size, ratio, 0.1 * size, relation)

        assert of(mu).delta(epsilon) <= delta
        assert of(mu * (1 + 1e-8)).delta(epsilon) > delta


def test_more_bend_than_epsilon_is_refused() -> None:
    with refused("ratio", "objective.largest_mu", hint="more regularisation"):
        largest_mu(ApproxDP(1.0, 1e-6), math.expm1(1.0), 0.1)


SETTINGS: list[Callable[[], Objective]] = [
    lambda: Objective(0.0, 0.1),
    lambda: Objective(1.0, -0.1),
    lambda: Objective(1.0, 0.1, -1.0),
    lambda: Objective(1.0, 0.1, 0.0, Neighbours.ELEMENT),
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_are_checked(setting: Callable[[], Objective]) -> None:
    with pytest.raises(ValueError, match=r"profiles\.Objective"):
        setting()
