"""OpenDP's line as a rival: its budget by its own map, its limit without noise, its absence."""

import sys

import numpy as np
import pytest

from benchmarks import accuracy
from benchmarks.designs import LAWS, Design
from benchmarks.rivals import METHODS, theil_sen
from dplinear.noise import simulation
from dplinear.privacy import GDP, ZCDP, ApproxDP

EPSILONS = [0.1, 1.0, 4.0]


@pytest.mark.oracle
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_its_own_map_gives_all_of_epsilon_for_one_row(epsilon: float) -> None:
    scale = theil_sen.noise_scale(epsilon)
    spent = theil_sen.model(scale).measurement.map(1)
    assert epsilon * (1 - 1e-12) <= spent <= epsilon
    assert scale == pytest.approx(2 * theil_sen.RUNS / epsilon, rel=1e-12)


@pytest.mark.oracle
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_its_account_by_concentrated_privacy_would_take_more_noise(epsilon: float) -> None:
    opendp = theil_sen.library()
    concentrated = opendp.sklearn.linear_model.LinearRegression(
        opendp.zero_concentrated_divergence(),
        x_bounds=[(-1.0, 1.0)],
        y_bounds=(-1.0, 1.0),
        scale=theil_sen.noise_scale(epsilon),
        runs=theil_sen.RUNS,
    )
    spent = ZCDP(concentrated.measurement.map(1)).to(ApproxDP, delta=accuracy.DELTA)
    assert spent.epsilon > epsilon


@pytest.mark.oracle
def test_without_noise_it_is_within_the_errors_of_the_line() -> None:
    # Errors are at most .01, and lines through rows at either end of the range are no farther off
    # at the cuts between them; pairs at the same end are left out.
    generator = simulation.generator(4)
    ends = np.where(generator.random(400) < 0.5, -1.0, 1.0)
    target = -0.3 - 0.4 * ends + generator.uniform(-0.01, 0.01, 400)
    asked = ApproxDP(1e6, 1e-6)
    found = theil_sen.fit(ends[:, None], target, asked, simulation.generator(0))
    low, high = (2 * cut - 1 for cut in theil_sen.CUTS)
    for cut in (low, high):
        value = found.intercept + found.coefficients[0] * cut
        assert value == pytest.approx(-0.3 - 0.4 * cut, abs=0.011)
    assert found.coefficients.shape == (1,)


def test_it_is_for_one_column_and_an_epsilon() -> None:
    rows, target = np.zeros((10, 2)), np.zeros(10)
    with pytest.raises(ValueError, match="one column"):
        theil_sen.fit(rows, target, ApproxDP(1.0, 1e-6), simulation.generator(0))
    with pytest.raises(TypeError, match="ε"):
        theil_sen.fit(rows[:, :1], target, GDP(1.0), simulation.generator(0))
    assert METHODS["opendp"].worthwhile(1000, 1, 0)
    assert not METHODS["opendp"].worthwhile(1000, 2, 0)


def test_the_grid_of_one_column() -> None:
    grid = accuracy.GRIDS["single"]
    expected = {Design(law, n, 1, 1.0) for law in LAWS for n in (1_000, 10_000, 100_000)}
    assert set(grid.designs) == expected
    assert grid.epsilons == tuple(EPSILONS)


def test_where_opendp_is_missing_it_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    theil_sen.library.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp.extras.sklearn.linear_model", None)
    assert accuracy.available(["noisy gd", "opendp", "ols"]) == ["noisy gd", "ols"]
    shown = capsys.readouterr().out
    assert shown == "opendp is left out: OpenDP cannot be imported (ModuleNotFoundError).\n"
