"""AdaSSP replayed: neighbours on exact integers, exact likelihood ratios, and planted bugs."""

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dplinear.exact.design import Design
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import adassp
from dplinear.mechanisms.adassp import AdaSSP, PreparedAdaSSP
from dplinear.mechanisms.adassp_distance import Distance, Parts
from dplinear.mechanisms.moments.eigenvalues import SENSITIVITY, UNITS
from dplinear.noise import simulation
from dplinear.papers import constants
from dplinear.papers.wang.published import PublishedAdaSSP
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP
from refusals import refused

from .tables import Matrix, interval

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

EPSILON = 0.5
ASKED = ApproxDP(EPSILON, 0.25)  # a large δ, so that a thousand releases measure it
COUNT = 800
THIRDS = (1 / 3, 1 / 3, 1 / 3)
SHAPE = Shape(3, 36, 6)  # two features and a target; 36²·3 ≤ 64²
Table = list[tuple[int, int, int]]


def design(*, dimension: int = 2, shape: Shape = SHAPE) -> Design:
    return Design(
        shape=shape,
        features=tuple(range(dimension)),
        target=shape.dimension - 1,
        feature_square=dimension * shape.steps_per_unit**2,
        target_square=shape.steps_per_unit**2,
        intercept=False,
        indicators=(False,) * dimension,
    )


def build(
    relation: str = "add_remove",
    guarantee: Any = ASKED,
    kind: type[AdaSSP] = AdaSSP,
    **options: Any,
) -> AdaSSP:
    return kind(guarantee=guarantee, neighbours=Neighbours(relation), **options)


def statistic(rows: Table, shape: Shape = SHAPE) -> Statistic:
    exact = np.array(rows, object).reshape(-1, shape.dimension)
    return Statistic(shape, np.asarray(exact.T @ exact + np.zeros((shape.dimension,) * 2, int)))


def sums(of: Statistic, prepared: PreparedAdaSSP) -> tuple[int, Matrix]:
    """Return what noise is added to, recomputed: the eigenvalue's units, the others in steps."""
    d = prepared.design.dimension
    gram = of.integers[:d, :d]
    relative = (gram / prepared.design.feature_square).astype(float)
    least = math.floor(max(float(np.linalg.eigvalsh(relative)[0]), 0.0) * UNITS)
    step = 2**prepared.distance.step
    rest = [*gram[np.triu_indices(d)], *of.integers[:d, -1]]
    return least, np.array([math.floor(Fraction(int(e), step) + Fraction(1, 2)) for e in rest])


def variances(prepared: PreparedAdaSSP) -> Matrix:
    """Return the variance of each coordinate: the eigenvalue, the triangle, the target's sums."""
    d = prepared.design.dimension
    least, gram, cross = map(float, prepared.variances)
    upper = np.triu_indices(d)
    off = gram / prepared.distance.halved
    triangle = np.where(upper[0] == upper[1], gram, off)
    return np.array([least, *triangle, *[cross] * d])


def drawn(prepared: PreparedAdaSSP, of: Statistic, count: int) -> Matrix:
    """Return releases as coordinates, in the units their noise is drawn in."""
    d = prepared.design.dimension
    unit = prepared.design.shape.unit / 2**prepared.distance.step
    least = UNITS * prepared.design.shape.unit / prepared.design.feature_square
    entropy = simulation.entropy(31)
    releases = [prepared.measure(of, entropy) for _ in range(count)]
    return np.array(
        [
            [r.least * least, *(r.gram[np.triu_indices(d)] * unit), *(r.cross * unit)]
            for r in releases
        ]
    )


def audited(
    prepared: PreparedAdaSSP, one: Statistic, other: Statistic, count: int = COUNT
) -> tuple[float, float]:
    """Return an exact interval of δ(ε) from one table to another, by exact likelihood ratios."""
    outputs = drawn(prepared, one, count)
    centres = [np.append(*sums(table, prepared)).astype(float) for table in (one, other)]
    squares = [((outputs - centre) ** 2 / (2 * variances(prepared))).sum(1) for centre in centres]
    gains = -np.expm1(np.minimum(EPSILON - (squares[1] - squares[0]), 0.0))
    coins = simulation.generator(32).uniform(size=count)
    return interval(int((coins < gains).sum()), count)


# Common rows that leave the least eigenvalue to the row that comes and goes.
WIDE: Table = [(36, -36, 0)] * 40
FULL = (36, 36, 36)


def pair(relation: str) -> tuple[Statistic, Statistic]:
    """Return neighbours as far apart as can be (replace: the worst but for the eigenvalue)."""
    if relation == "add_remove":
        return statistic([*WIDE, FULL]), statistic(WIDE)
    # Near the cosine −h/2g = −1/4 of equal shares, targets alike: both sums move apart.
    return statistic([(49, 13, 36)]), statistic([(-28, 42, 36)])


