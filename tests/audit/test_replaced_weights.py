"""Record and replay of survey weights under `replace`: a row, or a unit's rows, become any others.

Gates run once, and all they ask of a weighted table is recorded. The same sums of tables in which
one row, or all rows of a unit, were replaced (weights and cells as bad as may be, or a weight of 0)
must be no farther apart than is declared, on integers; and the worst pair must come within 1% of
that. What all rows weigh is one of these sums: it is not public, though the number of rows is.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from audit.recording import Gate, ask_again, recorded
from audit.weighted_tables import BAD, HOLDS, NAMES, Hold, Row, arrow
from dplinear.adaptive.noisy_sums import VARIANCE, _Noise, _scale
from dplinear.curator.passes import open_table
from dplinear.curator.sources import second_moments
from dplinear.exact.grid import moments_shape
from dplinear.exact.row_sums import Count
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms.moments.analyze_gauss import Difference
from dplinear.mechanisms.moments.eigenvalues import least_units
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from exact.oracles import square
from rotation import TODAY

pytestmark = pytest.mark.heavy

REPLACE = Neighbours.REPLACE
COLUMNS: dict[str, Any] = dict.fromkeys(NAMES, (-5, 5))
WEIGHT = ("w", 0, 20)
SCHEMAS = {
    "rows": Schema(COLUMNS, weight=WEIGHT),
    "units": Schema(COLUMNS, weight=WEIGHT, unit="id"),
}
BUDGET = dpl.ZCDP(2.0)
PAIRS = 1_000
K = 2
ARROW: list[Hold] = [arrow]
Pair = tuple[list[Row], list[Row]]


def common(seed: int) -> list[Row]:
    random = simulation.generator(seed)
    cells = random.normal(0, 1, (80, 3)).tolist()
    weights = random.lognormal(0, 1.2, 80).tolist()
    owners = random.integers(0, 25, 80).tolist()
    return [
        Row(tuple(own), f"{weight:.4g}", owner=f"p{owner}")
        for own, weight, owner in zip(cells, weights, owners, strict=True)
    ]


def pairs(kind: str, count: int, seed: int) -> Iterator[Pair]:
    """Return rows of one table, and those that the other has in their place: the worst first."""
    random = simulation.generator(seed)
    sizes = [1] if kind == "rows" else [1, K, 40, 300]
    most = 1 if kind == "rows" else 60
    corner = (5.0, 5.0, 5.0)
    # Opposite, at right angles with the constant counted, of another target, and of no weight.
    others: list[tuple[tuple[float, ...], str | None]] = [
        ((-5.0,) * 3, "inf"),
        ((-5.0, -5.0, 5.0), "20"),
        ((5.0, 5.0, -5.0), "1e300"),
    ]
    others += [(corner, "0"), (corner, None)]
    yield from (
        ([Row(corner, "20")] * most, [Row(cells, weight)] * most) for cells, weight in others
    )
    for _ in range(count - len(others)):
        both = []
        for _ in range(2):
            size = int(random.choice(sizes))
            cells = random.choice([-5.0, 5.0, 0.0, 1e300, np.nan], (size, 3)).tolist()
            weights = [BAD[i] for i in random.integers(0, len(BAD), size)]
            both.append([Row(tuple(a), w) for a, w in zip(cells, weights, strict=True)])
        yield both[0], both[1]


def tables(
    kind: str, count: int, seed: int, holds: Sequence[Hold], folder: Path
) -> Iterator[tuple[Any, Any]]:
    """Return neighbours, each in an order of rows, and perhaps in a library, of its own."""
    # Of the rows that both tables have a few will do: they cancel.
    random, rows = simulation.generator(seed), common(seed)[::5]
    names = SCHEMAS[kind].read_columns
    for number, pair in enumerate(pairs(kind, count, seed + 1)):
        held = []
        for side, own in enumerate(pair):
            every = [*rows, *own]
            mixed = [every[place] for place in random.permutation(len(every))]
            hold = holds[(number + side) % len(holds)]
            held.append(hold(mixed, names, folder, f"{side}"))
        yield held[0], held[1]


def _model(kind: str, **choice: Any) -> Gate:
    return lambda data, *_: dpl.release_model(data, SCHEMAS[kind], "c", **choice, **_given(kind))


def _given(kind: str) -> dict[str, Any]:
    own: dict[str, Any] = {} if kind == "rows" else {"rows_per_unit": K}
    return {"guarantee": BUDGET, "neighbours": REPLACE, "progress": False, **own}


def _bounds(data: Any, kind: str) -> Any:
    given: dict[str, Any] = {"within": (-5, 5), "weight": WEIGHT, "unit": SCHEMAS[kind].unit}
    return dpl.suggest_bounds(data, NAMES, **given, **_given(kind))


GATES: dict[str, Callable[[str], Gate]] = {
    "whitened_descent": _model,
    "huber": lambda kind: _model(kind, loss="huber"),
    "logistic": lambda kind: _model(kind, loss="logistic"),
    "coinpress": lambda kind: _model(kind, mechanism="coinpress"),
    "mean": lambda kind: lambda data, *_: dpl.release_mean(data, SCHEMAS[kind], **_given(kind)),
    "covariance": lambda kind: (
        lambda data, *_: dpl.release_covariance(data, SCHEMAS[kind], **_given(kind))
    ),
    "centred": lambda kind: (
        lambda data, *_: dpl.release_covariance(
            data, SCHEMAS[kind], mechanism="centred_covariance", **_given(kind)
        )
    ),
    "bounds": lambda kind: lambda data, *_: _bounds(data, kind),
}
ALL = ("moments", "adassp", *GATES)


def check_sums(
    name: str, kind: str, count: int, seed: int, holds: Sequence[Hold], folder: Path
) -> float:
    """Return how far neighbours were apart in one sum at most, as a part of what is declared."""
    k = 1 if kind == "rows" else K
    data = arrow(common(seed), SCHEMAS[kind].read_columns)
    record = recorded(GATES[name](kind), data, k, seed, relation=REPLACE)
    assert record.budget is not None
    queries = [query for _, query in record.asked]
    scales = [_Noise.of(query, record.budget, WHOLE).scale for query in queries]
    limits = [query.statistic.sensitivity_squared(REPLACE) * WHOLE**2 for query in queries]
    reached: dict[bool, Fraction] = {}
    for one, other in tables(kind, count, seed, holds, folder):
        spent = Fraction(0)
        moves = zip(ask_again(record, one), ask_again(record, other), strict=True)
        for query, scale, limit, (a, b) in zip(queries, scales, limits, moves, strict=True):
            part = Fraction(square(a - b), limit)
            assert part <= 1, (type(query.statistic).__name__, float(part))
            counts = isinstance(query.statistic, Count)
            reached[counts] = max(reached.get(counts, part), part)
            assert scale is not None  # what rows weigh is not public
            spent += square(_scale(a, scale) - _scale(b, scale))
        assert spent / VARIANCE <= record.budget.square
    assert reached[True] > Fraction(99, 100)
    return math.sqrt(reached[False])


def check_moments(kind: str, count: int, seed: int, holds: Sequence[Hold], folder: Path) -> float:
    """Hold the matrix and Σ v² together to the distance that the noise is made for."""
    schema, k = SCHEMAS[kind], 1 if kind == "rows" else K
    apart = Difference.of(moments_shape(schema), 0, REPLACE, 2)
    joint, most = apart.with_side(1), 0
    for pair in tables(kind, count, seed, holds, folder):
        one, other = (
            second_moments(data, schema, rows_per_unit=k, threads=1, progress=False)
            for data in pair
        )
        moved = square((one.integers - other.integers).ravel())
        squares = [
            math.floor(Fraction(each.squares, WHOLE**2) * joint.side_scale + Fraction(1, 2))
            for each in (one, other)
        ]
        assert moved <= Fraction(apart.norm) ** 2
        assert abs(one.squares - other.squares) <= WHOLE**2
        assert moved + (squares[0] - squares[1]) ** 2 <= Fraction(joint.norm) ** 2
        most = max(most, moved)
    return math.sqrt(most / Fraction(apart.norm) ** 2)


def check_adassp(kind: str, count: int, seed: int, holds: Sequence[Hold], folder: Path) -> float:
    """Hold all three parts together to the distance that the noise is made for."""
    schema, k = SCHEMAS[kind], 1 if kind == "rows" else K
    data = arrow(common(seed), schema.read_columns)
    gate = _model(kind, mechanism="adassp")
    ready = recorded(gate, data, k, seed, relation=REPLACE).adassp
    assert ready is not None
    used, coarse = list(ready.design.features), 1 << 2 * ready.distance.step
    part, variances = ready.design.of_rows(), ready.variances

    def parts(held: Any) -> list[Any]:
        # A model leaves rows out that lack a number, as its own schema says.
        opened = open_table(held, schema.leaving_out(), rows_per_unit=k, threads=1, progress=False)
        matrix = opened.bounded_moments(part)
        gram = matrix[np.ix_(used, used)]
        least = least_units(gram, ready.design.feature_square)
        return [np.array([least], object), gram.ravel(), matrix[used, ready.design.target]]

    most = Fraction(0)
    for one, other in tables(kind, count, seed, holds, folder):
        moved = [square(a - b) for a, b in zip(parts(one), parts(other), strict=True)]
        exact = [Fraction(moved[0]), Fraction(moved[1], coarse), Fraction(moved[2], coarse)]
        together = sum(a / variance for a, variance in zip(exact, variances, strict=True))
        assert together <= ready.distance.squared_distance(variances)
        most = max(most, exact[2] / ready.distance.squares.cross)
    return math.sqrt(most)


def check(
    name: str, kind: str, count: int, seed: int, folder: Path, holds: Sequence[Hold] = ARROW
) -> float:
    """Return the part of what is declared that the worst pair reached."""
    if name == "moments":
        return check_moments(kind, count, seed, holds, folder)
    if name == "adassp":
        return check_adassp(kind, count, seed, holds, folder)
    return check_sums(name, kind, count, seed, holds, folder)


@pytest.mark.parametrize("name", ALL)
def test_no_weight_that_becomes_another_moves_a_release_farther(name: str, tmp_path: Path) -> None:
    """A few pairs of rows or of units, other ones every day."""
    kind = list(SCHEMAS)[(TODAY + ALL.index(name)) % 2]
    assert check(name, kind, 6, TODAY, tmp_path) > 0.99, (TODAY, kind)


@pytest.mark.engine
@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("name", ["moments", "mean"])
def test_nor_does_it_in_any_library(name: str, kind: str, tmp_path: Path) -> None:
    assert check(name, kind, 6, TODAY, tmp_path, list(HOLDS.values())) > 0.99, TODAY


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("name", ALL)
def test_none_of_a_thousand_pairs_is_too_far_apart(name: str, kind: str, tmp_path: Path) -> None:
    """A thousand for each gate: half of them of rows, half of units."""
    assert check(name, kind, PAIRS // 2, 19, tmp_path, list(HOLDS.values())) > 0.99


# Planted bugs: what the replay is for


@pytest.mark.parametrize("name", ["whitened_descent", "mean"])
def test_a_weight_that_is_public_would_be_seen(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def free(self: Count, neighbours: Neighbours) -> int:
        return 1 if neighbours is Neighbours.ADD_REMOVE else 0

    monkeypatch.setattr(Count, "sensitivity_squared", free)
    with pytest.raises(ArithmeticError):
        check(name, "rows", 6, 3, tmp_path)
