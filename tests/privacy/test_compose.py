"""Composition: exact where a theorem is, pessimistic where it is numerical, adaptive in filters."""

import dataclasses
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplinear.arguments import ArgumentTypeError
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP, compose, loss
from dplinear.privacy.profiles import (
    AdditiveWishart,
    Gaussian,
    GridGaussian,
    Laplace,
    Profile,
    Pure,
    Sketch,
)
from refusals import refused

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

positive = st.floats(1e-6, 10)


def test_gaussians_add_in_squares() -> None:
    assert compose.profiles([Gaussian(0.3), Gaussian(0.4)]).mu == pytest.approx(0.5)  # type: ignore[attr-defined]
    total = compose.guarantees([GDP(0.3), GDP(0.4)])
    assert isinstance(total, GDP)
    assert total.mu == pytest.approx(0.5)


def test_gaussians_on_grids_are_coordinates_of_one_vector() -> None:
    parts = [GridGaussian(0.3, 1e-7), GridGaussian(0.4, 3e-7)]
    total = compose.profiles(parts)
    assert isinstance(total, GridGaussian)
    assert Fraction(total.mu) ** 2 >= Fraction(0.3) ** 2 + Fraction(0.4) ** 2
    assert total.mu == pytest.approx(0.5, rel=1e-14)
    assert Fraction(total.inverse_variance) >= Fraction(1e-7) + Fraction(3e-7)
    assert total.inverse_variance == pytest.approx(4e-7, rel=1e-14)
    with refused("parts", "compose.profiles", "profiles of one neighbour relation"):
        compose.profiles([parts[0], GridGaussian(0.4, 1e-7, Neighbours.REPLACE)])


@given(st.lists(positive, min_size=1, max_size=8))
def test_sums_are_rounded_up(values: list[float]) -> None:
    exact = sum(map(Fraction, values))
    pure = compose.guarantees([PureDP(v) for v in values])
    assert isinstance(pure, PureDP)
    assert exact <= Fraction(pure.epsilon) <= exact * (1 + Fraction(1, 10**14))
    squares = sum(Fraction(v) ** 2 for v in values)
    gaussian = compose.guarantees([GDP(v) for v in values])
    assert isinstance(gaussian, GDP)
    assert squares <= Fraction(gaussian.mu) ** 2 <= squares * (1 + Fraction(1, 10**14))


def test_mixed_guarantees() -> None:
    mixed = compose.guarantees([PureDP(1), ZCDP(0.5), GDP(1)])
    assert isinstance(mixed, ZCDP)
    assert mixed.rho == pytest.approx(np.tanh(0.5) + 0.5 + 0.5)
    both = compose.guarantees([PureDP(1), ApproxDP(1, 1e-6)])
    assert isinstance(both, ApproxDP)
    assert (both.epsilon, both.delta) == pytest.approx((2, 1e-6))
    bits = compose.guarantees([MIDP(0.1), MIDP(0.2)])
    assert isinstance(bits, MIDP)
    assert bits.bits == pytest.approx(0.3)
    with refused("parts", "compose.guarantees", "guarantees that compose with each other"):
        compose.guarantees([ApproxDP(1, 1e-6), GDP(1)])
    with refused(
        "parts", "compose.guarantees", "a list of one or more guarantees", kind=ArgumentTypeError
    ):
        compose.guarantees([])
    with refused("parts", "compose.guarantees", "a list of guarantees", kind=ArgumentTypeError):
        compose.guarantees([1.0])  # type: ignore[list-item]


@pytest.mark.accounting
def test_a_mixture_dominates_the_exact_composition() -> None:
    from dplinear.privacy.loss import compose_profiles

    # Three Gaussians through the numerical road, against the exact sum.
    numerical = compose_profiles([Gaussian(0.3)] * 3, None)
    exact = compose.profiles([Gaussian(0.3)] * 3)
    for epsilon in (0.0, 0.5, 1.0, 2.0, 3.0):
        ratio = numerical.delta(epsilon) / exact.delta(epsilon)
        assert 1 <= ratio < 1 + 1e-3


@pytest.mark.accounting
def test_pure_losses_compose_as_binomial_sums() -> None:
    # k-fold randomised response has a closed form (Kairouz, Oh and Viswanath 2015).
    from scipy.stats import binom

    count, loss = 4, 0.25
    composed = compose.profiles([Pure(loss)] * count, interval=loss / 64)
    p = np.exp(loss) / (1 + np.exp(loss))
    losses = (2 * np.arange(count + 1) - count) * loss
    masses = binom.pmf(np.arange(count + 1), count, p)
    for epsilon in (0.0, 0.1, 0.5, 0.9):
        exact = float(np.sum(masses * np.maximum(-np.expm1(epsilon - losses), 0)))
        assert exact * (1 - 1e-9) <= composed.delta(epsilon) <= exact * (1 + 1e-3) + 1e-12


@pytest.mark.accounting
def test_sketches_compose_into_a_taller_sketch() -> None:
    # r rows and r rows are 2r rows: an exact oracle for an asymmetric pair, direction by direction.
    composed = compose.profiles([Sketch(40, 0.05), Sketch(40, 0.05)])
    exact = Sketch(80, 0.05)
    swapped = compose.profiles([Sketch(40, 0.05, inverse=True)] * 2)
    for epsilon in (0.2, 0.7, 1.5):
        assert 1 <= composed.delta(epsilon) / exact.delta(epsilon) < 1 + 1e-3
        assert swapped.delta(epsilon) == pytest.approx(composed.delta(epsilon), rel=1e-9)


