"""Rows and labels that stand where a public argument belongs: no error quotes a cell of them.

`release_model(X, y)` is how scikit-learn is called. Errors of neighbouring tables are the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import dplinear as dpl
from services import library

PAIR: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
X: Any = np.full((4, 2), 0.25)
SCHEMA = dpl.Schema(a=(0, 1), b=(0, 1))
SET: dict[str, Any] = {"row_norm": 1.0, "constraint": 1.0, "target_bounds": (0, 1)}
HOLDERS: dict[str, Callable[[list[float]], Any]] = {
    "list": list,
    "tuple": tuple,
    "rows": lambda cells: [[cell] for cell in cells],
    "numpy": np.array,
    "column": lambda cells: np.array(cells)[:, None],
    "objects": lambda cells: np.array(cells, object),
    "pandas": lambda cells: library("pandas").Series(cells),
    "frame": lambda cells: library("pandas").DataFrame({"y": cells}),
    "polars": lambda cells: library("polars").Series(cells),
    "lazy": lambda cells: library("polars").DataFrame({"y": cells}).lazy(),
    "arrow": pa.array,
    "table": lambda cells: pa.table({"y": cells}),
    "sparse": lambda cells: sparse.csr_array(np.array(cells)[:, None]),
}
ENGINES = ("pandas", "frame", "polars", "lazy")
CALLS: dict[str, Callable[[Any], Any]] = {
    "model": lambda y: dpl.release_model(X, y, **PAIR),
    "model in a set": lambda y: dpl.release_model(X, y, **SET, **PAIR),
    "target": lambda y: dpl.release_model(X, SCHEMA, y, **PAIR),
    "features": lambda y: dpl.release_model(X, SCHEMA, "b", y, **PAIR),
    "features in a set": lambda y: dpl.release_model(X, target=X[:, 0], features=y, **SET, **PAIR),
    "moments": lambda y: dpl.release_moments(X, y, **PAIR),
    "sketch": lambda y: dpl.release_sketch(X, y, **PAIR),
    "mean": lambda y: dpl.release_mean(X, y, **PAIR),
    "covariance": lambda y: dpl.release_covariance(X, y, **PAIR),
    "rows": lambda y: dpl.release_rows(X, y, bits=0.5),
    "scale": lambda y: dpl.release_mean(X, SCHEMA, scale=y, **PAIR),
    "content": dpl.Schema.from_dict,
    "bounds": lambda y: dpl.suggest_bounds(X, y, rho=1.0),
    "classes": lambda y: dpl.release_model(X, target=y, classes=y, **SET, **PAIR),
}


@pytest.mark.parametrize(
    "holder",
    [pytest.param(name, marks=pytest.mark.engine if name in ENGINES else ()) for name in HOLDERS],
)
@pytest.mark.parametrize("call", CALLS)
def test_no_error_quotes_misplaced_cells(call: str, holder: str) -> None:
    said = []
    for cell in (0.7654321, 0.1234567):
        cells = [cell, 0.5, 0.5, 0.5]
        with pytest.raises((TypeError, ValueError)) as caught:
            CALLS[call](HOLDERS[holder](cells))
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "0.7654" not in said[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [("projection", "gaussian"), ("projection", None), ("projected", True), ("lift", "gauge")],
)
def test_arguments_of_the_other_form_are_not_ignored(name: str, value: Any) -> None:
    with pytest.raises(dpl.ArgumentError) as caught:
        dpl.release_model(X, SCHEMA, "b", **PAIR, **{name: value})
    assert caught.value.parameter == name


@pytest.mark.parametrize("texts", [list, tuple, "\n".join, "\r\n".join])
def test_no_error_quotes_texts_that_stand_for_paths(texts: Callable[..., Any]) -> None:
    """A column of names is no list of paths, and the content of a file is not its path."""
    said = set()
    for name in ("Ada Secret", "Bob Hidden"):
        with pytest.raises(dpl.ArgumentError) as caught:
            dpl.release_moments(texts([name, "Eve"]), SCHEMA, **PAIR)
        said.add(str(caught.value))
    assert len(said) == 1
    assert "Secret" not in said.pop()


@pytest.mark.parametrize("shape", [(3,), (2, 2), (2, 3), (3, 1), (2,)])
@pytest.mark.parametrize("parameter", ["bounds", "target_bounds"])
def test_no_error_quotes_rows_that_stand_for_bounds(parameter: str, shape: tuple[int, ...]) -> None:
    said = set()
    for cell in (0.7654321, 0.1234567):
        public: dict[str, Any] = {"bounds": (0, 1), "target_bounds": (0, 1)}
        public[parameter] = np.full(shape, cell)
        with pytest.raises(dpl.ArgumentError) as caught:
            dpl.PrivateLinearRegression(**public).fit(X, X[:, 0])
        said.add(str(caught.value))
    assert len(said) == 1
    assert "0.76" not in said.pop()
