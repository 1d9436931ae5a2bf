"""The table of simulated errors: its curves, how it is looked up, the command that writes it."""

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.noise import simulation
from dplinear.planner.contest import NAMES, Contest
from dplinear.planner.errors import table
from dplinear.planner.errors.curves import NODES, Size, abscissa, falling, fit_curve, sampling_error
from dplinear.planner.errors.lookup import Assumed, Interval, error_table
from dplinear.planner.errors.simulated_errors import Results, Spot
from dplinear.planner.facts import effective_mu
from dplinear.planner.forecast import FLOOR, forecast, least_squares
from dplinear.planner.populations import Kind, Population
from dplinear.privacy import ApproxDP
from dplinear.registry import MOMENTS

pytestmark = pytest.mark.heavy


def test_a_falling_curve_pools_what_rises() -> None:
    places, values = falling([(0.0, 3.0, 1.0), (1.0, 1.0, 1.0), (2.0, 2.0, 3.0), (3.0, 0.0, 1.0)])
    assert places == pytest.approx([0.0, 1.75, 3.0])
    assert values == pytest.approx([3.0, 1.75, 0.0])


def test_a_curve_of_a_known_law_is_found_again_and_goes_on() -> None:
    points = [(x, 2 / x**2, 1.0) for x in np.geomspace(2, 60, 9)]
    curve = fit_curve("whitened_descent", points)
    assert 10 ** np.interp(math.log10(20), NODES, curve) == pytest.approx(2 / 400, rel=0.05)
    assert 10 ** float(curve[-1]) == pytest.approx(2 / 1e10, rel=0.01)
    assert 10 ** float(curve[0]) == pytest.approx(0.5, rel=0.01)
    assert (np.diff(curve) <= 0).all()


def test_the_abscissa_counts_what_noise_depends_on() -> None:
    size = Size(1_000, 7, 0.5, 9.0)
    assert abscissa("whitened_descent", size) == pytest.approx(1_000 * 0.5 / 8)
    assert abscissa("adassp", size) == pytest.approx(1_000 * 0.5 / (9 * 3))
    wider = Size(1_000, 7, 0.5, 9.0, width=8.0)
    assert abscissa("adassp", wider) == pytest.approx(abscissa("adassp", size) / 4)
    assert abscissa("coinpress", wider) == abscissa("coinpress", size)


def test_the_sampling_error_is_that_of_least_squares() -> None:
    # The median over 400 tables has a relative standard error of about 1.25·√(2/6)/√400 = 3.6%.
    kind, risks = Kind(5), []
    for seed in range(400):
        generator = simulation.generator(seed)
        population = Population.draw(kind, generator)
        rows = population.table(300, generator)
        risks.append(population.excess(least_squares(rows, population.design)))
    assert np.median(risks) == pytest.approx(sampling_error(300, 5, 0.5), rel=5 * 0.036)
    assert sampling_error(5, 5, 0.5) == 1.0


def test_places_lie_between_entries_by_logarithms() -> None:
    axis = [1.0, 100.0]
    middle = Interval.of(10.0, axis)
    assert middle.of_values(np.array([0.0, 1.0])) == pytest.approx(0.5)
    assert not middle.outside
    assert Interval.of(1e3, axis).outside
    assert Interval.of(1e3, axis).of_values(np.array([0.0, 1.0])) == 1.0


def test_the_shipped_table_has_every_method_and_every_curve_falls() -> None:
    shipped = error_table()
    assert shipped.methods == list(NAMES)
    for name in NAMES:
        curves = np.asarray(shipped.content["methods"][name]["added"])
        assert curves.shape[-1] == len(NODES)
        assert (np.diff(curves, axis=-1) <= 1e-9).all()
    assert table.PACKAGED.stat().st_size < 300_000
    hopeless = shipped.find("whitened_descent", Size(50, 20, 0.01, 22.0), Assumed(1.0, "normal"))
    assert 0.5 < hopeless.error < 3


def test_a_prediction_is_near_a_forecast_of_its_own() -> None:
    found = forecast(1_500, 4, epsilon=1.5, delta=1e-6, mechanisms=["whitened_descent"], tables=12)
    size = Size(1_500, 4, effective_mu(ApproxDP(1.5, 1e-6)), 6.0)
    looked = error_table().find("whitened_descent", size, Assumed(1.0, "normal"))
    assert 0.4 < found["whitened_descent"].excess / looked.error < 2.5


def test_a_contest_is_the_same_for_the_same_seed_and_has_every_way() -> None:
    generator = simulation.generator(1)
    population = Population.draw(Kind(3), generator)
    rows = population.table(200, generator)
    contest = Contest.of(3, ApproxDP(2.0, 1e-6))
    one, two = (contest.lines(rows, 5) for _ in range(2))
    assert list(one) == list(NAMES)
    assert all(np.array_equal(one[name], two[name]) for name in NAMES)
    assert not np.array_equal(one["adassp"], contest.lines(rows, 6)["adassp"])
    assert list(contest.lines(rows, 5, ["sketch"])) == ["sketch"]


def test_simulated_certificates_have_the_numerics_of_their_mechanism(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    def regress(self: MomentsRelease, target: str) -> Any:
        seen.append(self.certificate.numerics)
        return honest(self, target)

    honest = MomentsRelease.regress
    monkeypatch.setattr(MomentsRelease, "regress", regress)
    generator = simulation.generator(1)
    rows = Population.draw(Kind(2), generator).table(200, generator)
    contest = Contest.of(2, ApproxDP(2.0, 1e-6), names=("sketch", "analyze_gauss"))
    contest.lines(rows, 1)
    monkeypatch.setattr(MOMENTS["sketch"], "numerics", "idealised")
    contest.lines(rows, 1, ["sketch"])
    assert seen == ["exact", "exact", "idealised"]


def test_the_command_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = [Spot("normal", 1.0, 2, 20, repetition) for repetition in range(2)]
    monkeypatch.setattr(table, "spots", lambda _: few)
    monkeypatch.setattr(table, "logistic_spots", list)
    monkeypatch.setattr(table, "real_spots", lambda _: [])
    monkeypatch.setattr(table, "MUS", (0.5, 8.0))
    monkeypatch.setattr(table, "PACKAGED", tmp_path / "errors.json")
    monkeypatch.setattr(table, "content", lambda lines, _: {"lines": len(lines)})
    file, said = tmp_path / "deep" / "results.jsonl", io.StringIO()
    for _ in range(2):
        table.main(["--results", str(file)], Console(file=said, width=100))
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [line["spot"]["repetition"] for line in lines] == [0, 1]
    assert json.loads((tmp_path / "errors.json").read_text(encoding="utf-8")) == {"lines": 2}
    assert "errors.json" in said.getvalue()
    results = Results.of((Spot(**line["spot"]), line["risks"]) for line in lines)
    assert results.tables == 2
    assert results.median(few[0].key, FLOOR).shape == (1,)
    added = results.added_error(few[0].key, "adassp")
    assert added.shape == (len(lines[0]["risks"]["adassp"]),)
