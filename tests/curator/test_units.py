"""Units of privacy: all rows of one id together move a sum by at most what one row does."""

import errno
import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import dplinear as dpl
from dplinear.arguments import ArgumentError
from dplinear.curator.passes import exact_sums, open_table
from dplinear.curator.sources import SourceError, open_reader, second_moments, spool, temporary
from dplinear.exact.gram import Moments
from dplinear.exact.grid import Grid, moments_shape
from dplinear.exact.row_sums import Count
from dplinear.exact.weights import WHOLE
from dplinear.ledger import LedgerError, open_ledger
from dplinear.noise import simulation

SCHEMA = dpl.Schema({"x": (-1, 1), "y": (0, 3)}, unit="id")
PLAIN = dpl.Schema({"x": (-1, 1), "y": (0, 3)})


def table(seed: int = 0, units: int = 60) -> pa.Table:
    random = simulation.generator(seed)
    ids = np.repeat(np.arange(units), random.integers(1, 30, units))
    random.shuffle(ids)
    rows = len(ids)
    columns = {"x": random.uniform(-2, 2, rows), "y": random.uniform(0, 4, rows)}
    return pa.table({**columns, "id": [f"p{i}" for i in ids]})


def corners(rows: int, unit: str | None) -> pa.Table:
    return pa.table({"x": [1.0] * rows, "y": [3.0] * rows, "id": pa.array([unit] * rows, "string")})


def moments(data: Any, k: int = 1, **reading: Any) -> Any:
    return open_reader(data, SCHEMA, rows_per_unit=k, **reading).run(Moments(SCHEMA)).integers


def exact_moments(data: pa.Table, k: int) -> Any:
    """Return Σ min(1/k, 1/m)·z zᵀ by the definition."""
    steps, ids = Grid.of(SCHEMA).steps_per_unit, np.array(data["id"])
    x, y = np.array(data["x"]).clip(-1, 1), np.array(data["y"]).clip(0, 3) / 1.5 - 1
    rows = np.rint(np.column_stack([np.ones(len(x)), x, y]) * steps)
    total: Any = np.zeros((3, 3))
    for unit in set(ids.tolist()):
        own = rows[ids == unit]
        total += own.T @ own * min(1 / k, 1 / len(own))
    return total


@pytest.mark.parametrize("k", [1, 3, 50])
def test_a_unit_counts_as_at_most_so_many_rows(k: int) -> None:
    found = moments(table(), k).astype(float) / WHOLE
    assert np.allclose(found, exact_moments(table(), k), rtol=2.0**-11)


def test_the_same_bits_from_every_source_in_any_order(tmp_path: Path) -> None:
    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=97)
    csv.write_csv(data, tmp_path / "t.csv")
    expected = moments(data, 2)
    order = simulation.generator(5).permutation(data.num_rows)
    numbers = [int(name[1:]) for name in data["id"].to_pylist()]
    numbered = data.set_column(2, "id", pa.array(numbers))
    for other in (
        *(data.take(order), tmp_path / "t.parquet", tmp_path / "t.csv", data.to_reader(50)),
        data.set_column(2, "id", data["id"].combine_chunks().dictionary_encode()),
        *(numbered, numbered.set_column(2, "id", pa.array([f"{i:04d}" for i in numbers]))),
        np.column_stack([np.array(numbered[name]) for name in ("x", "y", "id")]),
    ):
        assert (moments(other, 2) == expected).all()
    for threads in (1, 3):
        assert (moments(tmp_path / "t.parquet", 2, threads=threads) == expected).all()


@pytest.mark.engine
def test_the_same_bits_from_frames() -> None:
    import polars as pl

    data = table()
    whole: Any = pl.from_arrow(data)
    for frame in (data.to_pandas(), whole, whole.lazy()):
        assert (moments(frame, 2) == moments(data, 2)).all()


def test_rows_that_do_not_fit_into_memory_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = table(units=400)
    expected = moments(data, 2)
    spilled: list[int] = []
    spill = spool.Spool._spill

    def counted(self: spool.Spool) -> None:
        spilled.append(1)
        spill(self)

    monkeypatch.setattr(spool.Spool, "_spill", counted)
    monkeypatch.setattr(spool.Spool.__init__, "__defaults__", (3_000,))
    reader = open_reader(data, SCHEMA, rows_per_unit=2)
    for _ in range(2):
        assert (reader.run(Moments(SCHEMA)).integers == expected).all()
    assert spilled