def claimed(prepared: PreparedAdaSSP) -> float:
    assert prepared.account.profile is not None
    return prepared.account.profile.delta(EPSILON)


@pytest.mark.parametrize("shares", [adassp.SHARES, THIRDS, (0.6, 0.2, 0.2)])
def test_a_row_more_or_less_is_hidden_exactly_as_claimed(shares: Any) -> None:
    prepared = build(shares=shares).prepare(design())
    one, other = pair("add_remove")
    assert claimed(prepared) <= ASKED.delta
    assert claimed(prepared) > 0.99 * ASKED.delta
    for left, right in ((one, other), (other, one)):
        low, high = audited(prepared, left, right)
        assert low <= claimed(prepared) <= high


@pytest.mark.parametrize("shares", [adassp.SHARES, THIRDS, (0.02, 0.49, 0.49)])
def test_a_row_replaced_is_hidden(shares: Any) -> None:
    prepared = build("replace", shares=shares).prepare(design())
    one, other = pair("replace")
    for left, right in ((one, other), (other, one)):
        low, high = audited(prepared, left, right)
        assert low <= claimed(prepared)
        if shares[0] == 0.02:  # next to nothing is spent on what these rows do not move
            assert claimed(prepared) <= high
    low, _ = audited(prepared, statistic([(36, 36, 36)]), statistic([(36, 36, -36)]), 300)
    assert low <= claimed(prepared)


def test_the_published_constants_are_replayed_with_their_own_law() -> None:
    prepared = build(guarantee=ApproxDP(1.5, 0.3), kind=PublishedAdaSSP).prepare(design())
    low, high = audited(prepared, *pair("add_remove"))
    assert low <= claimed(prepared) <= high


# Planted bugs


def careless(prepared: PreparedAdaSSP, **factors: float) -> PreparedAdaSSP:
    """Return the same claim with a part of the noise shrunk."""
    scaled = {
        name: getattr(prepared.variances, name) * Fraction(factor)
        for name, factor in factors.items()
    }
    return dataclasses.replace(prepared, variances=prepared.variances._replace(**scaled))


@pytest.mark.parametrize("part", ["least", "gram", "cross"])
def test_a_part_with_half_its_deviation_is_caught(part: str) -> None:
    prepared = careless(build(shares=THIRDS).prepare(design()), **{part: 0.25})
    low, _ = audited(prepared, *pair("add_remove"), count=2 * COUNT)
    assert low > claimed(prepared)


def test_a_budget_given_in_full_to_every_part_is_caught() -> None:
    prepared = build(shares=THIRDS).prepare(design())
    greedy = careless(prepared, least=1 / 3, gram=1 / 3, cross=1 / 3)
    low, _ = audited(greedy, *pair("add_remove"))
    assert low > claimed(greedy)


def test_a_lost_two_of_replacement_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Distance.profile

    def forgetful(self: Distance, variances: Parts) -> Any:
        return honest(dataclasses.replace(self, neighbours=Neighbours.ADD_REMOVE), variances)

    monkeypatch.setattr(Distance, "profile", forgetful)
    monkeypatch.setattr(
        Distance, "squared_distance", _without_replacement(Distance.squared_distance)
    )
    prepared = build("replace", shares=(0.02, 0.49, 0.49)).prepare(design())
    low, _ = audited(prepared, *pair("replace"))
    assert low > claimed(prepared)


def _without_replacement(honest: Any) -> Any:
    def squared(self: Distance, variances: Parts) -> Any:
        return honest(dataclasses.replace(self, neighbours=Neighbours.ADD_REMOVE), variances)

    return squared


# Sensitivities on exact integers


def largest(prepared: PreparedAdaSSP, pairs: list[tuple[Statistic, Statistic]]) -> float:
    """Return the largest μ of some neighbours, from the integers that noise is added to."""
    found = 0.0
    for one, other in pairs:
        left, right = (np.append(*sums(table, prepared)).astype(float) for table in (one, other))
        found = max(found, float(((left - right) ** 2 / variances(prepared)).sum()))
    return math.sqrt(found)


