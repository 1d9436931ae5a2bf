"""Record and replay for units of privacy in models of a constraint set.

Every learner that takes a unit runs once through the gate, and what it asks of the table is
recorded. The same questions to tables that differ by one unit (of 0 to 1,000 rows: of full length,
far beyond it, of opposite signs, without numbers), or in which one unit became another, must have
answers no farther apart than the noise is made for; and the worst unit must come within 1% of that.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from dplinear.adaptive.noisy_sums import VARIANCE, NoisySums, _Noise, _scale
from dplinear.arrays import Floats
from dplinear.convex import examples as bounded
from dplinear.convex.atom_scores import AtomScores
from dplinear.convex.certified_gradient import Point
from dplinear.convex.examples import Examples
from dplinear.convex.learners import exponential, frank_wolfe, output_perturbation
from dplinear.convex.sets import L2Ball
from dplinear.curator import row_weights
from dplinear.curator.examples import read_examples
from dplinear.curator.gates import constrained
from dplinear.curator.row_weights import RowWeights
from dplinear.exact.ball_draws import CutNormal
from dplinear.exact.row_sums import Count
from dplinear.exact.weights import WHOLE
from dplinear.noise import selection, simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.units import Unit
from dplinear.registry import CONSTRAINED
from exact.oracles import square

pytestmark = pytest.mark.heavy

FEATURES, NORM = 3, 2.0
ROWS = (0, 1, 2, 3, 4, 5, 9, 64, 1_000)
PAIRS = 1_000
EPSILON = 1.0


@dataclass(frozen=True)
class Held:
    """Rows, their labels, and whose they are."""

    X: Floats
    y: Floats
    ids: Any

    def and_also(self, other: "Held", random: Any) -> "Held":
        """Return both together, in any order of rows."""
        order = random.permutation(len(self.y) + len(other.y))
        X, y = np.vstack([self.X, other.X]), np.append(self.y, other.y)
        return Held(X[order], y[order], np.append(self.ids, other.ids)[order])


def unit_of(X: Any, y: Any) -> Held:
    cells = np.asarray(X, float).reshape(-1, FEATURES)
    return Held(cells, np.asarray(y, float), np.full(len(cells), "new", object))


def table(seed: int, *, quiet: bool = False) -> Held:
    """People with few rows and with many, ids of several spellings, and rows of nobody.

    Where it is `quiet`, rows say nothing of any model, so that a unit is all that does.
    """
    random = simulation.generator(seed)
    sizes = [*random.integers(1, 12, 30).tolist(), 150]
    ids = [f"{'0' * (row % 3)}{unit}" for unit, size in enumerate(sizes) for row in range(size)]
    ids += [""] * 10
    X = random.normal(0, 1, (len(ids), FEATURES)) * (0.0 if quiet else 1.0)
    return Held(X, np.sign(X[:, 0] + 0.3), np.array(ids, object))


def full(direction: Any, label: float, count: int) -> Held:
    """Return a unit whose rows are all alike, and far longer than rows may be."""
    return unit_of(np.tile(1e3 * np.asarray(direction, float), (count, 1)), np.full(count, label))


def adversarial(random: Any, count: int) -> Held:
    """Return rows of one unit, as bad as may be."""
    corner = random.normal(size=FEATURES) * 1e3
    signs = np.where(np.arange(count) % 2, -1.0, 1.0)
    labels = random.choice([-1.0, 1.0, np.nan, 7.0], count)
    kinds: list[Callable[[], Any]] = [
        lambda: np.tile(corner, (count, 1)),
        lambda: signs[:, None] * corner,
        lambda: random.choice([-NORM, 0.0, np.nan, 1e300, -np.inf], (count, FEATURES)),
        lambda: random.normal(0, NORM, (count, FEATURES)),
    ]
    return unit_of(kinds[random.integers(len(kinds))](), random.choice([labels, signs]))


def units(seed: int, count: int, k: int) -> Iterator[Held]:
    """Return units to add or remove: first full ones, of k rows and of a thousand."""
    random = simulation.generator(seed)
    axes = np.vstack([np.eye(FEATURES), -np.eye(FEATURES)])
    corners = [(axis, label) for axis in axes for label in (-1.0, 1.0)]
    order = random.permutation(len(corners))
    few = min(count // 2, 2 * len(corners))
    for index in range(few):  # of k rows and of many in turn
        axis, label = corners[order[index // 2]]
        yield full(axis, label, (k, 1_000)[index % 2])
    for _ in range(count - few):
        yield adversarial(random, int(random.choice([*ROWS, k - 1, k, k + 1])))


def opposite(unit: Held, k: int, random: Any) -> Held:
    """Return what a unit may become: often the same rows, with other signs."""
    if random.uniform() < 0.2 or not len(unit.y):
        return adversarial(random, int(random.choice([*ROWS, k])))
    count = max(len(unit.y), k)
    sign, label = [(-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)][random.integers(3)]
    return full(sign * np.nan_to_num(unit.X[0], posinf=1e3, neginf=-1e3), label, count)


def pairs(
    common: Held, seed: int, count: int, k: int, relation: Neighbours
) -> Iterator[tuple[Held, Held]]:
    """Return neighbours: with a unit and without it, or with one and with another in its place."""
    random = simulation.generator(seed)
    for unit in units(seed + 1, count, k):
        other = common
        if relation is Neighbours.REPLACE:
            other = common.and_also(opposite(unit, k, random), random)
        yield common.and_also(unit, random), other


LEARNERS: dict[str, dict[str, Any]] = {
    "noisy_gradient": {"loss": "hinge", "steps": 3},
    "mirror_descent": {"loss": "hinge", "steps": 4},
    "frank_wolfe": {"loss": "hinge", "steps": 4},
    "frank_wolfe cells": {"loss": "hinge", "steps": 4, "cell": 0.5},
    "frank_wolfe directions": {
        "loss": "hinge",
        "steps": 3,
        "constraint": partial(L2Ball, radius=1.0),
    },
    "whitened": {"loss": "squared", "constraint": partial(L2Ball, radius=1.0)},
    "exponential": {"loss": "hinge", "delta": None},
    "exponential ball": {
        "loss": "squared",
        "delta": None,
        "constraint": partial(L2Ball, radius=1.0),
    },
    "output_perturbation": {"loss": "squared", "slope": 0.5, "regularisation": 50.0},
}


@dataclass
class Record:
    """What a learner asked, and what it was prepared for."""

    rules: Any = None
    queries: list[Any] = field(default_factory=list)
    statistics: list[Any] = field(default_factory=list)
    units: list[Fraction] = field(default_factory=list)
    scores: Any = None
    cut: Any = None
    output: Any = None
    budget: Any = None


def recorded(name: str, data: Held, k: int, relation: Neighbours, seed: int = 3) -> Record:
    """Run the gate, and return what was asked."""
    record, choice = Record(), dict(LEARNERS[name])
    labels = {"target_bounds": (-1, 1)} if choice["loss"] == "squared" else {"classes": (-1, 1)}
    given: dict[str, Any] = {"constraint": 1.0, "epsilon": EPSILON, "delta": 1e-6, **labels}
    given |= {"row_norm": NORM, "projection": None, "neighbours": relation, "progress": False}
    ask, sums, draw = NoisySums.ask, Examples.sums, selection.draw
    run = output_perturbation.PreparedOutput.run

    def keep_queries(self: Any, queries: Any, rows: Any = None) -> Any:
        record.queries, record.budget = record.queries + list(queries), self.budget
        return ask(self, queries, rows)

    def keep_statistics(self: Any, statistics: Any) -> Any:
        record.statistics += list(statistics)
        return sums(self, statistics)

    def keep_draws(qualities: Any, unit: Any, **options: Any) -> int:
        record.units.append(Fraction(unit))
        return draw(qualities, unit, **options)

    def keep_scores(*facts: Any) -> Any:
        record.scores = AtomScores(*facts)
        return record.scores

    def keep_cut(*facts: Any) -> Any:
        record.cut = CutNormal(*facts)
        return record.cut

    def keep_output(self: Any, *facts: Any) -> Any:
        record.output = self
        return run(self, *facts)

    def keep_rules(*facts: Any, **options: Any) -> Any:
        record.rules = facts[2]
        return read_examples(*facts, **options)

    with pytest.MonkeyPatch.context() as patch, simulation.door(seed):
        patch.setattr(NoisySums, "ask", keep_queries)
        patch.setattr(Examples, "sums", keep_statistics)
        patch.setattr(selection, "draw", keep_draws)
        patch.setattr(frank_wolfe, "AtomScores", keep_scores)
        patch.setattr(exponential, "CutNormal", keep_cut)
        patch.setattr(output_perturbation.PreparedOutput, "run", keep_output)
        patch.setattr(constrained, "read_examples", keep_rules)
        dpl.release_model(
            data.X,
            target=data.y,
            groups=data.ids,
            rows_per_unit=k,
            mechanism=name.split(maxsplit=1)[0],
            **(given | choice),
        )
    return record


def examples_of(record: Record, data: Held, k: int) -> Examples:
    weights = RowWeights(data.ids, None, Unit("id", k), None).read()
    return read_examples(data.X, data.y, record.rules, weights=weights, progress=False)


Measure = Callable[[Record, Examples, Examples, Neighbours], Fraction]


def chain(record: Record, one: Examples, other: Examples, relation: Neighbours) -> Fraction:
    """Return how far sums are apart, as a part of what is declared; all of them fit the budget."""
    statistics = [query.statistic for query in record.queries]
    most = spent = Fraction(0)
    found = zip(record.queries, one.sums(statistics), other.sums(statistics), strict=True)
    for query, first, second in found:
        limit = query.statistic.sensitivity_squared(relation) * WHOLE**2
        part = Fraction(square(first - second), limit)
        assert part <= 1, type(query.statistic).__name__
        if not isinstance(query.statistic, Count):
            most = max(most, part)
        scale = _Noise.of(query, record.budget, one.denominator).scale
        assert scale is not None
        spent += square(_scale(first, scale) - _scale(second, scale))
    assert spent / VARIANCE <= record.budget.square
    return most


def draws(record: Record, one: Examples, other: Examples, relation: Neighbours) -> Fraction:
    """Return the range of what likelihoods of candidates change by, as a part of a draw's ε."""
    most = Fraction(0)
    step = record_epsilon(record, relation)
    for statistic, unit in zip(record.statistics, record.units, strict=True):
        (first,), (second,) = one.sums([statistic]), other.sums([statistic])
        if record.scores is not None:
            first, second = record.scores.of(first), record.scores.of(second)
        moved = [int(each) for each in first.astype(object) - second.astype(object)]
        if record.scores is not None and record.scores.atoms.signed:
            moved += [-each for each in moved]
        most = max(most, (max(moved) - min(moved)) * unit / step)
        assert most <= 1
    return most


