"""The harness of coverage: the truth, least squares' intervals, and what is counted."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import linregress

from benchmarks import model_coverage
from benchmarks.designs import Design, draw, population, seeded
from benchmarks.model_coverage import Cell
from dplinear.analyst.results import NamedVector
from dplinear.curator import release_model

pytestmark = pytest.mark.heavy

SMALL = Cell(Design("gaussian", 400, 3, 1.0), 1.0)


def test_a_table_of_its_own_is_a_population_and_its_rows() -> None:
    table = draw(SMALL.design, seeded("one"))
    generator = seeded("one")
    source = population(SMALL.design, generator)
    assert np.array_equal(source.table(400, generator).rows, table.rows)
    assert not np.array_equal(source.table(400, generator).rows, table.rows)


def test_one_column_can_be_drawn() -> None:
    table = draw(Design("t4", 50, 1, 1.0), seeded("single"))
    assert table.rows.shape == (50, 1)
    assert np.abs(table.best * table.half_widths / table.target_half_width) == pytest.approx(
        [np.sqrt(0.5)]
    )


def test_plain_intervals_are_those_of_scipy() -> None:
    table = draw(Design("gaussian", 100, 1, 1.0), seeded("plain"))
    middle, reach = model_coverage.plain_intervals(np.column_stack([table.rows, table.target]))
    expected = linregress(table.rows[:, 0], table.target)
    assert middle == pytest.approx([expected.intercept, expected.slope])
    errors = reach / ndtri(0.975)
    assert errors == pytest.approx([expected.intercept_stderr, expected.stderr])


def test_bounds_hardly_move_the_line_of_light_tails() -> None:
    line = model_coverage.unclamped_truth(model_coverage.fixed(SMALL.design))
    found = model_coverage.clamped_truth(SMALL.design)
    # Errors of variance 1/32 and cells of 1/16 over 40,000 rows; the constant is 1. Of 4 normal
    # values none is beyond 5.2 standard errors but for a chance of 1e-6.
    errors = np.sqrt(np.array([1 / 32, 0.5, 0.5, 0.5]) / 40_000)
    assert (np.abs(found - line) < 5.2 * errors).all()
    assert np.abs(line[1:]).max() > 0.2


def with_errors(factor: float) -> Any:
    """Return a release of least squares itself, its standard errors multiplied."""

    def released(whole: Any, *words: Any, **options: Any) -> Any:
        made = release_model(whole, *words, **options)
        middle, reach = model_coverage.plain_intervals(whole)
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
    monkeypatch.setattr(model_coverage, "release_model", with_errors(factor))
    tally = model_coverage.batch(SMALL, "adassp", range(30))
    assert (tally.count.tables, tally.count.answered) == (30, 30)
    assert tally.lengths / 30 == pytest.approx(factor)
    held = {1.0: tally.plain, 1e-6: np.zeros(4), 1e6: np.full(4, 30)}[factor]
    assert tally.count.covered.tolist() == held.tolist()
    # Binomial(120, .95) is below 96 with a chance under 1e-6.
    assert tally.plain.sum() >= 96
    if factor != 1:
        assert tally.unclamped.tolist() == held.tolist()
    shares = model_coverage.row(SMALL, tally)
    assert shares[:4] == ["gaussian", "400", "1", "1"]
    assert shares[5] == "0"
    assert shares[-1] == f"{factor:.2f}"
    assert shares[7] == f"{held.mean() / 30:.1%}"
    assert "All 30 releases of adassp gave" in model_coverage.silence("adassp", {SMALL: tally})


def test_releases_without_standard_errors_are_said_plainly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model_coverage, "CELLS", (SMALL,))
    model_coverage.main(["--method", "adassp", "--tables", "3", "--processes", "1"])
    shown = capsys.readouterr().out
    assert "adassp gave no standard errors in any of 3 releases: no coverage. It says:" in shown
    assert "residuals" in shown


def test_some_releases_without_standard_errors_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = model_coverage.batch(SMALL, "adassp", range(2))
    monkeypatch.setattr(model_coverage, "release_model", with_errors(1.0))
    both = silent + model_coverage.batch(SMALL, "adassp", range(2, 5))
    assert (both.count.tables, both.count.answered) == (5, 3)
    words = model_coverage.silence("adassp", {SMALL: both})
    assert words.startswith("2 of 5 releases of adassp gave no standard errors.")
