"""Logistic descent: limits, odd tables, replays on neighbours, budgets, what it says of errors."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dplinear.adaptive.noisy_sums import LEAST_SHARE, _Noise
from dplinear.arrays import Floats
from dplinear.descent.common import PreparedDescent
from dplinear.descent.covariance_filter import CovarianceFilter
from dplinear.descent.logistic import LogisticDescent
from dplinear.descent.logistic_curvature import Hessian, Secants, best_clips, curve
from dplinear.exact.design import Design
from dplinear.exact.logistic_grams import LogisticGram
from dplinear.mechanisms.model import Solution
from dplinear.noise import simulation
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP
from refusals import refused

from .descents import (
    ADD_REMOVE,
    REPLACE,
    Rows,
    design,
    integer_rows,
    recorded,
    replayed,
    spelled,
)

pytestmark = pytest.mark.heavy

FALSE_ALARM = 1e-6
ENDLESS = ApproxDP(1e6, 1e-6)
SMALL, LINE = design(4), design(1)


def prepared(
    of: Design, guarantee: Any = None, relation: Neighbours = ADD_REMOVE
) -> PreparedDescent:
    asked = ApproxDP(1.0, 1e-6) if guarantee is None else guarantee
    return LogisticDescent(guarantee=asked, neighbours=relation).prepare(of)


def fitted(
    of: Design, rows: Floats, seed: int, guarantee: Any = None, relation: Neighbours = ADD_REMOVE
) -> Solution:
    return prepared(of, guarantee, relation).run(Rows(rows), simulation.entropy(seed))


def slopes(of: Design, variance: float) -> Any:
    """Equal slopes, under which log-odds have this variance if cells have standard deviation ¼."""
    features = of.dimension - of.intercept
    return np.full(features, 4 * math.sqrt(variance / features))


def table(
    of: Design,
    seed: int,
    count: int,
    *,
    variance: float = 2.0,
    start: float = 0.4,
    scale: float = 1,
) -> Floats:
    """Normal cells; each next column `scale` times as wide as the one before, as steep as ever."""
    random = simulation.generator(seed)
    features = of.dimension - of.intercept
    cells = np.clip(random.normal(size=(features, count)) / 4, -1, 1)
    chance = expit(slopes(of, variance) @ cells + start * of.intercept)
    label = 2.0 * (random.uniform(size=count) < chance) - 1
    return integer_rows(of, cells * scale ** np.arange(features)[:, None], label)


def likeliest(of: Design, rows: Floats) -> tuple[Any, Any]:
    """The maximum of the likelihood by scikit-learn, and its curvature."""
    cells = (rows / of.shape.steps_per_unit)[list(of.features)].T
    labels = rows[of.target] > 0
    # A penalty of 1e-8 of a unit stands for none, in every version of scikit-learn.
    model = LogisticRegression(C=1e8, fit_intercept=False, tol=1e-10, max_iter=10_000)
    found = model.fit(cells, labels).coef_[0]
    chance = expit(cells @ found)
    return found, (cells.T * (chance * (1 - chance))) @ cells


def excess(of: Design, rows: Floats, coefficients: Any) -> float:
    """The distance from the likeliest model, of what its own sampling costs."""
    best, curvature = likeliest(of, rows)
    off = coefficients - best
    return float(off @ curvature @ off / of.dimension)


# Limits


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("scale", [1.0, 1 / 3])
def test_without_noise_it_is_scikit_learns(scale: float, relation: Neighbours) -> None:
    """Noise is below 1e-4 of sampling here, and so is what twelve steps leave."""
    rows = table(SMALL, 1, 20_000, scale=scale)
    assert excess(SMALL, rows, fitted(SMALL, rows, 2, ENDLESS, relation).coefficients) < 1e-3


@pytest.mark.parametrize("features", [1, 3])
def test_log_odds_may_have_no_intercept(features: int) -> None:
    of = design(features, intercept=False)
    rows = table(of, 3, 20_000)
    assert excess(of, rows, fitted(of, rows, 4, ENDLESS).coefficients) < 1e-2


def test_a_usual_budget_costs_less_than_sampling_does() -> None:
    """20,000 rows at ε = 1: the mean of eight tables is 0.4 of what sampling costs."""
    found = [
        excess(SMALL, rows, fitted(SMALL, rows, seed).coefficients)
        for seed in range(8)
        for rows in [table(SMALL, seed, 20_000)]
    ]
    assert np.mean(found) < 1


def risk(of: Design, coefficients: Any, variance: float, start: float) -> float:
    """Mean Kullback-Leibler distance of the model's chances from the true ones, on fresh rows."""
    cells = np.clip(simulation.generator(99).normal(size=(of.dimension - 1, 20_000)) / 4, -1, 1)
    true = slopes(of, variance) @ cells + start
    found = coefficients[0] + coefficients[1:] @ cells
    gap = np.logaddexp(0, found) - np.logaddexp(0, true) - expit(true) * (found - true)
    return float(gap.mean())


