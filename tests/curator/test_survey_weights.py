"""Survey weights: rows count by a public column's weights, clamped, the same from every source."""

import json
import math
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import dplinear as dpl
from dplinear.arguments import ArgumentError
from dplinear.curator.passes import exact_sums
from dplinear.curator.sources import open_reader, second_moments
from dplinear.exact.gram import Moments
from dplinear.exact.row_sums import Count, LeftOut, SquaredWeights
from dplinear.exact.weights import WHOLE, capped_weights, survey_weights
from dplinear.noise import simulation
from dplinear.papers import ediger, sheffet
from services import library

COLUMNS: dict[str, Any] = {"x": (-3, 3), "y": (0, 4)}
SCHEMA = dpl.Schema(COLUMNS, weight=("w", 0, 20))
UNITS = dpl.Schema(COLUMNS, weight=("w", 0, 20), unit="id")
GIVEN: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-6}


def table(rows: int = 3_000, seed: int = 0) -> pa.Table:
    random = simulation.generator(seed)
    x = random.normal(size=rows)
    y = np.clip(2 + 0.5 * x + 0.3 * random.normal(size=rows), 0, 4)
    ids = random.integers(0, rows // 3, rows)
    return pa.table({"x": x, "y": y, "w": random.lognormal(0.5, 0.8, rows), "id": ids})


def reference(data: pa.Table) -> Any:
    """Return Σ min(w, 20)·zzᵀ over z = (1, x, y), by the definition."""
    rows = np.column_stack([np.ones(data.num_rows), np.array(data["x"]), np.array(data["y"])])
    rows[:, 1] = rows[:, 1].clip(-3, 3)
    return rows.T @ (rows * np.minimum(np.array(data["w"]), 20)[:, None])


def test_sums_are_weighted_by_clamped_weights() -> None:
    found = second_moments(table(), SCHEMA).raw().astype(float) * 20
    assert np.allclose(found, reference(table()), rtol=2.0**-11)


@pytest.mark.parametrize(
    ("cell", "share"),
    [("20", 1), ("1e9", 1), ("inf", 1), ("5", 0.25), ("-3", 0), ("-inf", 0), ("0", 0)]
    + [(bad, 0) for bad in ("nan", "", "NA", "heavy", None)],
)
def test_a_weight_is_clamped_and_a_bad_one_is_nothing(cell: str | None, share: float) -> None:
    data = pa.table({"x": [1.0], "y": [1.0], "w": pa.array([cell], "string")})
    (count,) = exact_sums(data, SCHEMA, [Count()])
    assert count[0] == share * WHOLE


def test_a_low_bound_lifts_small_weights_but_not_missing_ones() -> None:
    schema = dpl.Schema(COLUMNS, weight=("w", 5, 20))
    data = pa.table({"x": [0.0] * 3, "y": [1.0] * 3, "w": pa.array([0.1, None, float("nan")])})
    (count,) = exact_sums(data, schema, [Count()])
    assert count[0] == WHOLE // 4


def test_weights_are_rounded_down_by_less_than_a_part_in_2048() -> None:
    shares = simulation.generator(1).uniform(2.0**-12, 1, 10_000)
    error = shares - survey_weights(shares) / WHOLE
    assert (error >= 0).all()
    assert (error < shares * 2.0**-11).all()
    assert survey_weights(np.array([0.0, 1.0, np.nan])).tolist() == [0, WHOLE, 0]
    for beyond in (1.001, -0.001):
        with pytest.raises(ArithmeticError):
            survey_weights(np.array([beyond]))


@pytest.mark.parametrize("k", [1, 3])
def test_a_unit_is_capped_by_its_total_weight(k: int) -> None:
    random = simulation.generator(2)
    own, codes = survey_weights(random.uniform(0, 1, 500)), random.integers(0, 60, 500)
    capped, totals = capped_weights(own, codes, 60, k)
    for unit in range(60):
        mine = codes == unit
        whole = max(Fraction(k), Fraction(int(own[mine].sum()), WHOLE))
        expected = [Fraction(int(one), WHOLE) / whole for one in own[mine]]
        errors = [a - Fraction(int(b), WHOLE) for a, b in zip(expected, capped[mine], strict=True)]
        assert all(
            0 <= error <= max(float(a) / 2048, 2.0**-24)
            for error, a in zip(errors, expected, strict=True)
        )
        assert int(capped[mine].sum()) <= WHOLE
        assert set(totals[mine].tolist()) <= {int(capped[mine].sum())}


@pytest.mark.parametrize("schema", [SCHEMA, UNITS])
def test_the_same_bits_from_every_source_in_any_order(schema: dpl.Schema, tmp_path: Path) -> None:
    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=97)
    csv.write_csv(data, tmp_path / "t.csv")
    expected = second_moments(data, schema, rows_per_unit=2)
    order = simulation.generator(5).permutation(data.num_rows)
    names = list(schema.read_columns)
    texts = data.set_column(2, "w", data["w"].cast("string"))
    array = np.column_stack([np.array(data[name]) for name in names])
    kinds = [(name, np.array(data[name]).dtype) for name in names]
    fields = np.array(list(zip(*(data[name].to_pylist() for name in names), strict=True)), kinds)
    others = (tmp_path / "t.parquet", tmp_path / "t.csv", data.to_reader(50), texts)
    for other in (data.take(order), *others, array, np.asfortranarray(array), fields):
        found = second_moments(other, schema, rows_per_unit=2)
        assert found == expected
        assert found.squares == expected.squares
    reader = open_reader(array, schema, again=True, rows_per_unit=2)
    for _ in range(2):  # the second pass is over what the first one kept
        assert reader.run(Moments(schema)) == expected


