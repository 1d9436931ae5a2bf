"""The contest on rows like texts: what tables are like, how they are scored, and that it runs."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import optimize, stats

from dplinear.arrays import Floats
from dplinear.convex.losses import LOSSES
from dplinear.papers.kasiviswanathan import __main__ as command
from dplinear.papers.kasiviswanathan import picture, study
from dplinear.papers.kasiviswanathan.contest import (
    TRIVIAL,
    Contestant,
    Ground,
    automatic,
    contestants,
    guarantee,
)
from dplinear.papers.kasiviswanathan.study import FULL, QUICK, Cell, Plan, Study
from dplinear.papers.kasiviswanathan.tables import TRUE, WEIGHT, WORDS, Text
from services import library

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

FALSE_ALARM = 1e-6
TINY = Plan({(300, 60): ((8.0,), (10,))}, repetitions=1, losses=("squared",))
OTHERS = (Contestant(TRIVIAL), Contestant("noisy_gradient"), Contestant("frank_wolfe", 100))


@pytest.fixture(scope="module")
def text() -> Text:
    return Text.draw("squared", 4_000, 500, 3)


def test_rows_are_like_texts(text: Text) -> None:
    square = np.asarray(text.rows.multiply(text.rows).sum(1)).ravel()
    assert square == pytest.approx(np.ones(4_000), abs=1e-12)
    popularity = 1 / np.arange(1, 501)
    # A word's count in a row is a Poisson number.
    chances = -np.expm1(-WORDS * popularity / popularity.sum())
    seen = np.bincount(text.rows.indices, minlength=500)
    alarm = FALSE_ALARM / 1_000
    assert (seen <= stats.binom(4_000, chances).isf(alarm)).all()
    assert (seen >= stats.binom(4_000, chances).ppf(alarm)).all()


@pytest.mark.parametrize("loss", WEIGHT)
def test_the_truth_is_on_frequent_words_and_labels_are_bounded(loss: str) -> None:
    made = Text.draw(loss, 500, 100, 4)
    assert np.flatnonzero(made.truth).tolist() == list(range(TRUE))
    assert np.abs(made.truth).sum() == pytest.approx(made.base.radius)
    assert made.truth.sum() == 0
    assert np.abs(made.labels).max() <= 1
    assert (np.abs(made.labels) == 1).all() == made.loss.classes
    assert made.excess(made.truth) >= 0
    assert made.trivial > 0


def smallest(made: Text) -> float:
    """Return the least risk in the set by a solver of SciPy's, over θ = a − b, a, b ≥ 0."""
    rows, labels = made.rows.toarray(), made.labels
    n, d = rows.shape
    radius = made.base.radius
    if made.loss.name == "hinge":
        # Minimise the mean of t ≥ 0, t ≥ 1 − y⟨x, θ⟩.
        signed = labels[:, None] * rows
        upper = np.block([[-signed, signed, -np.eye(n)], [np.ones((1, 2 * d)), np.zeros((1, n))]])
        costs = np.concatenate((np.zeros(2 * d), np.full(n, 1 / n)))
        solved = optimize.linprog(costs, A_ub=upper, b_ub=np.append(-np.ones(n), radius))
        return float(costs @ solved.x)

    def risk(both: Floats) -> float:
        margins = rows @ (both[:d] - both[d:])
        if made.loss.name == "squared":
            return float(np.square(margins - labels).mean())
        return float(np.logaddexp(0, -labels * margins).mean())

    within = optimize.LinearConstraint(np.ones((1, 2 * d)), -np.inf, radius)
    found = optimize.minimize(
        risk,
        np.full(2 * d, 0.1),
        bounds=optimize.Bounds(np.zeros(2 * d), np.full(2 * d, np.inf)),
        constraints=within,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return float(found.fun)


@pytest.mark.parametrize("loss", WEIGHT)
def test_the_least_risk_is_that_of_another_solver(loss: str) -> None:
    made = Text.draw(loss, 150, 30, 5)
    part = 0.01 if loss == "hinge" else 1e-4
    assert made.least == pytest.approx(smallest(made), abs=part * made.trivial)


def test_everyone_takes_part_once_and_the_planners_choice_too() -> None:
    for loss in LOSSES:
        for pure in (False, True):
            field = list(contestants(loss, (25, 100, 400), pure=pure))
            assert len(set(field)) == len(field)
            assert field[0] == Contestant(TRIVIAL)
            if loss != "huber":
                assert automatic(loss, 20_000, 5_000, guarantee(1.0, pure=pure)) in field


@pytest.mark.parametrize("loss", WEIGHT)
def test_models_are_in_the_set(loss: str) -> None:
    made = Text.draw(loss, 500, 100, 6)
    projected = Ground(made, 20, 1)
    for pure in (False, True):
        for who in contestants(loss, (20,), pure=pure):
            if who.dimension:
                model = projected.model(who, guarantee(1.0, pure=pure), 2)
                assert np.abs(model).sum() <= made.base.radius * (1 + 1e-8)


def made_up(excesses: list[list[float]]) -> tuple[Study, list[Cell]]:
    """Return a study with these excesses: a list for each ε, a number for each of OTHERS."""
    epsilons = tuple(float(2**place) for place in range(len(excesses)))
    plan = Plan({(20_000, 5_000): (epsilons, (100,))}, losses=("squared",))
    cells = [cell for cell in plan.cells() if not cell.pure]
    values = {
        (cell, who): [value, value]
        for cell, line in zip(cells, excesses, strict=True)
        for who, value in zip(OTHERS, line, strict=True)
    }
    return Study(plan, values, {cell: [0.5, 0.5] for cell in cells}), cells


def test_winners_and_the_planners_distance_are_read_from_excesses() -> None:
    found, cells = made_up([[2.0, 1.0, 3.0], [2.0, 1.05, 1.0], [2.0, 1.5, 1.0]])
    trivial, gradient, compressed = OTHERS
    assert [found.winner(cell) for cell in cells] == [gradient, compressed, compressed]
    assert [found.best_compressed(cell) for cell in cells] == [compressed] * 3
    assert found.relative(cells[0], gradient) == 0.5
    assert found.relative(cells[0], trivial) == 1
    assert found.risk(cells[0], compressed) == 3.5
    assert [found.automatic(cell) for cell in cells] == [gradient] * 3
    assert [found.behind(cell) for cell in cells] == pytest.approx([1, 1.05, 1.5])
    assert found.close(cells) == pytest.approx(2 / 3)


def test_curves_are_of_those_who_took_part_everywhere() -> None:
    found, cells = made_up([[2.0, 1.0, 3.0], [2.0, 0.5, 1.0]])
    absent = Contestant("noisy_gradient", 1000)
    found.excess[cells[0], absent] = [0.1]
    drawn = [("noisy_gradient", False, [0.5, 0.25]), ("frank_wolfe", True, [1.5, 0.5])]
    assert list(picture.curves(found, cells)) == drawn


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    library("matplotlib")
    folder, out = tmp_path_factory.mktemp("contest"), io.StringIO()
    command.main(
        ["--quick", "--processes", "1", "--output", str(folder)], Console(file=out, width=100)
    )
    return out.getvalue(), folder


def test_the_command_writes_figures_a_table_and_a_verdict(printed: tuple[str, Path]) -> None:
    text, folder = printed
    assert "auto is within 10% of the winner in" in text
    assert "the best compressed learner" in " ".join(text.split())
    with (folder / "kasiviswanathan.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    cells = list(QUICK.cells())
    assert sum(int(line["winner"]) for line in lines) == len(cells)
    assert sum(int(line["auto"]) for line in lines) == len(cells)
    for line in lines:
        if line["learner"] == TRIVIAL:
            assert float(line["relative"]) == 1
        assert float(line["excess"]) > 0
    for kind in ("approximate", "pure"):
        assert (folder / f"kasiviswanathan-{kind}.png").stat().st_size > 10_000


def test_two_processes_find_what_one_does() -> None:
    alone = study.run(TINY, 5)
    together = study.run(TINY, 5, processes=2)
    assert alone.excess == together.excess
    assert alone.least == together.least
    assert study.run(TINY, 6).excess != alone.excess


@pytest.mark.long
@pytest.mark.parametrize("loss", study.LOSSES)
def test_compressed_learning_beats_the_trivial_model_and_bears_twice_the_features(
    loss: str,
) -> None:
    asked: tuple[tuple[float, ...], tuple[int, ...]] = ((1.0,), (1000,))
    tables = dict.fromkeys(list(FULL.tables)[:2], asked)
    found = study.run(replace(FULL, tables=tables, repetitions=2, losses=(loss,)), 1)
    cell = picture.middle(found, loss, pure=False)
    assert found.relative(cell, found.best_compressed(cell)) < 0.6
    risk, _ = found.doubling(loss)
    assert abs(risk) < 0.15
