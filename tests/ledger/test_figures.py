"""What a fixed history promises: beside the budget, never instead of it."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import dplinear as dpl
from dplinear.ledger import BudgetExceededError, Request, figures, open_ledger
from dplinear.ledger.budget import Budget
from dplinear.ledger.ledger import BudgetLedger
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Guarantee, Neighbours, PureDP, compose
from dplinear.privacy.profiles.concentrated import Concentrated
from dplinear.privacy.profiles.gaussian import Gaussian, GridGaussian
from dplinear.privacy.profiles.laplace import Laplace, Pure
from dplinear.privacy.profiles.selections import Selections
from refusals import refused


@pytest.fixture
def ledger(tmp_path: Path) -> BudgetLedger:
    return open_ledger(tmp_path / "budget.db", create=True)


def spend(ledger: BudgetLedger, *parts: Guarantee, **more: Any) -> None:
    for part in parts:
        name = f"{len(ledger.history())}"
        ledger.spend(Request(name, "table", part, Neighbours.ADD_REMOVE, "test", {}, **more))


def epsilons(ledger: BudgetLedger, *deltas: float) -> list[float | None]:
    found = ledger.figures("table", deltas or (1e-6,))
    return [each.epsilon for each in found.figures]


def normal_epsilon(mu: float, delta: float) -> float:
    """ε of N(0, 1) against N(μ, 1), by SciPy's normal law and a root finder."""

    def above(epsilon: float) -> float:
        near = stats.norm.sf(epsilon / mu - mu / 2)
        return float(near - np.exp(epsilon) * stats.norm.sf(epsilon / mu + mu / 2) - delta)

    return float(optimize.brentq(above, 0, 50, xtol=1e-13))


def test_gaussian_noise_composes_exactly(ledger: BudgetLedger) -> None:
    ledger.declare("table", ZCDP(1.0))
    spend(ledger, *[GDP(0.2)] * 9)
    wanted = [normal_epsilon(0.6, delta) for delta in (1e-6, 1e-9)]
    assert epsilons(ledger, 1e-6, 1e-9) == pytest.approx(wanted, rel=1e-6)
    by_rho = ZCDP(0.18).to(ApproxDP, delta=1e-6).epsilon
    assert wanted[0] < by_rho


def test_figures_write_nothing_and_admit_nothing(ledger: BudgetLedger) -> None:
    ledger.declare("table", ApproxDP(1.0, 1e-6))
    spend(ledger, PureDP(0.5), PureDP(0.5))
    (found,) = epsilons(ledger, 0.2)
    assert found is not None
    assert found < 1.0
    before = len(ledger.history())
    with pytest.raises(BudgetExceededError):
        spend(ledger, PureDP(0.001))
    assert len(ledger.history()) == before
    assert [each.delta for each in ledger.figures("table").figures] == [1e-6, 1e-9]
    told = str(ledger.figures("table"))
    assert told.startswith("table: ε = 1, δ = 0 spent in 2 of ε = 1, δ = 1e-06 (add_remove")
    assert "at δ = 1e-06 (by " in told
    assert told.endswith("This admits no spend.")


def test_real_releases_tell_their_curve(ledger: BudgetLedger) -> None:
    ledger.declare("table", ZCDP(1.0))
    rows = np.column_stack([np.linspace(-1, 1, 50), np.linspace(0, 10, 50)])
    schema = dpl.Schema(x=(-1, 1), y=(0, 10))
    for _ in range(4):
        dpl.release_moments(rows, schema, epsilon=1.0, delta=1e-6, ledger=ledger, dataset="table")
    (found,) = epsilons(ledger, 1e-6)
    # Each has the μ of (1, 1e-6), and four have twice that, but for the grid.
    mu = float(optimize.brentq(lambda mu: normal_epsilon(mu, 1e-6) - 1.0, 0.1, 0.5))
    assert found == pytest.approx(normal_epsilon(2 * mu, 1e-6), rel=1e-3)


def test_few_pure_losses_add_up_and_pairs_take_their_delta(ledger: BudgetLedger) -> None:
    ledger.declare("table", ApproxDP(9.0, 1e-3))
    assert ledger.figures("table").figures == ()
    assert "beforehand: nothing." in str(ledger.figures("table"))
    spend(ledger, PureDP(0.25), PureDP(0.5))
    assert epsilons(ledger, 1e-9) == pytest.approx([0.75], rel=1e-6)
    spend(ledger, ApproxDP(0.5, 2.0**-24))
    found = epsilons(ledger, 1e-6, 2.0**-24, 1e-9)
    assert found == [pytest.approx(1.25, rel=1e-4), None, None]
    assert "nothing at δ = 1e-09 (pairs take δ = 5.96046e-08)" in str(ledger.figures("table"))


