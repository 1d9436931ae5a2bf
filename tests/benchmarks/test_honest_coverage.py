"""The harness of coverage for uneven errors and real tables: truths, HC intervals and counts."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

from benchmarks import error_designs, honest_coverage, real_populations
from benchmarks.designs import WIDTH, seeded
from benchmarks.error_designs import DESIGNS, SLOPES, TARGET_WIDTH, ErrorDesign
from benchmarks.honest_coverage import Cell, Outcome, figures
from benchmarks.real_populations import RealPopulation
from dplinear.analyst.results import NamedVector
from dplinear.curator import release_model

CELL = Cell("skew2_spread0.5", 400, 1.0)


@pytest.fixture(autouse=True)
def small_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_designs, "REFERENCE", 200_000)
    error_designs.simulated_truth.cache_clear()
    real_populations.load.cache_clear()


@pytest.mark.parametrize("name", DESIGNS)
def test_designs_are_cells_with_the_errors_they_say(name: str) -> None:
    design = DESIGNS[name]
    rows, target = design.block(50_000, seeded("design", name))
    assert np.abs(rows).max() <= 1
    assert np.abs(target).max() <= 1
    assert (np.abs(target) == 1).mean() < 3e-3
    if design.shape != "errors":
        return
    errors = TARGET_WIDTH * target - WIDTH * rows @ SLOPES
    # Even with h = .5 and skewness 2 the mean square of 50,000 has a standard error under .03.
    assert np.mean(errors**2) == pytest.approx(1, abs=0.15)
    high, low = (np.var(errors[sign * rows[:, 0] > 0.25]) for sign in (1, -1))
    assert high / low > 2 if design.spread else 0.8 < high / low < 1.25
    plain = errors / np.exp(design.spread * WIDTH * rows[:, 0] - design.spread**2)
    assert np.mean(plain**3) == pytest.approx(design.skew, abs=0.35)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_simulated_truths_are_near_the_line(loss: str) -> None:
    found = error_designs.simulated_truth(ErrorDesign(), loss)
    slopes = found.line[1:]
    assert slopes / np.linalg.norm(slopes) == pytest.approx(SLOPES, abs=0.03)
    if loss == "squared":
        assert slopes == pytest.approx(SLOPES * WIDTH / TARGET_WIDTH, abs=0.01)
        assert found.variance == pytest.approx(2 / TARGET_WIDTH**2, rel=0.03)


def test_robust_intervals_are_those_of_sums() -> None:
    rows, target = DESIGNS["skew0_spread0.5"].block(500, seeded("robust"))
    middle, reach = honest_coverage.robust_intervals(rows, target, "squared")
    wide = np.column_stack([np.ones(500), rows])
    line, *_ = np.linalg.lstsq(wide, target, rcond=None)
    assert middle == pytest.approx(line)
    wrong = target - wide @ line
    meat = sum(np.outer(row, row) * error**2 for row, error in zip(wide, wrong, strict=True))
    bread = np.linalg.inv(wide.T @ wide)
    variances = np.diag(bread @ meat @ bread) * 500 / 494
    assert reach == pytest.approx(ndtri(0.975) * np.sqrt(variances))


def with_errors(factor: float) -> Any:
    """Return a release of least squares itself, its standard errors those of HC1, multiplied."""

    def released(whole: Any, *words: Any, **options: Any) -> Any:
        made = release_model(whole, *words, **options)
        middle, reach = honest_coverage.robust_intervals(whole[:, :-1], whole[:, -1], "squared")
        return replace(
            made,
            coefficients=NamedVector(made.names, middle[1:]),
            intercept=float(middle[0]),
            standard_errors=NamedVector(made.labels, factor * reach / ndtri(0.975)),
            unknown=None,
        )

    return released


@pytest.mark.parametrize("factor", [1.0, 1e-6, 1e6])
def test_intervals_are_counted(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(honest_coverage, "release_model", with_errors(factor))
    found = figures(CELL, honest_coverage.batch(CELL, "adassp", "squared", range(12)))
    assert found.given == 1
    assert found.length == pytest.approx(factor)
    shares = {1.0: found.plain_mean, 1e-6: 0.0, 1e6: 1.0}
    assert found.mean == shares[factor]
    assert found.worst == {1.0: found.plain_worst, 1e-6: 0.0, 1e6: 1.0}[factor]
    assert found.excess == pytest.approx(found.plain_excess)
    assert found.alarm == (factor == 1e-6)


def outcome(given: list[bool], held: list[bool]) -> Outcome:
    nothing = np.where(given, 2.0, np.nan)
    return Outcome(np.array(given), np.array(held), np.array(given), nothing, 1.0, 0.5, None)


def test_intervals_that_were_not_given_count_neither_way() -> None:
    yes = outcome([True, True, False], [True, True, False])
    no = outcome([False, False, False], [False, False, False])
    found = figures(CELL, [yes, no, no, no])
    assert (found.given, found.worst, found.mean, found.intercept) == (0.125, 1.0, 1.0, 1.0)
    assert (found.length, found.alarm) == (2.0, False)
    silent = figures(CELL, [no, no])
    assert silent.given == 0
    assert np.isnan([silent.worst, silent.mean, silent.intercept, silent.length]).all()
    assert honest_coverage.line(silent)[3:7] == ["0%", "", "", ""]


def test_an_alarm_needs_more_misses_than_chance_gives() -> None:
    hit, miss = outcome([True] * 3, [True] * 3), outcome([True] * 3, [True, False, True])
    # Binomial(40, .95): 31 or fewer have a chance of 1.4e-4, 32 or fewer one of 7e-4; .001/2.
    assert figures(CELL, [hit] * 31 + [miss] * 9).alarm
    assert not figures(CELL, [hit] * 32 + [miss] * 8).alarm


def made_up(_: str) -> RealPopulation:
    generator = seeded("made up")
    rows = generator.uniform(-1, 1, (500, 2))
    target = np.clip(0.4 * rows[:, 0] + 0.1 * generator.standard_normal(500), -1, 1)
    return RealPopulation("savings", "regression", ("a", "b"), rows, target)


def test_real_populations_are_measured_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(real_populations, "load", made_up)
    monkeypatch.setattr(real_populations, "available", list)
    path = tmp_path / "made" / "figures.csv"
    words = ["--designs", "savings", "--rows", "3000", "--epsilons", "3", "--tables", "3"]
    honest_coverage.main([*words, "--processes", "1", "--csv", str(path)])
    assert "whitened_descent: 95% intervals over 3 tables" in capsys.readouterr().out
    (found,) = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    assert (found["table"], found["rows"], found["epsilon"]) == ("savings", "3000", "3.0")
    assert float(found["given"]) == 1
    # Noise can only add to what least squares errs, and 3,000 rows explain nearly all they can.
    assert 0 < float(found["excess"]) < 0.1


def test_labels_are_measured() -> None:
    cell = Cell("skew0_spread0", 3000, 3.0)
    (found,) = honest_coverage.batch(cell, "logistic_descent", "logistic", [0])
    assert 0 < found.excess < 0.1
    assert found.plain.shape == (6,)


def test_tables_are_those_of_other_budgets_and_mechanisms() -> None:
    first, other = (
        honest_coverage.drawn(Cell("rare", 50, epsilon), "squared", 0) for epsilon in (0.3, 3.0)
    )
    assert np.array_equal(first[0], other[0])
    assert np.array_equal(first[1], other[1])
    assert not np.array_equal(first[0], honest_coverage.drawn(CELL, "squared", 0)[0][:50])


@pytest.mark.parametrize("words", [["--designs", "nothing"], ["--mechanism", "logistic_descent"]])
def test_unknown_words_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        honest_coverage.main(words)
    assert words[0] in capsys.readouterr().err
