"""Rules, searches and roundings of this room, each alone and against a slow way to the same."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from dplinear.arguments import ArgumentTypeError
from dplinear.arrays import Floats
from dplinear.noise.simulation import generator
from dplinear.privacy import (
    GDP,
    MIDP,
    ZCDP,
    ApproxDP,
    Guarantee,
    Neighbours,
    PureDP,
    calibrate,
    compose,
    half_normals,
    hockey_stick,
    loss,
    roots,
    selections,
)
from dplinear.privacy.bits import variance_for
from dplinear.privacy.conversions import zcdp_delta
from dplinear.privacy.hockey_stick import Threshold
from dplinear.privacy.profiles import (
    AdditiveWishart,
    BesidePure,
    Gaussian,
    GridGaussian,
    Laplace,
    Profile,
    Pure,
    Selections,
    Sketch,
    WithFailure,
    objective,
)
from dplinear.privacy.profiles import wishart as wishart_profiles
from dplinear.privacy.profiles.base import Directions
from dplinear.privacy.profiles.gaussian import gaussian_delta
from refusals import refused

from . import oracles

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

TIGHT = 1e-11


def enclosed(found: float, exact: Any, tight: float = TIGHT) -> None:
    """Never below the exact value, and above it by a hair."""
    assert exact <= arb(float(found)) <= exact * (1 + tight)


@pytest.mark.parametrize("shape", [0.5, 1.5, 4.0, 30.0, 900.0, 4e5])
@pytest.mark.parametrize("sign", [1, -1])
def test_masses_of_gamma_laws_on_either_side(shape: float, sign: int) -> None:
    """With a gap without end all of a tail counts, with a constant one a known share of it."""
    spread = 1 / math.sqrt(shape)
    places = np.array([z * spread for z in (-6.0, -3.0, -0.5, 0.0, 0.2, 2.0, 7.0)])
    places = places[np.abs(places) < 5]
    at = Threshold(places, np.ones_like(places))
    integrate: Any = hockey_stick.gamma_upper if sign == 1 else hockey_stick.gamma_lower
    whole = integrate(shape, at, lambda y, _: np.full_like(y, np.inf))
    part = integrate(shape, at, lambda y, _: np.full_like(y, 0.7), slope=True)
    upper, share, covered = whole.upper(), part.upper(), part.covered * np.exp(part.log_scale)
    for i, xi in enumerate(places):
        x = 2 * arb(shape) * arb(float(xi)).exp()
        tail = oracles.chi_square_sf if sign == 1 else oracles.chi_square_cdf
        exact = oracles.precisely(tail)(x, arb(2 * shape))
        if exact > 1e-200:
            enclosed(upper[i], exact)
            enclosed(share[i], exact * (1 - arb(-0.7).exp()))
            assert covered[i] == pytest.approx(float((exact * arb(-0.7).exp()).mid()), rel=1e-10)
            log = whole.log_upper()[i]
            assert exact.log() <= arb(float(log)) <= exact.log() + TIGHT
    unused = integrate(shape, at, lambda y, _: np.full_like(y, 0.7))
    assert not unused.covered.any()


@pytest.mark.parametrize("shape", [1.5, 30.0, 900.0])
def test_lower_integrals_end_at_their_depth(shape: float) -> None:
    xi = np.array([-0.3, 0.0, 0.4])
    depth = np.array([0.05, 0.3, 3.0])
    seen: list[Floats] = []

    def gap(y: Floats, rest: Floats) -> Floats:
        seen.append(y + rest - depth[:, None])
        return np.full_like(y, np.inf)

    at = Threshold(xi, np.ones_like(xi))
    found = hockey_stick.gamma_lower(shape, at, gap, depth).upper()
    assert np.abs(seen[0]).max() < 1e-12  # what remains is what remains
    for i in range(3):
        ends = [2 * arb(shape) * arb(float(end)).exp() for end in (xi[i], xi[i] - depth[i])]
        top, bottom = (oracles.precisely(oracles.chi_square_cdf)(x, arb(2 * shape)) for x in ends)
        enclosed(found[i], top - bottom)


def test_errors_of_normal_tails_hold_the_truth() -> None:
    for mu in (0.01, 0.5, 3.0, 40.0):
        epsilons = np.array([0.0, 0.1 * mu, mu, mu * mu, mu * mu / 2 + 5 * mu])
        found = hockey_stick.normal_tail(epsilons, mu)
        assert not found.log_scale.any()
        for i, epsilon in enumerate(epsilons):
            exact = oracles.gaussian(float(epsilon), mu)
            value, error = arb(float(found.value[i])), arb(float(found.error[i]))
            assert value * (1 - error) <= exact <= value * (1 + error)
            assert found.error[i] < 1e-12


CLOSED: list[tuple[Callable[[float, float], float], Callable[[Any, Any], Any]]] = [
    (lambda e, x: Laplace(e + x).delta(e), lambda _, x: 1 - (-x / 2).exp()),
    (
        lambda e, x: Pure(e + x).delta(e),
        lambda e, x: ((e + x).exp() - e.exp()) / (1 + (e + x).exp()),
    ),
]


@pytest.mark.parametrize("at", range(len(CLOSED)))
def test_bounded_losses_are_rounded_up(at: int) -> None:
    found, exact = CLOSED[at]
    for epsilon, more in itertools.product((0.0, 0.1, 1 / 3, 2.0, 30.0), (1e-3, 0.3, 1.7, 9.0)):
        total = Fraction(epsilon + more) - Fraction(epsilon)
        gap = arb(total.numerator) / arb(total.denominator)
        enclosed(found(epsilon, more), exact(arb(epsilon), gap), 1e-14)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("inverse", [1e-14, 1e-9, 1e-4])
def test_grid_noise_costs_the_lesser_of_two_bounds(mu: float, inverse: float) -> None:
    for epsilon in (0.0, 0.2, 1.0, 4.0):
        cost = (1 + arb(epsilon).exp()) * arb(0.0203) * arb(inverse)
        lemma = oracles.gaussian(epsilon, mu) + cost
        found = GridGaussian(mu, inverse).delta(epsilon)
        by_zcdp = zcdp_delta(mu * mu / 2, epsilon)
        if arb(by_zcdp) > lemma * (1 + 1e-9) and lemma < 1:
            enclosed(found, lemma)
        else:
            assert found == pytest.approx(min(by_zcdp, 1.0), rel=1e-9)


@pytest.mark.parametrize("failure", [0.0, 1e-9, 0.1, 0.9])
def test_failures_are_added_and_rounded_up(failure: float) -> None:
    bound = WithFailure(Gaussian(0.7), failure)
    for epsilon in (0.0, 0.5, 3.0):
        part = Gaussian(0.7).delta(epsilon)
        total = min(Fraction(part) + Fraction(failure), Fraction(1))
        found = Fraction(bound.delta(epsilon))
        assert total <= found <= total * (1 + Fraction(1, 10**14))


def test_a_pure_part_takes_its_loss_and_no_more() -> None:
    for extra in (0.1, 1 / 3, 0.7):
        bound = BesidePure(Gaussian(0.7), extra)
        for epsilon in (0.0, 0.05, extra, 0.8, 2.0, 7.3):
            if epsilon < extra:
                assert bound.delta(epsilon) == 1
                continue
            left = Fraction(epsilon) - Fraction(extra)
            exact = oracles.gaussian(arb(left.numerator) / arb(left.denominator), arb(0.7))
            enclosed(bound.delta(epsilon), exact, 1e-10)
        assert BesidePure(Pure(0.4), extra).epsilon(0.0) >= Fraction(0.4) + Fraction(extra)


# Losses as distributions.


@dataclass(frozen=True)
class Told(Profile):
    """A profile whose losses are set by hand."""

    usual: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def epsilon(self, delta: float) -> float:
        assert delta == 1e-9
        return self.usual

    def directions(self, epsilon: Floats) -> Directions:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("usual", "power"),
    [([1.0], -9), ([0.5, 3.0], -10), ([1e-3, 300.0], -10), ([1e-12], -30), ([700.0], 0)],
)
def test_grids_are_a_power_of_two(usual: list[float], power: int) -> None:
    """1/500 of the narrowest, but not below 1/200000 of the widest."""
    found = loss.default_interval([Told(each) for each in usual])
    assert found == 2.0**power
    wanted = max(min(usual) / 500, max(usual) / 200_000, 1e-9)
    assert wanted / 2 < found <= wanted


class Flat:
    """A distribution of losses that says the same at every ε, or what it is told."""

    def __init__(self, delta: float) -> None:
        self.delta = delta

    def get_delta_for_epsilon(self, epsilon: float) -> float:
        return self.delta if epsilon < 5 else 0.0


@pytest.mark.parametrize(("delta", "parts"), [(0.25, 1), (0.25, 7), (1.0, 3), (0.0, 2)])
def test_composed_curves_allow_for_the_noise_of_transforms(delta: float, parts: int) -> None:
    profile = loss.ComposedProfile(Flat(delta), parts, Neighbours.REPLACE)
    removing, adding = profile.directions(np.array([0.5, 9.0]))
    assert removing.tolist() == adding.tolist() == [min(1.0, delta + parts * 1e-13), parts * 1e-13]
    assert profile.neighbours is Neighbours.REPLACE


def test_hulls_keep_the_points_that_nothing_is_below() -> None:
    rng = generator(32)
    for count in (1, 2, 3, 5, 9) * 6:
        losses = np.sort(rng.uniform(-2, 2, count))
        deltas = rng.uniform(0, 1, count)
        x = np.exp(losses)

        def line(i: int, a: int, b: int, x: Floats = x, deltas: Floats = deltas) -> float:
            return float(deltas[a] + (deltas[b] - deltas[a]) * (x[i] - x[a]) / (x[b] - x[a]))

        kept = [
            i
            for i in range(count)
            if all(
                line(i, a, b) > deltas[i]
                for a, b in itertools.product(range(i), range(i + 1, count))
            )
        ]
        assert loss._lower_hull(losses, deltas) == kept


# Searches.


def counted(delta: Callable[[float], float]) -> tuple[Callable[[float], float], list[float]]:
    asked: list[float] = []

    def call(x: float) -> float:
        asked.append(x)
        return delta(x)

    return call, asked


@pytest.mark.parametrize("off", [0.8, 0.99, 1.0, 1.01, 1.3])
@pytest.mark.parametrize("power", [3, 9, 40])
def test_searches_from_near_by_are_short(off: float, power: int) -> None:
    """How often a profile is asked is what a calibration costs."""
    rising, asked = counted(lambda x: min(1e-6 * (x / 0.3) ** power, 1.0))
    assert roots.largest_private(rising, 1e-6, 0.3 * off) == pytest.approx(0.3, rel=1e-13)
    assert len(asked) <= 16
    falling, asked = counted(lambda x: min(1e-6 * (0.3 / x) ** power, 1.0))
    assert roots.smallest_private(falling, 1e-6, 0.3 * off) == pytest.approx(0.3, rel=1e-13)
    assert len(asked) <= 16


def test_logarithms_end_where_floats_do() -> None:
    assert roots._further(699.0, 0.5) == 699.5
    assert roots._further(699.0, 5.0) == 700.0
    assert roots._further(-699.0, -5.0) == -700.0
    for beyond in (700.0, -700.0, 701.0):
        with pytest.raises(ArithmeticError, match="range of floats"):
            roots._further(beyond, 1.0)


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 40.0, 2e3])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.3])
def test_the_largest_mu_is_so_to_the_last_unit(epsilon: float, delta: float) -> None:
    mu = calibrate._mu(ApproxDP(epsilon, delta))
    assert gaussian_delta(epsilon, mu) <= delta
    assert gaussian_delta(epsilon, mu * (1 + 2.0**-51)) > delta


@pytest.mark.parametrize(
    ("guarantee", "dimension"), [(ApproxDP(60, 1e-2), 1), (ApproxDP(1, 1e-6), 4)]
)
def test_no_degrees_up_to_the_cap_have_less_noise(guarantee: ApproxDP, dimension: int) -> None:
    cap = dimension + 9
    degrees, scale = calibrate.additive_wishart(
        guarantee, dimension, 1.0, Neighbours.REPLACE, most_degrees=cap
    )
    noise = {
        k: math.sqrt(k) / calibrate._wishart_ratio(guarantee, k - dimension + 1, Neighbours.REPLACE)
        for k in range(dimension + 2, cap + 1)
    }
    assert scale**2 * math.sqrt(degrees) <= min(noise.values()) * (1 + 1e-9)


@pytest.mark.parametrize(("m", "ratio", "epsilon"), [(5, 0.5, 0.5), (58, 1.0, 1.0), (7, 9.0, 3.0)])
def test_splits_are_found_from_anywhere(m: int, ratio: float, epsilon: float) -> None:
    best = wishart_profiles.best_split(epsilon, m / 2, ratio / 2)
    for near in (0.0, 0.2, best.fraction, 0.999, 1.0):
        found = wishart_profiles.best_split(epsilon, m / 2, ratio / 2, near)
        assert found.log_delta == pytest.approx(best.log_delta, abs=1e-9)
        bound = oracles.wishart_replace(epsilon, m, ratio, found.fraction * min(epsilon, ratio / 2))
        assert bound <= arb(wishart_profiles.split_delta(found, epsilon))
    fine = min(
        wishart_profiles._two_steps(float(t), epsilon, m / 2, ratio / 2)[0].log_delta
        for t in np.linspace(0, 1, 100)
    )
    assert best.log_delta <= fine + 1e-12


@pytest.mark.parametrize(("shape", "shift"), [(2.5, 0.3), (30.0, 2.0), (500.0, 9.0)])
def test_slopes_are_those_of_the_curves(shape: float, shift: float) -> None:
    hair = 1e-5
    for step, oracle in (
        (wishart_profiles._adding_step, oracles.wishart_adding),
        (wishart_profiles._removing_step, oracles.wishart_removing),
    ):
        for epsilon in (0.05, 0.1, 0.25):
            if epsilon + hair >= shift:
                continue
            ends = [oracle(epsilon + s * hair, 2 * shape, 2 * shift) for s in (-1, 1)]
            slope = (ends[0] - ends[1]) / (2 * hair)
            found = step(np.array([epsilon]), shape, shift)
            assert float(found.log_slope[0]) == pytest.approx(float(slope.log().mid()), abs=1e-6)


def orthogonal(epsilon: float, degrees: int, ratio: float) -> float:
    """Return the triple integral over p, q and n, each by a fine rule of its own."""
    h = (degrees - 3) / 2
    nodes, weights = np.polynomial.legendre.leggauss(90)

    def chi(freedom: float) -> tuple[Floats, Floats]:
        low, high = math.log(1e-3 * freedom), math.log(freedom + 12 * math.sqrt(2 * freedom) + 40)
        place = (high + low) / 2 + (high - low) / 2 * nodes
        x = np.exp(place)
        log = freedom / 2 * place - x / 2 - freedom / 2 * math.log(2) - math.lgamma(freedom / 2)
        return x, np.exp(log) * weights * (high - low) / 2

    (p, by_p), (q, by_q) = chi(degrees), chi(degrees - 1)
    grid = np.linspace(0, 9, 901)
    density = np.exp(-(grid**2) / 2) * 2 / math.sqrt(2 * math.pi) * (grid[1] - grid[0])
    density[[0, -1]] /= 2
    total = 0.0
    for x, mass in zip(p, by_p, strict=True):
        square = grid[None, :] ** 2
        inside = x * q[:, None] + ratio * (square + q[:, None] - x - ratio)
        shares = np.maximum(inside, 0.0) / (x * q[:, None])
        gain = np.maximum(1 - math.exp(epsilon) * shares**h, 0.0)
        total += mass * float(by_q @ (gain @ density))
    return total


@pytest.mark.parametrize(("degrees", "ratio", "epsilon"), [(6, 0.5, 0.5), (9, 2.0, 0.2)])
def test_orthogonal_rows_by_another_rule(degrees: int, ratio: float, epsilon: float) -> None:
    found = oracles.orthogonal_delta(epsilon, degrees, ratio)
    assert found == pytest.approx(orthogonal(epsilon, degrees, ratio), rel=1e-3)
    assert AdditiveWishart(degrees + 3, 5, ratio).chi_square_degrees == degrees - 1


# Chains of selections.


@pytest.mark.parametrize(("each", "count"), [(0.8, 1), (0.05, 20), (0.02, 100)])
def test_chains_are_the_recursion_written_out(each: float, count: int) -> None:
    """Without the ends of a table: 1 below, the last value above."""
    cells = {1: 600, 20: 100, 100: 30}[count]
    anchor = 0.5 * each * math.sqrt(count)
    place, step, table = Selections(Fraction(each), count, anchor=anchor)._table
    assert step == pytest.approx(each / cells, rel=1e-14)
    assert step * cells >= each
    places = np.arange(len(table))
    assert anchor - place * step <= -count * each  # where δ of the whole chain is 1 all the same
    assert anchor + (places[-1] - place) * step >= count * each
    bound = np.maximum(0.0, -np.expm1(anchor + step * (places - place)))
    for _ in range(count):

        def at(moved: Any, values: Floats = bound) -> Floats:
            return np.where(moved < 0, 1.0, values[np.clip(moved, 0, len(values) - 1)])

        steps = []
        for high in range(1, cells + 1):
            low = high - 1 - cells
            chance = math.expm1(low * step) / math.expm1((low - high) * step)
            steps.append(chance * at(places - high) + (1 - chance) * at(places - low))
        bound = np.max(steps, axis=0)
    assert (bound * (1 - 1e-14) <= table).all()
    assert (table <= bound * (1 + 1e-11)).all()
    assert table.max() <= 1


def test_anchors_are_where_a_guarantee_is_asked() -> None:
    each = Fraction(1, 7)
    assert selections.profile(ApproxDP(0.9, 1e-6), each, 5).anchor == 0.9
    assert selections.profile(PureDP(0.9), each, 5).anchor == float(5 * each) / 2
    assert selections.profile(ZCDP(0.9), each, 5).anchor == float(5 * each) / 2
    assert selections.profile(ZCDP(0.9), each, 5).neighbours is Neighbours.ADD_REMOVE


# Lists of guarantees.


def test_lists_of_each_kind_add_up_in_their_own_way() -> None:
    assert compose.guarantees([MIDP(0.25), MIDP(0.5)]) == MIDP(0.75)
    assert compose.guarantees([ZCDP(0.25), ZCDP(0.5)]) == ZCDP(0.75)
    assert compose.guarantees([ApproxDP(1, 0.25), ApproxDP(2, 0.5)]) == ApproxDP(3, 0.75)
    assert compose.guarantees([PureDP(1), ApproxDP(2, 0.5)]) == ApproxDP(3, 0.5)
    assert compose.guarantees([PureDP(1)]) == PureDP(1)
    mixed = compose.guarantees([GDP(1), ZCDP(0.25)])
    assert isinstance(mixed, ZCDP)
    assert 0.75 <= mixed.rho <= 0.75 * (1 + 1e-14)
    apart: list[list[Guarantee]] = [
        [ApproxDP(1, 0.1), ZCDP(1)],
        [MIDP(1), PureDP(1)],
        [ApproxDP(1, 0.1), GDP(1)],
        [MIDP(1), GDP(1)],
    ]
    for parts in apart:
        with refused("parts", "compose.guarantees", "guarantees that com"):
            compose.guarantees(parts)
    for bad in ([], (), "ab", [1], [PureDP(1), None], None):
        with refused("parts", "compose.guarantees", kind=ArgumentTypeError):
            compose.guarantees(bad)  # type: ignore[arg-type]
        with refused("parts", "compose.profiles", kind=ArgumentTypeError):
            compose.profiles(bad)  # type: ignore[arg-type]
    with refused("interval", "compose.profiles"):
        compose.profiles([Pure(1), Laplace(1)], interval=0.0)


def test_filters_admit_all_that_is_left_and_no_more() -> None:
    account = compose.Filter((Fraction(1),), (Fraction(0),)).after((Fraction(0.75),), "")
    assert account.admits((Fraction(0.25),))
    assert account.after((Fraction(0.25),), "").remaining == (Fraction(0),)
    more = (Fraction(math.nextafter(0.25, 1)),)
    assert not account.admits(more)
    with pytest.raises(compose.BudgetExceededError, match="these words"):
        account.after(more, "these words")


def test_sketches_of_two_directions() -> None:
    for inverse in (False, True):
        removing, adding = Sketch(9, 0.4, inverse=inverse).directions(np.array([0.3]))
        wide, narrow = (removing, adding) if not inverse else (adding, removing)
        enclosed(wide[0], oracles.sketch_removing(0.3, 9, 0.4))
        enclosed(narrow[0], oracles.sketch_adding(0.3, 9, 0.4))


def test_epsilons_of_profiles_are_least() -> None:
    profiles: list[Profile] = [Gaussian(0.4), Sketch(30, 0.1), AdditiveWishart(40, 2, 1.5)]
    for profile in profiles:
        for delta in (1e-8, 1e-3):
            epsilon = profile.epsilon(delta)
            assert profile.delta(epsilon) <= delta < profile.delta(epsilon * (1 - 1e-12))
        assert profile.epsilon(profile.delta(0.0)) == 0


# Roundings that only the numbers handed on show.


@dataclass(frozen=True)
class Noting(Profile):
    """A profile that notes where it is asked."""

    asked: list[float]
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def directions(self, epsilon: Floats) -> Directions:
        self.asked.extend(epsilon.tolist())
        return Directions(np.zeros_like(epsilon), np.zeros_like(epsilon))


def test_what_is_left_of_a_loss_is_rounded_down() -> None:
    rng = generator(33)
    for extra, epsilon in zip(rng.uniform(0, 1, 50), rng.uniform(1, 9, 50), strict=True):
        inner = Noting([])
        BesidePure(inner, float(extra)).directions(np.array([epsilon]))
        left = Fraction(float(epsilon)) - Fraction(float(extra))
        assert left * (1 - Fraction(1, 10**14)) <= Fraction(inner.asked[0]) <= left


def test_what_a_bend_leaves_is_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    exactly = hockey_stick.normal_tail

    def noted(epsilon: Floats, mu: float) -> hockey_stick.Integral:
        asked.append(float(epsilon[0]))
        return exactly(epsilon, mu)

    monkeypatch.setattr(objective, "normal_tail", noted)
    rng = generator(34)
    for ratio, more in zip(rng.uniform(0.01, 3, 40), rng.uniform(0.01, 5, 40), strict=True):
        epsilon = math.log1p(ratio) + float(more)
        for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE):
            asked.clear()
            objective.Objective(0.5, float(ratio), 0.1, relation).directions(np.array([epsilon]))
            exact = arb(epsilon) - (1 + arb(float(ratio))).log()
            for left in asked[: 2 if relation is Neighbours.ADD_REMOVE else None]:
                assert exact - 1e-14 * epsilon <= arb(left) <= exact


def test_profiles_below_zero_are_rounded_up() -> None:
    for mu, epsilon in itertools.product((0.1, 0.7, 3.0), (-0.01, -0.4, -2.0, -9.0)):
        found = float(objective._tail(np.array([epsilon]), mu)[0])
        exact = oracles.gaussian(epsilon, mu)
        assert arb(found) >= exact or found == 1
        assert arb(found) <= exact + 1e-13


def test_losses_of_nothing_are_nothing() -> None:
    empty = np.array([])
    assert hockey_stick.exp_minus_linear(empty).shape == (0,)
    for profile in (Gaussian(0.5), Sketch(9, 0.4), AdditiveWishart(9, 2, 1.0), Laplace(0.5)):
        assert profile.curve(empty).shape == (0,)


@pytest.mark.accounting
def test_chances_stay_below_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    hull = loss._lower_hull

    def noted(losses: Floats, deltas: Floats) -> list[int]:
        seen.append(float(deltas.max()))
        return hull(losses, deltas)

    monkeypatch.setattr(loss, "_lower_hull", noted)
    loss.loss_distribution(Pure(40.0), 0.5)
    assert seen == [1.0, 1.0]


def test_bits_that_mean_something_have_ends() -> None:
    for good in (2.0**-60, 64.0):
        assert variance_for(good) > 0
    for bad in (2.0**-60 * (1 - 1e-9), 64.0001):
        with refused("bits", "variance_for"):
            variance_for(bad)


@pytest.mark.parametrize("k", [1, 7, 100])
def test_sums_are_cut_where_next_to_nothing_is_left(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is beyond the cut is taken from δ: a ten-thousandth of it at the most."""
    lost: list[float] = []
    power = half_normals._power

    def noted(masses: Floats, count: int) -> Floats:
        lost.append(count * (1 - math.fsum(masses)))
        return power(masses, count)

    monkeypatch.setattr(half_normals, "_power", noted)
    for delta in (0.1, 1e-2, 1e-4):
        half_normals._by_convolution(k, delta)
        assert 1e-7 * delta <= lost.pop() <= 1e-4 * delta