def test_pairs_alone_add_up(ledger: BudgetLedger) -> None:
    ledger.declare("table", ApproxDP(9.0, 1e-3))
    spend(ledger, ApproxDP(0.5, 2.0**-24), ApproxDP(0.25, 2.0**-24))
    assert epsilons(ledger, 2.0**-23, 2.0**-24) == [0.75, None]


def test_pairs_leave_less_of_delta_to_others(
    ledger: BudgetLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.declare("table", ApproxDP(9.0, 1e-3))
    spend(ledger, ApproxDP(0.5, 7e-7))
    facts = [line.content()["figures"] for line in ledger.history() if line.kind == "spend"]
    lines = [(facts[0], 1), (figures.facts_of(GDP(0.5), None, None), 1)]
    (found,) = figures.figures(lines, Budget(ZCDP(9.0)), (1e-6,))
    assert found.epsilon == pytest.approx(0.5 + normal_epsilon(0.5, 3e-7), rel=1e-6)
    left: list[float] = []

    def noted(_: object, delta: float) -> float:
        left.append(delta)
        return 1.0

    monkeypatch.setattr(figures, "_WAYS", {"noted": noted})
    figures.figures(lines, Budget(ZCDP(9.0)), (1e-6,))
    assert left == pytest.approx([3e-7])
    assert Fraction(left[0]) + Fraction(7e-7) < Fraction(1e-6)


@pytest.mark.accounting
def test_mixtures_go_through_privacy_loss_distributions(
    ledger: BudgetLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.declare("table", ZCDP(9.0))
    spend(ledger, GDP(0.5), PureDP(0.3), GDP(0.5))
    spend(ledger, ApproxDP(1.0, 1e-5), concentrated=ZCDP(0.01), profile=Laplace(0.2))
    (figure,) = ledger.figures("table", (1e-6,)).figures
    assert figure.way == "by privacy-loss distributions"
    assert figure.epsilon is not None
    # At least the two Gaussians alone, and at most those with the pure losses added.
    alone = normal_epsilon(0.5 * 2**0.5, 1e-6)
    assert alone < figure.epsilon < alone + 0.5
    monkeypatch.setattr(figures, "_compose_profiles", _missing)
    (without,) = ledger.figures("table", (1e-6,)).figures
    assert without.way == "by their ρ"
    assert without.epsilon is not None
    assert without.epsilon > figure.epsilon


def _missing(_: object) -> None:
    raise ImportError


def test_mixtures_of_too_many_are_not_convolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "profiles", _missing)
    parts = [({"promised": {"kind": "PureDP", "epsilon": 0.01}}, 1)] * 100
    (found,) = figures.figures(parts, Budget(ZCDP(9)), (1e-6,))
    assert found.way == "by their ρ"
    assert found.epsilon is not None
    assert found.epsilon < 0.6  # by ρ = 0.005, where the sum is 1


@pytest.mark.parametrize(("count", "convolved"), [(1, False), (2, True), (32, True), (33, False)])
def test_a_mixture_of_2_to_32_is_convolved(
    count: int, convolved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compose, "profiles", lambda parts, **_: Gaussian(0.01 * len(parts)))
    # Different losses in each case, as what was composed once is remembered.
    found = figures._epsilon_by_convolution([Pure(0.5 + count)] * count, 1e-6)
    assert found == (Gaussian(0.01 * count).epsilon(1e-6) if convolved else None)


def test_the_grid_of_losses_is_as_coarse_as_the_widest_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def noted(parts: list[Any], *, interval: float) -> Any:
        asked.append(interval)
        return parts[0]

    monkeypatch.setattr(compose, "profiles", noted)
    figures._compose_profiles.cache_clear()
    figures._compose_profiles((Pure(0.001), Gaussian(1.0)))
    figures._compose_profiles.cache_clear()
    widest = normal_epsilon(1.0, 1e-12)
    assert 250 < widest / asked[0] <= 500
    assert np.log2(asked[0]) == round(np.log2(asked[0]))


def test_without_the_library_pure_losses_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "_compose_profiles", _missing)
    facts = [({"promised": {"kind": "PureDP", "epsilon": each}}, 1) for each in (0.25, 0.5)]
    (found,) = figures.figures(facts, Budget(ZCDP(9)), (1e-9,))
    assert (found.epsilon, found.way) == (0.75, "by their ε")
    one = [({"profile": {"kind": "Gaussian", "mu": 0.5}}, 1)]
    (normal,) = figures.figures([*facts, *one], Budget(ZCDP(9)), (1e-9,))
    assert normal.way == "by their ρ"  # a normal loss has no end


