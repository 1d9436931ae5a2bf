"""Chains: budgets against mpmath, neighbours on exact integers, audits of adaptive chains."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import mpmath
import numpy as np
import pytest
from scipy import stats

import refusals
from dplinear.adaptive import noisy_sums as chain
from dplinear.adaptive.noisy_sums import (
    LEAST_SHARE,
    VARIANCE,
    Answer,
    Budget,
    NoisySums,
    Query,
    _Noise,
    _scale,
    growing_shares,
)
from dplinear.arrays import Floats, Integers
from dplinear.exact.mapped_sums import MappedGram, MappedSum
from dplinear.exact.residual_sums import Gradient, ResidualHistogram
from dplinear.exact.row_sums import Count, RowSum
from dplinear.exact.shape import Shape
from dplinear.noise import simulation
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP
from dplinear.privacy.compose import BudgetExceededError
from exact.oracles import SHAPES, integer_rows, square, statistics

pytestmark = pytest.mark.heavy

Seeded = Callable[[int], Any]
ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
RELATIONS = (ADD_REMOVE, REPLACE)
FALSE_ALARM = 1e-6
SHAPE = Shape(3, 36, 6)  # 36²·3 ≤ 64²
HALF = Fraction(1, 2)
CONCENTRATED = ZCDP(0.5)  # μ = 1
LEAST, MOST = chain._SQUARES


class Table:
    """Rows that remember what was asked of them, and what a chain had spent by then."""

    denominator = 1

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        self.asked: list[Sequence[RowSum]] = []
        self.spent: list[Fraction] = []
        self.reader: NoisySums | None = None
        self._known: dict[int, tuple[RowSum, Any]] = {}

    def moments(self) -> Any:
        raise AssertionError("A chain asks for sums alone.")

    def sums(self, asked: Sequence[RowSum]) -> list[Any]:
        self.asked.append(asked)
        if self.reader is not None:
            self.spent.append(self.reader.spent)
        return [self.exact(statistic) for statistic in asked]

    def exact(self, statistic: RowSum) -> Any:
        if id(statistic) not in self._known:
            total = statistic.sum(self.rows).astype(object)
            self._known[id(statistic)] = statistic, total
        return self._known[id(statistic)][1]


def opened(budget: Budget, rows: Floats | None = None, seed: int = 1) -> tuple[NoisySums, Table]:
    table = Table(np.zeros((3, 5)) if rows is None else rows)
    table.reader = NoisySums(table, budget, simulation.entropy(seed))
    return table.reader, table


def budget(
    relation: Neighbours = ADD_REMOVE, guarantee: Any = CONCENTRATED, coordinates: int = 1000
) -> Budget:
    return Budget.of(guarantee, coordinates, relation, "a test")


# Budgets


def gaussian_delta(epsilon: Any, mu: Any) -> Any:
    a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return mpmath.ncdf(a) - mpmath.exp(epsilon) * mpmath.ncdf(b)


@pytest.mark.parametrize("coordinates", [1, 2000, 10**7])
@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(0.1, 0.0275446502438276), (1.0, 0.236704380663436), (4.0, 0.837858757089998)],
)
def test_budgets_keep_what_they_claim(epsilon: float, mu: float, coordinates: int) -> None:
    """To within a millionth of the continuous noise, and never above it, the grid's cost paid."""
    of = budget(guarantee=ApproxDP(epsilon, 1e-6), coordinates=coordinates)
    assert mu * (1 - 1e-6) <= of.mu <= mu * (1 + 1e-14)
    assert of.inverse == coordinates / VARIANCE
    with mpmath.workdps(60):
        exact = mpmath.sqrt(mpmath.mpf(of.square.numerator) / of.square.denominator)
        inverse = mpmath.mpf(coordinates) / int(VARIANCE)
        cost = (1 + mpmath.exp(epsilon)) * mpmath.mpf("0.0203") * inverse
        assert gaussian_delta(mpmath.mpf(epsilon), exact) + cost <= mpmath.mpf(1e-6)
    assert 0.999999e-6 < of.profile.delta(epsilon) <= 1e-6


@pytest.mark.parametrize("rho", [1e-6, 0.01, 1 / 3, 7.0])
def test_concentrated_budgets_are_met_to_the_last_bit(rho: float) -> None:
    of = budget(guarantee=ZCDP(rho))
    assert of.square == 2 * Fraction(rho)
    assert Fraction(math.nextafter(of.mu, 0.0)) ** 2 < of.square <= Fraction(of.mu) ** 2
    assert of.profile.mu == of.mu
    assert of.profile.neighbours is ADD_REMOVE