def rows_of(count: int, seed: int, reach: int = 36) -> Table:
    cells = simulation.generator(seed).integers(-reach, reach + 1, (count, 3))
    return [(int(x), int(y), int(z)) for x, y, z in cells]


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("shares", [adassp.SHARES, THIRDS, (0.05, 0.05, 0.9)])
def test_no_neighbours_are_farther_apart_than_claimed(relation: str, shares: Any) -> None:
    prepared = build(relation, shares=shares).prepare(design())
    corners = [(a, b, c) for a in (-36, 0, 36) for b in (-36, 0, 36) for c in (-36, 36)]
    pairs = []
    for base in ([], WIDE, rows_of(5, 1)):
        for u in corners + rows_of(6, 2):
            others = corners if relation == "replace" else [None]
            for v in others:
                after = base if v is None else [*base, v]
                pairs.append((statistic([*base, u]), statistic(after)))
    found = largest(prepared, pairs)
    profile = prepared.account.profile
    assert found <= profile.mu  # type: ignore[union-attr]
    if relation == "add_remove":
        assert found > 0.9995 * profile.mu  # type: ignore[union-attr]


def test_a_single_feature_has_bounds_of_its_own() -> None:
    shape = Shape(2, 45, 6)
    corners = [(x, y) for x in (-45, -30, 0, 30, 45) for y in (-45, 0, 45)]
    tables = [statistic([row], shape) for row in corners]  # type: ignore[list-item]
    for relation in ("add_remove", "replace"):
        # Next to everything goes to the sum with the target, whose worst rows are among these.
        prepared = build(relation, shares=(0.005, 0.005, 0.99)).prepare(
            design(dimension=1, shape=shape)
        )
        others = tables if relation == "replace" else [statistic([], shape)]
        found = largest(prepared, [(one, other) for one in tables for other in others])
        mu = prepared.account.profile.mu  # type: ignore[union-attr]
        assert 0.99 * mu < found <= mu


@pytest.mark.parametrize("kind", [AdaSSP, PublishedAdaSSP])
def test_noise_has_the_variances_that_are_claimed(kind: type[AdaSSP]) -> None:
    """Sums of squares of 800 draws for six coordinates; each within its chi-square interval."""
    prepared = build(kind=kind).prepare(design())
    table = statistic(WIDE)
    noise = drawn(prepared, table, COUNT) - np.append(*sums(table, prepared)).astype(float)
    squares = (noise**2).sum(0) / variances(prepared)
    half = 1e-6 / (2 * 2 * len(squares))
    assert (squares > stats.chi2.ppf(half, COUNT)).all()
    assert (squares < stats.chi2.isf(half, COUNT)).all()


def test_the_worst_replacement_is_the_one_of_the_theory() -> None:
    """Over all angles of two rows of full norm, on reals; the maximum is the formula's."""
    angles = np.linspace(0, math.pi, 20_001)
    a, c = 2.0, 1.0
    for gram, cross in ((1.0, 1.0), (3.0, 1.0), (1.0, 5.0), (10.0, 0.1), (0.2, 9.0)):
        k = np.cos(angles)
        g, h = a * a / gram, a * c / cross
        brute = (2 * g * (1 - k**2) + 2 * h * (1 + k)).max()
        shape = Shape(3, 1, 1)
        facts = Design(shape, (0, 1), 2, 2, 1, intercept=False, indicators=(False, False))
        distance = Distance(facts, Neighbours.REPLACE, 0, 2)
        exact = distance.squared_distance(Parts(Fraction(1), Fraction(gram), Fraction(cross)))
        assert float(exact - Fraction(SENSITIVITY) ** 2) == pytest.approx(brute, rel=1e-6)


def test_shorter_rows_are_no_farther_apart() -> None:
    generator = simulation.generator(5)
    raw = generator.standard_normal((2, 200_000, 2))
    u, v = raw / np.maximum(np.linalg.norm(raw, axis=2), 1.0)[:, :, None]
    y, w = generator.uniform(-1, 1, (2, 200_000))
    cosine = (u * v).sum(1)
    one, two = (u**2).sum(1), (v**2).sum(1)
    for g, h in ((1.0, 1.0), (1.0, 4.0), (5.0, 1.0)):
        whole = g * (one**2 + two**2 - 2 * cosine**2) + h * (
            one * y**2 + two * w**2 - 2 * y * w * cosine
        )
        bound = 2 * g + 2 * h + h * h / (2 * g) if h <= 2 * g else 4 * h
        assert whole.max() <= bound


# Calibration


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0, 1e6])
def test_accounts_hold_what_they_say(relation: str, epsilon: float) -> None:
    asked = ApproxDP(epsilon, 1e-6)
    wide = design(dimension=4, shape=Shape(5, 2**20, 22))
    prepared = build(relation, asked).prepare(wide)
    profile = prepared.account.profile
    assert prepared.account.holds == asked
    assert profile is not None
    assert 0.999e-6 < profile.delta(epsilon) <= 1e-6
    smallest = min(prepared.variances.gram / 2, *prepared.variances[::2])
    assert smallest >= 121