def record_epsilon(record: Record, relation: Neighbours) -> Fraction:
    """Return what a draw may cost: of Frank-Wolfe, its unit times the range of scores."""
    if record.scores is None:
        return Fraction(EPSILON)
    whole = record.scores.replaced_range if relation is Neighbours.REPLACE else record.scores.range
    return record.units[0] * int(whole)


def ball(record: Record, one: Examples, other: Examples, _: Neighbours) -> Fraction:
    """Return the range of what densities in the ball change by, as a part of ε."""
    frame, radius = record.rules.frame, float(record.cut.radius)
    first, second = (exponential.second_moments(each.blocks(), frame) for each in (one, other))
    matrix, vector = ((a - b).astype(float) for a, b in zip(first, second, strict=True))
    values, vectors = np.linalg.eigh(matrix)
    axes = [vectors[:, int(np.abs(values).argmax())], vector / (np.linalg.norm(vector) or 1.0)]
    along = np.linspace(-radius, radius, 41)
    points = np.vstack([along[:, None] * axis for axis in axes])
    rate = float(record.cut.rate) ** 2 / 2
    moved = rate * (np.einsum("ij,jk,ik->i", points, matrix, points) - 2 * points @ vector)
    part = Fraction(float(np.ptp(moved)) / EPSILON)
    assert part <= 1 + 1e-9
    return part


