"""Classes that descend from a library's own, and wrappers: their cells are that library's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dplinear.analyst.regression.prediction import design
from dplinear.arguments import ArgumentTypeError
from dplinear.curator import Schema, second_moments
from dplinear.curator.sources.ordered import open_rows
from dplinear.estimators.tables import column_of, features_of
from dplinear.schema.libraries import library_of, unwrap
from services import library

pytestmark = pytest.mark.engine

ODD = (4, "?", 2**70, True, b"\xff", [1], object())
SCHEMA = Schema({"x": (0, 10)})


def derived(kind: type) -> Any:
    """Return a class of a module of its own, as GeoPandas and users write them."""
    return type("Derived", (kind,), {"__module__": "elsewhere"})


def pandas_frame(cells: list[Any]) -> Any:
    pandas = library("pandas")
    note = pandas.Series(cells, dtype=object)
    return pandas.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": note, "note": note})


def polars_frame(cells: list[Any]) -> Any:
    polars = library("polars")
    note = polars.Series(cells, dtype=polars.Object)
    return polars.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": note, "note": note})


def derived_pandas(cells: list[Any]) -> Any:
    return derived(library("pandas").DataFrame)(pandas_frame(cells))


def derived_polars(cells: list[Any]) -> Any:
    return derived(library("polars").DataFrame)(polars_frame(cells))


def narwhals_pandas(cells: list[Any]) -> Any:
    return library("narwhals").from_native(pandas_frame(cells))


def narwhals_stable(cells: list[Any]) -> Any:
    return library("narwhals.stable.v1").from_native(derived_pandas(cells))


def narwhals_polars(cells: list[Any]) -> Any:
    return library("narwhals").from_native(polars_frame(cells))


def narwhals_lazy(cells: list[Any]) -> Any:
    return library("narwhals").from_native(polars_frame(cells).lazy())


FRAMES = (
    derived_pandas,
    derived_polars,
    narwhals_pandas,
    narwhals_stable,
    narwhals_polars,
    narwhals_lazy,
)


@pytest.mark.parametrize("hold", FRAMES)
@pytest.mark.parametrize("schema", [SCHEMA, Schema({"x": (0, 10), "y": (0, 9)})], ids=["x", "x, y"])
def test_a_cell_of_a_derived_frame_decides_nothing(
    hold: Callable[..., Any], schema: Schema
) -> None:
    """Neither of a declared column nor of another one; in sums and in rows."""
    for odd in ODD:
        found = second_moments(hold([1, 2, 3, odd]), schema)
        assert found.count == 4
        with open_rows(hold([1, 2, 3, odd]), schema, "test").through(np.copy) as blocks:
            rows = np.concatenate(list(blocks), axis=1)
        np.testing.assert_array_equal(rows @ rows.T, np.asarray(found.integers, float))
        plain = pandas_frame([1, 2, 3, odd])
        np.testing.assert_array_equal(second_moments(plain, schema).integers, found.integers)


@pytest.mark.parametrize("hold", FRAMES[:-1])
def test_estimators_read_derived_frames_and_columns_alike(hold: Callable[..., Any]) -> None:
    for odd in ODD:
        frame = hold([1, 2, 3, odd])
        assert features_of(frame, "fit").shape == (4, 3)
        assert list(map(float, column_of(frame["y"], 4, "fit")[:3])) == [1, 2, 3]


@pytest.mark.parametrize("hold", FRAMES)
def test_predictions_read_derived_frames(hold: Callable[..., Any]) -> None:
    for odd in ODD:
        found = design(SCHEMA, ["x"], hold([1, 2, 3, odd]))
        np.testing.assert_allclose(found[:, 0], [1, 2, 3, 4])


@pytest.mark.parametrize("at", range(len(ODD)))
def test_columns_are_no_tables_whatever_they_hold(at: int) -> None:
    """Arrow exports a column of pandas' as a stream, if its cells let it."""
    frame = pandas_frame([1, 2, 3, ODD[at]])
    for column in (frame["y"], library("narwhals").from_native(frame)["y"]):
        with pytest.raises(ArgumentTypeError):
            second_moments(column, SCHEMA)


def test_relations_collections_and_tables_are_known_by_their_ancestors() -> None:
    duckdb, dask = library("duckdb"), library("dask.dataframe")
    relation = duckdb.sql("SELECT 1 AS x")
    assert library_of(relation) == library_of(unwrap(relation)) == "duckdb"
    assert unwrap(library("narwhals").from_native(relation)) is relation
    collection = dask.from_pandas(pandas_frame([1, 2, 3, 4]), npartitions=1)
    kind = derived(type(collection))
    assert library_of(kind(collection.expr)) == "dask"
    assert second_moments(kind(collection.expr), SCHEMA) == second_moments(collection, SCHEMA)
    assert library_of(pa.table({"x": [1]})) == "pyarrow"
    assert library_of(None) == library_of("text") == ""
