"""Record and replay for survey weights: whatever weights say, nobody moves a sum beyond its noise.

Gates run once, and all they ask of a weighted table is recorded. The same sums of tables that
differ by a row, or by all rows of a unit, with weights as bad as may be (huge, below 0, NaN, text,
without bounds) must be no farther apart than is declared, on integers; and a row of the largest
weight must come within 1% of that.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.adaptive.noisy_sums import NoisySums, Query
from dplinear.curator.passes import exact_sums, open_table
from dplinear.curator.sources import second_moments
from dplinear.exact.grid import moments_shape
from dplinear.exact.row_sums import Count, LeftOut, SquaredWeights
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms.adassp import PreparedAdaSSP
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from exact.oracles import square

NAMES = ("a", "b", "c")
COLUMNS: dict[str, Any] = dict.fromkeys(NAMES, (-5, 5))
BUDGET = dpl.ZCDP(2.0)
WEIGHT = ("w", 0, 20)
SCHEMAS = {
    "rows": Schema(COLUMNS, weight=WEIGHT),
    "units": Schema(COLUMNS, weight=WEIGHT, unit="id"),
}
BAD = ("1e300", "inf", "-inf", "-7", "nan", "", "heavy", "20", "20.0001", "1e999", "true", None)


def held(cells: Any, weights: Sequence[str | None], ids: Sequence[str]) -> pa.Table:
    columns = dict(zip(NAMES, np.asarray(cells, float).reshape(-1, 3).T, strict=True))
    return pa.table({**columns, "w": pa.array(weights, "string"), "id": pa.array(ids, "string")})


def table(seed: int = 3) -> pa.Table:
    random = simulation.generator(seed)
    cells = random.normal(0, 1, (300, 3))
    cells[random.uniform(size=cells.shape) < 0.05] = np.nan
    weights = [f"{value:.4g}" for value in random.lognormal(0, 1.2, 300)]
    return held(cells, weights, [f"p{i}" for i in random.integers(0, 90, 300)])


def newcomers(kind: str, seed: int, count: int) -> list[pa.Table]:
    """Return what to add to a table: one row, or rows of one unit; the first two are the worst."""
    random = simulation.generator(seed)
    most = 1 if kind == "rows" else 60
    corner = np.full((most, 3), 5.0)
    found = [held(corner, ["inf"] * most, ["new"] * most)]
    found += [held(corner * [1, -1, 1], ["20"] * most, ["new"] * most)]
    for _ in range(count):
        rows = 1 if kind == "rows" else int(random.integers(1, 40))
        cells = random.choice([-5.0, 5.0, 0.0, 1e300, np.nan], (rows, 3))
        weights = [BAD[i] for i in random.integers(0, len(BAD), rows)]
        found.append(held(cells, weights, ["new"] * rows))
    return found


def model(**choice: Any) -> Callable[[pa.Table, Schema, dict[str, Any]], Any]:
    return lambda data, schema, given: dpl.release_model(data, schema, "c", **choice, **given)


GATES: dict[str, Callable[[pa.Table, Schema, dict[str, Any]], Any]] = {
    "whitened_descent": model(),
    "logistic": model(loss="logistic"),
    "coinpress": model(mechanism="coinpress"),
    "mean": lambda data, schema, given: dpl.release_mean(data, schema, **given),
    "covariance": lambda data, schema, given: dpl.release_covariance(data, schema, **given),
    "centred": lambda data, schema, given: dpl.release_covariance(
        data, schema, mechanism="centred_covariance", **given
    ),
}


def recorded(name: str, kind: str, k: int) -> list[tuple[Schema, Query]]:
    """Run a gate; return what it asked for, and of which view of the table."""
    asked: list[tuple[Schema, Query]] = []
    ask = NoisySums.ask

    def listen(self: Any, queries: Sequence[Query], rows: Any = None) -> Any:
        view = (self._rows if rows is None else rows).schema
        asked.extend((view, query) for query in queries)
        return ask(self, queries, rows)

    given: dict[str, Any] = {"guarantee": BUDGET, "progress": False}
    given |= {} if kind == "rows" else {"rows_per_unit": k}
    with pytest.MonkeyPatch.context() as patch, simulation.door(4):
        patch.setattr(NoisySums, "ask", listen)
        GATES[name](table(), SCHEMAS[kind], given)
    return asked


def farthest(name: str, kind: str, k: int, count: int = 4) -> float:
    """Return how far newcomers move a sum, as a part of what is declared; raise where too far."""
    asked = recorded(name, kind, k)
    views = {id(view): view for view, _ in asked}
    most = Fraction(0)
    for new in newcomers(kind, 5, count):
        for view in views.values():
            statistics = [query.statistic for other, query in asked if other is view]
            more = pa.concat_tables([new, table()])
            reading: dict[str, Any] = {"rows_per_unit": k, "threads": 1, "progress": False}
            pair = [exact_sums(data, view, statistics, **reading) for data in (more, table())]
            for statistic, one, other in zip(statistics, *pair, strict=True):
                limit = statistic.sensitivity_squared(Neighbours.ADD_REMOVE) * WHOLE**2
                part = Fraction(square(one - other), limit)
                assert part <= 1, (type(statistic).__name__, float(part))
                if not isinstance(statistic, Count):
                    most = max(most, part)
    return float(most)


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("name", ["whitened_descent", "coinpress", "mean"])
def test_no_weight_moves_a_release_farther_than_is_declared(name: str, kind: str) -> None:
    assert farthest(name, kind, k=2) > 0.98


@pytest.mark.long
@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("name", GATES)
def test_no_weight_of_many_moves_a_release_farther(name: str, kind: str) -> None:
    assert farthest(name, kind, k=3, count=100) > 0.98


@pytest.mark.parametrize("kind", SCHEMAS)
def test_no_weight_moves_second_moments_farther_than_is_declared(kind: str) -> None:
    schema = SCHEMAS[kind]
    limit = moments_shape(schema).sensitivity

    def found(data: pa.Table) -> Any:
        return second_moments(data, schema, rows_per_unit=2, threads=1, progress=False)

    before, most = found(table()), 0
    for new in newcomers(kind, 6, 40):
        after = found(pa.concat_tables([table(), new]))
        most = max(most, square((after.integers - before.integers).ravel()))
        assert most <= limit**2
        assert 0 <= after.squares - before.squares <= WHOLE**2
    assert most > 0.98 * limit**2


@pytest.mark.parametrize("kind", SCHEMAS)
def test_adassp_is_moved_by_weighted_rows_no_farther(kind: str) -> None:
    record: list[PreparedAdaSSP] = []
    measure = PreparedAdaSSP.measure

    def keep(self: Any, *given: Any) -> Any:
        record.append(self)
        return measure(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PreparedAdaSSP, "measure", keep)
        model(mechanism="adassp")(table(), SCHEMAS[kind], {"guarantee": BUDGET})
    design = record[0].design
    used = list(design.features)

    def gram(data: pa.Table) -> Any:
        opened = open_table(data, SCHEMAS[kind], threads=1, progress=False)
        return opened.bounded_moments(design.of_rows())[np.ix_(used, used)]

    before = gram(table())
    for new in newcomers(kind, 7, 20):
        moved = square((gram(pa.concat_tables([table(), new])) - before).ravel())
        assert moved <= design.feature_square**2


@pytest.mark.parametrize("kind", SCHEMAS)
def test_weights_that_are_left_out_are_capped_as_well(kind: str) -> None:
    schema = SCHEMAS[kind].leaving_out()
    asked = [LeftOut(), SquaredWeights()]
    for new in newcomers(kind, 8, 30):
        pair = [
            exact_sums(data, schema, asked) for data in (pa.concat_tables([table(), new]), table())
        ]
        moved = [int(one[0] - other[0]) for one, other in zip(*pair, strict=True)]
        assert 0 <= moved[0] <= WHOLE
        assert 0 <= moved[1] <= WHOLE**2
