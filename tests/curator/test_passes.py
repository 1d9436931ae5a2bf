"""Tables that are passed over several times: checked once, refused early, kept where that pays."""

import errno
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import refusals
from dplinear.arguments import ArgumentTypeError
from dplinear.curator import Schema, SourceError, exact_sums, open_table, second_moments
from dplinear.curator.passes import Table
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.row_cache import RowCache
from dplinear.exact.grid import shape_of
from dplinear.exact.residual_sums import Gradient, SumOfSquares
from dplinear.exact.row_sums import ClippedGram, Count, RowSum, SquaredNorms
from dplinear.exact.sums import SumAccumulator, Sums
from dplinear.exact.totals import Total, integers_of

Seeded = Callable[[int], Any]
SCHEMA = Schema({f"x{j}": (-1, 1) for j in range(5)})
CLIPPED = Schema({f"x{j}": (-1, 1) for j in range(5)}, row_norm=1.2, intercept=False)


def sums_for(schema: Schema) -> list[RowSum]:
    shape = shape_of(schema)
    weights = np.linspace(-0.5, 1, shape.dimension)
    whitening = np.diag(10.0 ** np.arange(shape.dimension))
    return [
        Count(),
        SquaredNorms(shape, range(shape.dimension), limit=1.0),
        ClippedGram(shape, [0, 1, 3], norm=0.8),
        SumOfSquares(shape, weights, residual=0.5),
        Gradient(shape, whitening, weights, leverage=3.0, residual=0.5),
    ]


def lists(sums: list[Any]) -> list[list[int]]:
    return [entry.tolist() for entry in sums]


