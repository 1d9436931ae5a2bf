"""The demo: its made-up table is as documented, and it ends with a page."""

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import dplinear as dpl
from dplinear.demo import SCHEMA, tour, visits

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


def test_the_tour_ends_with_five_lines_and_a_page(tmp_path: Path) -> None:
    told = io.StringIO()
    page = tour(tmp_path, Console(file=told, width=80))
    text = told.getvalue()
    last = text.rstrip().split("The result")[1].splitlines()[1:]
    assert len(last) == 5
    assert last[-1] == str(page)
    assert "each single row of the table is promised ε = 1, δ = 1e-06" in last
    assert "The release costs ρ" in text
    assert "whitened_descent" in text  # the plan
    assert text.count("coefficient") >= 2
    assert {path.name for path in tmp_path.iterdir()} >= {
        "visits.parquet", "budget.db", "visits.moments.json", "report.html",
    }  # fmt: skip
    assert dpl.open_ledger(tmp_path / "budget.db").verify() == 4  # its name, budget, spend, release
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
