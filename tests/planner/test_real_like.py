"""Populations that look real, and the law fitted to tables of them."""

import math

import numpy as np
import pytest

from dplinear.noise import simulation
from dplinear.planner.errors import real_like_fits
from dplinear.planner.errors.curves import Size, abscissa
from dplinear.planner.errors.lookup import real_like_table
from dplinear.planner.errors.real_like_errors import NODES, Looks
from dplinear.planner.errors.real_like_fits import RealSpot, real_content, simulate_real
from dplinear.planner.forecast import FLOOR, least_squares
from dplinear.planner.real_like import TARGETS, Likeness, RealLike

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def populations() -> dict[str, RealLike]:
    return {
        target: RealLike.draw(Likeness(8, 0.5, target), simulation.generator(seed))
        for seed, target in enumerate(TARGETS)
    }


def test_the_best_line_is_best_and_the_mean_explains_nothing(
    populations: dict[str, RealLike],
) -> None:
    for population in populations.values():
        assert population.excess(population.line) == 0
        mean = np.zeros(9)
        mean[0] = population.cells[:, -1].mean()
        assert population.excess(mean) == pytest.approx(1, rel=1e-6)
        wrong = population.cells[:, -1] - population.line[0]
        wrong = wrong - population.cells[:, :-1] @ population.line[1:]
        unexplained = float(wrong.var()) / population.variance
        assert population.explained == pytest.approx(1 - unexplained, rel=1e-6)
        assert 0.01 < population.explained < 0.95


def test_columns_and_targets_have_their_shapes(populations: dict[str, RealLike]) -> None:
    kurtosis = {}
    for target, population in populations.items():
        assert np.abs(population.cells).max() <= 1
        binary = (np.abs(population.cells[:, :-1]) == 1).all(axis=0)
        assert int(binary.sum()) == 4
        wrong = population.cells[:, -1] - population.line[0]
        wrong = wrong - population.cells[:, :-1] @ population.line[1:]
        kurtosis[target] = float((wrong**4).mean() / (wrong**2).mean() ** 2)
        assert population.target_width == pytest.approx(1 / population.cells[:, -1].std())
    assert kurtosis["even"] < 12 < kurtosis["long"]
    assert (populations["counts"].cells[:, -1].mean()) < -0.3  # near the low bound


def test_tables_are_rows_of_the_population(populations: dict[str, RealLike]) -> None:
    population = populations["even"]
    one, two = (population.table(20_000, simulation.generator(3)) for _ in range(2))
    assert one.count == 20_000
    found = least_squares(one, population.design)
    assert np.array_equal(found, least_squares(two, population.design))
    assert population.excess(found) < 0.1


def test_a_simulated_table_has_what_the_fit_asks_for() -> None:
    spot = RealSpot(5)
    made = simulate_real(spot)
    assert made == simulate_real(spot)
    assert made["target"] in TARGETS
    assert len(made["fits"]) == real_like_fits.BUDGETS
    assert made[FLOOR] > 0


def test_a_known_law_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_like_fits, "NAMES", ("whitened_descent",))
    generator, lines = simulation.generator(7), []
    for index in range(240):
        columns, rows = round(2 * 10 ** generator.uniform(0, 1.5)), 10 ** generator.uniform(3, 5)
        share, width = generator.uniform(0.05, 0.8), generator.uniform(2, 9)
        noise = 1 / share - 1
        fits = []
        for epsilon in (0.3, 3.0):
            mu = real_like_fits._mu(epsilon)
            x = abscissa("whitened_descent", Size(rows, columns, mu, columns + 2.0))
            risk = 1 / (1 + x * width / 5 / noise**0.5) ** 1.5
            fits.append({"epsilon": epsilon, "risks": {"whitened_descent": risk}})
        lines.append(
            {
                "columns": columns,
                "rows": rows,
                "zero_one": generator.uniform(),
                "target": TARGETS[index % 4],
                "explained": share,
                "target_width": width,
                FLOOR: 1e-9,
                "fits": fits,
            }
        )
    found = real_content(lines)["laws"]["whitened_descent"]["even"]
    assert found["powers"][:4] == pytest.approx([0, 0.5, 0, -1], abs=0.15)
    assert found["spread"] < 0.3
    assert (np.diff(found["curve"]) <= 0).all()


def test_the_shipped_laws_fall_and_descents_are_flat_where_nothing_is_learnt() -> None:
    table = real_like_table()
    assert table.targets == TARGETS
    for target in TARGETS:
        looks = Looks(target, 0.3)
        for name in ("whitened_descent", "coinpress"):
            none, _ = table.find(name, Size(100, 20, 0.01, 22.0), looks)
            assert 0.3 < none < 12
        sizes = [Size(10.0**power, 10, 0.3, 12.0) for power in range(2, 9)]
        for name in ("whitened_descent", "adassp", "analyze_gauss", "coinpress"):
            errors = [table.find(name, size, looks)[0] for size in sizes]
            assert errors == sorted(errors, reverse=True)
            assert math.isfinite(errors[0])
    assert len(NODES) > 10
    assert table.most_columns >= 60
