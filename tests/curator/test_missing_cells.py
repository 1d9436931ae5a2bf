"""Rows that lack a number they need are left out: as if they were not there, row by row."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import dplinear as dpl
from dplinear.arguments import ArgumentError
from dplinear.curator.sources import open_reader
from dplinear.estimators import PrivateLinearRegression, PrivateLogisticRegression
from dplinear.exact.gram import Moments
from dplinear.exact.row_sums import Count, LeftOut
from dplinear.exact.sums import Sums
from dplinear.noise import simulation
from dplinear.papers import ediger, sheffet
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema.columns import Numeric

NEEDED = {"type": "number", "low": -3, "high": 3, "missing": "leave_out"}
SCHEMA = dpl.Schema({"x": NEEDED, "y": (0, 4), "c": ["a", "b"]}, derived=["x*y"])
TWO: dict[str, Any] = {"x": NEEDED, "y": (0, 4)}
GIVEN: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
REPLACE: dict[str, Any] = GIVEN | {"neighbours": "replace"}


def table(rows: int = 5_000, missing: float = 0.1, seed: int = 0) -> pa.Table:
    random = simulation.generator(seed)
    x, noise = random.normal(size=rows), random.normal(size=rows)
    hidden = random.uniform(size=rows) < missing
    y = np.clip(2 + 0.5 * x + 0.3 * noise, 0, 4)
    level = pa.array(random.choice(["a", "b", "z"], rows))
    return pa.table({"x": pa.array(x, mask=hidden), "y": y, "c": level})


def complete(data: pa.Table) -> pa.Table:
    return data.filter(data["x"].is_valid())


def moments(data: Any, schema: dpl.Schema = SCHEMA) -> Any:
    return open_reader(data, schema).run(Moments(schema))


def adds_up_to(found: Any, whole: Any) -> bool:
    """Whether sums are those of a table without the rows that are left out, which are counted."""
    assert found.left > whole.left == 0
    same = found.count == whole.count and found.squares == whole.squares
    return same and bool((found.integers == whole.integers).all())


def test_a_row_that_is_left_out_adds_nothing_whatever_holds_it(tmp_path: Path) -> None:
    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=700)
    csv.write_csv(data, tmp_path / "t.csv")
    for held in (data, tmp_path / "t.parquet", tmp_path / "t.csv", data.to_reader(99)):
        found = moments(held)  # once: a reader has no rows for a second time
        assert adds_up_to(found, moments(complete(data)))
        assert found == moments(data)


def test_rows_of_arrays_are_left_out_too() -> None:
    schema = dpl.Schema({"x": NEEDED, "y": (0, 4)})
    data = table()
    array = np.column_stack([np.array(data["x"], float), np.array(data["y"])])
    assert np.isnan(array).any()
    whole = moments(array[~np.isnan(array[:, 0])], schema)
    assert adds_up_to(moments(array, schema), whole)


def test_rows_of_a_unit_that_are_left_out_are_none_of_its_rows() -> None:
    schema = dpl.Schema({"x": NEEDED, "y": (0, 4)}, unit="id")
    data = table()
    ids = pa.array(simulation.generator(2).integers(0, 900, data.num_rows))
    data = data.append_column("id", ids)
    assert adds_up_to(moments(data, schema), moments(complete(data), schema))


def test_rows_left_out_are_counted_by_the_row() -> None:
    data = table()
    reader = open_reader(data, SCHEMA)
    left, kept = reader.run(Sums(SCHEMA, [LeftOut(), Count()])).integers()
    assert left[0] == data["x"].null_count
    assert kept[0] == data.num_rows - left[0]


def test_a_replaced_row_may_be_left_out_so_counts_have_noise() -> None:
    assert Count().sensitivity_squared(Neighbours.REPLACE) == 0
    assert Count(varies=True).sensitivity_squared(Neighbours.REPLACE) == 1
    assert LeftOut().sensitivity_squared(Neighbours.REPLACE) == 1


@pytest.mark.parametrize("mechanism", ["whitened_descent", "adassp", "coinpress"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_the_number_of_rows_that_are_left_is_never_told(mechanism: str, neighbours: str) -> None:
    schema = {"x": (-3, 3), "y": (0, 4)}
    model = dpl.release_model(
        table(), schema, "y", mechanism=mechanism, neighbours=neighbours, **GIVEN
    )
    assert model.rows == (table().num_rows if neighbours == "replace" else None)
    assert model.count != complete(table()).num_rows


@pytest.mark.parametrize("mechanism", ["analyze_gauss", "additive_wishart", "sketch"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_moments_do_not_tell_how_many_rows_are_left(mechanism: str, neighbours: str) -> None:
    """By chance an estimate is that number once in 10^15 runs."""
    given: dict[str, Any] = {"mechanism": mechanism, "neighbours": neighbours}
    moments = dpl.release_moments(table(), TWO, **given, **GIVEN)
    assert moments.rows is None
    assert moments.count != complete(table()).num_rows


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_a_model_leaves_rows_out_and_says_how_many(loss: str) -> None:
    data = table(60_000)
    model = dpl.release_model(data, {"x": (-3, 3), "y": (0, 4)}, "y", loss=loss, **GIVEN)
    said = model.certificate.parameters
    count, noise = said["rows_left_out"], said["rows_left_out_noise"]
    assert isinstance(count, float)
    assert isinstance(noise, float)
    assert abs(count - data["x"].null_count) < 5 * noise  # a false alarm in 2 million runs
    assert f"About {count:,.0f} rows" in " ".join(str(model.summary()).split())


FACES: dict[str, Any] = {
    "rows": {},
    "units": {"unit": "id"},
    "weights": {"weight": ("w", 0, 4)},
    "weights of units": {"weight": ("w", 0, 4), "unit": "id"},
}


@pytest.mark.parametrize("mechanism", ["moments", "adassp", "coinpress"])
@pytest.mark.parametrize("face", FACES)
def test_every_release_says_what_share_it_left_out(mechanism: str, face: str) -> None:
    """False alarms: five deviations of noise and sampling, one in two million."""
    data = table(40_000, missing=0.2)
    random = simulation.generator(9)
    data = data.append_column("w", pa.array(random.uniform(1, 3, data.num_rows)))
    data = data.append_column("id", pa.array(random.permutation(data.num_rows) // 2))
    schema = dpl.Schema(TWO, **FACES[face])
    given: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6}
    given |= {"rows_per_unit": 2} if "unit" in FACES[face] else {}
    release: Any
    if mechanism == "moments":
        release = dpl.release_moments(data, schema, **given)
        summary = release.regress("y").summary()
        total = release.weight
    else:
        release = dpl.release_model(data, schema, "y", mechanism=mechanism, **given)
        summary, total = release.summary(), release.count
        total /= (4 if "weight" in FACES[face] else 1) * (2 if face == "weights of units" else 1)
    said = release.certificate.parameters
    left, noise = said["rows_left_out"], said["rows_left_out_noise"]
    share = data["x"].null_count / data.num_rows
    assert abs(left / (left + total) - share) < 5 * (noise / total + 0.002)
    assert f"({left / (left + total):.0%}; noise" in " ".join(str(summary).split())


def test_moments_of_complete_columns_say_nothing_of_rows_left_out() -> None:
    moments = dpl.release_moments(table(), {"y": (0, 4)}, **GIVEN)
    assert "rows_left_out" not in moments.certificate.parameters


def test_a_model_of_complete_rows_says_nothing_of_others() -> None:
    model = dpl.release_model(table(missing=0), {"x": (-3, 3), "y": (0, 4)}, "y", **GIVEN)
    assert "left out" not in str(model.summary())


def test_a_declared_constant_stands_for_missing_cells_in_models_too() -> None:
    filled = {"type": "number", "low": -3, "high": 3, "missing": 1}
    model = dpl.release_model(table(), {"x": filled, "y": (0, 4)}, "y", ["x"], **GIVEN)
    assert model.schema.needed_features == (2,)  # the target's, of which nothing is said
    assert model.schema.declared["x"].leave_out is False


def test_what_a_column_says_of_missing_cells_is_read_back() -> None:
    for declared in ((-3, 3), NEEDED, NEEDED | {"missing": 2}):
        schema = dpl.Schema({"x": declared})
        again = dpl.Schema.from_dict(schema.to_dict())
        assert again == schema
        assert again.declared == schema.declared


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (
            lambda: dpl.release_sketch(table(), {"x": NEEDED}, mechanism="mi_projection", bits=1),
            "schema",
        ),
        (lambda: dpl.release_rows(table(), {"x": NEEDED}, bits=1), "schema"),
        (lambda: ediger.release_model(table(), TWO, "y", **REPLACE), "neighbours"),
        (lambda: sheffet.release_moments(table(), TWO, **REPLACE), "neighbours"),
        (lambda: dpl.Schema({"x": NEEDED | {"missing_indicator": True}}), "x.missing_indicator"),
        (lambda: dpl.Schema({"x": NEEDED | {"missing": "leave-out"}}), "x.missing"),
    ],
)
def test_where_no_row_can_be_left_out_that_is_said(call: Any, parameter: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.parameter == parameter


def test_bounds_are_those_of_the_rows_that_are_not_left_out() -> None:
    """Filled in, half of the column would stand at 0; noise hides that once in 10^9 runs."""
    near = 50 + simulation.generator(4).normal(size=4_000)
    data = pa.table({"x": pa.array(near, mask=np.arange(4_000) % 2 == 0)})
    wide = {"type": "number", "low": 0, "high": 1_000, "missing": "leave_out"}
    found = dpl.suggest_bounds(data, ["x"], within={"x": wide}, rho=50.0)
    column = found.schema.declared["x"]
    assert isinstance(column, Numeric)
    assert column.leave_out
    assert column.low > 40


@pytest.mark.parametrize("kind", [PrivateLinearRegression, PrivateLogisticRegression])
def test_fit_finds_of_a_table_with_gaps_what_it_finds_without_those_rows(kind: Any) -> None:
    data = table(2_000)
    X, y = np.array(data["x"], float)[:, None], np.array(data["y"], float)
    known = ~np.isnan(X[:, 0])
    given: dict[str, Any] = {"target_bounds": (0, 4)}
    if kind is PrivateLogisticRegression:
        y, given = y > 2, {"classes": (False, True)}
    found = []
    for rows in (np.ones(len(X), bool), known):
        with simulation.door(5):
            found.append(kind(bounds=(-3, 3), **given).fit(X[rows], y[rows]).coef_)
    assert not known.all()
    assert np.array_equal(*found)