STEPS: dict[str, tuple[Any, Any]] = {
    "normal": (Gaussian(0.25), Gaussian(0.5)),
    "grid": (GridGaussian(0.25, 1e-9), GridGaussian(0.5, 1e-9)),
    "pure": (Pure(0.25), Pure(0.5)),
    "laplace": (Laplace(0.25), Pure(0.5)),
    "rho": (Concentrated(0.25, 2.0), Concentrated(1.0)),
    "pair": (ApproxDP(0.0, 2.0**-24), ApproxDP(0.0, 2.0**-23 * (1 + 1e-14))),
}


@pytest.mark.parametrize("name", list(STEPS))
def test_two_steps_between_neighbours(name: str) -> None:
    part, twice = STEPS[name]
    assert figures._group_part(part, 1) is part
    assert figures._group_part(part, 2) == twice


def test_other_neighbours_are_so_many_steps(ledger: BudgetLedger) -> None:
    ledger.declare("table", ZCDP(9.0), "replace")
    spend(ledger, GDP(0.25), GDP(0.25))
    assert epsilons(ledger) == pytest.approx([normal_epsilon(0.5 * 2**0.5, 1e-6)], rel=1e-6)
    facts = figures.facts_of(ApproxDP(1.0, 0.9), None, None)
    budget = Budget(ApproxDP(9.0, 0.99), Neighbours.REPLACE)
    (none,) = figures.figures([(facts, 2)], budget, (1e-6,))
    assert (none.epsilon, none.way) == (None, "δ reaches 1")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((PureDP(0.5), None, None), Pure(0.5)),
        ((GDP(0.5), None, None), Gaussian(0.5)),
        ((ZCDP(0.5), None, None), Concentrated(0.5)),
        ((ApproxDP(0.5, 0.1), None, None), ApproxDP(0.5, 0.1)),
        ((ApproxDP(0.5, 0.1), ZCDP(0.2), None), Concentrated(0.2)),
        ((MIDP(0.5), None, None), None),
        ((MIDP(0.5), ZCDP(0.2), None), Concentrated(0.2)),
        ((None, None, None), None),
        ((MIDP(0.5), ZCDP(0.2), Gaussian(0.1)), Gaussian(0.1)),
        ((MIDP(0.5), None, Concentrated(0.1, 2.0)), Concentrated(0.1, 2.0)),
        ((PureDP(0.5), None, Selections(Fraction(1, 8), 3)), Pure(0.5)),
    ],
    ids=str,
)
def test_what_a_line_says_gives_the_best_that_is_known(given: Any, wanted: Any) -> None:
    assert figures._part(figures.facts_of(*given)) == wanted


def test_what_has_no_epsilon_has_no_figure(ledger: BudgetLedger) -> None:
    ledger.declare("table", MIDP(9.0))
    spend(ledger, MIDP(1.0))
    (none,) = ledger.figures("table", (1e-6,)).figures
    assert str(none) == "nothing at δ = 1e-06 (a release whose promise has no ε)"
    for delta in (-0.1, 0.0, 1.0, 1.5):
        with refused("deltas", "figures"):
            ledger.figures("table", (delta,))


def test_gaussians_with_and_without_a_grid_are_one_vector() -> None:
    one = figures._merge_profiles([Gaussian(0.3), GridGaussian(0.4, 0.25), GridGaussian(0.5, 0.5)])
    (grid,) = one
    assert isinstance(grid, GridGaussian)
    assert grid.mu == pytest.approx(0.5**0.5, rel=1e-14)
    assert grid.mu**2 >= 0.5
    assert grid.inverse_variance == 0.75
    assert figures._merge_profiles([Concentrated(0.25), Pure(0.1), Concentrated(0.5)]) == (
        Pure(0.1),
        Concentrated(0.75),
    )
    assert figures._merge_profiles([]) == ()
    # What is known besides of a single one is kept.
    assert figures._merge_profiles([Concentrated(0.25, 2.0)]) == (Concentrated(0.25, 2.0),)
    assert figures._merge_profiles([Gaussian(0.3)]) == (Gaussian(0.3),)


def test_what_is_merged_is_between_the_same_neighbours() -> None:
    same = Neighbours.REPLACE
    two = [Gaussian(0.3, same), Gaussian(0.4, same), Concentrated(0.25, None, same)]
    merged = figures._merge_profiles([*two, Concentrated(0.5, None, same), Pure(0.1, same)])
    assert [each.neighbours for each in merged] == [same] * 3


def test_mixtures_are_composed_between_the_neighbours_of_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[Neighbours] = []

    def noted(parts: list[Any], **_: float) -> Any:
        found.extend(part.neighbours for part in parts)
        return parts[0]

    monkeypatch.setattr(compose, "profiles", noted)
    figures._compose_profiles.cache_clear()
    facts = [(figures.facts_of(each, None, None), 1) for each in (GDP(0.5), PureDP(0.25))]
    figures.figures(facts, Budget(ZCDP(9.0), Neighbours.REPLACE), (1e-6,))
    figures._compose_profiles.cache_clear()
    assert found == [Neighbours.REPLACE] * 2