def minima(record: Record, one: Examples, other: Examples, _: Neighbours) -> Fraction:
    """Return how far minima are apart, as a part of the sensitivity."""
    found = [record.output.sum.minimum(each, Point.zero(FEATURES)).values for each in (one, other)]
    part = float(np.linalg.norm(found[0] - found[1])) / record.output.sensitivity
    assert part <= 1 + 1e-12
    return Fraction(part)


MEASURES: dict[str, Measure] = {
    **dict.fromkeys(("noisy_gradient", "mirror_descent", "whitened"), chain),
    "frank_wolfe directions": chain,
    **dict.fromkeys(("frank_wolfe", "frank_wolfe cells", "exponential"), draws),
    "exponential ball": ball,
    "output_perturbation": minima,
}


def check(
    name: str, count: int, seed: int, k: int, relation: Neighbours = Neighbours.ADD_REMOVE
) -> float:
    """Return how far units move what is asked for, as a part of what is declared; of norms."""
    common = table(seed, quiet=name == "output_perturbation")
    record = recorded(name, common, k, relation)
    measure, most = MEASURES[name], Fraction(0)
    for more, less in pairs(common, seed, count, k, relation):
        one, other = (examples_of(record, each, k) for each in (more, less))
        most = max(most, measure(record, one, other, relation))
    return float(most)