@pytest.mark.engine
@pytest.mark.parametrize("schema", [SCHEMA, UNITS])
def test_the_same_bits_from_frames_and_engines(schema: dpl.Schema, tmp_path: Path) -> None:
    data = table(400)
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=97)
    polars, duckdb = library("polars"), library("duckdb")
    frame = library("dask.dataframe").from_pandas(data.to_pandas(), npartitions=7)
    relation = duckdb.connect().from_arrow(data)
    for held in (data.to_pandas(), polars.from_arrow(data), relation, frame):
        assert second_moments(held, schema) == second_moments(data, schema)
    found = second_moments(tmp_path / "t.parquet", schema, engine="dask")
    assert found == second_moments(data, schema)
    assert found.squares == second_moments(data, schema).squares


@pytest.mark.engine
@pytest.mark.long
@pytest.mark.parametrize("schema", [SCHEMA, UNITS])
def test_the_same_bits_from_spark(schema: dpl.Schema, spark: Any, tmp_path: Path) -> None:
    data = table(400)
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=97)
    types = library("pyspark.sql.pandas.types").from_arrow_schema(data.schema)
    rows = [tuple(row.values()) for row in data.to_pylist()]
    frame = spark.createDataFrame(rows, types).repartition(5)
    assert second_moments(frame, schema) == second_moments(data, schema)
    found = second_moments(tmp_path / "t.parquet", schema, engine="spark")
    assert found == second_moments(data, schema)


def test_squares_of_weights_are_those_of_rows_or_of_units() -> None:
    data = table(500)
    weights = survey_weights(np.minimum(np.array(data["w"]), 20) / 20)
    (found,) = exact_sums(data, SCHEMA, [SquaredWeights()])
    assert found[0] == int((weights.astype(object) ** 2).sum())
    capped, _ = capped_weights(weights, np.array(data["id"]), 500, 2)
    totals = np.bincount(np.array(data["id"]), capped)
    (found,) = exact_sums(data, UNITS, [SquaredWeights()], rows_per_unit=2)
    assert found[0] == int((totals**2).sum())


@pytest.mark.parametrize("schema", [SCHEMA, UNITS])
def test_weights_of_rows_that_are_left_out_are_added_up(schema: dpl.Schema) -> None:
    data = table(500)
    x = pa.array(np.array(data["x"]), mask=np.arange(500) % 5 == 0)
    data, schema = data.set_column(0, "x", x), schema.leaving_out()
    left, kept = exact_sums(data, schema, [LeftOut(), Count()])
    weights = survey_weights(np.minimum(np.array(data["w"]), 20) / 20)
    if schema.unit is not None:  # of as much as they would weigh if none were left out
        weights, _ = capped_weights(weights, np.array(data["id"]), 500, 1)
    assert left[0] == int(weights[np.arange(500) % 5 == 0].sum())
    assert kept[0] == exact_sums(data.filter(data["x"].is_valid()), schema, [Count()])[0][0]


