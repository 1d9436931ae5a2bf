"""Released rows: what can be read of them, what files may hold, and regressions with error bars.

Averages are allowed 6.5 standard errors: 1e-10 by chance each, and there are fewer than 1,000 of
them (false-alarm rate 1e-6).
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dplinear import ReleaseError, load, release_rows
from dplinear.analyst.noise_models.matrices import NoisyRows
from dplinear.analyst.noise_models.rows import AdditiveRows, RowNoiseModel
from dplinear.analyst.releases import container
from dplinear.analyst.rows.release import RowsRelease
from dplinear.analyst.rows.row_head import Head, read_head
from dplinear.analyst.rows.row_reading import HeldRows
from dplinear.arguments import ArgumentTypeError
from dplinear.noise import simulation
from dplinear.schema import Schema
from refusals import refused
from services import library

ALLOWED = 6.5
SUFFIXES = ("parquet", "arrow", "csv")
SCHEMA = Schema({"x": (-1, 3), "ward": ["a", "b"], "y": (-4, 4)})
SLOPES = {"x": 1.5, "z": -0.5}
MODEL = Schema({"x": (-1, 1), "z": (-2, 2), "y": (-4, 4)})


def table(rows: int = 50) -> pa.Table:
    draw = simulation.generator(1)
    wards = np.array(["a", "b", "c"])[draw.integers(0, 3, rows)]
    columns = {"x": draw.uniform(-1, 3, rows), "ward": wards, "y": draw.uniform(-4, 4, rows)}
    return pa.table(columns)


def people(rows: int) -> pa.Table:
    draw = simulation.generator(2)
    x, z = draw.uniform(-1, 1, rows), draw.uniform(-2, 2, rows)
    y = SLOPES["x"] * x + SLOPES["z"] * z + 0.1 * draw.standard_normal(rows)
    return pa.table({"x": x, "z": z, "y": y})


@pytest.fixture(scope="module")
def released() -> RowsRelease:
    with simulation.door(3):
        made: RowsRelease = release_rows(table(), SCHEMA, bits=0.5, dataset="wards")
        return made


def test_rows_are_had_in_every_form(released: RowsRelease) -> None:
    whole = released.to_arrow()
    assert released.names == ("x", "ward=b", "ward=other", "y") == tuple(whole.column_names)
    assert len(released) == released.rows == whole.num_rows == 50
    assert pa.Table.from_batches(released.batches()).equals(whole)
    assert np.array_equal(released.values, np.column_stack([c.to_numpy() for c in whole.columns]))
    assert released.path is None
    assert isinstance(released.noise_model, AdditiveRows)


@pytest.mark.engine
def test_rows_become_a_data_frame(released: RowsRelease) -> None:
    library("pandas")
    assert np.array_equal(released.to_pandas().to_numpy(), released.values)


def test_it_says_what_it_is(released: RowsRelease) -> None:
    assert released.describe() == repr(released)
    for word in ("50 rows of 4 numbers", "0.5 bits", "element", "SIMULATED"):
        assert word in repr(released)
        assert word in released._repr_html_()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_saved_is_loaded_to_the_bit(
    released: RowsRelease, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.{suffix}"
    released.save(path)
    again = load(path, kind="rows")
    assert load(str(path)).rows == 50
    assert again.to_arrow().equals(released.to_arrow())
    assert (again.schema, again.certificate) == (released.schema, released.certificate)
    assert again.noise_model == released.noise_model
    assert again.path == path
    assert f"file: x.{suffix}" in repr(again)
    with pytest.raises(ReleaseError, match="not there yet"):
        released.save(path)
    before = {file.name for file in tmp_path.iterdir()}
    released.save(path, overwrite=True)
    assert {file.name for file in tmp_path.iterdir()} == before
    assert load(path, kind="rows").to_arrow().equals(released.to_arrow())
    with pytest.raises(ReleaseError, match="dplinear-release"):
        load(path, kind="moments")


def test_paths_are_checked(released: RowsRelease, tmp_path: Path) -> None:
    with refused("path", "save", "ends in"):
        released.save(tmp_path / "x.txt")
    with pytest.raises(ReleaseError, match="folder"):
        released.save(tmp_path / "nowhere" / "x.csv")
    with refused("path", "save", kind=ArgumentTypeError):
        released.save(3)  # type: ignore[arg-type]


def test_text_and_numbers_of_other_types_last(released: RowsRelease, tmp_path: Path) -> None:
    """Labels of a projection are of these types; no law of their own is needed here."""

    class Free(AdditiveRows):
        def check(self, schema: Schema, names: tuple[str, ...]) -> None:
            """Allow everything."""

    columns = pa.schema(
        [
            pa.field(name, kind, nullable=False)
            for name, kind in (
                ("f", pa.float64()),
                ("i", pa.int64()),
                ("b", pa.bool_()),
                ("t", pa.string()),
            )
        ]
    )
    held = pa.table([[0.1, 1e-300], [-(2**53) - 1, 7], [True, False], ['a,"b"\n', ""]], columns)
    head = Head(released.schema, released.certificate, Free((0.0,) * 5), {}, columns)
    rows = RowsRelease(head, HeldRows(held))
    with refused("columns", "values", "numbers alone"):
        _ = rows.values
    for suffix in SUFFIXES:
        path = tmp_path / f"x.{suffix}"
        rows.save(path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AdditiveRows, "check", lambda *_: None)
            assert load(path, kind="rows").to_arrow().equals(held)


# Files that are not to be trusted


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Write a Parquet file again with another head."""
    whole = pq.read_table(path)
    facts = json.loads(whole.schema.metadata[b"dplinear"])
    change(facts)
    head = container.facts_text(facts)
    pq.write_table(whole.replace_schema_metadata({b"dplinear": head}), path)


