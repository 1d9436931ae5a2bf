"""Groups for one price: one pass, one joint noise, one charge, a release for each public level."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import dplinear as dpl
from dplinear.analyst.releases.groups import Groups
from dplinear.arguments import ArgumentError
from dplinear.curator.sources import open_reader, second_moments, spool
from dplinear.exact.gram import Moments
from dplinear.exact.grid import Grid, moments_shape
from dplinear.exact.groups import GroupReduction
from dplinear.exact.weights import WHOLE
from dplinear.ledger import open_ledger
from dplinear.mechanisms.moments.analyze_gauss import AnalyzeGauss, Difference, _coarser
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.schema.groups import group_levels, read_by

COLUMNS: dict[str, Any] = {"x": (-1, 1), "ward": ["a", "b", "c"], "y": (0, 3), "old": "boolean"}
SCHEMA = Schema(COLUMNS)
INNER = Schema({"x": (-1, 1), "y": (0, 3), "old": "boolean"})
BUDGET: Any = {"epsilon": 1.0, "delta": 1e-6}
WARDS = ["a", "b", "other", None, "c ", ""]  # of cells; "c" is a level that no row holds


def table(seed: int = 0, rows: int = 400) -> pa.Table:
    random = simulation.generator(seed)
    cells = {"x": random.uniform(-2, 2, rows), "y": random.uniform(0, 4, rows)}
    wards = [WARDS[code] for code in random.integers(0, len(WARDS), rows)]
    old = random.choice([True, False], rows)
    people = [f"p{number}" for number in random.integers(0, 40, rows)]
    return pa.table({**cells, "ward": wards, "old": old, "id": people})


def exact(data: Any, by: Any = "ward", unit: str | None = None, k: int = 1, **reading: Any) -> Any:
    """Return the integers of each group's second moments."""
    split = read_by(SCHEMA.with_unit(unit), by, "test")
    passes = [Moments(split.of_group()) for _ in group_levels(split)]
    reader = open_reader(data, split, rows_per_unit=k, **reading)
    return [part.integers for part in reader.run(GroupReduction(split, passes)).parts]


def same(found: Any, expected: Any) -> bool:
    return len(found) == len(expected) and all(
        (one == other).all() for one, other in zip(found, expected, strict=True)
    )


def rows_of(data: pa.Table, ward: str) -> pa.Table:
    held = [name if name in {"a", "b", "c"} else "other" for name in data["ward"].to_pylist()]
    return data.filter(pa.array([name == ward for name in held], pa.bool_()))


def test_a_group_is_its_rows_as_a_table_of_their_own() -> None:
    data = table()
    found = exact(data)
    for ward, matrix in zip(("a", "b", "c", "other"), found, strict=True):
        expected = second_moments(rows_of(data, ward), INNER).integers
        assert (matrix == expected).all()
    assert (sum(found) == second_moments(data, INNER).integers).all()
    assert not found[2].any()


@pytest.mark.parametrize("k", [1, 3])
def test_units_are_weighed_over_all_groups(k: int) -> None:
    data = table()
    whole = Schema({"x": (-1, 1), "y": (0, 3), "old": "boolean"}, unit="id")
    found = exact(data, unit="id", k=k)
    assert (sum(found) == second_moments(data, whole, rows_per_unit=k).integers).all()


def test_two_columns_make_the_groups_of_their_combinations() -> None:
    data = table()
    split = read_by(SCHEMA, ["ward", "old"], "test")
    assert group_levels(split)[:3] == (("a", False), ("a", True), ("b", False))
    plain = Schema({"x": (-1, 1), "y": (0, 3)})
    for level, matrix in zip(group_levels(split), exact(data, ["ward", "old"]), strict=True):
        assert isinstance(level, tuple)
        own = rows_of(data, str(level[0]))
        own = own.filter(pa.array([old == level[1] for old in own["old"].to_pylist()], pa.bool_()))
        assert (matrix == second_moments(own, plain).integers).all()


def test_the_same_bits_from_every_source_in_any_order(tmp_path: Path) -> None:
    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=97)
    csv.write_csv(data, tmp_path / "t.csv")
    order = simulation.generator(5).permutation(data.num_rows)
    array = np.empty((data.num_rows, 5), object)
    for index, name in enumerate(("x", "ward", "y", "old", "id")):
        array[:, index] = data[name].to_pylist()
    sources = [data.take(order), tmp_path / "t.parquet", tmp_path / "t.csv", data.to_reader(50)]
    for unit in (None, "id"):
        expected = exact(data, unit=unit)
        for other in (*sources[:3], data.to_reader(50), array if unit else array[:, :4]):
            assert same(exact(other, unit=unit), expected)
        for threads in (1, 3):
            assert same(exact(tmp_path / "t.parquet", unit=unit, threads=threads), expected)