def test_concentrated_guarantees_are_met_to_the_last_bit() -> None:
    prepared = build("replace", ZCDP(0.01)).prepare(design(shape=Shape(3, 2**20, 21)))
    mu = Fraction(prepared.account.profile.mu)  # type: ignore[union-attr]
    assert 0.02 * (1 - 1e-9) < mu**2 <= 2 * Fraction(0.01)


def test_the_joint_calibration_beats_the_published_split() -> None:
    """1.6 times less noise at ε = 1 for equal shares, as √3·Δ/μ against √ln(6/δ)/(ε/3)."""
    asked = ApproxDP(1.0, 1e-6)
    wide = design(shape=Shape(3, 2**20, 21))
    ours = build(guarantee=asked, shares=THIRDS).prepare(wide)
    theirs = build(guarantee=asked, kind=PublishedAdaSSP).prepare(wide)
    assert ours.distance.step == theirs.distance.step
    ratio = math.sqrt(theirs.variances.gram / ours.variances.gram)
    scale = math.sqrt(math.log(6e6)) * 3
    assert ratio == pytest.approx(scale / (math.sqrt(3) / 0.236704380663436), rel=1e-4)
    assert ratio > 1.6


@pytest.mark.parametrize(("relation", "square"), [("add_remove", 3.0), ("replace", 5.5)])
def test_published_constants_come_with_what_they_really_give(relation: str, square: float) -> None:
    asked = ApproxDP(1.0, 1e-6)
    wide = design(shape=Shape(3, 2**20, 21))
    prepared = build(relation, asked, PublishedAdaSSP).prepare(wide)
    constant = constants.adassp(asked, relation)
    assert prepared.account.profile.mu == pytest.approx(  # type: ignore[union-attr]
        math.sqrt(square) / constant.value, rel=1e-3
    )
    assert constant.holds().epsilon == pytest.approx(  # type: ignore[union-attr]
        prepared.account.holds.epsilon,  # type: ignore[union-attr]
        rel=2e-3,
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"guarantee": PureDP(1.0)}, "delta=1e-6"),
        ({"guarantee": GDP(1.0)}, "not μ-GDP"),
        ({"guarantee": MIDP(1.0)}, "single cells"),
        ({"guarantee": ZCDP(1.0), "kind": PublishedAdaSSP}, "published constants"),
        ({"guarantee": ApproxDP(1.0, 0.5), "kind": PublishedAdaSSP}, "below 1/e"),
        ({"relation": "element"}, "neighbours"),
        ({"shares": (0.5, 0.5, 0.5)}, "add up to 1"),
        ({"shares": (0.0, 0.5, 0.5)}, "above 0"),
        ({"shares": 0.3}, "three numbers"),
        ({"shares": THIRDS, "kind": PublishedAdaSSP}, "splits ε in three"),
    ],
)
def test_what_cannot_be_promised_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        build(**options)


def test_noise_beyond_any_table_is_refused() -> None:
    with refused("guarantee", "AdaSSP", "within reach"):
        build(guarantee=ZCDP(1e-20)).prepare(design())
    prepared = build().prepare(design())
    with refused("statistic", "AdaSSP"):
        prepared.measure(statistic([], Shape(3, 30, 6)), simulation.entropy(1))


# What is made of the release


def test_the_noise_of_coefficients_is_what_is_stated() -> None:
    """Of 1,500 releases of a strong table; an empirical variance is within 18% at 1e-6."""
    shape = Shape(3, 2**10, 11)
    table = statistic(rows_of(60_000, 3, 1000), shape)
    prepared = build(guarantee=ApproxDP(4.0, 1e-6)).prepare(design(shape=shape))
    entropy = simulation.entropy(8)
    solved = [prepared.solution(prepared.measure(table, entropy)) for _ in range(1500)]
    spread = np.var([s.coefficients for s in solved], axis=0)
    stated = np.mean([np.diag(s.noise) for s in solved if s.noise is not None], axis=0)
    assert all(s.parameters["ridge"] == 0 for s in solved)
    assert spread == pytest.approx(stated, rel=0.18)


def test_levels_that_no_row_holds_have_no_coefficient() -> None:
    facts = dataclasses.replace(design(shape=Shape(3, 2**10, 11)), indicators=(False, True))
    table = statistic([(x, 0, z) for x, _, z in rows_of(2000, 4, 1000)], facts.shape)
    prepared = build(guarantee=ApproxDP(4.0, 1e-6)).prepare(facts)
    solution = prepared.solution(prepared.measure(table, simulation.entropy(9)))
    assert solution.coefficients[1] == 0
    assert solution.coefficients[0] != 0
    assert solution.noise is not None
    assert solution.noise[1, 1] == 0
