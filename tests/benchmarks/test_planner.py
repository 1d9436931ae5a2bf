"""The benchmark of the planner: a tiny run writes, goes on, and compares."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import accuracy, planner
from benchmarks.designs import Design
from dplinear.planner.contest import NAMES

pytestmark = pytest.mark.heavy


def test_a_tiny_run_goes_on_and_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = accuracy.Grid((Design("gaussian", 200, 2, 1.0),), (1.0,))
    monkeypatch.setitem(accuracy.GRIDS, "quick", tiny)
    monkeypatch.setattr(planner, "REPETITIONS", 2)
    file = tmp_path / "realised.csv"
    for _ in range(2):
        planner.realise("quick", file, 1.0)
    results = planner.read(file)
    assert len(results) == 2 * len(NAMES)
    said = io.StringIO()
    planner.compare(results, Console(file=said, width=120))
    planner.misses(results, Console(file=said, width=120))
    assert "within 20% of the best" in said.getvalue()
    (found,) = planner.verdicts(results, informed=True).values()
    exact = replace(found, predicted=found.realised)
    assert all(exact.within(name) for name in NAMES)
    best = min(found.realised, key=lambda name: found.realised[name])
    assert replace(found, recommended=best).near_best
    worst = max(found.realised, key=lambda name: found.realised[name])
    assert not replace(found, recommended=worst).near_best