@pytest.mark.engine
def test_the_same_bits_from_frames_and_engines(tmp_path: Path) -> None:
    import dask.dataframe as dd
    import polars as pl

    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=97)
    frame = data.to_pandas()
    for unit in (None, "id"):
        expected = exact(data, unit=unit)
        for other in (frame, pl.from_arrow(data), dd.from_pandas(frame, npartitions=3)):
            assert same(exact(other, unit=unit), expected)
        assert same(exact(tmp_path / "t.parquet", unit=unit, engine="dask"), expected)


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.usefixtures("spark")
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_the_same_bits_from_spark(tmp_path: Path) -> None:
    from services import library

    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=97)
    session = library("pyspark.sql").SparkSession.builder.getOrCreate()
    schema = library("pyspark.sql.pandas.types").from_arrow_schema(data.schema)
    rows = [tuple(row.values()) for row in data.to_pylist()]
    frame = session.createDataFrame(rows, schema).repartition(3)
    for unit in (None, "id"):
        expected = exact(data, unit=unit)
        assert same(exact(frame, unit=unit), expected)
        assert same(exact(tmp_path / "t.parquet", unit=unit, engine="spark"), expected)


def test_rows_that_do_not_fit_into_memory_keep_their_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = exact(table(), unit="id")
    held = spool.Spool
    monkeypatch.setattr(
        "dplinear.curator.sources.unit_rows.Spool", lambda size: held(size, held=1_000)
    )
    assert same(exact(table(), unit="id"), expected)


def test_rows_that_are_left_out_are_in_no_group() -> None:
    schema = Schema({"x": {"low": -1, "high": 1, "missing": "leave_out"}, "old": "boolean"})
    split = read_by(schema, "old", "test")
    data = pa.table(
        {"x": [0.5, None, 0.25, 1.0, 0.5], "old": [True, True, None, False, True], "id": [1] * 5}
    )
    passes = [Moments(split.of_group())] * 2
    parts = open_reader(data, split).run(GroupReduction(split, passes)).parts
    assert [part.count for part in parts] == [1, 2]
    # Rows that are left out are none of their unit's: three rows of a weight of a third each.
    weighed = split.with_unit("id")
    passes = [Moments(weighed.of_group())] * 2
    parts = open_reader(data, weighed).run(GroupReduction(weighed, passes)).parts
    third = parts[0].count
    assert WHOLE // 3 * 0.999 < third <= WHOLE // 3
    assert parts[1].count == 2 * third


@pytest.mark.parametrize(("missing", "expected"), [(1, [1, 2]), (0, [2, 1]), ("leave_out", [1, 1])])
def test_a_missing_truth_value_is_where_the_schema_says(missing: Any, expected: Any) -> None:
    schema = Schema({"x": (-1, 1), "old": {"type": "boolean", "missing": missing}})
    split = read_by(schema, "old", "test")
    data = pa.table({"x": [0.5, 0.5, 0.5], "old": [True, None, False]})
    parts = open_reader(data, split).run(GroupReduction(split, [Moments(split.of_group())] * 2))
    assert [part.count for part in parts.parts] == expected


# How far neighbours are apart, on integers


def square(one: Any, other: Any) -> int:
    """Return the squared Frobenius distance of all groups' matrices together."""
    return sum(int(entry) ** 2 for a, b in zip(one, other, strict=True) for entry in (a - b).flat)


def worst(random: Any, count: int) -> dict[str, Any]:
    """Return rows at the corners of the bounds, or far beyond them, in any groups."""
    signs = random.choice([-1, 1], (2, count)) * random.choice([1, 1e300], count)
    held = {"x": signs[0], "y": np.where(signs[1] > 0, 3.0, 0.0)}
    wards = [WARDS[code] for code in random.integers(0, len(WARDS), count)]
    return {**held, "ward": wards, "old": random.choice([True, False], count)}


def with_rows(data: pa.Table, rows: dict[str, Any], person: str) -> pa.Table:
    own = pa.table({**rows, "id": [person] * len(rows["x"])}).select(data.column_names)
    return pa.concat_tables([data, own.cast(data.schema)])


