"""Cells that are filled in are counted, column by column, and releases tell their share."""

import csv as plain_csv
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from scipy import sparse

import dplinear as dpl
from dplinear.analyst.design_effect import noise_of
from dplinear.analyst.filled_in import filled_name, filled_names
from dplinear.curator.gates import measured
from dplinear.curator.sources import open_reader, second_moments
from dplinear.exact.filling import pack, relief, unpack
from dplinear.exact.gram import Moments, SecondMoments
from dplinear.exact.grid import Grid
from dplinear.exact.groups import GroupReduction
from dplinear.exact.row_sums import Count, FilledIn
from dplinear.exact.sums import Sums
from dplinear.exact.weights import WHOLE
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema.filling import filled_columns
from dplinear.schema.groups import read_by
from services import library

GIVEN: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
LOW: dict[str, Any] = {"type": "number", "low": -3, "high": 3, "missing": -3}
TOWN = {"type": "category", "levels": ["a", "b"], "other": "a"}
SCHEMA = dpl.Schema(
    {
        "x": (-3, 3),
        "needed": {"type": "number", "low": -3, "high": 3, "missing": "leave_out"},
        "town": TOWN,
        "flag": "boolean",
        "marked": {"type": "number", "low": -3, "high": 3, "missing_indicator": True},
        "low": LOW,
        "level": ["u", "v"],
    },
    derived=["x*low", "x*town"],
)

COUNTED = ("x", "flag", "low", "town")  # numbers first, then levels


def table(rows: int = 9_000, seed: int = 0) -> pa.Table:
    random = simulation.generator(seed)

    def numbers(missing: float) -> pa.Array:
        return pa.array(random.normal(size=rows), mask=random.uniform(size=rows) < missing)

    flags = pa.array(random.integers(0, 2, rows), mask=random.uniform(size=rows) < 0.15)
    towns = pa.array(random.choice(["a", "b", "z"], rows), mask=random.uniform(size=rows) < 0.1)
    return pa.table(
        {
            "x": numbers(0.1),
            "needed": numbers(0.2),
            "town": towns,
            "flag": flags,
            "marked": numbers(0.3),
            "low": numbers(0.05),
            "level": pa.array(random.choice(["u", "v", "w"], rows)),
            "id": pa.array(random.integers(0, 800, rows)),
            "w": pa.array(random.uniform(-1, 5, rows)),
        }
    )


def gaps(row: dict[str, Any]) -> list[int]:
    """The oracle: which of the counted cells of a row hold nothing."""
    return [int(row[name] is None) for name in COUNTED[:3]] + [int(row["town"] not in ("a", "b"))]


def expected(data: pa.Table) -> list[int]:
    kept = [gaps(row) for row in data.to_pylist() if row["needed"] is not None]
    return [sum(column) for column in zip(*kept, strict=True)]


def moments(data: Any, schema: dpl.Schema = SCHEMA, **options: Any) -> SecondMoments:
    found: SecondMoments = open_reader(data, schema, **options).run(Moments(schema))
    return found


def test_columns_that_may_be_filled_in_are_known_from_the_schema() -> None:
    assert filled_columns(SCHEMA) == COUNTED
    assert filled_columns(SCHEMA.leaving_out()) == ("low", "town")
    assert filled_columns(read_by(SCHEMA.select(["x", "level=v", "town=b"]), "town", "")) == ("x",)


def test_filled_cells_are_counted_whatever_holds_the_table(tmp_path: Path) -> None:
    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=700)
    csv.write_csv(data, tmp_path / "t.csv")
    for held in (data, tmp_path / "t.parquet", tmp_path / "t.csv", data.to_reader(99)):
        assert list(moments(held).filled) == expected(data)


