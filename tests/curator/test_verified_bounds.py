"""Bounds that are derived from a schema, planted wrong: releases still keep their promise."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dplinear.curator import Schema, release_model
from dplinear.curator.gates import one_model
from dplinear.curator.gates.one_model import OneModel
from dplinear.curator.passes import open_table
from dplinear.exact.gram import Moments
from dplinear.exact.grid import Grid, shape_of
from dplinear.exact.shape import Statistic
from dplinear.mechanisms.adassp import AdaSSP, PreparedAdaSSP
from dplinear.mechanisms.cells.held_cells import HeldCells
from dplinear.privacy import ApproxDP, Neighbours
from dplinear.schema.factor_values import FactorValues

BIG, TINY = 2.0**400, 2.0**-400
LEVELS = [f"l{i}" for i in range(60)]
OTHERS = {f"z{i}": (0, 1) for i in range(40)}
FACTORS = {"p": (0, BIG), "q": (0, BIG), "r": (0, BIG), "s": (0, TINY), "t": (0, TINY)}
TERM = "p*q*r*s*t*level"
SCHEMA = Schema(
    {**FACTORS, **OTHERS, "level": LEVELS}, derived=[TERM, "*".join(OTHERS)], intercept=True
)
ROW = {**{name: [high] for name, (_, high) in {**FACTORS, **OTHERS}.items()}, "level": ["l3"]}


def model() -> OneModel:
    """Return a model whose features are few columns' worth, among many that are read."""
    features = [feature.name for feature in SCHEMA.features if feature.term.label == TERM]
    return OneModel.of(SCHEMA, "*".join(OTHERS), features, intercept=True)


def moments(of: OneModel, table: pa.Table) -> Any:
    return open_table(table, of.schema, threads=1).bounded_moments(of.design)


def feature_square(of: OneModel, found: Any) -> int:
    return int(sum(found[place, place] for place in of.design.features))


def real_mu(prepared: PreparedAdaSSP, one: Any, other: Any) -> float:
    """Return how far apart two tables' releases are in deviations of the noise, all together."""
    design, step = prepared.design, 1 << prepared.distance.step
    used = list(design.features)
    upper = np.triu_indices(len(used), 1)
    gram, cross = (one - other)[np.ix_(used, used)], (one - other)[used, design.target]
    least = [
        prepared.measure(
            Statistic(design.shape, table, side=(Fraction(0),)),  # no row is left out
            _Silent(),  # type: ignore[arg-type]
        ).least
        for table in (one, other)
    ]
    sigma = [math.sqrt(float(variance)) for variance in prepared.variances]
    unit = float(Fraction(design.feature_square, (1 << 20) * design.shape.unit))
    parts = [
        (least[0] - least[1]) / unit / sigma[0],
        *(np.diag(gram) / step / sigma[1]),
        *(gram[upper] / step / sigma[1] * math.sqrt(prepared.distance.halved)),
        *(cross / step / sigma[2]),
    ]
    return float(np.linalg.norm(np.array(parts, float)))


class _Silent:
    """Stands for entropy where noise is patched to be 0."""


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def zeros(_variance: Fraction, size: int, *, entropy: object) -> Any:
        return np.zeros(size, np.int64)

    monkeypatch.setattr("dplinear.noise.discrete.gaussian", zeros)


def test_a_product_that_overflows_is_no_longer_than_is_declared() -> None:
    of = model()
    found = moments(of, pa.table(ROW))
    whole = open_table(pa.table(ROW), of.schema, threads=1).moments().integers
    assert feature_square(of, whole) <= of.design.feature_square  # of the encoding alone
    assert feature_square(of, found) == feature_square(of, whole)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("fault", ["encoding", "bound"])
def test_adassp_keeps_its_promise_where_a_bound_is_wrong(
    relation: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The distance of neighbours in deviations is what ε follows from: no chance is involved."""
    if fault == "encoding":  # all levels, as products that were no numbers once made them
        monkeypatch.setattr(
            FactorValues, "product", lambda self, _, __: np.full(len(self._table["p"]), np.inf)
        )
    else:
        monkeypatch.setattr(one_model, "most_squared", lambda _, __: 1)
    of = model()
    asked = {"guarantee": ApproxDP(1.0, 1e-6), "neighbours": Neighbours(relation)}
    prepared = AdaSSP(**asked).prepare(of.design)  # type: ignore[arg-type]  # by name
    row = pa.table(ROW)
    zero = {name: [0.0] for name in {**FACTORS, **OTHERS}}
    other = row.slice(0, 0) if relation == "add_remove" else pa.table({**zero, "level": ["l5"]})
    base = moments(of, row.slice(0, 0))
    mu = real_mu(prepared, moments(of, row) + base, moments(of, other) + base)
    assert mu <= prepared.distance.norm(prepared.variances)
    assert mu > 0 or (relation, fault) == ("replace", "encoding")  # where all rows are alike


def test_the_gate_reads_features_within_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way: a planted bound, rows at their ends, and sums that a solver is handed."""
    seen: list[Any] = []
    honest = PreparedAdaSSP.measure

    def measure(self: PreparedAdaSSP, statistic: Statistic, entropy: Any) -> Any:
        seen.append((self.design, statistic.integers))
        return honest(self, statistic, entropy)

    monkeypatch.setattr(PreparedAdaSSP, "measure", measure)
    monkeypatch.setattr(one_model, "most_squared", lambda _, __: 1)
    schema = Schema({"a": (0, 1), "b": (0, 1), "c": (0, 1)})
    table = pa.table({name: [1.0] * 7 for name in "abc"})
    release_model(table, schema, "c", mechanism="adassp", epsilon=1.0, delta=1e-6)
    ((design, integers),) = seen
    squares = sum(int(integers[place, place]) for place in design.features)
    assert 0 < squares <= 7 * design.feature_square


def test_second_moments_of_held_cells_have_one_level_a_row() -> None:
    schema = Schema({"x": (-1, 1), "level": {"type": "category", "levels": ["a", "b", "c"]}})
    grid = Grid.of(schema)
    held = HeldCells.of(schema, shape_of(schema), "test")
    accumulator = Moments(schema, held).accumulator()
    rows = np.full((schema.dimension, 5), 3.0 * grid.steps_per_unit)
    accumulator.add(rows)
    found = accumulator.result().integers
    levels = [place for place, name in enumerate(schema.names) if name.startswith("level")]
    assert sum(int(found[place, place]) for place in levels) <= 5 * grid.steps_per_unit**2
    assert int(found[1, 1]) == 5 * grid.steps_per_unit**2