def other_version(facts: dict[str, Any]) -> None:
    facts["version"] = 2


def other_format(facts: dict[str, Any]) -> None:
    facts["format"] = "dplinear-release"


def no_columns(facts: dict[str, Any]) -> None:
    facts["columns"] = []


def twice_a_column(facts: dict[str, Any]) -> None:
    facts["columns"][1] = facts["columns"][0]


def other_columns(facts: dict[str, Any]) -> None:
    facts["columns"][0][0] = "z"


def unknown_type(facts: dict[str, Any]) -> None:
    facts["columns"][0][1] = "object"


def unknown_law(facts: dict[str, Any]) -> None:
    facts["law"]["kind"] = "magic"


def negative_variance(facts: dict[str, Any]) -> None:
    facts["law"]["variances"][1] = -1.0


def noise_on_the_intercept(facts: dict[str, Any]) -> None:
    facts["law"]["variances"][0] = 1.0


def short_law(facts: dict[str, Any]) -> None:
    facts["law"]["variances"] = [0.0]


def odd_law(facts: dict[str, Any]) -> None:
    facts["law"]["variances"] = "none"


def no_guarantee(facts: dict[str, Any]) -> None:
    facts["certificate"]["holds"] = "perfect"


def more_keys(facts: dict[str, Any]) -> None:
    facts["more"] = 1