@pytest.mark.parametrize("by", ["ward", ["ward", "old"]])
@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_a_row_moves_all_groups_together_by_no_more_than_one_matrix(
    by: Any, neighbours: Neighbours
) -> None:
    data, random = table(), simulation.generator(3)
    shape = moments_shape(read_by(SCHEMA, by, "test").of_group())
    allowed = shape.sensitivity**2 * (2 if neighbours is Neighbours.REPLACE else 1)
    reached = 0
    for _ in range(30):
        before = data
        if neighbours is Neighbours.REPLACE:
            before = with_rows(data, worst(random, 1), "p")
        after = with_rows(data, worst(random, 1), "p")
        moved = square(exact(before, by, threads=1), exact(after, by, threads=1))
        assert moved <= allowed
        reached = max(reached, moved)
    assert reached > 0.99 * allowed


@pytest.mark.parametrize("k", [1, 4])
def test_a_unit_in_several_groups_moves_them_by_no_more_than_one_matrix(k: int) -> None:
    data, random = table(), simulation.generator(4)
    shape = moments_shape(INNER.with_unit("id"))
    before = exact(data, unit="id", k=k, threads=1)
    reached, replaced, others = 0, 0, [before]
    for turn, rows in enumerate((1, 2, 3, 4, 7, 60, 500) * 3):
        rows_in_one = {**worst(random, rows), "ward": ["ab"[turn % 2]] * rows}
        rows_in_one |= {"x": np.ones(rows), "y": np.full(rows, 3.0), "old": [True] * rows}
        for held in (worst(random, rows), rows_in_one):
            after = exact(with_rows(data, held, "someone"), unit="id", k=k, threads=1)
            reached = max(reached, square(before, after))
            # One unit's rows may become any others, in any groups.
            replaced = max(replaced, *(square(other, after) for other in others))
            assert reached <= shape.sensitivity**2
            assert replaced <= 2 * shape.sensitivity**2
            others.append(after)
    assert reached > 0.99 * shape.sensitivity**2
    assert replaced > 0.99 * 2 * shape.sensitivity**2


def test_a_matrix_of_one_number_moves_twice_where_a_row_changes_its_group() -> None:
    shape = moments_shape(Schema({"x": (0, 1)}, intercept=False))
    alone = Difference.of(shape, 0, Neighbours.REPLACE, 1)
    both = Difference.of(shape, 0, Neighbours.REPLACE, 1, 2)
    assert (Fraction(alone.norm) / shape.sensitivity) ** 2 == 1
    assert (Fraction(both.norm) / shape.sensitivity) ** 2 >= 2
    assert both.coordinates == 2 * alone.coordinates


def test_rounding_to_a_coarser_grid_counts_in_every_group_that_moves() -> None:
    # A unit whose part in each group is a single integer moves every entry over an edge.
    shape, groups = moments_shape(INNER.with_unit("id")), 7
    step = 2 * shape.exponent + 4  # a whole unit is a sixteenth of a step
    before = np.full((shape.dimension,) * 2, (1 << (step - 1)) - 1, object)
    one = [_coarser(before, step) for _ in range(groups)]
    other = [_coarser(before + 1, step) for _ in range(groups)]
    assert square(one, other) == groups * shape.dimension**2
    for neighbours in (Neighbours.ADD_REMOVE, Neighbours.REPLACE):
        allowed = Difference.of(shape, step, neighbours, 2, groups)
        assert square(one, other) <= Fraction(allowed.norm) ** 2
        assert allowed.coordinates == groups * shape.dimension**2


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_five_groups_have_the_noise_of_one(neighbours: str) -> None:
    shape = moments_shape(INNER)
    made = AnalyzeGauss(guarantee=dpl.ApproxDP(1.0, 1e-6), neighbours=Neighbours(neighbours))
    one, many = made.prepare(shape), made.prepare_groups(shape, 5)
    assert one.variance <= many.variance <= one.variance * (1 + 1e-9)
    assert many.account.profile is not None
    assert many.account.profile.delta(1.0) <= 1e-6


# The gate


def release(**given: Any) -> Any:
    asked = {"by": "ward", **BUDGET, **given}
    return dpl.release_moments(asked.pop("data", table()), asked.pop("schema", SCHEMA), **asked)


def test_a_group_without_noise_is_its_table_without_noise() -> None:
    data = table()
    groups = release(data=data, guarantee=dpl.ZCDP(1e14), epsilon=None, delta=None)
    assert list(groups) == ["a", "b", "c", "other"]
    for ward in groups:
        own = second_moments(rows_of(data, ward), INNER).cells()
        assert np.allclose(groups[ward].values, own, atol=1e-4)
        assert groups[ward].schema == INNER
        assert groups[ward].rows is None
    assert groups["a"].regress("y").coefficients["x"] == pytest.approx(
        dpl.release_moments(rows_of(data, "a"), INNER, guarantee=dpl.ZCDP(1e14))
        .regress("y")
        .coefficients["x"],
        abs=1e-3,
    )