def test_every_law_of_noise_is_wide_enough_for_the_lemma() -> None:
    assert VARIANCE.denominator == 1
    assert VARIANCE / 2 >= 121


def test_budgets_out_of_reach_are_refused_and_endless_ones_are_cut() -> None:
    for hopeless in (ZCDP(1e-20), ApproxDP(1e-9, 1e-12)):
        with refusals.refused("guarantee", "a test", "within reach"):
            budget(guarantee=hopeless)
    assert budget(guarantee=ZCDP(1e30)).square == MOST
    # The least and the largest budgets, at the least share and at all of it.
    for rho, share, moved in (
        (float(LEAST) / 2, LEAST_SHARE, 2**14),
        (1e30, Fraction(1), math.isqrt(int(MOST * VARIANCE))),
    ):
        of = budget(guarantee=ZCDP(rho))
        assert _Noise.of(Query(Count(), share), of).cost == Fraction(moved) ** 2 / VARIANCE


@pytest.mark.parametrize("guarantee", [GDP(1.0), MIDP(1.0), PureDP(1.0), ApproxDP(1.0, 0.0)])
def test_what_noise_on_a_grid_cannot_promise_is_refused(guarantee: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="'guarantee' parameter"):
        budget(guarantee=guarantee)


# Spending


def test_a_chain_spends_before_it_reads_and_once_for_each_query() -> None:
    reader, table = opened(budget())
    bands = ResidualHistogram(SHAPE, [0, 0, 1.0], 0.5, (1.0,))
    reader.ask([Query(Count(), Fraction(1, 3)), Query(bands, Fraction(1, 4))])
    assert len(table.asked) == 1
    assert table.asked[0] == [Count(), bands]
    first = reader.spent
    assert first == table.spent[0]
    assert Fraction(7, 12) * (1 - Fraction(1, 2**30)) < first <= Fraction(7, 12)
    assert reader.inverse == 4 / VARIANCE
    assert reader.remaining == 1 - first
    reader.ask([Query(Count(), reader.remaining)])
    assert table.spent[1] == reader.spent <= 1
    assert 0 <= reader.remaining < 2.0**-30


def overspent(reader: NoisySums) -> None:
    for queries in (
        [Query(Count(), Fraction(1) + Fraction(1, 2**28))],
        [Query(Count(), Fraction(1, 2)), Query(Count(), Fraction(2, 3))],
        [Query(Count(), Fraction(1, 100))] * 101,
    ):
        with pytest.raises(BudgetExceededError, match="more than its budget"):
            reader.ask(queries)


def test_overspending_raises_and_reads_nothing() -> None:
    for relation in RELATIONS:
        reader, table = opened(budget(relation, coordinates=10**6))
        bands = ResidualHistogram(SHAPE, [0, 0, 1.0], 0.5, (1.0,))
        if relation is ADD_REMOVE:
            overspent(reader)
        with pytest.raises(BudgetExceededError):
            reader.ask([Query(Count(), HALF), Query(bands, Fraction(2))])
        assert not table.asked
        assert reader.spent == reader.inverse == 0
        reader.ask([Query(bands, Fraction(2, 3))])
        before = reader.spent
        with pytest.raises(BudgetExceededError):
            reader.ask([Query(bands, Fraction(2, 3))])
        assert (len(table.asked), reader.spent) == (1, before)


def test_coordinates_are_a_budget_too() -> None:
    reader, table = opened(budget(coordinates=4))
    wide = MappedSum(SHAPE, np.eye(3), 1.0)
    with pytest.raises(BudgetExceededError):
        reader.ask([Query(wide, LEAST_SHARE), Query(wide, LEAST_SHARE)])
    assert not table.asked
    reader.ask([Query(wide, LEAST_SHARE), Query(Count(), LEAST_SHARE)])
    with pytest.raises(BudgetExceededError):
        reader.ask([Query(Count(), LEAST_SHARE)])


@pytest.mark.parametrize("share", [LEAST_SHARE * Fraction(999, 1000), Fraction(0), Fraction(-1)])
def test_next_to_nothing_buys_nothing(share: Fraction) -> None:
    reader, table = opened(budget())
    with pytest.raises(BudgetExceededError, match="next to nothing"):
        reader.ask([Query(Count(), share)])
    assert not table.asked
    reader.ask([Query(Count(), LEAST_SHARE)])