def test_each_row_keeps_its_weight_whatever_the_sizes_of_blocks() -> None:
    sizes = [1, 5, 40_000, 3, 0, 2, 20_000, 7]
    ends = np.cumsum(sizes)[:-1]
    blocks = np.split(np.arange(sum(sizes), dtype=np.float32)[:, None], ends)
    rows = [(cells, pa.array([b"p"] * len(cells), pa.large_binary())) for cells in blocks]
    numbers = np.arange(sum(sizes), dtype=np.int32)
    found = list(spool.chunks_of(rows, lambda _: spool.Weighed(numbers, numbers), 1))
    for chunk in found:
        assert (chunk.load().ravel() == chunk.weights).all()
        assert (chunk.owners == chunk.weights).all()
    assert sum(len(chunk.weights) for chunk in found) == sum(sizes)
    assert max(len(chunk.weights) for chunk in found) <= 2**15


class FullDisk(io.BytesIO):
    def write(self, _: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on /private/p17")


def no_file(_: object) -> Any:
    raise FileNotFoundError("/private/p17")


@pytest.mark.parametrize("broken", [lambda _: FullDisk(), no_file])
def test_a_disk_that_is_full_says_no_more_than_that_reading_failed(
    broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool.Spool.__init__, "__defaults__", (3_000,))
    monkeypatch.setattr(spool, "open_temporary", broken)
    monkeypatch.setattr(temporary, "open_temporary", broken)
    with pytest.raises(SourceError, match="a temporary file failed") as caught:
        moments(table(units=400))
    assert "p17" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("missing", [None, "", "NA"])
def test_rows_without_an_id_count_for_nothing(missing: str | None) -> None:
    more = pa.concat_tables([table(), corners(9, missing)])
    assert (moments(more) == moments(table())).all()


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("rows", [1, 3, 4, 5, 1_000])
def test_one_unit_more_moves_moments_by_at_most_their_sensitivity(k: int, rows: int) -> None:
    more = pa.concat_tables([corners(rows, "new"), table()])
    moved = moments(more, k) - moments(table(), k)
    reach = float(np.sqrt(float((moved**2).sum()))) / moments_shape(SCHEMA).sensitivity
    assert reach <= 1
    assert reach > 0.999 * min(1, rows / k)


def test_weights_depend_on_the_rows_of_the_unit_alone() -> None:
    data = table()
    own = np.array(data["id"]) == "p7"
    one, rest = data.filter(pa.array(own)), data.filter(pa.array(~own))
    assert (moments(data, 3) == moments(one, 3) + moments(rest, 3)).all()


def test_ids_whose_hashes_are_equal_are_two_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all of them come into one bucket of files."""
    names = ("plumless", "buckeroo")
    assert len({zlib.crc32(name.encode()) for name in names}) == 1
    one, other = corners(3, names[0]), corners(5, names[1])
    expected = moments(one) + moments(other)
    assert (moments(pa.concat_tables([one, other])) == expected).all()
    monkeypatch.setattr(spool, "hashes", lambda keys: np.zeros(len(keys), np.uint64))
    monkeypatch.setattr(spool.Spool.__init__, "__defaults__", (10,))
    assert (moments(pa.concat_tables([other, one])) == expected).all()


def test_a_unit_as_argument_and_in_the_schema_are_one_request(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("t", dpl.ZCDP(1), unit="id")
    given: dict[str, Any] = {"guarantee": dpl.ZCDP(0.5), "ledger": ledger, "dataset": "t"}
    first = dpl.release_moments(table(), SCHEMA, request="a", rows_per_unit=2, **given)
    again = dpl.release_moments(table(), PLAIN, request="a", unit="id", rows_per_unit=2, **given)
    assert first.certificate == again.certificate
    assert (first.certificate.unit, first.certificate.rows_per_unit) == ("id", 2)
    assert [status.releases for status in ledger.status()] == [1]


@pytest.mark.parametrize("gate", [dpl.suggest_rows_per_unit, dpl.suggest_bounds])
def test_suggestions_for_another_unit_are_another_request(gate: Any, tmp_path: Path) -> None:
    """Gates without a schema, which would say the unit: nothing that was kept is returned."""
    ledger = open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("visits", dpl.ZCDP(1.0), unit="id")
    given: dict[str, Any] = {"rho": 0.1, "ledger": ledger, "dataset": "visits", "request": "r"}
    columns = {"columns": ["a"]} if gate is dpl.suggest_bounds else {}
    data = pa.table({"a": [1.0, 2.0], "id": ["p", "q"], "house": ["x", "x"]})
    made = gate(data, unit="id", **columns, **given)
    assert str(gate(data, unit="id", **columns, **given)) == str(made)
    with pytest.raises(LedgerError, match="other arguments"):
        gate(data, unit="house", **columns, **given)


def test_a_budget_of_units_admits_no_release_for_rows_nor_the_other_way(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("people", dpl.ZCDP(1), unit="id")
    ledger.declare("rows", dpl.ZCDP(1))
    given: dict[str, Any] = {"guarantee": dpl.ZCDP(0.5), "ledger": ledger}
    for schema, dataset in ((PLAIN, "people"), (SCHEMA, "rows")):
        with pytest.raises(LedgerError, match="'id'"):
            dpl.release_moments(table(), schema, dataset=dataset, **given)
    assert [status.releases for status in ledger.status()] == [0, 0]


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"rows_per_unit": 2, "schema": PLAIN}, "rows_per_unit"),
        ({"unit": "other"}, "unit"),
        ({"unit": 5}, "unit"),
        ({"rows_per_unit": 0}, "rows_per_unit"),
        ({"rows_per_unit": 1.5}, "rows_per_unit"),
        ({"neighbours": "change"}, "neighbours"),
        ({"mechanism": "sketch"}, "unit"),
        ({"mechanism": "additive_wishart"}, "unit"),
    ],
)
def test_wrong_units_are_refused(given: dict[str, Any], parameter: str) -> None:
    arguments = {"data": table(), "schema": SCHEMA, "epsilon": 1.0, "delta": 1e-6} | given
    with pytest.raises(ArgumentError) as caught:
        dpl.release_moments(**arguments)
    assert caught.value.parameter == parameter
    assert caught.value.where == "release_moments"


def test_every_gate_that_sums_takes_units() -> None:
    data = table(units=2_000)
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "rows_per_unit": 2}
    with simulation.door(1):
        choices: list[dict[str, Any]] = [
            *({"mechanism": name} for name in ("whitened_descent", "adassp", "coinpress")),
            *({"loss": "huber"}, {"loss": "logistic"}),
        ]
        models = [dpl.release_model(data, SCHEMA, "y", **each, **given) for each in choices]
        made: list[Any] = [
            *models,
            dpl.release_moments(data, SCHEMA, **given),
            dpl.release_mean(data, SCHEMA, **given),
            dpl.release_covariance(data, SCHEMA, **given),
            dpl.suggest_bounds(data, ["x", "y"], unit="id", **given),
        ]
    for release in made:
        assert (release.certificate.unit, release.certificate.rows_per_unit) == ("id", 2)
        assert "'id'" in release.certificate.guarantee


class Unread:
    """A table that must not be opened."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    ("gate", "asked"),
    [
        (dpl.release_rows, {"bits": 1.0}),
        (dpl.release_rows, {"epsilon": 1.0, "delta": 1e-6, "k": 2}),
        (dpl.release_sketch, {"epsilon": 1.0, "delta": 1e-6}),
        (dpl.release_sketch, {"bits": 0.5, "mechanism": "mi_projection"}),
    ],
)
def test_gates_that_cannot_protect_units_open_nothing(gate: Any, asked: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError) as caught:
        gate(Unread(), SCHEMA, **asked)
    assert (caught.value.parameter, caught.value.where) == ("unit", gate.__name__)


