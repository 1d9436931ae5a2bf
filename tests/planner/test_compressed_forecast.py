"""Forecasts in constraint sets: seeded, read nothing, say what the gate then does."""

import io
import math
import re
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

import dplinear
from dplinear.arguments import ArgumentTypeError
from dplinear.convex.losses import HingeLoss, Loss, SquaredLoss
from dplinear.convex.sets import ConvexSet, L1Ball, L2Ball, Simplex
from dplinear.curator import release_model
from dplinear.planner import compressed_forecast, trials
from dplinear.planner.compressed_forecast import HEADS, forecast_compressed, main
from dplinear.planner.compression import usual_clip, weaken
from dplinear.planner.texts import Assumed, SimulatedTable
from dplinear.planner.trials import Trial
from dplinear.privacy import GDP, ZCDP, ApproxDP, Guarantee, Neighbours, PureDP
from refusals import refused

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
SMALL: dict[str, Any] = {"expected_rows": 300, "features": 30, "nonzeros": 5, "constraint": 5.0}


def test_it_is_there_when_asked_for() -> None:
    assert dplinear.forecast_compressed is forecast_compressed


def test_the_same_arguments_give_the_same_numbers() -> None:
    asked = SMALL | BUDGET | {"dimensions": [8], "repetitions": 2}
    first, again, other = (forecast_compressed(**asked, seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert not {r for line in first.lines for r in line.risks} & set(other.lines[0].risks)
    alone = forecast_compressed(**asked, seed=5, mechanisms=["noisy_gradient"])
    for line in alone.lines:
        assert line in first.lines
    assert {line.dimension for line in alone.lines} == {None, 8}


def test_nothing_is_spent() -> None:
    with dplinear.tally() as spent:
        forecast_compressed(**SMALL, **BUDGET, dimensions=[], repetitions=1)
    assert len(spent) == 0


def test_the_numbers_of_a_line_are_those_of_its_risks() -> None:
    found = forecast_compressed(**SMALL, **BUDGET, dimensions=[8], repetitions=4)
    for line in found.lines:
        assert len(line.risks) == 4
        assert line.excess == np.median(line.risks)
        assert (line.low, line.high) == tuple(np.quantile(line.risks, [0.05, 0.95]))
        assert line.worse == np.mean(np.array(line.risks) > 1)
        assert (line.distance is None) == (line.gap is None) == (line.dimension is None)
    assert [line.excess for line in found.lines] == sorted(line.excess for line in found.lines)
    assert (found.mechanism, found.dimension) == (
        found.lines[0].mechanism,
        found.lines[0].dimension,
    )
    assert found.compressed is not None
    assert found.compressed.excess == min(
        line.excess for line in found.lines if line.dimension is not None
    )


def test_a_model_that_needs_no_data_has_an_excess_of_1(monkeypatch: Any) -> None:
    monkeypatch.setattr(Trial, "model", lambda *_: np.zeros(30))
    found = forecast_compressed(**SMALL, **BUDGET, dimensions=[8], repetitions=2)
    assert {risk for line in found.lines for risk in line.risks} == {1.0}
    assert 0 < found.trivial < 1


@pytest.mark.parametrize("dimension", [None, 12])
@pytest.mark.parametrize("guarantee", [ZCDP(1e9), PureDP(1e7)], ids=str)
def test_without_noise_it_learns_what_the_gate_does(
    dimension: int | None, guarantee: Guarantee
) -> None:
    assumed = Assumed(L1Ball(30, 5.0), SquaredLoss(), 5.0)
    trial = Trial(assumed, 400, guarantee, Neighbours.ADD_REMOVE, None)
    table = SimulatedTable.draw(assumed, 400, 2)
    drawn = trial.projection(dimension, 9)
    learner = "frank_wolfe" if isinstance(guarantee, PureDP) else "noisy_gradient"
    ours = trial.model(
        learner, trial.task(drawn), table.examples(drawn, usual_clip(dimension or 1)), 1
    )
    release = release_model(
        table.rows,
        target=table.labels,
        row_norm=1.0,
        constraint=5.0,
        target_bounds=(-1.0, 1.0),
        guarantee=guarantee,
        projection=None if dimension is None else "gaussian",
        dimension=dimension,
        seed=9,
        expected_rows=400.0,
    )
    theirs = table.excess(np.asarray(release.coefficients))
    assert table.excess(ours) == pytest.approx(theirs, rel=1e-3, abs=1e-6)
    assert dimension is not None or theirs < 0.1 * table.excess(assumed.usual)


def test_more_rows_than_are_simulated_count_as_less_noise(monkeypatch: Any) -> None:
    monkeypatch.setattr(compressed_forecast, "MOST_ROWS", 300)
    asked = SMALL | BUDGET | {"dimensions": [], "mechanisms": ["noisy_gradient"]}
    few, many = (forecast_compressed(**asked | {"expected_rows": rows}) for rows in (300, 30_000))
    assert few.simulated == many.simulated == 300
    assert many.rows == 30_000
    assert many.lines[0].excess < few.lines[0].excess / 2
    assert "of 300 rows" in str(many)
    assert "of 300 rows" not in str(few)
    dense = forecast_compressed(**asked | {"nonzeros": None, "repetitions": 1})
    assert "30 features (dense)" in str(dense)


@pytest.mark.parametrize("factor", [1.0, 3.7, 50.0])
def test_a_weaker_guarantee_allows_noise_smaller_by_the_factor(factor: float) -> None:
    assert weaken(PureDP(0.3), factor) == PureDP(0.3 * factor)
    assert weaken(ApproxDP(0.3, 0.0), factor) == PureDP(0.3 * factor)
    assert weaken(ZCDP(0.3), factor) == ZCDP(0.3 * factor**2)
    found = weaken(ApproxDP(1.0, 1e-6), factor)
    assert isinstance(found, ApproxDP)
    mu, epsilon = 0.236704380663436 * factor, found.epsilon
    first, second = (float(stats.norm.logcdf(x - epsilon / mu)) for x in (mu / 2, -mu / 2))
    delta = math.exp(first) - math.exp(epsilon + second)
    assert delta == pytest.approx(1e-6, rel=1e-6)
    with refused(
        "guarantee", "compression.weakened", "PureDP, ApproxDP or ZCDP", kind=ArgumentTypeError
    ):
        weaken(GDP(1.0), factor)


def test_who_takes_part_suits_the_guarantee() -> None:
    def names(guarantee: Guarantee, base: ConvexSet, loss: Loss) -> set[tuple[str, int | None]]:
        trial = Trial(Assumed(base, loss), 500, guarantee, Neighbours.ADD_REMOVE, 1.5)
        return set(trial.contestants(None, None))

    pure = names(PureDP(1.0), L1Ball(600, 1.0), SquaredLoss())
    assert pure == {
        *(("frank_wolfe", m) for m in (None, 50, 100, 400)),
        *(("output_perturbation", m) for m in (50, 100)),
    }
    assert names(PureDP(1.0), L2Ball(60), SquaredLoss()) == {
        ("output_perturbation", None),
        ("output_perturbation", 50),
    }
    hinge = {name for name, _ in names(ApproxDP(1.0, 1e-6), L1Ball(60), HingeLoss())}
    assert hinge == {"frank_wolfe", "noisy_gradient", "objective_perturbation"}
    concentrated = {name for name, _ in names(ZCDP(1.0), L1Ball(60), SquaredLoss())}
    assert concentrated == {"frank_wolfe", "noisy_gradient", "whitened"}
    wide = {m for _, m in names(ZCDP(1.0), L1Ball(200_000), SquaredLoss())}
    assert wide == {None, 50, 100}  # a projection to 400 dimensions would fill the memory


def test_the_theory_stands_beside_it() -> None:
    """By the formulas, for n = 300, the L1 ball of radius 5 and the squared loss, β = 0.05."""
    found = forecast_compressed(**SMALL, **BUDGET, dimensions=[8], repetitions=1)
    promised, line = found.promised, found.compressed
    assert line is not None
    width = 5 * max_of_normals(30)
    spread = (width + math.sqrt(math.log(300))) ** 2 * math.log(300 / 0.05)
    assert promised.width == pytest.approx(width, rel=1e-3)
    assert promised.preserving == pytest.approx(spread, rel=1e-2)
    assert promised.approximate == pytest.approx(spread * 300 / width, rel=1e-2)
    assert promised.pure == pytest.approx(spread * (300 / width**2) ** (2 / 3), rel=1e-2)
    steepest = 2 * (5 + 1)
    assert promised.compressed == pytest.approx(
        steepest * 5 * math.sqrt(width / 300) * math.log(1e6) ** 2, rel=1e-2
    )
    curved = (2 * 10**2 * (steepest * width / 300) ** 2) ** (1 / 3)
    assert promised.traditional == pytest.approx(curved * math.log(1e6) ** 2, rel=1e-2)
    expected = (width + 5 * math.sqrt(math.log(20))) / math.sqrt(8)
    assert line.distance == pytest.approx(expected, rel=1e-2)
    gap = steepest * 5 * math.sqrt(spread / 8) / found.trivial
    assert line.gap == pytest.approx(gap, rel=1e-2)
    hinge = SMALL | BUDGET | {"loss": "hinge", "dimensions": [], "repetitions": 1}
    assert forecast_compressed(**hinge).promised.traditional is None


def max_of_normals(count: int) -> float:
    """Return E max |g| of so many, by the integral of 1 − F."""
    places = np.linspace(0, 10, 20_001)
    beyond = 1 - (2 * stats.norm.cdf(places) - 1) ** count
    return float(np.sum((beyond[1:] + beyond[:-1]) / 2) * (places[1] - places[0]))


def test_it_prints_as_a_table() -> None:
    asked = SMALL | {"guarantee": ZCDP(0.5), "neighbours": "replace", "constraint": Simplex}
    found = forecast_compressed(**asked, dimensions=[8], repetitions=2)
    lines = str(found).splitlines()
    assert repr(found) == str(found)
    assert max(map(len, lines)) <= 100
    assert lines[0] == "Forecast for 300 rows, 30 features (about 5 in a row)"
    assert lines[1] == "from 2 simulated tables"
    assert lines[2] == "squared loss, simplex set of radius 1, ρ = 0.5 (replace neighbours)"
    assert re.split(r"\s{2,}", lines[4].strip()) == list(HEADS)
    shown = [line.split()[0] for line in lines[6 : 6 + len(found.lines)]]
    assert shown == [line.mechanism for line in found.lines]
    assert f"m = {found.promised.approximate:,} for (ε, δ)" in str(found)


def test_the_command_prints_it() -> None:
    page = io.StringIO()
    words = (
        "--expected-rows 200 --features 20 --nonzeros 0 --delta 0 --dimensions 5 --repetitions 1"
    )
    main(words.split(), Console(file=page, width=100))
    text = page.getvalue()
    assert "Forecast for 200 rows, 20 features (dense)" in text
    assert "l1 set of radius 20, ε = 1 (add_remove neighbours)" in text
    assert text.count("frank_wolfe") == 2
    assert text.count("output_perturbation") == 2
    assert "Theory, with unit constants" in text


@pytest.mark.parametrize("sparse", [True, False])
def test_a_release_may_take_its_dimension_from_a_simulation(monkeypatch: Any, sparse: bool) -> None:
    monkeypatch.setattr(trials, "DIMENSIONS", (4, 25))
    table = SimulatedTable.draw(Assumed(L1Ball(30, 5.0), SquaredLoss(), 5.0), 300, 2)
    asked: dict[str, Any] = {"row_norm": 1.0, "constraint": 5.0, "target_bounds": (-1.0, 1.0)}
    asked |= {"guarantee": ZCDP(1e6), "expected_rows": 300.0, "dimension": "simulate"}
    rows = table.rows if sparse else table.rows.toarray()
    with dplinear.tally() as spent:
        release = release_model(rows, target=table.labels, **asked)
    expected = forecast_compressed(
        300,
        30,
        constraint=5.0,
        nonzeros=15 if sparse else None,
        guarantee=ZCDP(1e6),
        mechanisms=["noisy_gradient"],
        repetitions=2,
    ).compressed
    assert release.projection is not None
    assert expected is not None
    assert release.projection["target"] == expected.dimension
    assert len(spent) == 1
    monkeypatch.setattr(trials, "DIMENSIONS", (40,))
    assert release_model(rows, target=table.labels, **asked).projection is None


def test_other_words_for_a_dimension_are_refused() -> None:
    asked: dict[str, Any] = {"row_norm": 1.0, "constraint": 5.0, "target_bounds": (-1.0, 1.0)}
    with refused("dimension", "release_model", "one of 'simul"):
        release_model(np.zeros((9, 4)), target=np.zeros(9), **asked, **BUDGET, dimension="guess")
    with refused("dimension", "release_model", "None without a projection"):
        release_model(
            np.zeros((9, 4)),
            target=np.zeros(9),
            **asked,
            **BUDGET,
            dimension="simulate",
            projection=None,
        )


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"expected_rows": 1}, ValueError, "'expected_rows' parameter of forecast_compressed"),
        ({"features": 0}, ValueError, "'features'"),
        ({"nonzeros": 16}, ValueError, "'nonzeros' .*\n\nHint: leave rows dense"),
        ({"nonzeros": 0}, ValueError, "'nonzeros'"),
        ({"constraint": 0.0}, ValueError, "'constraint'"),
        ({"constraint": L2Ball(31)}, ValueError, "a set in 30 dimensions"),
        ({"loss": "cubic"}, ValueError, "'loss'"),
        ({"relevant": 0}, ValueError, "'relevant'"),
        ({"spread": -1}, ValueError, "'spread'"),
        ({"epsilon": None, "delta": None}, TypeError, "no default privacy"),
        ({"epsilon": None, "delta": None, "guarantee": GDP(1)}, TypeError, "'guarantee'"),
        ({"neighbours": "edges"}, ValueError, "'neighbours'"),
        ({"clip": 9}, ValueError, "'clip'"),
        ({"dimensions": 8}, TypeError, "'dimensions'"),
        ({"dimensions": [31]}, ValueError, r"'dimensions' .* in \[1, 30\]"),
        ({"mechanisms": "whitened"}, TypeError, "a list of at least one mechanism"),
        ({"mechanisms": ["ols"]}, ValueError, "'mechanisms'"),
        ({"repetitions": 0}, ValueError, "'repetitions'"),
        ({"seed": -1}, ValueError, "'seed'"),
    ],
)
def test_nonsense_is_refused(change: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        forecast_compressed(**(SMALL | BUDGET | {"dimensions": []} | change))