def test_a_sum_of_too_many_coordinates_for_its_share_is_refused() -> None:
    """Rounding alone could move it by more than it pays for; the scale would be negative."""
    least = Budget(LEAST, Fraction(1), ADD_REMOVE)
    for size, refused in ((2**14 - 1, False), (2**14, True), (2**14 + 600, True)):
        query = Query(ListedGram(size=size**2), LEAST_SHARE)
        if refused:
            with pytest.raises(BudgetExceededError, match="next to nothing"):
                _Noise.of(query, least)
        else:
            scale = _Noise.of(query, least).scale
            assert scale is not None
            assert scale > 0


def test_counts_are_free_and_exact_where_their_number_is_public() -> None:
    reader, _ = opened(budget(REPLACE), np.zeros((3, 77)))
    (answer,) = reader.ask([Query(Count(), Fraction(0))])
    assert (answer.values.tolist(), answer.sigma) == ([77.0], 0.0)
    assert reader.spent == reader.inverse == 0
    assert reader.remaining == 1
    (bands,) = reader.ask([Query(ResidualHistogram(SHAPE, [0, 0, 1.0], 0.5, (1.0,)), HALF)])
    assert bands.sigma > 0


def test_other_relations_are_refused() -> None:
    reader, table = opened(dataclasses.replace(budget(), neighbours=Neighbours.ELEMENT))
    with refusals.refused("neighbours", "Count.sensitivity_squared", "'add_remove', 'replace'"):
        reader.ask([Query(Count(), HALF)])
    assert not table.asked


# What is released


@dataclasses.dataclass(frozen=True, eq=False)
class Listed(RowSum):
    """A sum of what the rows hold, for tests that choose both."""

    bound: int = 1
    size: int = 1
    shape: Shape | None = None
    unit: Fraction = Fraction(1)
    replaced: ClassVar[int] = 4

    def sum(self, rows: Floats) -> Integers:
        return np.asarray(rows.sum(axis=1), np.int64)


class ListedGram(Listed):
    replaced: ClassVar[int] = 2
    symmetric: ClassVar[bool] = True


def normal(values: Any) -> bool:
    """Whether numbers may be standard normal: their mean, their squares, each at the rate."""
    flat = np.ravel(values)
    mean = abs(float(flat.sum())) / math.sqrt(flat.size)
    squares, half = float((flat**2).sum()), FALSE_ALARM / 4
    inside = stats.chi2.ppf(half, flat.size) < squares < stats.chi2.isf(half, flat.size)
    return bool(mean < stats.norm.isf(half)) and bool(inside)


FACTORS = {ADD_REMOVE: 1.0, REPLACE: 2.0}


@pytest.mark.parametrize("relation", RELATIONS)
def test_answers_are_unbiased_and_have_the_stated_noise(relation: Neighbours) -> None:
    """4,000 numbers; their mean and their squares within the limits of the normal law."""
    statistic = Listed(bound=7, size=4000, unit=Fraction(3, 5))
    truth = np.arange(-2000, 2000) % 90
    reader, _ = opened(budget(relation, coordinates=4000), truth[:, None].astype(float))
    (answer,) = reader.ask([Query(statistic, Fraction(1, 4))])
    assert answer.values.shape == (4000,)
    assert answer.sigma == pytest.approx(FACTORS[relation] * 7 * 0.6 / math.sqrt(0.25), rel=1e-7)
    assert normal((answer.values - truth * 0.6) / answer.sigma)


def matrices(reader: NoisySums) -> tuple[Answer, Any]:
    """Return a noisy matrix of 70 columns, and the exact one."""
    (answer,) = reader.ask([Query(ListedGram(bound=9, size=4900), HALF)])
    exact = np.add.outer(np.arange(70.0), np.arange(70.0))
    return answer, exact


@pytest.mark.parametrize("relation", RELATIONS)
def test_matrices_are_symmetric_with_half_the_variance_off_the_diagonal(
    relation: Neighbours,
) -> None:
    exact = np.add.outer(np.arange(70.0), np.arange(70.0)).reshape(-1, 1)
    for seed in range(3):
        reader, _ = opened(budget(relation, coordinates=4900), exact, seed)
        answer, truth = matrices(reader)
        assert (answer.values == answer.values.T).all()
        noise = (answer.values - truth) / answer.sigma
        assert normal(np.diag(noise))
        assert normal(noise[np.triu_indices(70, 1)] * math.sqrt(2))
        assert reader.inverse == 4900 / VARIANCE
        root = {ADD_REMOVE: 1.0, REPLACE: math.sqrt(2)}[relation]
        assert answer.sigma == pytest.approx(root * 9 / math.sqrt(0.5), rel=1e-7)