def test_a_stream_that_is_read_once_is_refused_where_windows_read_it_again(tmp_path: Path) -> None:
    """A second look would see an empty table, after the spend."""
    ledger = open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("t", dpl.ZCDP(1), unit="id")
    given: dict[str, Any] = {"guarantee": dpl.ZCDP(0.5), "ledger": ledger, "dataset": "t"}
    calls: list[Any] = [
        lambda data: dpl.release_mean(data, SCHEMA, **given),
        lambda data: dpl.release_covariance(data, SCHEMA, **given),
        lambda data: dpl.suggest_bounds(data, ["x", "y"], unit="id", **given),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match="more than once"):
            call(table().to_reader(50))
    assert [status.releases for status in ledger.status()] == [0]


@pytest.mark.parametrize("k", [1, 3])
def test_exact_moments_of_units_are_weighted_and_in_the_units_of_cells(k: int) -> None:
    found = second_moments(table(), SCHEMA, rows_per_unit=k)
    steps = Grid.of(SCHEMA).steps_per_unit
    assert np.allclose(found.cells(), exact_moments(table(), k) / steps**2, rtol=2.0**-11)
    assert found.raw()[0, 0] == found.count / WHOLE == pytest.approx(found.cells()[0, 0])
    opened = open_table(table(), SCHEMA, rows_per_unit=k)
    assert opened.moments() == found
    (count,) = exact_sums(table(), SCHEMA, [Count()], rows_per_unit=k)
    assert count[0] == opened.sums([Count()])[0][0] == found.count