@pytest.mark.parametrize(
    ("count", "variance", "start"),
    [(1000, 3.0, -4.0), (1000, 0.3, 0.4), (1000, 0.0, 0.0), (100, 3.0, 0.0), (30, 0.0, 2.0)],
)
def test_too_small_a_budget_costs_little_more_than_the_base_rate(
    count: int, variance: float, start: float
) -> None:
    """Twenty features at ε = ½: on average at most 0.02 beyond the best constant model."""
    of = design(20)
    found = [
        risk(
            of,
            fitted(
                of, table(of, s, count, variance=variance, start=start), s, ApproxDP(0.5, 1e-6)
            ).coefficients,
            variance,
            start,
        )
        for s in range(12)
    ]
    flat = min(
        risk(of, np.append(level, np.zeros(20)), variance, start)
        for level in start + np.linspace(-2, 2, 17)
    )
    # Thirty rows at ε = ½ do not show a rate either.
    assert np.mean(found) < flat + (0.02 if count > 100 or start == 0 else 0.35)


# Odd tables


def odd_tables(of: Design) -> dict[str, Floats]:
    random = simulation.generator(5)
    features = of.dimension - of.intercept
    cells = random.uniform(-1, 1, (features, 400))
    yes, separable = np.ones(400), np.where(cells[0] > 0, 1.0, -1.0)
    return {
        "nothing": integer_rows(of, cells[:, :0], yes[:0]),
        "one row": integer_rows(of, cells[:, :1], yes[:1]),
        "all yes": integer_rows(of, cells, yes),
        "all no": integer_rows(of, cells, -yes),
        "separable": integer_rows(of, cells, separable),
        "constant": integer_rows(of, np.ones_like(cells), separable),
        "zero": integer_rows(of, np.zeros_like(cells), separable),
        "corners": integer_rows(of, np.sign(cells), separable),
    }


@pytest.mark.parametrize(
    "guarantee", [ApproxDP(0.1, 1e-6), ApproxDP(4.0, 1e-6), ZCDP(1e6)], ids=str
)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", odd_tables(SMALL))
def test_any_table_has_finite_log_odds(name: str, intercept: bool, guarantee: Any) -> None:
    of = design(4, intercept=intercept)
    for seed in range(3):
        found = fitted(of, odd_tables(of)[name], seed, guarantee)
        assert np.isfinite(found.coefficients).all()
        assert np.abs(found.coefficients).max() < 1e3
        assert found.noise is not None
        assert np.isfinite(found.noise).all()
        assert (found.spread is None) == (found.unknown is not None)


# Neighbours and budgets

CASES = {
    "few rows": (SMALL, 30, ApproxDP(1.0, 1e-6)),
    "with a Gram matrix": (SMALL, 3000, ApproxDP(1.0, 1e-6)),
    "little noise": (SMALL, 500, ZCDP(50.0)),
    "without an intercept": (design(3, intercept=False), 400, ApproxDP(2.0, 1e-5)),
    "one feature": (LINE, 200, ZCDP(0.5)),
    "nothing": (LINE, 0, ZCDP(0.5)),
}


def neighbours(of: Design, rows: Floats, relation: Neighbours) -> list[tuple[Floats, Floats]]:
    """A row more at the bounds, of either label, short or with one cell; or in another's place."""
    random = simulation.generator(6)
    corners = random.choice([-1.0, 1.0], (of.shape.dimension, 6))
    cells = np.concatenate((corners, 0.3 * corners, np.eye(of.shape.dimension)), axis=1)
    other = cells.copy()
    other[of.target] *= -1
    cells = np.rint(np.concatenate((cells, other, -cells), axis=1) * of.shape.steps_per_unit)
    longer = [np.column_stack((rows, row)) for row in cells.T]
    if relation is ADD_REMOVE:
        return [(rows, more) for more in longer]
    return list(itertools.pairwise(longer)) + list(zip(longer, longer[12:], strict=False))


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("case", CASES)
def test_no_row_moves_a_descent_by_more_than_is_paid_for(case: str, relation: Neighbours) -> None:
    """What was asked of one table, asked of its neighbours: each sum, and all of them together."""
    of, count, guarantee = CASES[case]
    ready = prepared(of, guarantee, relation)
    rows = table(of, 7, count)
    asked = recorded(ready, rows, seed=8).asked
    pairs = neighbours(of, rows, relation)
    found = replayed(asked, ready.budget, pairs)
    assert found.kept
    # A row far out is near most clips at once, so little is paid for in vain.
    assert found.spent > 0.3, float(found.spent)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("case", ["few rows", "with a Gram matrix", "without an intercept"])