def test_a_matrix_of_one_number_is_a_number() -> None:
    reader, _ = opened(budget(), np.array([[5.0]]))
    (answer,) = reader.ask([Query(ListedGram(), HALF)])
    assert answer.values.shape == (1, 1)
    assert abs(answer.values[0, 0] - 5) < 6 * answer.sigma


def test_noise_is_fresh_for_every_number() -> None:
    reader, _ = opened(budget(coordinates=1500), np.zeros((500, 1)))
    query = Query(Listed(size=500), Fraction(1, 4))
    one, two = reader.ask([query, query])
    (three,) = reader.ask([query])
    drawn = np.concatenate([answer.values for answer in (one, two, three)])
    assert len(np.unique(drawn)) == 1500
    for first, second in ((one, two), (one, three), (two, three)):
        # 500 products of standard normal numbers, of variance 1; Bernstein's tail is wider.
        product = float(first.values @ second.values) / first.sigma / second.sigma
        assert abs(product) < 7 * math.sqrt(500)


def test_huge_sums_are_exact_until_the_last_rounding() -> None:
    """Beyond 2^53: what is scaled are integers of any length."""
    scale = Fraction(math.pi)
    exact = np.array([3**60, -(3**60), 3**60 + 1, 0, 1], object)
    found = _scale(exact, scale)
    for whole, rounded in zip(exact, found, strict=True):
        assert abs(rounded - whole * scale) <= HALF
    assert found[0] == -found[1]


@pytest.mark.parametrize("kind", [Listed, ListedGram])
def test_noise_is_all_that_stands_between(
    kind: type[Listed], monkeypatch: pytest.MonkeyPatch, generator: Seeded
) -> None:
    """Without it: the sums at the scale that was paid for, rounded once to floats."""
    monkeypatch.setattr(chain, "_draw_noise", lambda _, size, __: np.zeros(size, object))
    half = generator(20).integers(-(10**8), 10**8, (3, 3))
    exact = (half + half.T).ravel()
    query = Query(kind(bound=10**7, size=9, unit=Fraction(1, 7)), HALF)
    for relation in RELATIONS:
        of = budget(relation)
        reader, _ = opened(of, exact[:, None].astype(float))
        (answer,) = reader.ask([query])
        scale = _Noise.of(query, of).scale
        assert scale is not None
        wanted = [float(steps / scale / 7) for steps in _scale(exact.astype(object), scale)]
        assert answer.values.ravel().tolist() == wanted


# Neighbours, on exact integers


def distance(one: Any, other: Any, noise: _Noise) -> Fraction:
    """The squared distance of two sums at their scale, of what is paid for."""
    assert noise.scale is not None
    change = _scale(one, noise.scale) - _scale(other, noise.scale)
    return square(change) / (noise.cost * chain.VARIANCE)


def changes(statistic: RowSum, rows: Floats, relation: Neighbours) -> list[tuple[Any, Any]]:
    """Sums of neighbours: each row taken out; under replace, each put in the place of each."""
    terms = [statistic.sum(rows[:, [i]]).astype(object) for i in range(rows.shape[1])]
    whole = sum(terms[1:], start=terms[0])
    if relation is ADD_REMOVE:
        return [(whole, whole - term) for term in terms]
    return [(whole - one + two, whole) for one in terms for two in terms]


def adversarial(random: Any, shape: Shape) -> Floats:
    """Rows at the bound, with their opposites, and those along each axis."""
    rows = integer_rows(random, shape, 8)
    axes = np.zeros((shape.dimension, min(shape.dimension, 4)))
    np.fill_diagonal(axes, min(shape.steps_per_unit, 1 << shape.exponent))
    return np.concatenate((rows, -rows, axes, -axes), axis=1)


