"""Record and replay where features are functions of columns: no row moves a sum too far.

Tables that differ by one row, at bounds, at edges and knots, beyond them or without numbers, are
asked for the same sums. What the sums are apart, on the integers that noise is added to, must be
within what the noise is made for; and the worst row must come near it.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from audit.recording import ask_again, recorded
from dplinear.curator.sources import second_moments
from dplinear.exact.grid import Grid
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from exact.oracles import square
from rotation import TODAY

pytestmark = pytest.mark.heavy

COLUMNS: dict[str, Any] = {"a": (0, 10), "b": (1, 50), "c": (-5, 5), "d": ["x", "y"]}
SCHEMAS = {
    "smooth": Schema(COLUMNS, derived=["log(b)", "log1p(a)", "sqrt(a)*c", "sqrt(b)*log(b)*d"]),
    "sets": Schema(COLUMNS, derived=["bins(a, 2, 5)*d", "spline(c, 5)", "spline(a, 4)*log(b)"]),
    "shifted": Schema(COLUMNS, derived=["spline(b, [2, 3])", "log(b)"], intercept=False),
    "short": Schema(COLUMNS, derived=["log(b)", "spline(a, 4)", "bins(c, 0)"], row_norm=1.3),
}
WAYS = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
HIGH, LOW = (10.0, 50.0, 5.0, "y"), (0.0, 1.0, -5.0, "x")
ODD: list[Any] = [HIGH, LOW, (2.0, 3.0, 0.0, "z"), (None, None, None, None)]
ODD += [(1e300, -1e300, float("inf"), ""), (float("nan"), 2.0, float("-inf"), "y")]


def rows(seed: int, count: int) -> list[Any]:
    random = simulation.generator(seed)
    drawn = [random.uniform(-3, 12, count), random.uniform(-9, 60, count)]
    drawn += [random.uniform(-7, 7, count), random.choice(["x", "y", "z"], count)]
    return list(zip(*(each.tolist() for each in drawn), strict=True))


def table(chosen: list[Any]) -> pa.Table:
    types = [pa.float64()] * 3 + [pa.string()]
    columns = zip(*chosen, strict=True)
    made = (pa.array(cells, kind) for cells, kind in zip(columns, types, strict=True))
    return pa.table(dict(zip(COLUMNS, made, strict=True)))


def neighbours(relation: Neighbours, seed: int) -> list[tuple[pa.Table, pa.Table]]:
    """Return pairs of tables; the rows at all bounds are the first that come and go."""
    common = rows(seed, 30)
    longer = [table([*common, row]) for row in [*ODD, *rows(seed + 1, 10)]]
    if relation is Neighbours.ADD_REMOVE:
        return [(each, table(common)) for each in longer]
    return [(longer[index], longer[index - 1]) for index in range(1, len(longer))]


@pytest.mark.parametrize("relation", WAYS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_no_row_moves_second_moments_too_far(name: str, relation: Neighbours) -> None:
    schema = SCHEMAS[name]
    limit = Grid.of(schema).sensitivity ** 2 * (2 if relation is Neighbours.REPLACE else 1)
    reached = Fraction(0)
    for pair in neighbours(relation, TODAY):
        one, other = (second_moments(each, schema, threads=1, progress=False) for each in pair)
        moved = square((one.integers - other.integers).ravel())
        reached = max(reached, Fraction(moved, limit))
        assert reached <= 1
    assert reached > (0.5 if relation is Neighbours.ADD_REMOVE else 0.2), float(reached)


@pytest.mark.parametrize("relation", WAYS)
@pytest.mark.parametrize(
    "choice",
    [{"mechanism": "whitened_descent"}, {"mechanism": "coinpress"}, {"loss": "huber"},
     {"loss": "logistic", "target": "d=y"}],
)  # fmt: skip
@pytest.mark.parametrize("name", ["smooth", "sets"])
def test_no_row_moves_a_sum_of_a_model_too_far(
    name: str, choice: dict[str, str], relation: Neighbours
) -> None:
    target = choice.get("target", "c")
    # Features that are made of the target's column would explain it by itself.
    terms = {"smooth": ["log(b)", "log1p(a)", "sqrt(a)*log(b)"], "sets": ["bins(a, 2, 5)"]}
    terms["sets"] += ["spline(b, 5)", "spline(a, 4)*log(b)"]
    schema = Schema(COLUMNS, derived=terms[name])
    asked: dict[str, Any] = {"guarantee": dpl.ZCDP(2.0), "neighbours": str(relation)}
    asked |= {key: value for key, value in choice.items() if key != "target"}

    def gate(data: Any, *_: Any) -> Any:
        return dpl.release_model(data, schema, target, progress=False, **asked)

    pairs = neighbours(relation, TODAY)
    record = recorded(gate, pairs[0][0], 1, 5)
    assert record.asked
    for pair in pairs:
        found = [ask_again(record, each) for each in pair]
        for (_, query), one, other in zip(record.asked, *found, strict=True):
            declared = query.statistic.sensitivity_squared(relation)
            assert square(np.asarray(one - other).ravel()) <= declared, query.statistic