@pytest.mark.parametrize(
    "change",
    [
        other_version,
        other_format,
        no_columns,
        twice_a_column,
        other_columns,
        unknown_type,
        unknown_law,
        negative_variance,
        noise_on_the_intercept,
        short_law,
        odd_law,
        no_guarantee,
        more_keys,
    ],
)
def test_heads_that_are_not_sound_are_refused(
    released: RowsRelease, change: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    path = tmp_path / "x.parquet"
    released.save(path)
    rewritten(path, change)
    with pytest.raises(ReleaseError):
        load(path)


def test_heads_have_one_spelling(released: RowsRelease, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    released.save(path)
    certificate = tmp_path / "x.csv.certificate.json"
    content = certificate.read_bytes()
    for changed in (
        b" " + content,
        content.replace(b": ", b":", 1),
        content[:-2],
        b"",
        b"\xff" + content,
        b"[" * 10_000 + b"\n}\n",
        content + b" " * container.MOST_FACTS + b"\n}\n",
    ):
        certificate.write_bytes(changed)
        with pytest.raises(ReleaseError):
            load(path)
    certificate.unlink()
    with pytest.raises(ReleaseError, match="certificate"):
        load(path)
    with pytest.raises(ReleaseError):
        read_head(b"{\n}\n", "nothing")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_files_are_refused_or_read_whole(
    released: RowsRelease, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.{suffix}"
    released.save(path)
    content = path.read_bytes()
    draw = simulation.generator(4)
    cuts = [content[:length] for length in (4, 5, 8, 12, len(content) // 2, len(content) - 9)]
    flips = []
    for place in draw.integers(0, len(content), 60):
        changed = bytearray(content)
        changed[place] ^= 1 << int(draw.integers(8))
        flips.append(bytes(changed))
    for changed_content in [*cuts, *flips]:
        path.write_bytes(changed_content)
        try:
            read = load(path, kind="rows").to_arrow()
        except ReleaseError:
            continue
        assert read.num_rows == 50
        assert np.isfinite(np.column_stack([c.to_numpy() for c in read.columns])).all()


@pytest.mark.parametrize("cell", ["nan", "inf", "", "one"])
def test_cells_of_csv_must_be_finite_numbers(
    released: RowsRelease, cell: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    released.save(path)
    lines = path.read_text().splitlines()
    lines[7] = ",".join([cell, *lines[7].split(",")[1:]])
    path.write_text("\n".join(lines))
    with pytest.raises(ReleaseError):
        load(path, kind="rows").to_arrow()


def test_a_table_with_a_certificate_but_other_rows_is_refused(
    released: RowsRelease, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    released.save(path)
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(ReleaseError, match="50 rows"):
        load(path, kind="rows").to_arrow()
    path = tmp_path / "x.parquet"
    released.save(path)
    whole = pq.read_table(path)
    other = whole.set_column(0, "x", whole["x"].cast(pa.float32()))
    pq.write_table(other, path)
    with pytest.raises(ReleaseError, match="columns"):
        load(path, kind="rows").to_arrow()


def test_a_file_that_is_exchanged_after_loading_is_refused(
    released: RowsRelease, tmp_path: Path
) -> None:
    path = tmp_path / "x.parquet"
    released.save(path)
    loaded = load(path, kind="rows")
    release_rows(table(), SCHEMA, bits=0.5).save(path, overwrite=True)
    with pytest.raises(ReleaseError, match="when it was loaded"):
        loaded.to_arrow()


def test_laws_are_read_back(released: RowsRelease) -> None:
    assert (
        RowNoiseModel.from_dict(json.loads(json.dumps(released.noise_model.to_dict())))
        == released.noise_model
    )
    for content in (None, {}, {"kind": "magic"}, {"kind": "additive noise"}):
        with pytest.raises(ValueError, match=r"law|numbers"):
            RowNoiseModel.from_dict(content)


# Moments and regressions


def test_moments_are_those_of_the_rows(released: RowsRelease) -> None:
    moments = released.moments
    values = released.values
    cells = (values - [1, 0, 0, 0]) / [2, 1, 1, 4]
    scaled = np.column_stack([np.ones(50), cells])
    assert np.allclose(moments.values, scaled.T @ scaled, rtol=1e-12, atol=1e-9)
    assert moments.rows == 50
    assert moments.unbiased_estimate[0, 0] == pytest.approx(50)
    assert isinstance(moments.noise_model, NoisyRows)


def test_moments_can_be_saved(released: RowsRelease, tmp_path: Path) -> None:
    released.moments.save(tmp_path / "moments.json")
    again = load(tmp_path / "moments.json", kind="moments")
    assert again.noise_model == released.moments.noise_model
    assert np.array_equal(again.values, released.moments.values)


def test_least_squares_on_the_rows_as_they_are() -> None:
    with simulation.door(5):
        rows = release_rows(people(400), MODEL, bits=0.5)
    fit = rows.regress("y", ["x", "z"], repair="released")
    values = rows.values
    design = np.column_stack([np.ones(400), values[:, :2]])
    expected = np.linalg.lstsq(design, values[:, 2], rcond=None)[0]
    assert np.allclose(fit.coefficients, expected[1:], rtol=1e-9)


@pytest.mark.heavy
def test_noisy_rows_have_the_law_that_their_moments_say() -> None:
    """An oracle of its own: rows and noise, summed."""
    draw = simulation.generator(6)
    rows = draw.uniform(-1, 1, (30, 3))
    variances = np.array([0.0, 0.5, 2.0])
    noise = draw.standard_normal((20_000, 30, 3)) * np.sqrt(variances)
    matrices = np.einsum("nri,nrj->nij", rows + noise, rows + noise)
    law, gram = NoisyRows(tuple(variances), 30), rows.T @ rows

    def assert_mean(values: Any, mean: Any) -> None:
        error = values.std(0) / np.sqrt(len(values))
        assert (np.abs(values.mean(0) - mean) <= ALLOWED * error + 1e-9).all()

    assert_mean(law.unbiased_estimate(matrices), gram)
    off = law.unbiased_estimate(matrices) - gram
    half = draw.standard_normal((4, 3, 3))
    for direction in half + np.swapaxes(half, 1, 2):
        assert_mean(np.einsum("nij,ij->n", off, direction) ** 2, law.variance(direction, gram))
        assert_mean(off @ direction @ off, law.sandwich(direction, gram))
    few = NoisyRows(tuple(variances), 2)
    assert_mean(few.draw(np.broadcast_to(gram * 0, (20_000, 3, 3)), draw), 2 * np.diag(variances))


@pytest.mark.heavy
def test_regressions_undo_the_noise_and_know_their_error() -> None:
    """Over 40 releases of one table: the mean of each slope, and of its squared standard score.

    The scores are taken around what the table itself gives. Their squares have mean 1 and variance
    2 where standard errors are right; these are of first order, so a tenth is allowed besides.
    """
    whole = people(20_000)
    design = np.column_stack([np.ones(20_000), whole["x"], whole["z"]])
    true = np.linalg.lstsq(design, whole["y"].to_numpy(), rcond=None)[0][1:]
    slopes, errors = [], []
    for seed in range(40):
        with simulation.door(seed):
            fit = release_rows(whole, MODEL, bits=1.0).regress("y", ["x", "z"])
        found = fit.intervals()
        assert found.swamped is None
        own = [found.names.index(name) for name in ("x", "z")]
        slopes.append(found.estimates[own])
        errors.append(np.sqrt(found.privacy[own]))
    scores = (np.array(slopes) - true) / np.array(errors)
    assert np.abs(scores.mean(0)).max() <= ALLOWED / 40**0.5 * 1.1
    assert np.abs((scores**2).mean(0) - 1).max() <= 0.1 + ALLOWED * (2 / 40) ** 0.5
    assert np.abs(scores).max() > 1


# Spreadsheets

FORMULAS = ("=1+1", "+1", "-1", "@x", "'=1", "''", "＝1", '=HYPERLINK("x")', "plain", "a=b")


def test_no_text_in_csv_is_run_by_a_spreadsheet(tmp_path: Path) -> None:
    """Cells and names are quoted or not, and never start as a formula does; they read back."""
    schema = Schema({"x": (0, 1), "=who": {"type": "category", "levels": list(FORMULAS)}})
    cells = [*FORMULAS] * 30
    table = pa.table({"x": np.zeros(len(cells)), "=who": cells})
    file = tmp_path / "rows.csv"
    options: dict[str, Any] = {"mechanism": "projection", "k": 1, "label": "=who"}
    made = release_rows(table, schema, epsilon=50.0, output=file, **options)
    with file.open(encoding="utf-8", newline="") as opened:
        written = list(csv.reader(opened))
    assert written[0] == ["z1", "'=who"]
    assert not [text for _, text in written if text[:1] in {*"=+-@＝", "\t", "\r"}]
    assert "'=1+1" in {text for _, text in written}
    found = load(file, kind="rows").to_arrow()
    assert found.column_names == ["z1", "=who"]
    assert set(found.column("=who").to_pylist()) == {*FORMULAS}
    for suffix in (".parquet", ".arrow", ".csv"):
        made.save(tmp_path / f"again{suffix}")
        assert load(tmp_path / f"again{suffix}", kind="rows").to_arrow().equals(found)


def test_csv_files_of_before_read_as_they_are(tmp_path: Path) -> None:
    schema = Schema({"x": (0, 1), "who": ["'a", "b"]})
    table = pa.table({"x": [0.0, 1.0], "who": ["'a", "b"]})
    file = tmp_path / "rows.csv"
    made = release_rows(
        table, schema, epsilon=50.0, mechanism="projection", k=1, label="who", output=file
    )
    pyarrow.csv.write_csv(made.to_arrow(), file)
    beside = file.with_name("rows.csv.certificate.json")
    beside.write_bytes(made.head.to_bytes(2))
    assert load(file, kind="rows").to_arrow().column("who").to_pylist() == ["'a", "b"]