def farthest(
    random: Any,
    relation: Neighbours,
    names: Sequence[str],
    share: Fraction = LEAST_SHARE,
    total: Fraction = LEAST,
) -> dict[str, float]:
    """The largest distance of neighbours for each kind of sum."""
    found: dict[str, float] = {}
    for name in names:
        rows = adversarial(random, SHAPES[name])
        for kind, statistic in statistics(random, SHAPES[name]).items():
            noise = _Noise.of(Query(statistic, share), Budget(total, Fraction(1), relation))
            if noise.scale is None:
                continue
            pairs = changes(statistic, rows, relation)
            worst = max(distance(one, other, noise) for one, other in pairs)
            found[kind] = max(found.get(kind, 0.0), float(worst))
    return found


SMALL = ("plain", "clipped", "one", "coarse")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("share", "total"),
    [(LEAST_SHARE, LEAST), (Fraction(1, 3), Fraction(1, 20)), (Fraction(1), MOST)],
)
def test_neighbours_are_no_farther_apart_than_is_paid_for(
    relation: Neighbours, share: Fraction, total: Fraction, generator: Seeded
) -> None:
    """From the coarsest grid to steps that no float64 counts."""
    random = generator(21)
    for _ in range(2):
        found = farthest(random, relation, SMALL, share, total)
        assert max(found.values()) <= 1
        assert len(found) == 14 - (relation is REPLACE)
        # Opposite, orthogonal and vanishing rows are among them: no factor is a loose one.
        assert min(found.values()) > (0.99 if relation is ADD_REMOVE else 0.8), found


def coarse(patch: pytest.MonkeyPatch) -> None:
    """A grid on which rounding is a large part of what a row moves."""
    patch.setattr(chain, "VARIANCE", Fraction(2**12))


def rounded(random: Any, count: int = 300) -> float:
    """The largest distance of neighbours whose row has its full norm, on the grid in use."""
    found = 0.0
    for size in (1, 2, 5, 30):
        statistic = Listed(bound=1000, size=size)
        noise = _Noise.of(Query(statistic, Fraction(1)), Budget(Fraction(1), Fraction(1), REPLACE))
        for _ in range(count // 3):
            one = random.integers(-(10**6), 10**6, size).astype(object)
            row = random.normal(0, 1, size)
            row = np.trunc(2000 * row / np.linalg.norm(row)).astype(int).astype(object)
            found = max(found, float(distance(one, one + row, noise)))
    return found


def test_rounding_is_inside_what_is_paid_for(
    monkeypatch: pytest.MonkeyPatch, generator: Seeded
) -> None:
    coarse(monkeypatch)
    assert 0.9 < rounded(generator(22)) <= 1


# Chains whose second query depends on the first answer, audited

EPSILON = 0.5
ASKED = ApproxDP(EPSILON, 0.25)  # a large δ, so that a thousand chains measure it
COUNT = 800
COMMON = np.array([(36, -36, 0), (-36, 36, 0), (0, 0, 30)], float).T
FULL, OPPOSITE, ACROSS = (36.0, 36.0, 36.0), (-36.0, -36.0, -36.0), (36.0, -36.0, 0.0)

VECTOR = MappedSum(SHAPE, np.eye(3), norm=1.0)
TURNED = (
    Gradient(SHAPE, np.eye(3), [0, 0, 1.0], leverage=1.0, residual=1.0),
    MappedSum(SHAPE, [[1.0, 2.0, 3.0], [1.0, 0.0, 0.0]], norm=0.5),
)
GRAMS = (
    MappedGram(SHAPE, np.eye(3), norm=1.0),
    MappedGram(SHAPE, [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]], norm=0.5),
)


def spends_all(answer: Answer, left: Fraction) -> Query:
    """Which map and clip: by the sign of what was released. All that is left is spent."""
    return Query(TURNED[int(answer.values[0] > 0)], left)


def asks_for_a_matrix(answer: Answer, left: Fraction) -> Query:
    return Query(GRAMS[int(answer.values[0] > 0)], left)


def stops_if_high(answer: Answer, left: Fraction) -> Query | None:
    return None if answer.values[0] > 1 else spends_all(answer, left)


def loss(query: Query, answer: Answer, one: Table, other: Table) -> float:
    """ln of the ratio of likelihoods of an answer, from its stated noise."""
    shape = answer.values.shape
    unit = float(query.statistic.unit)
    weight = np.ones(shape)
    if query.statistic.symmetric:
        weight = np.triu(2 * weight) - np.eye(len(weight))
    squares = [
        (weight * (answer.values - (unit * table.exact(query.statistic)).reshape(shape)) ** 2).sum()
        for table in (one, other)
    ]
    return float((squares[1] - squares[0]) / (2 * answer.sigma**2))