@pytest.mark.accounting
@pytest.mark.parametrize(
    "profile",
    [
        Gaussian(0.3),
        Laplace(0.5),
        Pure(0.5),
        Sketch(40, 0.05),
        Sketch(40, 0.05, inverse=True),
        AdditiveWishart(62, 5, 1.0),
    ],
    ids=lambda profile: type(profile).__name__,
)
def test_a_loss_distribution_dominates_its_profile(profile: Profile) -> None:
    distribution = loss.loss_distribution(profile, loss.default_interval([profile]))
    for epsilon in (0.0, 0.1, 0.4):
        delta = distribution.get_delta_for_epsilon(epsilon)
        exact = profile.delta(epsilon)
        assert exact * (1 - 1e-9) <= delta <= exact * 1.01 + 1e-12


@pytest.mark.long
@pytest.mark.accounting
def test_the_convex_hull_of_a_bound_is_between_the_bound_and_the_truth() -> None:
    bound = AdditiveWishart(62, 5, 1.0, Neighbours.REPLACE)
    distribution = loss.loss_distribution(bound, loss.default_interval([bound]))
    for epsilon in (0.0, 0.1, 0.4):
        delta = distribution.get_delta_for_epsilon(epsilon)
        one_row_appears = AdditiveWishart(62, 5, 1.0).delta(epsilon)
        assert one_row_appears <= delta <= bound.delta(epsilon) * 1.01 + 1e-12


@pytest.mark.long
@pytest.mark.accounting
def test_replace_bounds_compose_too() -> None:
    parts: list[Profile] = [
        AdditiveWishart(62, 5, 1.0, Neighbours.REPLACE),
        Laplace(0.2, Neighbours.REPLACE),
    ]
    composed = compose.profiles(parts)
    assert composed.delta(1.2) <= parts[0].delta(1.0) + 1e-12
    assert composed.delta(1.0) >= parts[0].delta(1.0) * (1 - 1e-9)
    assert composed.neighbours is Neighbours.REPLACE


def test_one_relation_at_a_time() -> None:
    with refused("parts", "compose.profiles", "profiles of one neighbour relation"):
        compose.profiles([Gaussian(1), Gaussian(1, Neighbours.REPLACE)])


def test_without_the_extra_a_mixture_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(ImportError, match=r"pip install 'dplinear\[accounting\]'"):
        compose.profiles([Gaussian(1), Laplace(1)])


@settings(max_examples=200)
@given(positive, st.lists(positive, max_size=12))
def test_a_filter_never_admits_more_than_its_budget(budget: float, spends: list[float]) -> None:
    account = compose.Filter((Fraction(budget),), (Fraction(0),))
    admitted = Fraction(0)
    for rho in spends:
        cost = (Fraction(rho),)
        if account.admits(cost):
            account = account.after(cost, "no")
            admitted += Fraction(rho)
        else:
            with pytest.raises(compose.BudgetExceededError, match="no"):
                account.after(cost, "no")
    assert account.spent == (admitted,)
    assert account.remaining == (Fraction(budget) - admitted,)
    assert admitted <= Fraction(budget)


@settings(max_examples=200)
@given(
    st.tuples(st.integers(0, 20), st.integers(0, 20)),
    st.lists(st.tuples(st.integers(-3, 9), st.integers(-3, 9)), max_size=12),
)
def test_no_amount_passes_its_limit_and_none_is_given_back(
    limit: tuple[int, int], costs: list[tuple[int, int]]
) -> None:
    account = compose.Filter(limit, (0, 0))
    for cost in costs:
        after = tuple(map(sum, zip(account.spent, cost, strict=True)))
        fits = min(cost) >= 0 and after[0] <= limit[0] and after[1] <= limit[1]
        assert account.admits(cost) == fits
        if fits:
            account = account.after(cost, "no")
            assert account.spent == after
            assert account.remaining == (limit[0] - after[0], limit[1] - after[1])
        else:
            with pytest.raises(compose.BudgetExceededError, match="these words"):
                account.after(cost, "these words")


def test_a_cost_of_other_amounts_is_no_cost() -> None:
    with pytest.raises(ValueError, match="zip"):
        compose.Filter((1, 1), (0, 0)).admits((1,))


def test_what_is_spent_cannot_be_changed() -> None:
    account = compose.Filter((1,), (0,))
    with pytest.raises(dataclasses.FrozenInstanceError):
        account.spent = (0,)  # type: ignore[misc]


def test_one_profile_composes_to_itself() -> None:
    sketch = Sketch(40, 0.1)
    assert compose.profiles([sketch]) is sketch


@pytest.mark.accounting
def test_the_grid_of_losses_may_be_chosen() -> None:
    profile = Laplace(1.0)
    fine, coarse = (loss.loss_distribution(profile, interval) for interval in (2.0**-6, 0.25))
    exact = profile.delta(0.3)
    assert exact <= fine.get_delta_for_epsilon(0.3) < exact + 1e-5
    assert coarse.get_delta_for_epsilon(0.3) > exact + 1e-4
