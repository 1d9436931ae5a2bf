"""The figures of Ediger 2021: Lemma 3.1, the populations, and the command that draws."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from dplinear.noise import simulation
from dplinear.papers.ediger import lemma, study
from dplinear.papers.ediger.__main__ import main
from dplinear.papers.ediger.findings import HEADER
from dplinear.papers.ediger.populations import BOUND, Population
from dplinear.papers.ediger.rivals import structure_of
from dplinear.papers.ediger.study import ERRORS, FIGURES, NAMES, Panel

ROWS = 200_000


def test_the_covariance_of_products_is_what_lemma_3_1_says() -> None:
    """Each entry within 6 of its own standard errors: 15 entries, a chance of 3e-8."""
    beta = np.array([1.0, -2.0, 0.5, 0.0, 1.5])
    generator = simulation.generator(1)
    features = generator.standard_normal((ROWS, 5))
    z = features * (features @ beta + generator.standard_normal(ROWS))[:, None]
    assert lemma.sample_covariance(beta, ROWS, 1) == pytest.approx(
        np.cov(z, rowvar=False), rel=1e-9
    )
    off = z - beta
    products = off[:, :, None] * off[:, None, :]
    errors = products.std(axis=0) / np.sqrt(ROWS)
    assert (np.abs(products.mean(axis=0) - lemma.covariance(beta)) < 6 * errors).all()


@pytest.mark.parametrize("noise", [0.1, 1.0, 9.0])
def test_the_bound_dominates_and_is_reached_along_beta(noise: float) -> None:
    beta = np.array([1.0, -2.0, 0.5])
    values, vectors = np.linalg.eigh(lemma.covariance(beta, noise))
    assert values[-1] == pytest.approx(lemma.bound(beta, noise))
    assert abs(vectors[:, -1] @ beta) == pytest.approx(np.linalg.norm(beta))
    assert values[-1] <= 2 * (beta @ beta + noise)  # twice the mean square of y


@pytest.mark.parametrize(
    "population",
    [Population(3), Population(4, "block"), Population(3, "multiple"), Population(3, mean=10.0)],
    ids=str,
)
def test_the_excess_loss_is_that_of_new_rows(population: Population) -> None:
    """Against 200,000 new rows, within 6 standard errors: a chance of 2e-9."""
    drawn = population.draw(10, 1)
    wrong, intercept = drawn.coefficients + 0.3, 0.7
    generator = simulation.generator(2)
    root = np.linalg.cholesky(population.matrix)
    features = generator.standard_normal((ROWS, population.size)) @ root.T + population.mean
    squares = (features @ (wrong - drawn.coefficients) + intercept) ** 2
    error = squares.std() / np.sqrt(ROWS)
    assert abs(squares.mean() - drawn.excess(wrong, intercept)) < 6 * error


def test_the_papers_populations() -> None:
    assert Population(3, "block").matrix[:2, :2].tolist() == [[6, 2], [2, 1]]
    assert Population(2, "multiple").matrix.tolist() == [[10, 0], [0, 10]]
    kinds = [structure_of(figure.panels[0].population) for figure in FIGURES.values()]
    expected = [*["identity"] * 4, *["covariance"] * 3, *["mean"] * 3, "identity"]
    assert kinds == expected
    for figure in FIGURES.values():
        for panel in figure.panels:
            drawn = panel.population.draw(2000, 1)
            assert max(np.abs(drawn.features).max(), np.abs(drawn.target).max()) < BOUND


def test_errors_are_those_of_normal_residuals() -> None:
    """On a million draws, within 6 standard errors: a chance of 4e-9."""
    loss, count = 0.5, 1_000_000
    draws = simulation.generator(3).standard_normal(count) * np.sqrt(1 + loss)
    for name, values in (("squared error", draws**2), ("absolute error", np.abs(draws))):
        wanted = float(ERRORS[name](np.array([loss]))[0])
        assert abs(values.mean() - wanted) < 6 * values.std() / np.sqrt(count)
    assert float(ERRORS["root mean squared error"](np.array([loss]))[0]) == np.sqrt(1.5)


def test_all_ways_see_the_same_tables_and_seeds_repeat() -> None:
    panel = Panel(Population(2), (500,), (0.5, 2.0))
    first = study.run([panel], 1, repetitions=2)
    again = study.run([panel], 1, repetitions=2)
    assert first.losses[panel].tolist() == again.losses[panel].tolist()
    assert first.losses[panel].shape == (len(NAMES), 2, 2)
    own = first.losses[panel][NAMES.index("least squares, no privacy")]
    assert own[0].tolist() == own[1].tolist()  # the budget is nothing to it
    assert first.median(panel, NAMES[2]).shape == first.mean(panel, NAMES[2]).shape == (2,)


@pytest.mark.parametrize("number", [1, 5, 8])
def test_the_command_writes_figures_and_tables(number: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    console = Console(file=io.StringIO(), width=160)
    main(["--output", str(tmp_path), "--figure", str(number), "--small"], console)
    name = f"ediger-figure{number:02d}"
    assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    if number == 1:
        return
    with (tmp_path / f"{name}.csv").open(encoding="utf-8") as file:
        lines: list[dict[str, Any]] = list(csv.DictReader(file))
    assert tuple(lines[0]) == HEADER
    assert {line["way"] for line in lines} == set(NAMES)
    assert all(float(line["median"]) >= 0 for line in lines)
    printed = console.file
    assert isinstance(printed, io.StringIO)
    assert f"Figure {number}." in printed.getvalue()
