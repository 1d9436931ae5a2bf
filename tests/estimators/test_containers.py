"""Whatever holds X and y, an entry of it changes no other, and no error."""

from array import array
from collections import UserList, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.arguments import ArgumentTypeError
from dplinear.arrays import kind_of
from dplinear.estimators import PrivateLinearRegression, PrivateLogisticRegression
from dplinear.estimators.tables import column_of, features_of, targets_of
from refusals import refused
from services import library

ROWS = 200


class Caught(PrivateLinearRegression):
    """A regression that releases nothing."""

    def _learn(self, table: Any, columns: Any, names: list[str], goals: list[str]) -> None:
        _ = table, columns
        self.coef_, self.intercept_ = np.zeros((len(goals), len(names))), np.zeros(len(goals))
        self.fit_result_ = None  # type: ignore[assignment]  # nothing is released


class Shelf:
    """A sequence of no known class."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, place: int) -> Any:
        return self._entries[place]


@pytest.mark.parametrize("odd", ["c", None, ["c"], 1.5, b"\xff"], ids=repr)
@pytest.mark.parametrize("hold", [list, tuple, deque, UserList, Shelf])
def test_every_sequence_is_read_entry_by_entry(hold: Callable[..., Any], odd: Any) -> None:
    found = targets_of(hold(["a\0", "b", "b", odd]), 4, "fit")
    assert found.dtype == object
    assert found.tolist()[:3] == ["a\0", "b", "b"]
    rows = features_of(hold([deque([1, "a\0"]), [2, "b"], UserList([3, odd])]), "fit")
    assert rows[:2].tolist() == [[1, "a\0"], [2, "b"]]


def test_what_has_a_type_of_its_own_keeps_it() -> None:
    for held in (array("d", [1.0, 2.0]), memoryview(array("d", [1.0, 2.0]))):
        assert targets_of(held, 2, "fit").dtype == np.float64
    for wrong in ("ab", b"ab", {0: 1, 1: 2}, {1.0, 2.0}):
        with refused("y", "fit", "an array", kind=ArgumentTypeError):
            targets_of(wrong, 2, "fit")


def wide(first: int, second: int) -> list[list[int]]:
    return [[1, 2]] * first + [[1, 2, 3]] * second


@pytest.mark.parametrize("rows", [wide(50, 49), wide(49, 50), wide(0, 99), []])
def test_bounds_say_how_many_columns_a_list_has(rows: list[list[int]]) -> None:
    model = Caught(bounds=[(0, 9), (0, 9)], target_bounds=(0, 1))
    assert model.fit(rows, np.zeros(len(rows))).coef_.shape == (2,)
    table = features_of(rows, "fit", 2)
    assert [row == [1, 2] for row in table.tolist()] == [len(row) == 2 for row in rows]


@pytest.mark.parametrize("y", [[[0, 1], [1, 0], 5], [[0, 1], 5, 5], [0, [0], [0, 1]]], ids=repr)
def test_target_bounds_say_how_many_targets_a_list_has(y: list[Any]) -> None:
    several = [row if isinstance(row, list) and len(row) == 2 else [None] * 2 for row in y]
    assert targets_of(y, 3, "fit", 2).tolist() == several
    model = Caught(bounds=(0, 9), target_bounds=[(0, 9), (0, 9)])
    assert model.fit(np.ones((3, 1)), y).coef_.shape == (2, 1)


@pytest.mark.parametrize("y", [["a", "b", "b"], [["a"], ["b"], ["b"]], [["a"], "b", ("b",)]])
def test_labels_in_a_list_are_cells_or_rows_of_one(y: list[Any]) -> None:
    assert column_of(y, 3, "fit").tolist() == ["a", "b", "b"]
    assert column_of([*y[:2], ["b", "b"]], 3, "fit").tolist() == ["a", "b", None]


def test_without_public_bounds_a_list_is_as_wide_as_most_rows() -> None:
    """No rule is better, and this one changes where half of the rows are of another width."""
    for rows, width in ((wide(50, 49), 2), (wide(49, 50), 3), (wide(98, 1), 2), (wide(1, 98), 3)):
        assert features_of(rows, "fit").shape == (99, width)


def text(last: bytes) -> pa.Array:
    raw = pa.array([b"1"] * (ROWS - 1) + [last])
    return pa.Array.from_buffers(pa.string(), ROWS, raw.buffers())


def day(last: int) -> pa.Array:
    return pa.array([1] * (ROWS - 1) + [last], pa.int32()).view(pa.date32())


@pytest.mark.engine
@pytest.mark.parametrize(
    ("column", "want"),
    [(text(b"2"), "1"), (text(b"\xff"), "1"), (day(5), "1970-01-02T"), (day(2**30), "1970-01-02T")],
)
def test_what_a_series_of_pandas_holds_is_read_like_it(column: pa.Array, want: str) -> None:
    pandas = library("pandas")
    held = pandas.arrays.ArrowExtensionArray(pa.chunked_array([column]))
    series = pandas.Series(held)
    for y in (series, series.array, series.values, pandas.Index(held), held):
        found = targets_of(y, ROWS, "fit")
        assert [str(cell)[: len(want)] for cell in found[:-1]] == [want] * (ROWS - 1)
    codes = pandas.Categorical(["a", "b", None])
    assert targets_of(codes, 3, "fit").tolist()[:2] == ["a", "b"]


@pytest.mark.engine
@pytest.mark.parametrize("kind", ["Categorical", "Enum"])
@pytest.mark.parametrize("last", ["2", "word", None])
def test_codes_of_polars_are_read_as_their_text_is(kind: str, last: str | None) -> None:
    polars = library("polars")
    cells = ["1", "x", last, "a text of more than twelve letters"]
    coded = (
        polars.Categorical if kind == "Categorical" else polars.Enum(sorted(filter(None, cells)))
    )
    frame = polars.DataFrame({"x": polars.Series(cells, dtype=coded)})
    assert features_of(frame, "fit").tolist() == [[cell] for cell in cells]
    assert targets_of(frame["x"], 4, "fit").tolist() == cells


@pytest.mark.engine
@pytest.mark.parametrize("odd", ["word", "\ud800", b"\xff", 2**70, {}, None], ids=repr)
@pytest.mark.parametrize("held", ["array", "index"])
def test_what_a_series_holds_is_not_guessed_anew(held: str, odd: Any) -> None:
    """pandas guesses the type of objects that it is given: over half a letter it raises."""
    pandas = library("pandas")
    cells = np.empty(3, object)
    cells[:] = ["a", "b", odd]
    series = pandas.Series(cells, dtype=object)
    values = series.array if held == "array" else pandas.Index(cells, dtype=object)
    assert targets_of(values, 3, "fit").tolist() == ["a", "b", odd]


@pytest.mark.engine
@pytest.mark.heavy
@pytest.mark.parametrize("odd", [2.0, "word", b"\xff", "\ud800"], ids=repr)
def test_dask_collections_are_refused_whatever_they_hold(odd: Any) -> None:
    pandas, dask = library("pandas"), library("dask.dataframe")
    cells = np.empty(4, object)
    cells[:] = [1.0, 1.0, 1.0, odd]
    frame = dask.from_pandas(pandas.DataFrame({"y": cells}), npartitions=2)
    model = PrivateLinearRegression(bounds=(-9, 9), target_bounds=(0, 3))
    for X, y in ((np.ones((4, 1)), frame["y"]), (frame, np.ones(4))):
        with pytest.raises(TypeError, match="compute a Dask collection first"):
            model.fit(X, y)


def records(word: str) -> Any:
    rows = [("a", 1.0), ("b", 2.0), (word, 3.0)]
    return np.array(rows, [("x", f"U{len(word)}"), ("z", "f8")]).view(np.recarray)


def said(call: Callable[[], object]) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("word", ["b", "a much longer private word"])
def test_errors_say_nothing_of_the_width_of_text(word: str) -> None:
    def errors(word: str) -> list[str]:
        table, y = records(word), np.zeros(3)
        model = PrivateLinearRegression(bounds=(0, 9), target_bounds=(0, 1))
        pairs = np.array([((w, w),) for w in ("a", word)], [("x", f"U{len(word)}", (2,))])
        schema = dpl.Schema({"x": ["a", "b"]})
        labels = PrivateLogisticRegression(bounds=(0, 9), classes=(0, 1))
        rules: dict[str, Any] = {"row_norm": 1.0, "constraint": 1.0, "loss": "logistic"}
        rules["classes"] = (0, 1)
        return [
            said(lambda: model.fit(table, y)),
            said(lambda: model.fit(np.ones((3, 1)), table)),
            said(lambda: labels.fit(np.ones((2, 1)), np.array(["a", word]))),
            said(lambda: dpl.release_moments(pairs, schema, epsilon=1.0, delta=1e-6)),
            said(lambda: dpl.release_model(np.ones((3, 1)), target=table, epsilon=1.0, **rules)),
        ]

    assert errors(word) == errors("c")


def test_kinds_of_cells_are_said_without_their_sizes() -> None:
    kinds = [
        ("U1", "U9"),
        ("S1", "S9"),
        ("M8[s]", "M8[ns]"),
        ("i8", "u8", "f8", "?"),
        ("c8", "c16"),
    ]
    said = [{kind_of(np.dtype(name)) for name in alike} for alike in kinds]
    assert [len(words) for words in said] == [1] * len(kinds)
    assert len(set().union(*said)) == len(kinds)
