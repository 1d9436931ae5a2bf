"""The harness: simulated tables, paired verdicts, and the files of a tiny run."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import accuracy
from benchmarks.designs import BLOCK, Design, draw, seeded
from benchmarks.rivals import FLOOR, MEAN, METHODS, OURS, Line, ols
from benchmarks.verdicts import sign_interval, summary, verdict
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP

SMALL = Design("gaussian", 400, 3, 10.0)


def test_the_best_line_has_no_excess_risk_and_the_middle_has_one() -> None:
    table = draw(SMALL, seeded("test"))
    best = Line(0.0, table.best * table.half_widths / table.target_half_width)
    assert table.excess_risk(best) == pytest.approx(0.0, abs=1e-20)
    assert table.excess_risk(Line(0.0, np.zeros(3))) == pytest.approx(1.0)
    shifted = Line(1 / table.target_half_width, best.coefficients)
    assert table.excess_risk(shifted) == pytest.approx(1.0)
    assert table.excess_risk(Line(math.inf, best.coefficients)) == math.inf


@pytest.mark.parametrize("law", ["gaussian", "t4"])
def test_tables_have_the_populations_moments(law: str) -> None:
    table = draw(Design(law, 2 * BLOCK + 17, 3, 10.0), seeded("moments", law))
    assert np.abs(table.rows).max() <= 1
    assert np.abs(table.target).max() <= 1
    spectrum = np.linalg.eigvalsh(table.covariance)
    assert spectrum[-1] / spectrum[0] == pytest.approx(10.0)
    # Sixteenths but for clamping, which takes less than .006, and chance: five standard errors of
    # .0004, so a false alarm is rarer than 1e-6.
    assert table.rows.var(0) == pytest.approx(1 / 16, abs=0.008)
    assert table.target.var() == pytest.approx(1 / 16, abs=0.008)
    assert (np.abs(table.rows).max(1) == 1).mean() > (0.01 if law == "t4" else 0)


def test_least_squares_has_about_the_risk_of_theory() -> None:
    risks = []
    for repetition in range(100):
        table = draw(SMALL, seeded("risk", repetition))
        line = ols.fit(table.rows, table.target, ApproxDP(1, 1e-6), simulation.generator(0))
        risks.append(table.excess_risk(line))
    # Mean (d + 1)/n; a chi-square of 400 degrees over 400 is within .36 of 1 but for chance 1e-6.
    assert np.mean(risks) == pytest.approx(4 / 400, rel=0.36)


def test_repetitions_are_the_same_on_every_run() -> None:
    one, two = (draw(SMALL, seeded("again", 3)) for _ in range(2))
    assert np.array_equal(one.rows, two.rows)
    other = draw(SMALL, seeded("again", 4))
    assert not np.array_equal(one.rows, other.rows)


def test_sign_interval_takes_the_order_statistics() -> None:
    assert sign_interval([float(i) for i in range(1, 21)]) == (6.0, 15.0)  # 95.9% for 20 values
    assert sign_interval([3.0, 1.0, 2.0, 4.0, 6.0, 5.0]) == (1.0, 6.0)  # 96.9% for 6
    assert sign_interval([1.0] * 5) == (-math.inf, math.inf)


def cell(ours: float, rival: float, other: float) -> dict[str, list[float]]:
    spread = np.linspace(0.9, 1.1, 21)
    values = {OURS: ours, "one": rival, "two": other, MEAN: 1.0, FLOOR: 0.01}
    return {name: list(value * spread) for name, value in values.items()}


def test_a_verdict_names_the_best_rival() -> None:
    found = verdict(cell(0.1, 0.4, 0.2))
    assert found.rival == "two"
    assert found.won
    assert found.counts
    assert found.advantage == pytest.approx(2.0)
    assert (found.low, found.high) == pytest.approx((2.0, 2.0))
    assert not verdict(cell(1.3, 1.2, 1.1)).counts
    assert not verdict(cell(0.3, 0.2, 0.9)).won


def test_close_cells_are_judged_against_the_rival_of_before() -> None:
    risks = cell(0.1, 0.097, 0.2)
    assert not verdict(risks).close  # worse in every repetition
    first = verdict(risks | {OURS: risks[OURS][::-1]})
    assert first.close
    assert not first.won
    after = verdict(cell(0.1, 0.12, 0.05), first.rival)
    assert after.rival == "one"
    assert after.won
    assert not verdict(cell(0.1, 0.4, 0.9)).close
    assert not verdict(cell(1.1, 1.2, 1.3)).close  # nothing is learnt there


def test_the_summary_counts_cells_where_something_is_learnt() -> None:
    found = summary([cell(0.1, 0.4, 0.9), cell(0.2, 0.1, 0.9), cell(2.0, 1.5, 1.5)])
    assert (found.cells, found.counted, found.won) == (3, 2, 1)
    assert (found.clearly_won, found.clearly_lost, found.floor_won) == (1, 1, 2)
    assert found.advantage == pytest.approx(math.sqrt(4 * 0.5))
    assert found.low < found.advantage < found.high
    assert "1 (50%)" in str(found)


def test_a_tiny_run_writes_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = accuracy.Grid((SMALL,), (0.5, 4.0))
    monkeypatch.setitem(accuracy.GRIDS, "quick", grid)
    slow = {"diffprivlib", "dd-ssp", "opendp", "tukey em"}
    methods = accuracy.available([name for name in METHODS if name not in slow])
    words = ["--cells", "quick", "--repetitions", "2", "--processes", "1", "--tables", "diabetes"]
    words += ["--table-repetitions", "1", "--output", str(tmp_path), "--methods", *methods]
    accuracy.main(words)
    with (tmp_path / "risks.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert tuple(lines[0]) == accuracy.RISKS_HEADER
    assert len(lines) == 2 * 2 * len(methods)
    assert {line["method"] for line in lines} == set(methods)
    assert all(float(line["excess_risk"]) >= 0 for line in lines)
    words = ["--cells", "quick", "--repetitions", "2", "--processes", "1", "--output"]
    words += [str(tmp_path / "again"), "--earlier", str(tmp_path / "risks.csv"), "--again", OURS]
    monkeypatch.setattr(accuracy, "METHODS", {name: METHODS[name] for name in methods})
    accuracy.main(words)
    with (tmp_path / "again" / "risks.csv").open(encoding="utf-8") as file:
        same = [line | {"seconds": ""} for line in csv.DictReader(file)]
    first = [line | {"seconds": ""} for line in lines]
    ours = [line["method"] == OURS for line in same]
    assert sum(ours) == 2 * 2
    assert ours == sorted(ours)  # tried again, after all that is known
    assert sorted(map(str, same)) == sorted(map(str, first))
    with (tmp_path / "again" / "so-far.csv").open(encoding="utf-8") as file:
        assert [line | {"seconds": ""} for line in csv.DictReader(file)] == same
    with (tmp_path / "real.csv").open(encoding="utf-8") as file:
        real = list(csv.DictReader(file))
    assert tuple(real[0]) == accuracy.REAL_HEADER
    assert len(real) == 3 * len(methods)
    floor = [float(line["r_squared"]) for line in real if line["method"] == FLOOR]
    assert floor == pytest.approx([floor[0]] * 3)
    assert 0.2 < floor[0] < 0.8
    accuracy.main([*words, "--fresh", "3"])
    with (tmp_path / "again" / "fresh.csv").open(encoding="utf-8") as file:
        fresh = list(csv.DictReader(file))
    assert {line["repetition"] for line in fresh} == {"2", "3", "4"}
    assert sum(line["method"] == OURS for line in fresh) == 2 * 3
    assert len(fresh) == 4 * 2 * 3  # ours, one rival, the mean, least squares
    shown = capsys.readouterr().out
    assert "Geometric mean of best rival / ours" in shown
    assert "2 cells are close" in shown
    assert "held-out rows" in shown