def test_every_learner_that_takes_units_is_replayed() -> None:
    takes = {name for name, kind in CONSTRAINED.items() if kind.for_units}
    assert takes == {name.split()[0] for name in LEARNERS}
    assert set(MEASURES) == set(LEARNERS)


@pytest.mark.parametrize("name", LEARNERS)
def test_no_unit_moves_a_model_in_a_set_farther_than_is_declared(name: str) -> None:
    assert check(name, 10, 5, 3) > 0.99


@pytest.mark.parametrize("name", LEARNERS)
def test_no_unit_that_becomes_another_does(name: str) -> None:
    assert check(name, 8, 7, 2, Neighbours.REPLACE) > 0.9


@pytest.mark.long
@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("name", LEARNERS)
def test_none_of_a_thousand_units_moves_a_model_farther(
    name: str, k: int, relation: Neighbours
) -> None:
    assert check(name, PAIRS // 2, 11 + k, k, relation) > 0.99


# Planted bugs: what the replay is for


def found(name: str, k: int = 3) -> bool:
    """Return whether a replay of a few pairs sees that something is wrong."""
    try:
        check(name, 12, 9, k)
    except AssertionError:
        return True
    return False


def off_by_one(counts: Any, rows_per_unit: int) -> Any:
    return WHOLE // np.maximum(np.maximum(counts - 1, rows_per_unit - 1), 1)


@pytest.mark.parametrize(
    "name", ["noisy_gradient", "frank_wolfe cells", "exponential", "exponential ball"]
)
def test_wrong_weights_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not found(name)
    monkeypatch.setattr(row_weights, "shared_weights", off_by_one)
    assert found(name)


def test_minima_of_wrong_weights_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_weights, "shared_weights", off_by_one)
    assert found("output_perturbation")


def test_weights_that_are_left_aside_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(self: Any) -> list[Any]:
        """Every row counts as one, in units of weight."""
        return [(WHOLE, block) for block in self._blocks]

    monkeypatch.setattr(bounded.Examples, "_parts", property(whole))
    assert found("mirror_descent")
