"""The harness of panels: draws, rivals and the table of a made-up run."""

import csv
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks import panels
from benchmarks.panel_data import SIZES, Panel, Table, simulated
from benchmarks.panels_anew import panels_anew
from dplinear.noise import simulation


def test_at_most_k_random_rows_of_a_person_are_left() -> None:
    ids = np.repeat([0.0, 1.0, 2.0], [1, 5, 9])
    table = Table(ids, np.arange(15.0)[:, None], np.arange(15.0))
    seen: set[float] = set()
    for seed in range(40):
        few = table.truncated(3, simulation.generator(seed))
        assert Counter(few.ids.tolist()) == {0.0: 1, 1.0: 3, 2.0: 3}
        assert (few.ids == np.searchsorted([1, 6], few.target, side="right")).all()
        seen |= set(few.target.tolist())
    assert len(seen) == 15  # a row is never left out with a chance below (2/3)^40 = 1e-7


def test_rows_of_a_person_correlate_as_said() -> None:
    panel = simulated("8", SIZES["8 rows each"], 0.5)
    drawn = panel.draw(simulation.generator(1))
    errors = (drawn.target - drawn.features @ panel.best[1][1:]).reshape(-1, 8)
    # 2,000 persons: five standard errors are below 0.1, so a false alarm is rarer than 1e-6.
    assert np.corrcoef(errors.T)[np.triu_indices(8, 1)].mean() == pytest.approx(0.5, abs=0.1)
    assert panel.excess(panel.best[1], 1) == 0.0
    assert panel.excess(np.zeros(6), 1) == pytest.approx(1.0)


@pytest.mark.parametrize("panel", [*panels_anew()], ids=lambda panel: panel.name)
def test_panels_anew_are_what_the_plan_is_told(panel: Panel) -> None:
    drawn = panel.draw(simulation.generator(1))
    counts = np.bincount(drawn.ids.astype(int))
    assert len(counts) == len(np.unique(drawn.ids))
    assert len(drawn.ids) == pytest.approx(panel.rows, rel=0.15)
    line = np.linalg.lstsq(
        np.c_[np.ones(len(drawn.ids)), drawn.features], drawn.target, rcond=None
    )[0]
    assert panel.excess(line, 1) < 0.1  # seeded: the largest of twelve draws was 0.02
    scores = drawn.features * (drawn.target - drawn.features @ panel.best[1][1:])[:, None]
    sums = np.stack([np.bincount(drawn.ids.astype(int), each) for each in scores.T], 1)
    pairs = float((counts * (counts - 1)).sum())
    shared = (sums**2).sum(0) - (scores**2).sum(0)
    found = float((shared / pairs).sum() / (scores**2).mean(0).sum())
    assert panel.correlation is not None
    assert found == pytest.approx(panel.correlation, rel=0.3, abs=0.03)


def test_a_group_of_k_rows_has_the_guarantee_that_was_asked_for() -> None:
    for k in (1, 2, 5):
        each = panels.group_guarantee(2.0, k)
        whole = each["delta"] * math.fsum(math.exp(i * each["epsilon"]) for i in range(k))
        assert k * each["epsilon"] == pytest.approx(2.0)
        assert whole == pytest.approx(panels.DELTA)


def test_the_table_tells_ratios_of_typical_errors(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "epsilon", "table", "way", "k", "error", "from_all_rows"])
        for number, scale in enumerate((1.0, 4.0)):
            for way, k, error in (
                ("weights", 1, 1.5 * (1.1, 1 / 1.1)[number]),
                ("weights", 2, 1.0),
                ("k random rows", 1, 3.0),
                ("group privacy", 1, 1.2),
                ("suggested", 2, 1.0),
            ):
                writer.writerow(["p", 2.0, number, way, k, scale * error, 1.0])
    (cell,) = panels.read(path, "error")
    assert (cell.best, cell.chosen, cell.suggested) == (2, 1, 2)
    assert [round(cell.ratio(way), 6) for way in panels.WAYS] == [1.5, 2.0, 0.8, 1.0]
    told = panels.table(path)
    assert cell.chance == pytest.approx(math.log(1.1))  # of ±ln 1.1, two tables
    assert not cell.by_chance  # ln(1.5/1.2) is 2.3 of them
    assert "- missed: p, ε = 2, by 50%\n" in told
    gap = math.log(1.5 / 1.2) / math.log(1.1)
    assert f"- group privacy has a smaller error: p, ε = 2, the ratio is 0.80, {gap:.1f} " in told
    assert "| p | 2 | 2 | 1 | 1.50 ± 0.14 | 2 | 1.00 | 2.00 | 0.80 | 1.00 |" in told
    assert "- the plan's k: within 20% of the best k in 0 of 1 cells" in told