def test_a_schema_with_a_weight_is_written_and_read(tmp_path: Path) -> None:
    again = dpl.Schema.from_dict(json.loads(json.dumps(UNITS.to_dict())))
    assert again == UNITS
    assert again.weight == UNITS.weight
    toml = 'unit = "id"\nweight = ["w", 0, 20]\n[columns]\nx = [-3, 3]\ny = [0, 4]\n'
    assert tomllib.loads(toml)["weight"] == ["w", 0, 20]
    (tmp_path / "s.toml").write_text(toml)
    assert dpl.Schema.from_file(tmp_path / "s.toml") == UNITS
    assert SCHEMA.select(["x"]).weight == SCHEMA.weight
    assert dpl.Schema(COLUMNS) != SCHEMA


@pytest.mark.parametrize(
    "weight",
    [(30, 200), "w", ("w", 0), ("w", -1, 5), ("w", 5, 5), ("w", 0, "many"), ("", 0, 5), (1, 0, 5)],
)
def test_a_weight_without_a_column_and_bounds_is_refused(weight: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        dpl.Schema(COLUMNS, weight=weight)
    assert caught.value.parameter == "weight"


REFUSED: list[Any] = [
    lambda: dpl.release_moments(table(), SCHEMA, **GIVEN, mechanism="additive_wishart"),
    lambda: dpl.release_sketch(table(), SCHEMA, **GIVEN),
    lambda: dpl.release_rows(table(), SCHEMA, **GIVEN),
    lambda: dpl.release_rows(table(), SCHEMA, bits=1, neighbours="element"),
    lambda: ediger.release_model(table(), SCHEMA, "y", **GIVEN, neighbours="replace"),
    lambda: sheffet.release_moments(table(), SCHEMA, **GIVEN, neighbours="replace"),
]


@pytest.mark.parametrize("call", REFUSED)
def test_gates_without_a_proof_refuse_before_they_spend(
    call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spend(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("dplinear.curator.passage.Passage._spend", spend)
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.parameter in {"schema", "neighbours", "by"}


def test_counts_are_sums_of_weights_and_words_say_so() -> None:
    data, total = table(20_000), float(np.minimum(np.array(table(20_000)["w"]), 20).sum())
    moments = dpl.release_moments(data, SCHEMA, **GIVEN)
    model = dpl.release_model(data, SCHEMA, "y", **GIVEN)
    mean = dpl.release_mean(data, SCHEMA, **GIVEN)
    units = dpl.release_moments(data, UNITS, rows_per_unit=8, **GIVEN)
    for release in (moments, model, mean, units):
        assert release.count == pytest.approx(total, rel=0.05)
        assert f"a total weight (by 'w') of about {release.count:,.0f}" in repr(release)
    for summary in (str(moments.regress("y").summary()), str(model.summary())):
        assert "total weight (by 'w')" in summary
        assert "rows of equal weight (Kish)" in " ".join(summary.split())


def test_a_ridge_is_as_strong_as_scikit_learns_beside_the_same_weights() -> None:
    from sklearn.linear_model import Ridge

    data = table(20_000)
    x, y, w = (np.array(data[name]) for name in ("x", "y", "w"))
    moments = dpl.release_moments(data, SCHEMA, guarantee=dpl.ZCDP(1e6))
    theirs = Ridge(alpha=30_000.0).fit(x.clip(-3, 3)[:, None], y, sample_weight=w.clip(0, 20))
    ours = moments.regress("y", ridge=30_000.0)
    assert ours["x"] == pytest.approx(float(theirs.coef_[0]), abs=2e-3)
    assert ours.ridge == 30_000.0
    spread = np.cov(x.clip(-3, 3), aweights=w.clip(0, 20))
    assert moments.covariance(["x"])["x", "x"] == pytest.approx(float(spread), rel=2e-3)


def robust(data: pa.Table) -> tuple[float, float]:
    """Return the weighted slope of y on x, and its robust error, of the rows themselves."""
    x, y, w = (np.array(data[name]) for name in ("x", "y", "w"))
    w, design = np.minimum(w, 20), np.column_stack([np.ones(len(x)), x.clip(-3, 3)])
    bread = np.linalg.inv(design.T @ (design * w[:, None]))
    b = bread @ design.T @ (w * y)
    scores = design * (w * (y - design @ b))[:, None]
    return float(b[1]), float(np.sqrt((bread @ scores.T @ scores @ bread)[1, 1]))


def test_errors_are_those_of_weighted_least_squares() -> None:
    """Of 80 intervals that cover in 95% of cases, 64 do: a false alarm in three million runs."""
    covered, ratios = 0, []
    for seed in range(80):
        data = table(4_000, seed)
        moments = dpl.release_moments(data, SCHEMA, guarantee=dpl.ZCDP(100.0))
        told = moments.regress("y").intervals()
        at = told.names.index("x")
        covered += bool(told.low[at] <= 0.5 <= told.high[at])
        ratios.append(float(told.sampling[at]) / robust(data)[1] ** 2)
    assert covered >= 64
    assert 0.9 < np.mean(ratios) < 1.15  # without Kish's factor it is about 4


@pytest.mark.parametrize("mechanism", ["whitened_descent", "coinpress"])
def test_errors_of_models_are_those_of_weighted_least_squares(mechanism: str) -> None:
    data = table(20_000)
    with simulation.door(7):
        model = dpl.release_model(data, SCHEMA, "y", mechanism=mechanism, guarantee=dpl.ZCDP(50.0))
    told = model.intervals()
    ratio = math.sqrt(float(told.sampling[1])) / robust(data)[1]
    assert 0.8 < ratio < 1.4  # without the factor it is about 2


REPLACED: dict[str, Any] = {
    "moments": lambda schema, **given: dpl.release_moments(table(), schema, **given),
    "whitened_descent": lambda schema, **given: dpl.release_model(table(), schema, "y", **given),
    "adassp": lambda schema, **given: dpl.release_model(
        table(), schema, "y", mechanism="adassp", **given
    ),
    "coinpress": lambda schema, **given: dpl.release_model(
        table(), schema, "y", mechanism="coinpress", **given
    ),
    "huber": lambda schema, **given: dpl.release_model(table(), schema, "y", loss="huber", **given),
    "logistic": lambda schema, **given: dpl.release_model(
        table(), schema, "y", loss="logistic", **given
    ),
    "mean": lambda schema, **given: dpl.release_mean(table(), schema, **given),
    "covariance": lambda schema, **given: dpl.release_covariance(table(), schema, **given),
    "centred": lambda schema, **given: dpl.release_covariance(
        table(), schema, mechanism="centred_covariance", **given
    ),
}


@pytest.mark.parametrize("schema", [SCHEMA, UNITS])
@pytest.mark.parametrize("name", REPLACED)
def test_what_rows_weigh_is_noisy_where_they_are_replaced(name: str, schema: dpl.Schema) -> None:
    """The number of rows is public of single rows, but no release of weighted ones says it."""
    with simulation.door(6):
        found = REPLACED[name](schema, **GIVEN, neighbours="replace")
    assert found.rows is None
    assert found.certificate.neighbours == "replace"
    plain = min(8_000, float(np.minimum(np.array(table()["w"]), 20).sum()))
    if schema is SCHEMA:
        assert found.count == pytest.approx(plain, rel=0.5)
        assert found.count != pytest.approx(plain, rel=1e-9)
    assert f"a total weight (by 'w') of about {found.count:,.0f}" in repr(found)


def test_suggested_bounds_are_those_of_rows_that_weigh() -> None:
    data = table(5_000)
    far = np.where(np.arange(5_000) % 2, np.array(data["x"]), 1e6)
    weights = np.where(np.arange(5_000) % 2, 1.0, 0.0)
    data = pa.table({"x": far, "w": weights})
    found = dpl.suggest_bounds(data, ["x"], weight=("w", 0, 1), guarantee=dpl.ZCDP(1.0))
    assert float(found.schema.features[1].high) < 100
    assert found.schema.weight_name == "w"