def test_unparsable_cells_of_a_file_are_filled_in(tmp_path: Path) -> None:
    schema = dpl.Schema({"x": (-3, 3), "y": (0, 4)})
    with (tmp_path / "t.csv").open("w", newline="") as file:
        plain_csv.writer(file).writerows(
            [("x", "y"), (1, 2), ("", 1), ("n/a", "nan"), ("inf", "1e999"), ("7", "[1]")]
        )
    assert moments(tmp_path / "t.csv", schema).filled == (2, 2)


@pytest.mark.engine
@pytest.mark.parametrize("name", ["pandas", "polars", "duckdb"])
def test_filled_cells_are_counted_in_frames(name: str) -> None:
    data, module = table(), library(name)
    held = data.to_pandas() if name == "pandas" else module.from_arrow(data)
    assert list(moments(held).filled) == expected(data)


@pytest.mark.engine
@pytest.mark.parametrize("unit", [None, "id"])
def test_workers_of_dask_count_as_one_process_does(unit: str | None) -> None:
    frames = library("dask.dataframe")
    data, schema = table(3_000), SCHEMA.with_unit(unit)
    held = frames.from_pandas(data.to_pandas(), npartitions=5)
    assert moments(held, schema).filled == moments(data, schema).filled


@pytest.mark.parametrize(
    "kind", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.coo_array]
)
def test_filled_cells_of_arrays_and_sparse_matrices_are_counted(kind: Any) -> None:
    schema = dpl.Schema({"x": (-3, 3), "y": LOW})
    random = simulation.generator(3)
    array = random.normal(size=(9_000, 2)) * (random.uniform(size=(9_000, 2)) < 0.6)
    array[random.uniform(size=array.shape) < 0.1] = np.nan
    found = moments(kind(array), schema).filled
    assert list(found) == [sum(map(math.isnan, column)) for column in array.T.tolist()]


def test_levels_of_arrays_are_counted() -> None:
    schema = dpl.Schema({"x": (-3, 3), "ward": {"type": "category", "levels": [1, 2], "other": 2}})
    array = np.array([[0, 1], [np.nan, 2], [1, 3], [np.nan, np.nan]])
    assert moments(array, schema).filled == (2, 2)


@pytest.mark.parametrize("weight", [None, ("w", 0, 4)])
def test_weights_of_rows_with_filled_cells_add_up(weight: Any) -> None:
    """An oracle of fractions: units of weight min(1/k, 1/Σ s), up to what rounding takes."""
    content = SCHEMA.to_dict() | {"unit": "id"} | ({} if weight is None else {"weight": weight})
    schema, data, k = dpl.Schema.from_dict(content), table(), 3
    rows = [row for row in data.to_pylist() if row["needed"] is not None]
    own = [Fraction(1) if weight is None else Fraction(min(max(r["w"], 0), 4)) / 4 for r in rows]
    held: dict[Any, Fraction] = {}
    for row, share in zip(rows, own, strict=True):
        held[row["id"]] = held.get(row["id"], Fraction(0)) + share
    totals = [Fraction(0)] * len(COUNTED)
    for row, share in zip(rows, own, strict=True):
        part = share / max(held[row["id"]], Fraction(k))
        totals = [a + part * gap for a, gap in zip(totals, gaps(row), strict=True)]
    found = moments(data, schema, rows_per_unit=k).filled
    for exact, count in zip(totals, found, strict=True):
        assert 0 <= exact - Fraction(count, WHOLE) <= exact / 500


def test_groups_count_their_own_cells() -> None:
    split = read_by(SCHEMA.select(["x", "low", "needed", "level=v"]), "level", "")
    data = table()
    found = open_reader(data, split).run(
        GroupReduction(split, [Moments(split.of_group()) for _ in range(3)])
    )
    for level, part in zip(("u", "v", "w"), found.parts, strict=True):
        own = data.filter(pa.array([cell == level for cell in data["level"].to_pylist()]))
        assert [part.filled[0], part.filled[1]] == [expected(own)[0], expected(own)[2]]


