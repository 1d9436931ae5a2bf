"""Bounds that are paid for: what they promise, what they find, and what no row can do to them."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dplinear
from dplinear.adaptive.noisy_sums import VARIANCE, Answer, NoisySums, Query, _Noise, _scale
from dplinear.arguments import ArgumentTypeError
from dplinear.coinpress import bounds
from dplinear.curator import Schema, suggest_bounds
from dplinear.curator.sources import open_reader
from dplinear.curator.windows import TableView
from dplinear.ledger import tally
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, ApproxDP, Neighbours, PureDP
from refusals import refused

from .witnesses import Book, Watched

NAMES = ["standard", "shifted", "income", "year", "tiny", "constant", "flag"]


def table(rows: int, seed: int = 1) -> Any:
    random = simulation.generator(seed)
    columns = [
        random.standard_normal(rows),
        1e6 + random.standard_normal(rows),
        np.exp(10 + 0.5 * random.standard_normal(rows)),
        random.uniform(1950, 2020, rows),
        1e-4 * random.standard_normal(rows),
        np.full(rows, 5.0),
        (random.uniform(size=rows) < 0.4).astype(float),
    ]
    return np.column_stack(columns)


TABLE = table(20_000)


def suggested(data: Any = TABLE, columns: Any = None, seed: int = 1, **more: Any) -> Any:
    whole = {"rho": 0.1} | more
    with simulation.door(seed):
        return suggest_bounds(data, NAMES if columns is None else columns, **whole)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_bounds_say_what_they_promise(neighbours: str) -> None:
    book = Book()
    found = suggested(neighbours=neighbours, ledger=book, dataset="visits", request="first")
    certificate = found.certificate
    assert certificate.holds == certificate.asked == ZCDP(0.1)
    assert (certificate.mechanism, certificate.numerics) == ("suggest_bounds", "exact")
    (spent,) = book.requests
    assert spent.guarantee == ZCDP(0.1)
    assert spent.neighbours == Neighbours(neighbours)
    assert (spent.request, spent.dataset) == ("first", "visits")
    assert spent.parameters["columns"] == NAMES


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("within", [(-1e9, 1e9), (-1e15, 1e15), (-1e7, 3e6), (-10, 1e8)], ids=str)
def test_nearly_all_rows_are_within_and_bounds_are_no_wider_than_need_be(
    within: tuple[float, float], seed: int
) -> None:
    """With fixed seeds. A column is found to a few hundredths of a thousandth of its bounds."""
    found = suggested(within=within, seed=seed)
    assert all(found.found.values())
    held = {"income": 0.99}
    finest = 4e-9 * max(map(abs, within))
    for (name, (low, high)), column in zip(found.bounds.items(), TABLE.T, strict=True):
        inside = np.mean((column >= low) & (column <= high))
        assert inside >= held.get(name, 0.9995), name
        assert high - low <= 6 * np.ptp(column) + finest + 3e-3 * np.abs(column).max(), name
        assert within[0] <= low < high <= within[1]


def test_a_mapping_has_bounds_of_its_own() -> None:
    within = {"year": {"type": "integer", "low": 0, "high": 3000}, "standard": (-50, 50)}
    found = suggested(within=within)
    assert found.schema.declared["year"].type == "integer"
    low, high = found.bounds["year"]
    assert 1850 <= low <= 1950
    assert 2020 <= high <= 2100
    assert float(low).is_integer()
    assert found.bounds["flag"][1] < 10


def test_what_noise_hides_keeps_its_bounds() -> None:
    found = suggested(TABLE[:40, :2], ["a", "b"], rho=1e-4, within={"a": (-7, 9)})
    assert found.found == {"a": False, "b": False}
    assert found.bounds == {"a": (-7, 9), "b": (-1e9, 1e9)}
    assert "a: -7 to 9 (as given: not found)" in str(found)


def test_the_schema_serves_a_release(tmp_path: Path) -> None:
    found = suggested()
    found.save(tmp_path / "schema.json")
    read = Schema.from_file(tmp_path / "schema.json")
    assert read == found.schema
    again = dplinear.load(tmp_path / "schema.json", kind="bounds")
    assert (again.bounds, again.found) == (found.bounds, found.found)
    assert again.certificate == found.certificate
    model = dplinear.release_model(
        TABLE, read, "income", ["standard", "year"], epsilon=1, delta=1e-6
    )
    assert np.isfinite(list(model.coefficients.values)).all()
    with pytest.raises(ValueError, match="not there yet"):
        found.save(tmp_path / "schema.json")
    with refused("path", "SuggestedBounds.save", "a .json file"):
        found.save(tmp_path / "schema.toml")


def test_every_source_gives_the_same_bounds(tmp_path: Path) -> None:
    named = pa.table(dict(zip(NAMES, TABLE.T, strict=True)))
    pq.write_table(named, tmp_path / "rows.parquet", row_group_size=3000)
    wanted = suggested().schema
    shuffled = TABLE[simulation.generator(3).permutation(len(TABLE))]
    for source in (named, str(tmp_path / "rows.parquet"), shuffled):
        assert suggested(source).schema == wanted


class Recorded:
    """A run, with what it asked of which view."""

    def __init__(self, data: Any, **more: Any) -> None:
        self.asked: list[tuple[Query, Schema]] = []
        record = self

        class Recording(NoisySums):
            def ask(self, queries: Any, rows: Any = None) -> list[Answer]:
                view: Any = self._rows if rows is None else rows
                record.asked += [(query, view.schema) for query in queries]
                record.chain = self
                return super().ask(queries, rows)

        self.chain: NoisySums
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bounds, "NoisySums", Recording)
            self.found = suggested(data, **more)

    def sums(self, data: Any) -> list[Any]:
        """The same sums of another table, through the same windows."""
        return [
            TableView(open_reader(data, schema, again=True), schema).sums([query.statistic])[0]
            for query, schema in self.asked
        ]


BAD: list[list[Any]] = [
    [np.nan] * 7,
    [1e300] * 7,
    [-np.inf, np.inf] * 3 + [0.0],
    [0.0, 1e6, 2e4, 1990.0, 0.0, 5.0, 1.0],
]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_no_row_moves_a_sum_by_more_than_it_pays_for(neighbours: str) -> None:
    data = TABLE[:3000]
    run = Recorded(data, neighbours=neighbours)
    budget = run.chain.budget
    assert budget.square <= 2 * Fraction(0.1)
    assert 0 <= run.chain.remaining < 1e-6
    noises = [_Noise.of(query, budget) for query, _ in run.asked]
    one = run.sums(data)
    for row in BAD:
        if neighbours == "add_remove":
            other = run.sums(np.vstack((data, row)))
        else:
            other = run.sums(np.vstack((row, data[1:])))
        spent = Fraction(0)
        for (query, _), noise, mine, theirs in zip(run.asked, noises, one, other, strict=True):
            moved = sum(int(a - b) ** 2 for a, b in zip(mine, theirs, strict=True))
            assert moved <= query.statistic.sensitivity_squared(budget.neighbours)
            if noise.scale is not None:
                pair = (_scale(mine, noise.scale), _scale(theirs, noise.scale))
                spent += sum(int(a - b) ** 2 for a, b in zip(*pair, strict=True)) / VARIANCE
        assert spent <= budget.square


def test_bad_rows_change_next_to_nothing() -> None:
    """Two in a thousand, of any kind: no column is lost, or wider than ten times its range."""
    worse = np.vstack((TABLE, np.repeat(np.array(BAD[:3]), 13, axis=0)))
    found = suggested(worse)
    assert all(found.found.values())
    for (low, high), name in zip(found.bounds.values(), NAMES, strict=True):
        if name in {"standard", "year", "income", "flag"}:
            assert high - low < 10 * np.ptp(TABLE[:, NAMES.index(name)])


ODD: dict[str, Any] = {
    "no rows": np.zeros((0, 2)),
    "one row": np.ones((1, 2)),
    "missing": np.full((500, 2), np.nan),
    "infinite": np.full((500, 2), np.inf),
    "at its bound": np.full((500, 2), 700.0),
    "at both": np.where(np.arange(1000) % 2, 700.0, -900.0).reshape(500, 2),
    "beyond one": np.full((500, 2), -900.0),
    "tiny": np.full((500, 2), 1e-300),
}


@pytest.mark.parametrize("rho", [1e-4, 0.01, 10.0])
@pytest.mark.parametrize("case", ODD)
def test_any_table_has_bounds(case: str, rho: float) -> None:
    for within in ((-900, 700), (-1, 700), (600, 700), {"b": (-1e-90, 1e-99)}):
        found = suggested(ODD[case], ["a", "b"], rho=rho, within=within)
        for low, high in found.bounds.values():
            assert -1e9 <= low < high <= 1e9


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "privacy": ({"rho": None}, TypeError, "'epsilon' parameter of suggest_bounds"),
    "two": ({"epsilon": 1.0, "delta": 1e-6}, ValueError, "'rho' parameter of suggest_bounds"),
    "pure": ({"rho": None, "guarantee": PureDP(1.0)}, ValueError, "'guarantee' parameter"),
    "text": ({"columns": "standard"}, TypeError, "'columns' parameter of suggest_bounds"),
    "none": ({"columns": []}, TypeError, "'columns' parameter of suggest_bounds"),
    "twice": ({"columns": ["a"] * 7}, ValueError, "'columns' parameter of suggest_bounds"),
    "category": ({"within": ["no", "yes"]}, ValueError, "suggest_bounds must be bounds of numbers"),
    "boolean": ({"within": {"flag": "boolean"}}, ValueError, "'within' parameter"),
    "strange": ({"within": {"age": (0, 1)}}, ValueError, "'within' parameter"),
    "small": ({"within": (-1e-101, 1e-120)}, ValueError, "'within' parameter"),
    "turned": ({"within": (1, 0)}, ValueError, "low below high"),
    "option": ({"steps": 3}, ValueError, "'steps' parameter of suggest_bounds"),
    "cells": ({"neighbours": "element"}, ValueError, "'neighbours' parameter of suggest_bounds"),
    "shape": ({"columns": NAMES[:3]}, ValueError, "'data' parameter"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_before_anything_is_spent(case: str) -> None:
    changed, error, message = WRONG[case]
    with tally() as spent, pytest.raises(error, match=message):
        suggested(**changed)
    assert len(spent) == 0


def test_a_refused_spend_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise AssertionError("A row was read.")

    monkeypatch.setattr(TableView, "sums", read)
    with pytest.raises(PermissionError, match="the budget is spent"):
        suggested(ledger=Book(refuse=True))
    with pytest.raises(AssertionError, match="A row was read"):
        suggested(ledger=Book())
    named = pa.table(dict(zip(NAMES, TABLE.T, strict=True)))
    watched = Watched(named)
    with refused("data", "suggest_bounds", "read more than once", kind=ArgumentTypeError):
        suggested(watched)
    assert not watched.read


def test_approximate_guarantees_are_kept() -> None:
    found = suggested(rho=None, epsilon=1.0, delta=1e-6)
    assert found.certificate.holds == ApproxDP(1.0, 1e-6)
