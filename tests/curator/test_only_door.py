"""The gate is the only door: whatever is public and takes rows spends before it reads one."""

import ast
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from dplinear import curator, estimators
from dplinear.cli.release.gates import GATES as COMMANDS
from dplinear.convex.sets import L1Ball
from dplinear.curator import sources
from dplinear.curator.gates import constrained as compressed_gate
from dplinear.curator.sources.ordered import OrderedRows

from .witnesses import Book

SOURCES = Path(dpl.__file__).parent
SCHEMA = dpl.Schema(x=(-1, 1), y=(0, 10))
ROWS = np.column_stack([np.linspace(-1, 1, 200), np.linspace(0, 10, 200)])
X, Y = ROWS[:, :1], ROWS[:, 1]
PAIR: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
ERM: dict[str, Any] = {"row_norm": 1.0, "constraint": L1Ball(1, 1.0), "target_bounds": (0, 10)}
Call = Callable[..., Any]


class _Half:
    """A model that says the same of every row."""

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), 5.0)


GATES: dict[str, Call] = {
    "release_model, projected": partial(
        dpl.release_model, X, target=Y, projected=True, projection=np.eye(1), **ERM, **PAIR
    ),
    "release_covariance": partial(dpl.release_covariance, ROWS, SCHEMA, **PAIR),
    "release_mean": partial(dpl.release_mean, ROWS, SCHEMA, **PAIR),
    "release_model": partial(dpl.release_model, ROWS, SCHEMA, "y", **PAIR),
    "release_moments": partial(dpl.release_moments, ROWS, SCHEMA, **PAIR),
    "release_rows": partial(dpl.release_rows, ROWS, SCHEMA, bits=0.5),
    "release_scores": partial(dpl.release_scores, _Half(), ROWS, SCHEMA, "y", **PAIR),
    "release_sketch": partial(dpl.release_sketch, ROWS, SCHEMA, **PAIR),
    "release_model, constrained": partial(
        dpl.release_model, X, target=Y, projection=None, **ERM, **PAIR
    ),
    "suggest_bounds": partial(dpl.suggest_bounds, ROWS, ["x", "y"], rho=0.5),
    "suggest_rows_per_unit": partial(dpl.suggest_rows_per_unit, X, unit="x", epsilon=0.5),
    "suggest_levels": partial(dpl.suggest_levels, ROWS, ["x", "y"], epsilon=1.0, delta=1e-6),
}
ESTIMATORS: dict[str, dict[str, Any]] = {
    "PrivateConstrainedClassifier": {"row_norm": 2.0, "classes": (0, 1)},
    "PrivateConstrainedRegressor": {"row_norm": 2.0, "target_bounds": (0, 1)},
    "PrivateCovariance": {"bounds": (-1, 10)},
    "PrivateLasso": {"bounds": (-1, 10), "target_bounds": (0, 1)},
    "PrivateLinearRegression": {"bounds": (-1, 10), "target_bounds": (0, 1)},
    "PrivateLogisticRegression": {"bounds": (-1, 10), "classes": (0, 1)},
    "PrivateMean": {"bounds": (-1, 10)},
    "PrivatePCA": {"bounds": (-1, 10)},
    "PrivateProjection": {"bounds": (-1, 10)},
    "PrivateRidge": {"bounds": (-1, 10), "target_bounds": (0, 1)},
    "PrivateSVM": {"row_norm": 2.0, "classes": (0, 1)},
}
# Facts of the public, releases and ledgers: no table is theirs to open.
WITHOUT_ROWS = {
    "ArgumentError",
    "ApproxDP",
    "GDP",
    "MIDP",
    "Neighbours",
    "PureDP",
    "Release",
    "ZCDP",
    "BudgetExceededError",
    "LedgerError",
    "NotKeptWarning",
    "ReleaseError",
    "Schema",
    "__version__",
    "compare_guarantees",
    "forecast",
    "forecast_compressed",
    "join",
    "load",
    "open_ledger",
    "plan",
    "register",
    "tally",
}
# The curator's own exact passes. What they return is private, and leaves by a gate or not at all.
PRIVATE = {"exact_sums", "open_table", "second_moments"}
READERS = PRIVATE | {"open_reader", "open_rows", "read_examples"}
MADE_UP = {"audit", "demo", "papers"}  # rooms that have only tables of their own making


def test_every_public_name_is_a_gate_or_an_estimator_or_takes_no_rows() -> None:
    gates = {name.partition(",")[0] for name in GATES}
    assert set(dpl.__all__) == {*gates, *ESTIMATORS, *WITHOUT_ROWS}
    assert set(estimators.__all__) == set(ESTIMATORS)
    takers = {
        name
        for name in curator.__all__
        if inspect.isfunction(found := getattr(curator, name))
        and {"data", "X", "Z"} & set(inspect.signature(found).parameters)
    }
    assert takers == {*gates, *PRIVATE}
    for name in PRIVATE:
        assert "private" in (getattr(curator, name).__doc__ or "")
    assert {gate.function for gate in COMMANDS.values()} <= set(GATES)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reads rows, whenever it does: passes, rows in order, and rows for constraint sets."""
    seen: list[str] = []
    places = ((sources._Discreet, "run"), (OrderedRows, "through"))
    for place, name in (*places, (compressed_gate, "read_examples")):
        monkeypatch.setattr(place, name, _noted(getattr(place, name), name, seen))
    return seen


def _noted(step: Call, name: str, seen: list[str]) -> Call:
    def noted(*given: Any, **more: Any) -> Any:
        seen.append(name)
        return step(*given, **more)

    return noted


@pytest.mark.parametrize("name", list(GATES))
def test_no_gate_reads_what_a_ledger_refuses(name: str, reads: list[str]) -> None:
    with pytest.raises(PermissionError, match="the budget is spent"):
        GATES[name](ledger=Book(refuse=True))
    assert not reads
    book = Book()
    GATES[name](ledger=book)
    assert len(book.requests) == 1
    assert reads


@pytest.mark.parametrize("name", list(GATES))
def test_without_a_ledger_every_gate_works_and_says_that_nobody_counts(name: str) -> None:
    with dpl.tally() as spent:
        release = GATES[name]()
    assert any("no ledger was given" in note for note in release.certificate.notes)
    assert len(spent) == 1


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_no_estimator_learns_what_a_ledger_refuses(name: str, reads: list[str]) -> None:
    labels, face = ROWS[:, 0] > 0, getattr(dpl, name)
    learn = "fit_transform" if name == "PrivateProjection" else "fit"  # whose fit reads nothing
    refused = face(**ESTIMATORS[name], ledger=Book(refuse=True))
    with pytest.raises(PermissionError, match="the budget is spent"):
        getattr(refused, learn)(ROWS, labels.astype(int))
    assert not reads
    book = Book()
    getattr(face(**ESTIMATORS[name], ledger=book), learn)(ROWS, labels.astype(int))
    assert len(book.requests) == 1
    assert reads


def test_other_rooms_have_no_way_to_rows_but_the_gates() -> None:
    """By the names of whatever reads rows: no module outside the curator's room knows one."""
    knowing = set()
    for file in SOURCES.rglob("*.py"):
        room = file.relative_to(SOURCES).parts[0]
        names = {
            alias.name
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        if names & READERS:
            knowing.add(room)
    assert knowing == {"curator", *MADE_UP}
