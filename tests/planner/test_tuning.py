"""The comparison of settings: what is compared, and how ratios are counted."""

import io
import math
from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from dplinear.descent.settings import Settings
from dplinear.descent.whitened import WhitenedDescent
from dplinear.noise import simulation
from dplinear.planner import tuning
from dplinear.planner.populations import Kind, Population
from dplinear.planner.simulated import plain_design
from dplinear.planner.tuning import Job, alternatives, compare, jobs, log_risks, ratio
from dplinear.privacy import ApproxDP
from refusals import refused

pytestmark = pytest.mark.heavy

# For survey weights, cells filled in, units, and labels: see below.
UNUSED = ["squared_weights", "filled_in", "unit_scores", "matrices"]
UNTUNED = ["wide_most"]  # for intervals: a line has the least risk without them


def test_each_alternative_differs_in_one_field_and_every_field_twice() -> None:
    default = asdict(Settings())
    changed = []
    for name, settings in alternatives().items():
        differs = [field for field, value in asdict(settings).items() if value != default[field]]
        assert differs == [name.split()[0]]
        changed += differs
        word, value = name.split()[1], asdict(settings)[differs[0]]
        factors = {"halved": Fraction(1, 2), "doubled": 2}
        want = default[differs[0]] * factors[word] if word in factors else float(word)
        assert value == want
    chosen = [field for field, value in default.items() if value is not None]
    assert sorted(changed + 2 * (UNUSED + UNTUNED)) == sorted(2 * chosen)


def test_settings_of_weights_and_units_change_nothing_without_them() -> None:
    """So they have no alternatives: simulated tables have no weights, gaps or units."""
    kind, generator = Kind(3), simulation.generator(2)
    table = Population.draw(kind, generator).table(500, generator)
    design, guarantee = plain_design(kind.columns), ApproxDP(1.0, tuning.DELTA)
    usual = Settings()
    default, *doubled = (
        WhitenedDescent(guarantee=guarantee, settings=settings)
        .prepare(design)
        .run(table, simulation.entropy(3))
        .coefficients
        for settings in (
            usual,
            Settings(squared_weights=2 * usual.squared_weights),
            Settings(filled_in=2 * usual.filled_in),
        )
    )
    assert all((default == coefficients).all() for coefficients in doubled)
    by_unit = WhitenedDescent(guarantee=guarantee, settings=Settings(unit_scores=Fraction(1, 10)))
    with refused("errors", "WhitenedDescent", "without a unit"):
        by_unit.prepare(design)


def test_a_ratio_is_a_geometric_mean_with_the_error_of_fixed_cells() -> None:
    spread = np.array([[-0.1, 0.0, 0.1], [0.9, 1.0, 1.1]])  # cells differ, which is no error
    found = ratio(spread)
    assert found.mean == pytest.approx(math.exp(0.5))
    error = 1.96 * 0.1 / math.sqrt(3) / math.sqrt(2)
    assert found.low == pytest.approx(math.exp(0.5 - error))
    assert found.high == pytest.approx(math.exp(0.5 + error))


def test_intervals_cover_as_they_say() -> None:
    """Those of 1,000 that miss are binomial; a false alarm has a rate of 1e-6."""
    generator = simulation.generator(1)
    draws = generator.standard_normal((1_000, 24, 10)) + np.arange(24)[:, None]
    found = [ratio(each) for each in draws]
    missed = sum(not each.low < math.exp(11.5) < each.high for each in found)
    # The error is estimated from 24 x 9 degrees of freedom: t for the normal law's 1.96.
    low, high = stats.binom.ppf(np.array([5e-7, 1 - 5e-7]), 1_000, 2 * stats.t.sf(1.96, 216))
    assert low <= missed <= high


def test_alternatives_are_compared_with_the_defaults_on_the_same_table() -> None:
    """The ratio differs between cells, but not within one: so intervals have no width."""
    names = list(alternatives())
    found = {}
    for job in sorted(jobs(3, 0), key=lambda job: job.table):
        gains = [place + job.size + job.epsilon for place in range(len(names))]
        found[job] = job.table + np.array([0.0, *gains])
    ratios = compare(found, 3)
    assert list(ratios) == names
    for place, name in enumerate(names):
        assert ratios[name].mean == pytest.approx(math.exp(place + 3.5 + 5.1 / 3))
        assert ratios[name].low == pytest.approx(ratios[name].high)


def test_a_job_is_seeded() -> None:
    job = Job(0, 1.0, 3, 0)
    first = log_risks(job)
    assert first.shape == (1 + len(alternatives()),)
    assert np.isfinite(first).all()
    assert (first == log_risks(job)).all()
    assert not (first == log_risks(Job(0, 1.0, 3, 1))).any()


def test_the_command_prints_a_ratio_for_each_alternative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SIZES", ((200, Kind(1)), (300, Kind(2))))
    monkeypatch.setattr(tuning, "EPSILONS", (1.0,))
    console = Console(file=io.StringIO(), width=100)
    tuning.main(["--tables", "2", "--processes", "1"], console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(name in text for name in alternatives())
    assert "2 populations, ε = 1, δ = 1e-06, 2 tables each" in text


def test_one_table_gives_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tuning.main(["--tables", "1"])
    assert "at least 2" in capsys.readouterr().err
