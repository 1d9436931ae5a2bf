"""The harness that looks for budgets that make models worse: its test of pairs, and its words."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import monotone, real_populations
from benchmarks.designs import seeded
from benchmarks.monotone import EPSILONS, Job, judged, worst_rise
from benchmarks.real_populations import RealPopulation

TABLES = 20
FALLING = np.array([0.5, 0.1, 0.05, 0.04, 0.04])


def noisy(medians: object, tables: int = TABLES) -> np.ndarray:
    """Return risks around medians, with the noise of tables, which budgets share, and their own."""
    generator = seeded("risks", tables)
    shared = generator.standard_normal((tables, 1))
    own = 0.1 * generator.standard_normal((tables, len(EPSILONS)))
    return np.asarray(medians) * np.exp(shared + own)


def test_falling_risks_are_not_flagged() -> None:
    assert worst_rise(noisy(FALLING), 10) is None
    assert worst_rise(noisy(np.full(5, 0.04)), 10) is None
    assert worst_rise(np.full((TABLES, 5), 0.04), 10) is None


def test_a_rise_is_flagged_by_its_pairs() -> None:
    # Tables differ by a factor of e, far more than the rise, which only pairs can show.
    found = worst_rise(noisy([0.5, 0.1, 0.05, 0.1, 0.12]), 1000)
    assert found is not None
    assert (found.smaller, found.larger) == (3.0, 100.0)
    assert found.ratio == pytest.approx(2.4, rel=0.2)
    assert str(found).startswith("3→100 ×2.")


def test_small_rises_and_few_tables_are_not_flagged() -> None:
    rising = np.outer(np.ones(TABLES), [0.1, 0.1, 0.1, 0.1, 0.105])
    assert worst_rise(rising, 10) is None
    doubled = np.outer(np.ones(TABLES), [0.1, 0.1, 0.1, 0.1, 0.2])
    assert worst_rise(doubled, 10) is not None
    # Ten tables have a chance of 2⁻¹⁰ at best, which a hundred comparisons do not allow.
    assert worst_rise(doubled[:10], 100) is None


def test_an_infinite_risk_is_worse_than_any() -> None:
    found = np.outer(np.ones(TABLES), [0.1, 0.1, 0.1, 0.1, np.inf])
    rise = worst_rise(found, 10)
    assert rise is not None
    assert rise.ratio == np.inf


def test_false_alarms_are_shared_among_all_cells() -> None:
    # 18 of 20 tables worse: a chance of 2e-4, which 10 comparisons allow (.002), 200 do not.
    found = np.full((TABLES, 6), 0.1)
    found[2:, 4] = 0.2
    found[:2, 4] = 0.05
    one = {Job("savings", "adassp"): found}
    assert judged(one)[Job("savings", "adassp")] is not None
    many = {Job("savings", f"m{index}"): found for index in range(20)}
    assert set(judged(many).values()) == {None}


def made_up(_: str) -> RealPopulation:
    generator = seeded("monotone")
    rows = generator.uniform(-1, 1, (500, 2))
    target = np.clip(0.4 * rows[:, 0] + 0.1 * generator.standard_normal(500), -1, 1)
    return RealPopulation("savings", "regression", ("a", "b"), rows, target)


def test_all_mechanisms_of_a_loss_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(real_populations, "load", made_up)
    monkeypatch.setattr(real_populations, "available", list)
    path = tmp_path / "made" / "medians.csv"
    words = ["--designs", "savings", "--rows", "2000", "--tables", "2", "--processes", "1"]
    monotone.main([*words, "--csv", str(path)])
    shown = capsys.readouterr().out
    assert "In 0 of 3 cells a larger budget gives a worse model." in shown
    lines = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    names = ["whitened_descent", "adassp", "coinpress"]
    assert [line[1:3] for line in lines] == [[name, table] for name in names for table in "01"]
    # All mechanisms fit the same tables, so what least squares has is the same.
    assert len({line[8] for line in lines}) == 2
    assert all(float(line[3]) > float(line[7]) > 0 for line in lines)
