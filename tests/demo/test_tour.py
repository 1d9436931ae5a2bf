"""The demo: its made-up table is as documented, and it ends with a page."""

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import dplinear as dpl
from dplinear.demo import SCHEMA, stays, tour, visits
from dplinear.demo.tour import FILES

pytestmark = pytest.mark.heavy


def test_made_up_visits_are_as_they_are_described() -> None:
    table = visits()
    assert table.equals(visits())
    assert not table.equals(visits(seed=1))
    assert table.column_names == list(SCHEMA.columns)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    bounds = {"age": (0, 100), "bmi": (10, 60), "children": (0, 8), "charges": (0, 60_000)}
    for name, (low, high) in bounds.items():
        assert low <= columns[name].min()
        assert columns[name].max() <= high
    smoker = columns["smoker"] == "yes"
    design = np.column_stack([columns["age"], columns["bmi"], smoker, np.ones(len(smoker))])
    found, *_ = np.linalg.lstsq(design, columns["charges"], rcond=None)
    # Standard errors are 2, 6.4 and 71; charges below 500 are drawn up, which takes off a little.
    assert found[:3] == pytest.approx([250.0, 400.0, 14_000.0], rel=0.03)


def test_made_up_stays_are_as_they_are_described() -> None:
    january, february = stays(1), stays(2)
    assert january.equals(stays(1))
    patients = [set(each["patient"].to_pylist()) for each in (january, february)]
    assert [len(each) for each in patients] == [20_000, 20_000]
    assert len(patients[0] & patients[1]) == 10_000
    assert len(january) == pytest.approx(40_000, rel=0.05)
    assert january["bmi"].null_count == pytest.approx(len(january) / 8, rel=0.1)
    whole = january.filter(january["bmi"].is_valid())
    south = np.array(whole["hospital"].to_pylist()) == "south"
    design = [whole["age"].to_numpy(), whole["bmi"].to_numpy(), south, np.ones(len(whole))]
    found, *_ = np.linalg.lstsq(np.column_stack(design), whole["charges"].to_numpy(), rcond=None)
    # Standard errors are about 1, 3 and 20, by stays that are correlated within patients.
    assert found[:3] == pytest.approx([90.0, 150.0, 1_500.0], rel=0.1)


def test_the_tour_ends_with_its_files_and_a_page(tmp_path: Path) -> None:
    told = io.StringIO()
    page = tour(tmp_path, Console(file=told, width=80))
    text = told.getvalue()
    last = text.rstrip().split("The result")[1]
    assert last.endswith(str(page))
    assert "ε = 1, δ = 1e-06" in last
    assert all(f"  {path.name} " in last for path in tmp_path.iterdir())
    assert "ρ = 0.0280145" in text  # the price
    assert "whitened_descent" in text  # the plan
    assert text.count("coefficient") >= 2
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)
    assert dpl.open_ledger(tmp_path / "budget.db").verify() == 4  # its name, budget, spend, release
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