def test_a_pass_of_sums_counts_as_one_of_moments_does() -> None:
    data = table()
    for unit in (None, "id"):
        schema = SCHEMA.with_unit(unit)
        asked = [FilledIn(len(COUNTED)), Count()]
        cells, rows = open_reader(data, schema).run(Sums(schema, asked)).integers()
        whole = moments(data, schema)
        assert tuple(cells) == whole.filled
        assert rows[0] == whole.count


def test_counts_are_sent_by_workers_and_add_up() -> None:
    data = table()
    one, other = moments(data.slice(0, 5_000)), moments(data.slice(5_000))
    both = SecondMoments.from_bytes(one.to_bytes()) + other
    assert list(both.filled) == expected(data)


@pytest.mark.parametrize("columns", [1, 24, 25, 100])
def test_gaps_of_rows_that_wait_are_those_that_were_found(columns: int) -> None:
    gapped = simulation.generator(columns).uniform(size=(columns, 50)) < 0.3
    assert np.array_equal(np.asarray(unpack(pack(gapped), columns)), gapped)
    assert unpack(pack(np.zeros_like(gapped)), columns) is None


def test_counts_of_several_columns_move_together() -> None:
    for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE):
        assert [FilledIn(c).sensitivity_squared(relation) for c in (1, 2, 5)] == [1, 2, 5]
    assert [FilledIn(c).bound for c in (1, 2, 4, 5, 9, 10)] == [1, 2, 2, 3, 3, 4]


FACES: dict[str, Any] = {
    "rows": {},
    "units": {"unit": "id"},
    "weights": {"weight": ("w", 0, 4)},
    "weights of units": {"weight": ("w", 0, 4), "unit": "id"},
}
WAYS = ["moments", "whitened_descent", "adassp", "coinpress", "huber", "logistic"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("face", FACES)
def test_every_release_says_what_share_it_filled_in(way: str, face: str) -> None:
    """Five deviations of the noise, and of how units draw rows: a false alarm in 10^6 runs."""
    data = table(60_000)
    columns = {"low": LOW, "x": (-3, 3), "town": TOWN}
    schema = dpl.Schema(columns, **FACES[face])
    given: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6}
    if way == "moments":
        release: Any = dpl.release_moments(data, schema, **given)
        summary: Any = release.regress("x").summary()
    else:
        own: dict[str, Any] = {"loss": way} if way in {"huber", "logistic"} else {"mechanism": way}
        release = dpl.release_model(data, schema, "x", **own, **given)
        summary = release.summary()
    said = release.certificate.parameters
    truth = {"low": 0.05, "town": 1 - 0.9 * 2 / 3, **({"x": 0.1} if way == "moments" else {})}
    scale = 4.0 if "weights" in face else 1.0
    for column, share in truth.items():
        count, noise = said[filled_name(schema, column)], said[f"filled_in:{column}_noise"]
        found, error = count * scale / release.count, noise * scale / release.count
        assert abs(found - share) < 5 * math.hypot(error, math.sqrt(share / 3_000)) + 0.01, column
    text = " ".join(str(summary).split())
    town = said["filled_in:town"] * scale / release.count
    assert f"About {town:.1%} of 'town'" in text


def test_models_that_leave_rows_out_fill_nothing_in() -> None:
    model = dpl.release_model(table(), {"x": (-3, 3), "low": (-3, 3)}, "x", **GIVEN)
    assert not any(name.startswith("filled_in") for name in model.certificate.parameters)


def test_releases_where_nothing_is_filled_in_are_as_before() -> None:
    needed = SCHEMA.to_dict()["columns"]["needed"]
    columns = {"needed": needed, "level": ["u", "v"]}
    found = dpl.release_moments(table(), columns, **GIVEN)
    assert set(found.certificate.parameters) == {
        "sigma",
        "off_diagonal_sigma",
        "bound",
        "grid_step",
        "rows_left_out",
        "rows_left_out_noise",
    }