def test_five_groups_are_one_line_of_the_ledger_at_the_price_of_one(tmp_path: Path) -> None:
    schema = Schema(COLUMNS | {"ward": ["a", "b", "c", "d"]})
    for name, by in (("groups", "ward"), ("whole", None)):
        ledger = open_ledger(tmp_path / f"{name}.db", create=True)
        ledger.declare("t", dpl.ZCDP(1.0))
        given: Any = {"guarantee": dpl.ZCDP(0.25), "ledger": ledger, "dataset": "t"}
        made = dpl.release_moments(table(), schema, by=by, request="r", **given)
        again = dpl.release_moments(table(1), schema, by=by, request="r", **given)
        (status,) = ledger.status()
        assert status.budget.text(status.spent) == "ρ = 0.25"
        assert status.releases == 1
        assert isinstance(made, Groups) == (by is not None)
        assert again.describe() == made.describe()


def test_groups_are_one_file(tmp_path: Path) -> None:
    groups = release(by=["ward", "old"])
    groups.save(tmp_path / "g.json")
    loaded = dpl.load(tmp_path / "g.json", kind="groups")
    assert loaded.levels == groups.levels
    assert loaded.by == ("ward", "old")
    assert loaded.certificate == groups.certificate
    for level in groups:
        assert np.array_equal(loaded[level].values, groups[level].values)
        assert loaded[level].certificate == groups[level].certificate
    assert loaded.describe() == groups.describe()
    with pytest.raises(KeyError, match="none of the levels"):
        loaded["nowhere"]
    content = (tmp_path / "g.json").read_bytes()
    (tmp_path / "h.json").write_bytes(content.replace(b'"group": "a, True"', b'"group": "a, Trux"'))
    with pytest.raises(ValueError, match="undamaged"):
        dpl.load(tmp_path / "h.json")


def test_certificates_say_what_the_guarantee_is_of() -> None:
    groups = release(neighbours="replace")
    assert groups.certificate.parameters["by"] == "ward"
    assert groups.certificate.parameters["groups"] == 4
    assert groups["b"].certificate.parameters["group"] == "b"
    assert any("all of them at once" in note for note in groups["b"].certificate.notes)
    assert "4 groups by ward" in groups.summary()
    assert "<table" in groups._repr_html_()


class Unread:
    """A table whose rows nobody may read."""

    def __init__(self) -> None:
        self.schema = table().schema

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        raise AssertionError("a table was opened")


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"by": "x"}, "by"),
        ({"by": "nobody"}, "by"),
        ({"by": ["ward", "ward"]}, "by"),
        ({"by": []}, "by"),
        ({"by": 3}, "by"),
        ({"by": {"ward": ["nobody"]}}, "by"),
        ({"by": "ward", "unit": "ward"}, "by"),
        ({"by": "ward", "schema": {"ward": ["a", "b"]}}, "by"),
        ({"schema": Schema(COLUMNS, derived=["x*ward"])}, "by"),
        ({"schema": Schema(COLUMNS | {"ward": ["other", "a"]})}, "by"),
        ({"schema": Schema(COLUMNS | {"ward": ["a", "b" * 501]})}, "by"),
        ({"schema": Schema(COLUMNS | {"ward": [f"w{i}" for i in range(1_000)]})}, "by"),
        ({"mechanism": "sketch", "neighbours": "replace"}, "by"),
        ({"mechanism": "additive_wishart", "unit": "id"}, "unit"),
        ({"mechanism": "sketch", "neighbours": "replace", "unit": "id"}, "unit"),
    ],
)
def test_wrong_groups_are_refused_before_anything_is_spent(
    given: dict[str, Any], parameter: str, tmp_path: Path
) -> None:
    ledger = open_ledger(tmp_path / "b.db", create=True)
    ledger.declare("t", dpl.ZCDP(1.0))
    with pytest.raises(ArgumentError) as raised:
        release(data=Unread(), ledger=ledger, dataset="t", **given)
    assert raised.value.parameter == parameter
    assert [status.releases for status in ledger.status()] == [0]


@pytest.mark.parametrize("mechanism", ["sketch", "additive_wishart", "inverse_wishart", "auto"])
def test_rows_that_come_or_go_are_in_one_group_whatever_the_mechanism(mechanism: str) -> None:
    groups = release(mechanism=mechanism, epsilon=4.0)
    assert {each.certificate.mechanism for each in groups.values()} == {
        groups.certificate.mechanism
    }


def test_the_grid_of_a_group_is_that_of_its_table() -> None:
    assert Grid.of(read_by(SCHEMA, "ward", "test")) == Grid.of(INNER)
