"""Every gate takes the path of a ledger, spends there first, and returns what it kept there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from dplinear.analyst import files
from dplinear.erm.sets import L1Ball
from dplinear.ledger import BudgetExceededError, LedgerError, open_ledger
from dplinear.ledger.fingerprint import fingerprint
from dplinear.privacy import MIDP, ZCDP, ApproxDP, Guarantee

SCHEMA = dpl.Schema(x=(-1, 1), y=(0, 10))
ROWS = np.column_stack([np.linspace(-1, 1, 300), np.linspace(0, 10, 300)])
PAIR: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
ERM: dict[str, Any] = {
    "row_norm": 1.0,
    "constraint": L1Ball(1, 1.0),
    "target_bounds": (0, 10),
    "projection": None,
}


def rows(**more: Any) -> Any:
    return dpl.release_rows(ROWS, SCHEMA, bits=0.5, **more)


def bounds(**more: Any) -> Any:
    return dpl.suggest_bounds(ROWS, ["x", "y"], rho=0.5, **more)


KEPT: dict[str, Callable[..., Any]] = {
    "moments": lambda **more: dpl.release_moments(ROWS, SCHEMA, **PAIR, **more),
    "sketch": lambda **more: dpl.release_sketch(ROWS, SCHEMA, **PAIR, **more),
    "projection": lambda **more: dpl.release_sketch(
        ROWS, SCHEMA, mechanism="mi_projection", bits=0.5, **more
    ),
    "model": lambda **more: dpl.release_model(ROWS, SCHEMA, "y", **PAIR, **more),
    "mean": lambda **more: dpl.release_mean(ROWS, SCHEMA, **PAIR, **more),
    "covariance": lambda **more: dpl.release_covariance(ROWS, SCHEMA, **PAIR, **more),
    "std_erm": lambda **more: dpl.std_erm(ROWS[:, :1], ROWS[:, 1], **ERM, **PAIR, **more),
}
BITS = {"projection", "rows"}
ALL = KEPT | {"rows": rows, "bounds": bounds}


def ledger_for(name: str, folder: Path, room: int = 1) -> str:
    """Return a ledger that has room for one release of a gate, in the gate's own kind."""
    path = str(folder / "budget.db")
    budget: Guarantee = ApproxDP(1.0 * room, 1e-6 * room)
    if name in BITS:
        budget = MIDP(0.5 * room)
    if name == "bounds":
        budget = ZCDP(0.5 * room)
    neighbours = "element" if name in BITS else "add_remove"
    open_ledger(path, create=True).declare("table", budget, neighbours)
    return path


@pytest.mark.parametrize("name", list(ALL))
def test_every_gate_spends_in_the_ledger(name: str, tmp_path: Path) -> None:
    path = ledger_for(name, tmp_path)
    ALL[name](ledger=path, dataset="table", request="monday")
    with pytest.raises(BudgetExceededError):
        ALL[name](ledger=path, dataset="table", request="tuesday")
    assert open_ledger(path).verify() == (4 if name in KEPT else 3)


@pytest.mark.parametrize("name", list(KEPT))
def test_the_same_request_gets_the_release_that_was_kept(name: str, tmp_path: Path) -> None:
    path = ledger_for(name, tmp_path)
    first = KEPT[name](ledger=path, dataset="table", request="monday")
    again = KEPT[name](ledger=path, dataset="table", request="monday")
    assert type(again) is type(first)
    assert files.packed(again) == files.packed(first) is not None


@pytest.mark.parametrize("name", ["rows", "bounds"])
def test_what_has_a_file_of_its_own_is_not_kept_and_says_so(name: str, tmp_path: Path) -> None:
    path = ledger_for(name, tmp_path, room=2)
    ALL[name](ledger=path, dataset="table", request="monday")
    with pytest.raises(LedgerError, match="is spent, and there is no release of it"):
        ALL[name](ledger=path, dataset="table", request="monday")


def test_gaussian_noise_for_a_pair_is_counted_by_its_rho(tmp_path: Path) -> None:
    path = str(tmp_path / "budget.db")
    ledger = open_ledger(path, create=True)
    ledger.declare("table", ZCDP(0.1))
    release = KEPT["moments"](ledger=path, dataset="table")
    (status,) = ledger.status()
    # A Gaussian of (1, 1e-6) has μ = 0.2367; the grid's is a little less.
    assert 0.027 < status.spent.main / 1e12 < 0.2367**2 / 2 + 1e-4
    assert release.certificate.holds == ApproxDP(1.0, 1e-6)
    with pytest.raises(LedgerError, match="no theorem counts"):
        KEPT["sketch"](ledger=path, dataset="table")


def test_estimators_take_a_path_too(tmp_path: Path) -> None:
    path = ledger_for("model", tmp_path)
    model = dpl.PrivateLinearRegression(
        **PAIR, bounds=(-1, 1), target_bounds=(0, 10), ledger=path, dataset="table"
    )
    model.fit(ROWS[:, :1], ROWS[:, 1])
    with pytest.raises(BudgetExceededError):
        model.fit(ROWS[:, :1], ROWS[:, 1])


def test_fingerprints_tell_arguments_apart() -> None:
    values = [
        None, 1, 1.5, "1", [1], {"a": 1}, {"a": 2}, np.ones(2), np.ones(3), np.ones(2, np.float32),
        SCHEMA, dpl.Schema(x=(-1, 1)), ZCDP(1), ZCDP(2), MIDP(1), L1Ball(2, 1.0), L1Ball(2, 2.0),
        L1Ball, dict,
    ]  # fmt: skip
    assert len({fingerprint(value) for value in values}) == len(values)
    for value in (SCHEMA, dpl.Schema(x=(-1, 1), y=(0, 10))):
        assert fingerprint(value) == fingerprint(SCHEMA)
    assert fingerprint((np.int64(1), np.float64(0.5))) == fingerprint([1, 0.5])