def test_a_large_share_is_warned_of_and_a_small_one_told() -> None:
    data = table(40_000)
    released = dpl.release_moments(data, {"x": (-3, 3), "low": (-3, 3)}, epsilon=50.0, delta=1e-6)
    text = " ".join(str(released.regress("x").summary()).split())
    assert "of 'x' (noise" in text
    assert "pulled towards 0" in text
    few = data.append_column("few", pa.array(np.zeros(40_000), mask=np.arange(40_000) % 100 == 0))
    released = dpl.release_moments(
        few, {"few": (-3, 3), "flag": "boolean"}, epsilon=50.0, delta=1e-6
    )
    text = " ".join(str(released.regress("few").summary()).split())
    assert "of 'few' (noise" in text
    assert "Slopes of 'few'" not in text


def test_columns_that_a_fit_does_not_use_are_not_spoken_of() -> None:
    released = dpl.release_moments(table(), {"x": (-3, 3), "low": LOW, "flag": "boolean"}, **GIVEN)
    assert "'flag'" not in str(released.regress("x", ["low"]).summary())


def test_noise_that_hides_a_share_is_spoken_of() -> None:
    model = dpl.release_model(table(300), {"low": LOW, "x": (-3, 3)}, "x", **GIVEN)
    text = " ".join(str(model.summary()).split())
    assert "'low'" in text
    assert "±" in text


def test_certificates_hold_counts_of_many_columns_of_long_names() -> None:
    names = [f"x{index}" for index in range(600)] + ["y" * 3_000]
    data = pa.table({name: pa.array([1.0, None, 2.0]) for name in names})
    found = dpl.release_moments(data, dict.fromkeys(names, (0, 4)), epsilon=1e4, delta=1e-6)
    said = [name for name in found.certificate.parameters if name.startswith("filled_in:")]
    assert len(said) == 2 * 100
    assert filled_name(found.schema, names[-1]) == "filled_in:#601"


def test_the_report_tells_the_share() -> None:
    released = dpl.release_moments(table(40_000), {"x": (-3, 3), "low": LOW}, **GIVEN)
    from dplinear.report.contents import content

    notes = [note for panel in content(released).panels for note in panel.notes]
    assert any("of 'x' (noise" in note for note in notes)


def test_rows_that_are_clipped_are_no_shorter_for_a_gap() -> None:
    """What is left of them may be as long as the norm they are clipped to."""
    columns = {"x": (-3, 3), "y": (-3, 3), "low": LOW, "town": TOWN}
    for norm, expected_share in ((None, [1, 1, 0, 0]), (1.1, [0, 0, 0, 0])):
        schema = dpl.Schema(columns, row_norm=norm)
        grid = Grid.of(schema)
        found = relief(schema, grid)
        assert [int(each) / grid.steps_per_unit**2 for each in found] == expected_share


@pytest.mark.parametrize(
    "names", [("#2", "x" * 201), ("a", "a_noise"), ("#1", "#2"), ("b_noise", "b")]
)
def test_counts_of_columns_are_told_apart_whatever_their_names_are(
    names: tuple[str, str],
) -> None:
    """A count that stood for two columns moved twice by one row: ε = 1.17 for 1."""
    cells = {names[0]: [0.5] * 10, names[1]: [None] * 7 + [0.5] * 3}
    schema = dpl.Schema(dict.fromkeys(names, (-1, 1)))
    told = filled_names(schema)
    assert len({*told, *map(noise_of, told)}) == 4
    moments = second_moments(pa.table(cells), schema, progress=False)
    assert measured._side_sums(moments) == (Fraction(0), Fraction(7))
    found = dpl.release_moments(pa.table(cells), schema, guarantee=dpl.ZCDP(1e9), progress=False)
    said = found.certificate.parameters
    assert [said[name] for name in told] == pytest.approx([0, 7], abs=0.1)