def pair(relation: Neighbours, row: Any, instead: Any) -> tuple[Table, Table]:
    longer = np.column_stack((COMMON, row))
    if relation is ADD_REMOVE:
        return Table(longer), Table(COMMON)
    return Table(longer), Table(np.column_stack((COMMON, instead)))


def audited(
    of: Budget,
    second: Callable[[Answer, Fraction], Query | None],
    pair: tuple[Table, Table],
    first: Fraction = HALF,
    count: int = COUNT,
) -> tuple[float, float]:
    """Return an exact interval of δ(ε) from one table to another, by likelihood ratios."""
    one, other = pair
    entropy = simulation.entropy(31)
    losses = np.zeros(count)
    for i in range(count):
        reader = NoisySums(one, of, entropy)
        opening = Query(VECTOR, first)
        (answer,) = reader.ask([opening])
        losses[i] = loss(opening, answer, one, other)
        following = second(answer, reader.remaining)
        if following is not None:
            (answer,) = reader.ask([following])
            losses[i] += loss(following, answer, one, other)
    gains = -np.expm1(np.minimum(EPSILON - losses, 0.0))
    coins = simulation.generator(32).uniform(size=count)
    return interval(int((coins < gains).sum()), count)


def interval(hits: int, count: int) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a probability, exact at the false-alarm rate."""
    half = FALSE_ALARM / 2
    low = float(stats.beta.ppf(half, hits, count - hits + 1)) if hits else 0.0
    high = float(stats.beta.isf(half, hits + 1, count - hits)) if hits < count else 1.0
    return low, high


@pytest.mark.parametrize("second", [spends_all, asks_for_a_matrix])
def test_an_adaptive_chain_hides_a_row_exactly_as_claimed(second: Any) -> None:
    of = budget(guarantee=ASKED)
    claimed = of.profile.delta(EPSILON)
    assert 0.2499 < claimed <= 0.25
    with_row, without = pair(ADD_REMOVE, FULL, None)
    for tables in ((with_row, without), (without, with_row)):
        low, high = audited(of, second, tables)
        assert low <= claimed <= high


def test_stopping_by_what_was_released_gains_nothing() -> None:
    of = budget(guarantee=ASKED)
    for first in (Fraction(1, 10), Fraction(9, 10)):
        low, _ = audited(of, stops_if_high, pair(ADD_REMOVE, FULL, None), first)
        assert low <= of.profile.delta(EPSILON)


@pytest.mark.parametrize("second", [spends_all, asks_for_a_matrix])
def test_an_adaptive_chain_hides_which_row_it_was(second: Any) -> None:
    of = budget(REPLACE, ASKED)
    for instead in (OPPOSITE, ACROSS):
        low, _ = audited(of, second, pair(REPLACE, FULL, instead), count=COUNT // 2)
        assert low <= of.profile.delta(EPSILON)


# Planted bugs

Of = Callable[[Query, Budget, int], _Noise]
HONEST: Of = _Noise.of


def careless(patch: pytest.MonkeyPatch, bug: Callable[[_Noise, Query, Budget], _Noise]) -> None:
    patch.setattr(_Noise, "of", staticmethod(lambda q, b, w=1: bug(HONEST(q, b, w), q, b)))


def paid_half(noise: _Noise, _: Query, __: Budget) -> _Noise:
    return dataclasses.replace(noise, cost=noise.cost / 2)


def without_rounding(noise: _Noise, query: Query, budget: Budget) -> _Noise:
    moved = math.isqrt(int(noise.cost * chain.VARIANCE))
    norm = math.sqrt(query.statistic.sensitivity_squared(budget.neighbours))
    return dataclasses.replace(noise, scale=Fraction(moved / norm))


def longer_steps(noise: _Noise, _: Query, __: Budget) -> _Noise:
    assert noise.scale is not None
    return dataclasses.replace(noise, scale=noise.scale * Fraction(3, 2))


def forgetful(self: RowSum, _: Neighbours) -> int:
    return self.bound**2


def test_a_share_that_is_spent_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    of = budget(guarantee=ASKED)
    careless(monkeypatch, paid_half)
    # Of nine tenths half is booked, so that 1.45 times the budget is spent.
    tables = pair(ADD_REMOVE, FULL, None)
    low, _ = audited(of, spends_all, tables, Fraction(9, 10), 2 * COUNT)
    assert low > of.profile.delta(EPSILON)


def test_a_scale_that_is_too_large_is_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Seeded
) -> None:
    of = budget(guarantee=ASKED)
    careless(monkeypatch, longer_steps)
    low, _ = audited(of, spends_all, pair(ADD_REMOVE, FULL, None))
    assert low > of.profile.delta(EPSILON)
    assert min(farthest(generator(23), ADD_REMOVE, ["plain"]).values()) > 1


def test_a_factor_of_replacement_that_is_lost_is_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Seeded
) -> None:
    of = budget(REPLACE, ASKED)
    monkeypatch.setattr(RowSum, "sensitivity_squared", forgetful)
    low, _ = audited(of, spends_all, pair(REPLACE, FULL, OPPOSITE))
    assert low > of.profile.delta(EPSILON)
    found = farthest(generator(24), REPLACE, ["plain", "coarse"])
    loose = {"gram", "gram of neighbouring columns", "mapped gram"}
    loose |= {"gradient", "tapered", "mapped sum", "mapped squares", "residuals", "bands"}
    assert {kind for kind, worst in found.items() if worst > 1.5} == loose


def test_a_root_of_two_that_is_lost_is_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Seeded
) -> None:
    of = budget(REPLACE, ASKED)
    monkeypatch.setattr(MappedGram, "replaced", 1)

    def nearly_all(_: Answer, left: Fraction) -> Query:
        return Query(GRAMS[0], left)

    tables = pair(REPLACE, FULL, ACROSS)
    low, _ = audited(of, nearly_all, tables, LEAST_SHARE)
    assert low > of.profile.delta(EPSILON)
    assert farthest(generator(25), REPLACE, ["plain"])["mapped gram"] > 1.9


def test_rounding_that_is_forgotten_is_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Seeded
) -> None:
    coarse(monkeypatch)
    careless(monkeypatch, without_rounding)
    assert rounded(generator(22)) > 1


@pytest.mark.parametrize("part", [Fraction(4, 5), Fraction(5, 4)])
def test_noise_of_another_variance_is_caught(
    monkeypatch: pytest.MonkeyPatch, part: Fraction
) -> None:
    honest = chain._draw_noise
    monkeypatch.setattr(chain, "_draw_noise", lambda v, size, e: honest(v * part, size, e))
    reader, _ = opened(budget(coordinates=8000), np.zeros((4000, 1)))
    (answer,) = reader.ask([Query(Listed(size=4000), HALF)])
    assert not normal(answer.values / answer.sigma)
    reader, _ = opened(budget(coordinates=4900), np.zeros((4900, 1)))
    (matrix,) = reader.ask([Query(ListedGram(size=4900), HALF)])
    upper = matrix.values[np.triu_indices(70, 1)]
    assert not normal(upper / matrix.sigma * math.sqrt(2))


def test_a_chain_that_reads_before_it_spends_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = NoisySums.ask

    def late(self: NoisySums, queries: Sequence[Query]) -> list[Answer]:
        self._rows.sums([query.statistic for query in queries])
        return honest(self, queries)

    monkeypatch.setattr(NoisySums, "ask", late)
    with pytest.raises(AssertionError):
        test_a_chain_spends_before_it_reads_and_once_for_each_query()
    with pytest.raises(AssertionError):
        test_overspending_raises_and_reads_nothing()


def test_shares_grow_with_the_steps_and_add_up() -> None:
    shares = growing_shares(6, Fraction(3, 7))
    assert sum(shares) == Fraction(3, 7)
    assert shares == sorted(shares)


def test_a_table_that_leaves_rows_out_tells_no_number_of_rows_for_free() -> None:
    """Replacing a row may leave it out, so a count that is called public is refused, unread."""
    table: Any = Table(np.zeros((3, 5)))
    table.count_varies = True
    for relation, varies, refused in (
        (REPLACE, False, True),
        (REPLACE, True, False),
        (ADD_REMOVE, False, False),
    ):
        sums = NoisySums(table, Budget.of(CONCENTRATED, 4, relation, "test"), simulation.entropy(1))
        queries = [Query(Count(varies), HALF)]
        if refused:
            with pytest.raises(ArithmeticError, match="taken for public"):
                sums.ask(queries)
            assert not table.asked
            assert sums.spent == 0
        else:
            assert sums.ask(queries)[0].sigma > 0