@pytest.mark.parametrize("schema", [SCHEMA, CLIPPED], ids=["plain", "clipped"])
def test_every_pass_is_the_same_kept_or_not(
    schema: Schema, generator: Seeded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = generator(1).normal(0, 0.6, (20_000, 5))
    moments = second_moments(rows, schema)
    want = lists(exact_sums(rows, schema, sums_for(schema), threads=1))
    assert want[0] == [20_000]
    assert all(type(entry) is int for entries in want for entry in entries)

    def check(table: Table, kept: bool) -> None:
        assert lists(table.sums(sums_for(schema))) == want
        source = cast("Any", table._reader)._reader._source
        assert (len(source.tasks) == 5 and source.rows) == (kept and 20_000)
        assert table.moments() == moments
        assert lists(table.sums(sums_for(schema))) == want

    check(open_table(rows, schema), kept=True)
    check(open_table(np.asfortranarray(rows), schema, threads=1), kept=True)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    check(open_table(mapped, schema), kept=True)
    monkeypatch.setattr(RowCache.__init__, "__defaults__", (4 * 20_000 * schema.dimension - 1,))
    check(open_table(rows, schema), kept=False)  # what is in memory is written to no disk
    check(open_table(mapped, schema), kept=True)


@pytest.mark.parametrize("memory", [0, 100_000, 2**29])
def test_a_file_is_read_once(
    memory: int, generator: Seeded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema({f"x{j}": (-1, 1) for j in range(5)}, weight=("w", 0, 4))
    rows = generator(2).normal(0, 0.6, (20_000, 5))
    held = {f"x{j}": rows[:, j] for j in range(5)} | {"w": generator(3).uniform(0, 4, 20_000)}
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table(held), file, row_group_size=3_000)
    want = [lists(exact_sums(file, each, sums_for(each))) for each in (SCHEMA, schema)]
    monkeypatch.setattr(RowCache.__init__, "__defaults__", (memory,))
    tables = [open_table(file, each, threads=2) for each in (SCHEMA, schema)]
    for table, first in zip(tables, want, strict=True):
        assert lists(table.sums(sums_for(table.schema))) == first
    file.unlink()
    for table, first in zip(tables, want, strict=True):
        for _ in range(2):
            assert lists(table.sums(sums_for(table.schema))) == first


def test_a_table_is_read_again_where_the_disk_has_no_room(
    generator: Seeded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = generator(1).normal(0, 0.6, (20_000, 5))
    np.save(tmp_path / "rows.npy", rows)
    want = lists(exact_sums(rows, SCHEMA, sums_for(SCHEMA)))
    written: list[int] = []

    def full(_: int, content: Any, __: int) -> int:
        written.append(len(content))
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on /private/p17")
        return max(len(content) // 2, 1)  # a disk may take a part

    monkeypatch.setattr(RowCache.__init__, "__defaults__", (100_000,))
    monkeypatch.setattr(os, "pwrite", full)
    table = open_table(np.load(tmp_path / "rows.npy", mmap_mode="r"), SCHEMA, threads=1)
    for _ in range(3):
        assert lists(table.sums(sums_for(SCHEMA))) == want
    assert len(written) == 3  # it was not tried a second time


def test_sums_of_many_kinds_cost_one_reading() -> None:
    batch = pa.record_batch({f"x{j}": [0.5, -0.25] for j in range(5)})
    read = []

    def batches() -> Iterator[pa.RecordBatch]:
        for index in range(3):
            read.append(index)
            yield batch

    reader = pa.RecordBatchReader.from_batches(batch.schema, batches())
    got = lists(exact_sums(reader, SCHEMA, sums_for(SCHEMA)))
    assert read == [0, 1, 2]
    assert got == lists(exact_sums(pa.Table.from_batches([batch] * 3), SCHEMA, sums_for(SCHEMA)))


class Producer:
    """Rows of a library nobody knows: whether it can export them again is anybody's guess."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_a_stream_is_read_once_and_passed_over_as_often_as_needed(generator: Seeded) -> None:
    rows = generator(1).normal(0, 0.6, (20_000, 5))
    table = pa.table({f"x{j}": rows[:, j] for j in range(5)})
    want = lists(exact_sums(table, SCHEMA, sums_for(SCHEMA)))
    for data in (table.to_reader(), Producer(table)):
        opened = open_table(data, SCHEMA)
        assert [lists(opened.sums(sums_for(SCHEMA))) for _ in range(3)] == [want] * 3


def test_a_stream_ends_where_it_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowCache, "tasks", lambda _: None)
    table = pa.table({f"x{j}": [0.5, -0.25] for j in range(5)})
    with pytest.raises(SourceError, match="a temporary file"):
        open_table(table.to_reader(), SCHEMA).moments()


def test_what_can_be_read_once_is_refused_where_it_is_clamped_anew() -> None:
    table = pa.table({f"x{j}": [0.5, -0.25] for j in range(5)})
    reader = table.to_reader()
    for data in (reader, Producer(table)):
        with refusals.refused(
            "data", "second_moments", "read more than once", kind=ArgumentTypeError
        ) as caught:
            open_reader(data, SCHEMA, anew=True)
        assert "\n\nHint: write the stream to a file" in str(caught.value)
    assert reader.read_all() == table
    with pytest.raises(TypeError, match="parameter of second_moments must be"):
        open_table((row for row in [1, 2]), SCHEMA)


def test_columns_are_checked_once_and_early(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x0": [1.0]}), tmp_path / "t.parquet")
    with refusals.refused("data", "second_moments", "every column"):
        open_table(tmp_path / "t.parquet", SCHEMA)


def test_sums_for_other_rows_are_refused() -> None:
    table = open_table(np.zeros((3, 5)), SCHEMA)
    for wrong in (sums_for(CLIPPED), [Count(), sums_for(CLIPPED)[1]]):
        with refusals.refused("statistics", "Table.sums", "for rows of shape"):
            table.sums(wrong)
    for mistyped in ([], Count(), [Count], "sums"):
        with refusals.refused("statistics", "Table.sums", "row sum", kind=ArgumentTypeError):
            table.sums(mistyped)  # type: ignore[arg-type]


def test_a_table_that_is_gone_in_a_later_pass_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RowCache, "tasks", lambda _: None)  # of rows that could not be kept
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({f"x{j}": [0.5, -0.25] for j in range(5)}), path)
    table = open_table(path, SCHEMA)
    assert lists(table.sums([Count()])) == [[2]]
    path.unlink()
    with pytest.raises(SourceError, match="nothing was computed"):
        table.sums([Count()])


def test_nothing_a_cell_holds_raises_or_warns(generator: Seeded) -> None:
    bad = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 1.0, 0.3]
    rows = generator(2).choice(bad, (2_000, 5))
    for schema in (SCHEMA, CLIPPED):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = exact_sums(rows, schema, sums_for(schema))
        assert got[0].tolist() == [2_000]


@pytest.mark.parametrize("schema", [SCHEMA, CLIPPED], ids=["plain", "clipped"])
def test_record_replay(schema: Schema, generator: Seeded) -> None:
    """1,000 neighbours, a third of them adversarial: no sum moves by more than its bound."""
    random = generator(3)
    statistics = sums_for(schema)
    hard = [np.nan, np.inf, -1e308, 1.0, -1.0, 1 - 2**-53, 1 / 3, 5e-324]
    for _ in range(100):
        rows = random.normal(0, 0.6, (10, 5))
        rows[::3] = random.choice(hard, (4, 5))
        whole = exact_sums(rows, schema, statistics, threads=1)
        for i in range(10):
            rest = exact_sums(np.delete(rows, i, axis=0), schema, statistics, threads=1)
            alone = exact_sums(rows[i : i + 1], schema, statistics, threads=1)
            for statistic, all_, fewer, one in zip(statistics, whole, rest, alone, strict=True):
                change = all_ - fewer
                assert (change == one).all()
                assert int((change * change).sum()) <= statistic.bound**2


def test_an_empty_table_sums_to_zero() -> None:
    for sums in (open_table(np.zeros((0, 5)), SCHEMA).sums, _again):
        got = sums(sums_for(SCHEMA))
        assert [len(entry) for entry in got] == [1, 1, 9, 1, 6]
        assert not any(np.concatenate(got))


def _again(statistics: list[RowSum]) -> list[Any]:
    table = open_table(np.zeros((0, 5)), SCHEMA)
    table.moments()
    return table.sums(statistics)


def test_totals_carry_into_the_second_word() -> None:
    total = Total((2,))
    block = np.array([2**62, -(2**62)])
    for _ in range(9):
        total.add(block, 2**62)
    for _ in range(600):
        total.add(np.array([2**53, -1]), 2**53)
    want = [9 * 2**62 + 600 * 2**53, -9 * 2**62 - 600]
    assert integers_of(*total.words()).tolist() == want


def test_terms_of_many_bits_are_added_in_shorter_blocks() -> None:
    """Rows of norm 2^26, whose squares would pass 63 bits in a block of 4096."""
    schema = Schema({f"x{j}": (-1, 1) for j in range(2_100)}, intercept=False)
    shape = shape_of(schema)
    assert shape.exponent == 26
    norms = SquaredNorms(shape, range(2_100), limit=1e9)
    assert norms.bound == 2**52
    accumulator = SumAccumulator(schema, [norms])
    accumulator.add(np.broadcast_to(float(shape.steps_per_unit), (2_100, 4_096)))
    assert accumulator.result().integers()[0].tolist() == [4_096 * 2_100 * shape.steps_per_unit**2]
    assert 4_096 * 2_100 * shape.steps_per_unit**2 > 2**63


def test_workers_send_the_same_integers_as_bytes(generator: Seeded) -> None:
    reduction = Sums(SCHEMA, sums_for(SCHEMA))
    accumulator = reduction.accumulator()
    accumulator.update_array(generator(4).normal(0, 1, (100, 5)))
    part = accumulator.result()
    whole = reduction.merge([part] * 3)
    assert lists(reduction.read(part.to_bytes()).integers()) == lists(part.integers())
    assert lists(reduction.read(whole.to_bytes()).integers()) == lists(whole.integers())
    assert lists(whole.integers()) == [[3 * n for n in entry] for entry in lists(part.integers())]


def test_nothing_private_is_shown() -> None:
    table = open_table(np.ones((12_345, 5)), SCHEMA)
    accumulator = SumAccumulator(SCHEMA, [Count()])
    accumulator.update_array(np.ones((12_345, 5)))
    for shown in (repr(table), repr(accumulator.result())):
        assert "private" in shown
        assert "12345" not in shown