def test_queries_depend_on_earlier_answers_alone(case: str, relation: Neighbours) -> None:
    """Another table, of another length, that gave the same answers is asked the same."""
    of, count, guarantee = CASES[case]
    ready = prepared(of, guarantee, relation)
    told = recorded(ready, table(of, 9, count), seed=10)
    other = table(of, 11, 2 * count + 17, start=-1.0)
    again = recorded(ready, other, seed=12, script=told.answers)
    assert [spelled(query) for query in again.asked] == [spelled(query) for query in told.asked]
    one, two = told.solution, again.solution
    assert (one.coefficients == two.coefficients).all()
    assert (one.count, dict(one.parameters)) == (two.count, dict(two.parameters))
    assert (one.noise == two.noise).all()  # type: ignore[union-attr]


def test_a_matrix_of_scores_that_is_paid_for_too_little_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A replaced row moves it by more than a row more does: half of the price is not enough."""
    of, count, guarantee = CASES["with a Gram matrix"]
    monkeypatch.setattr(LogisticGram, "replaced", 1)
    ready = prepared(of, guarantee, REPLACE)
    rows = table(of, 7, count)
    asked = [
        query
        for query in recorded(ready, rows, seed=8).asked
        if isinstance(query.statistic, LogisticGram)
    ]
    assert len(asked) == 2
    cells = np.vstack((np.ones(4), np.array([[1, -1, 1, -1]] * 4), [1, 1, -1, -1]))
    cells[1:3, 2:] *= -1
    longer = [np.column_stack((rows, row)) for row in (cells * of.shape.steps_per_unit).T]
    pairs = list(itertools.permutations(longer, 2))
    assert max(replayed(asked, ready.budget, pairs).sums) > 1


GRID = list(
    itertools.product(
        [(0, 1), (1, 3), (300, 1), (300, 20), (20_000, 6)],
        [ApproxDP(0.01, 1e-9), ApproxDP(1.0, 1e-6), ApproxDP(30.0, 0.01), ZCDP(1e6)],
        [ADD_REMOVE, REPLACE],
        [True, False],
    )
)


def test_no_descent_spends_more_than_its_budget() -> None:
    """From no rows to many and from next to no budget to an endless one; all of it is spent."""
    steps = set()
    for seed, ((count, features), guarantee, relation, intercept) in enumerate(GRID):
        of = design(features, intercept=intercept)
        ready = prepared(of, guarantee, relation)
        found = recorded(ready, table(of, seed, count), seed)
        paid = [query for query in found.asked if query.statistic.sensitivity_squared(relation)]
        assert sum(_Noise.of(query, ready.budget).cost for query in paid) <= ready.budget.square
        assert found.chain.spent <= ready.budget.square
        assert found.chain.inverse <= ready.budget.inverse
        assert min(query.share for query in paid) >= LEAST_SHARE
        # Where the number of rows is public, its share is spent on the steps.
        assert 0.999 < found.solution.parameters["spent"] <= 1
        assert np.isfinite(found.solution.coefficients).all()
        steps.add(found.solution.parameters["steps"])
    assert steps == {12, 20}


# What it says of its errors


def test_errors_are_known_unless_few_rows_say_anything() -> None:
    rows = table(SMALL, 13, 20_000)
    assert fitted(SMALL, rows, 14).unknown is None
    few = fitted(SMALL, rows[:, :100], 14)
    assert few.spread is None
    assert few.unknown is not None
    assert "shrunk" in few.unknown
    rare = fitted(SMALL, table(SMALL, 13, 20_000, start=-5.0), 14)
    assert rare.unknown is not None
    assert "Few rows have one of the two labels" in rare.unknown
    assert fitted(SMALL, table(SMALL, 13, 20_000, start=-5.0), 14, ZCDP(500.0)).unknown is not None
    unusual = table(SMALL, 13, 20_000, start=-3.5)  # one in sixteen
    assert fitted(SMALL, unusual, 14).unknown is None
    assert fitted(SMALL, unusual[:, :2000], 14).unknown is not None


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_rare_values_of_a_column_leave_errors_unknown(share: float) -> None:
    rows = table(SMALL, 15, 20_000)
    held = simulation.generator(16).uniform(size=20_000) < share
    rows[1] = np.where(held, 1, -1) * SMALL.shape.steps_per_unit
    assert (fitted(SMALL, rows, 17).spread is None) == (share < 0.1)
    indicators = (False, True, False, False, False)
    of = Design(**{**vars(SMALL), "indicators": indicators})
    rows[1] = held * SMALL.shape.steps_per_unit
    assert (fitted(of, rows, 17).spread is None) == (share < 0.1)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_intervals_cover(epsilon: float) -> None:
    """95% intervals of 40 tables cover 90% of the true slopes or more.

    Were the coverage 0.95 and slopes of a table one event, fewer than 29 of 40 would be one in a
    million; slopes of a table are nearly independent, so that the threshold below is far from it.
    """
    of, hits, count = design(5), 0, 40
    for seed in range(count):
        found = fitted(of, table(of, seed, 10_000), seed, ApproxDP(epsilon, 1e-6))
        assert found.spread is not None
        errors = np.sqrt(np.diag(found.spread))[1:]
        hits += int((np.abs(found.coefficients[1:] - slopes(of, 2.0)) < 1.96 * errors).sum())
    assert hits >= stats.binom.ppf(FALSE_ALARM, 5 * count, 0.95)


@pytest.mark.long
def test_intervals_cover_where_columns_are_zeros_and_ones() -> None:
    """Six levels that go together: 95% intervals cover 90% or more in 30 tables of 10,000 rows.

    Slopes of a table are nearly independent: fewer than the threshold is one in a million.
    """
    of = Design(**{**vars(design(8)), "indicators": (False, *[True] * 6, False, False)})
    steep, hits, count = np.array([*np.linspace(-1, 1, 6), 2.0, 1.0]), 0, 30
    for seed in range(count):
        random = simulation.generator(seed)
        common = random.normal(size=10_000)
        levels = [
            random.normal(size=10_000) + 0.7 * common > edge for edge in np.linspace(0, 1.2, 6)
        ]
        cells = np.array([*levels, *np.clip(random.normal(size=(2, 10_000)) / 4, -1, 1)], float)
        label = 2.0 * (random.uniform(size=10_000) < expit(steep @ cells - 0.5)) - 1
        found = fitted(of, integer_rows(of, cells, label), seed, ApproxDP(3.0, 1e-6))
        assert found.spread is not None
        errors = np.sqrt(np.diag(found.spread))[1:]
        hits += int((np.abs(found.coefficients[1:] - steep) < 1.96 * errors).sum())
    assert hits >= stats.binom.ppf(FALSE_ALARM, 8 * count, 0.95)


def test_separable_labels_have_no_standard_errors() -> None:
    rows = table(SMALL, 13, 5000)
    rows[SMALL.target] = np.where(rows[1] + rows[2] > 0, 1, -1) * SMALL.shape.steps_per_unit
    found = fitted(SMALL, rows, 14, ApproxDP(3.0, 1e-6))
    assert found.spread is None
    assert found.unknown is not None
    assert "hardly overlap" in found.unknown


# Arguments


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"guarantee": GDP(1.0)}, "not μ-GDP"),
        ({"guarantee": MIDP(1.0)}, "bits"),
        ({"guarantee": PureDP(1.0)}, "delta=1e-6"),
        ({"neighbours": "element"}, "neighbours"),
        ({"settings": 7}, "settings"),
        ({"guarantee": ZCDP(1e-30)}, "within reach"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {"guarantee": ZCDP(1.0), "neighbours": ADD_REMOVE} | arguments
    with pytest.raises((TypeError, ValueError), match=sentence):
        LogisticDescent(**given).prepare(LINE)


# Curvature


@pytest.mark.parametrize("score", [0.5, 0.7, 1.0])
def test_curvature_is_that_of_drawn_log_odds(score: float) -> None:
    """Means of a million draws, to six standard deviations: a false alarm is below 1e-6."""
    mean, variance = -1.0, 2.5
    z = simulation.generator(18).normal(size=10**6)
    chance = expit(mean + math.sqrt(variance) * z)
    weight = np.minimum(1, score / np.maximum(chance, 1 - chance))
    each = weight * chance * (1 - chance)
    found = curve(mean, variance, score)
    drawn = (each, each * z, each * z**2, weight * each)
    for value, draws in zip(vars(found).values(), drawn, strict=True):
        assert value == pytest.approx(draws.mean(), abs=6e-3 * draws.std())


def test_a_hessian_is_that_of_normal_rows() -> None:
    """Of a million rows, to 2%: its eigenvalues are within the error of such a sum."""
    random = simulation.generator(19)
    rows = 10**6
    u = random.normal(size=(3, rows)) / math.sqrt(rows) + np.array([[0.3], [0], [0]]) / rows**0.5
    gram = u @ u.T
    place = np.array([0.4, -0.8, 0.2]) * math.sqrt(rows)
    values, turn = np.linalg.eigh(gram)
    u, place = turn.T @ u, turn.T @ place
    model = Hessian(values, u.mean(axis=1), 0.3, rows, 1.0)
    chance = expit(0.3 + place @ u)
    true = (u * (chance * (1 - chance))) @ u.T
    found, _ = model.at(place, 0.0, 1.0)
    np.testing.assert_allclose(found, true, atol=0.02 * true.max())


def test_clips_widen_as_noise_falls() -> None:
    found = [best_clips(0.0, 2.0, price, 6) for price in np.geomspace(1e-9, 1, 10)]
    assert [clips.score for clips in found] == sorted((c.score for c in found), reverse=True)
    assert [c.leverage for c in found] == sorted((c.leverage for c in found), reverse=True)
    assert (found[0].score, found[-1].leverage) == (1.0, 0.85)


def test_secants_find_a_curvature_that_was_misjudged() -> None:
    """After a step by half the true curvature gradients say so, unless they are noise."""
    true, move = np.diag([2.0, 1.0]), np.array([1.0, 0.0])
    start = Secants(np.zeros((2, 2)))
    assert start.update(move, 1.0) is start
    stepped = Secants(start.matrix, (move, np.array([5.0, 0.0]), np.eye(2), np.eye(2)))
    after = np.array([5.0, 0.0]) - true @ move
    assert stepped.update(after, 1e-6).matrix == pytest.approx(np.diag([1.0, 0.0]), abs=1e-6)
    assert stepped.update(after, 10.0).matrix == pytest.approx(np.zeros((2, 2)))


# Settings of one's own


@pytest.mark.parametrize("gram_first", [Fraction(30, 1000), Fraction(200, 1000)])
def test_a_matrix_that_is_asked_for_twice_is_counted_twice(gram_first: Fraction) -> None:
    """Many features and little noise to spare for rounding: no sum is refused after the spend."""
    of = design(60)
    usual = LogisticDescent(guarantee=ZCDP(0.2))
    made = replace(usual, settings=replace(usual.settings, gram_first=gram_first))
    for count in (0, 20_000):
        rows = table(of, 1, count)
        found = made.prepare(of).run(Rows(rows), simulation.entropy(2))
        assert np.isfinite(found.coefficients).all()


def test_standard_errors_that_nothing_is_set_aside_for_are_refused_in_words() -> None:
    usual = LogisticDescent(guarantee=ApproxDP(3.0, 1e-6))
    rows = table(SMALL, 3, 20_000)
    assert usual.prepare(SMALL).run(Rows(rows), simulation.entropy(4)).spread is not None
    made = replace(usual, settings=replace(usual.settings, matrices=Fraction(0)))
    found = made.prepare(SMALL).run(Rows(rows), simulation.entropy(4))
    assert found.spread is None
    assert "`matrices`" in str(found.unknown)
    with refused("shares", "Settings"):
        replace(usual.settings, matrices=Fraction(1, 2**14))
    left = Fraction(872, 1000)  # which leaves the steps and both matrices less than they need
    with refused("shares", "Settings"):
        replace(usual.settings, gram=left, gram_first=left)


def test_a_gain_is_found_where_noise_is_lost_in_rounding() -> None:
    """Kalman's own formula has a matrix there that float64 takes for singular."""
    covariance = np.full((2, 2), 2.0**54)
    curvature = np.diag([0.25, 0.5])
    start = CovarianceFilter.start(covariance)
    gain = start.gain(curvature, 1e-12, curvature)
    assert np.isfinite(gain).all()
    usual = CovarianceFilter.start(np.diag([2.0, 3.0]))
    plain = np.diag([2.0, 3.0]) @ curvature
    plain = plain @ np.linalg.inv(curvature @ plain + 0.5 * np.eye(2))
    assert usual.gain(curvature, 0.5, curvature) == pytest.approx(plain, rel=1e-12)
