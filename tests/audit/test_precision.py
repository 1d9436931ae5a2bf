"""Noise in floating point tells neighbours apart by which numbers can arise; exact noise does not.

Float versions are kept (`benchmarks/float_draws.py`), so that every attack is seen to work where
there is something to see. An attack that refutes a true guarantee is a false alarm, once in 10^6
times.
"""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks import float_draws
from dplinear.audit import precision
from dplinear.audit.bounds import Counts
from dplinear.audit.precision import Suspect, attack, can_arise, main, suspects
from dplinear.exact.gaussian_draws import wishart_integers
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import AdditiveWishart, Measurement
from dplinear.noise import simulation
from dplinear.noise.entropy import Entropy
from dplinear.papers.float_noise import standard_normal
from dplinear.privacy import ApproxDP

ALARM = 1e-6
# Of one number of a matrix, a wrong table can make most.
TRIALS = {
    "sketch, rows": 60,
    "sketch": 1000,
    "inverse_wishart": 600,
    "additive_wishart": 160,
    "mi_projection": 100,
}
NAMES = list(TRIALS)
COLUMNS = range(1, 6)

Values = Callable[[Any, Measurement, Entropy], Any]


def root(gram: Any, measured: Measurement) -> Any:
    ridges = measured.noise_model.ridges  # type: ignore[attr-defined]
    return np.linalg.cholesky(gram + ridges * np.eye(len(gram)))


def rows(gram: Any, measured: Measurement, entropy: Entropy) -> Any:
    z = standard_normal(measured.values.shape, entropy=entropy)
    return z @ root(gram, measured).T


def matrix(gram: Any, measured: Measurement, entropy: Entropy) -> Any:
    count = measured.parameters["rows"]
    factor = root(gram, measured)
    return float_draws.wishart(factor, count, entropy=entropy) / count


def inverse(gram: Any, measured: Measurement, entropy: Entropy) -> Any:
    factor = np.linalg.cholesky(gram + measured.parameters["ridge"] * np.eye(len(gram)))
    degrees = measured.parameters["degrees"]
    inner = float_draws.inverse_wishart(np.eye(len(gram)), degrees, entropy=entropy)
    return factor @ inner @ factor.T


def additive(gram: Any, measured: Measurement, entropy: Entropy) -> Any:
    factor = measured.parameters["scale"] * np.eye(len(gram))
    degrees = measured.parameters["degrees"]
    return gram + float_draws.wishart(factor, degrees, entropy=entropy)


FLOATS: dict[str, Values] = dict(zip(NAMES, [rows, matrix, inverse, additive, rows], strict=True))


def floating(suspect: Suspect) -> Suspect:
    """Return the mechanism as it would be in floating point, with the same parameters."""
    draw = FLOATS[suspect.name]
    measured = suspect.run(suspect.tables[0], simulation.entropy(1))

    def run(table: Statistic, entropy: Entropy) -> Measurement:
        return dataclasses.replace(measured, values=draw(table.matrix(), measured, entropy))

    return dataclasses.replace(suspect, run=run)


def suspect_of(name: str, columns: int) -> Suspect:
    return next(each for each in suspects(columns) if each.name == name)


@pytest.mark.heavy
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", NAMES)
def test_released_numbers_tell_nothing_by_being_there(name: str, columns: int) -> None:
    suspect = suspect_of(name, columns)
    found = attack(suspect, trials=TRIALS[name], alarm=ALARM, entropy=simulation.entropy(columns))
    assert found.holds, str(found)


@pytest.mark.heavy
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", NAMES)
def test_in_floating_point_they_tell_the_table(name: str, columns: int) -> None:
    suspect = floating(suspect_of(name, columns))
    found = attack(suspect, trials=TRIALS[name], alarm=ALARM, entropy=simulation.entropy(columns))
    assert not found.holds, str(found)
    assert all(counts.other == 0 for counts in found.counts)  # what was made can arise


def test_every_suspect_is_attacked() -> None:
    assert [each.name for each in suspects(2)] == NAMES


# The grid of the noise

RUNS = 160


def told_by_residues(noise: Callable[[Shape, Any], Any], prepared: Any) -> Counts:
    """Return how often released − G is a multiple of 2^8 units, of either table."""
    shape = prepared.shape
    tables = [np.diag([64 * 8 + moved, 0]).astype(object) for moved in (0, 77)]
    entropy = simulation.entropy(5)
    seen = []
    for table in tables:
        released = [table + noise(shape, entropy) for _ in range(RUNS)]
        seen.append(sum(int(each[0, 0] - tables[0][0, 0]) % 256 == 0 for each in released))
    return Counts(seen[0], seen[1], RUNS)


def test_noise_on_a_coarser_grid_would_show_the_table_modulo_its_step() -> None:
    asked = ApproxDP(0.5, 1e-6)
    prepared = AdditiveWishart(guarantee=asked).prepare(Shape(2, 724, 10))
    factor = Fraction(prepared.scale) ** 2 * prepared.shape.unit

    def coarse(shape: Shape, entropy: Entropy) -> Any:
        return 256 * wishart_integers(2, prepared.degrees, factor / 256, entropy=entropy)

    def own(shape: Shape, entropy: Entropy) -> Any:
        empty = Statistic(shape, np.zeros((2, 2), int).astype(object))
        released = prepared.run(empty, entropy).values * shape.unit
        return np.array([[round(entry) for entry in row] for row in released], object)

    for noise, told in ((coarse, True), (own, False)):
        counts = told_by_residues(noise, prepared)
        shown = counts.likely(ALARM / 2) - np.exp(asked.epsilon) * counts.unlikely(ALARM / 2)
        assert (shown > asked.delta) == told


# The parts


def test_a_number_can_arise_from_its_own_factor_and_often_not_from_another() -> None:
    drawn = standard_normal((500, 1), entropy=simulation.entropy(2))
    for factor in (1.37, 1.9e7, 3.3e-5):
        released = drawn * factor
        assert can_arise(released, factor)
        assert not can_arise(released, factor * (1 + 2.0**-40))
    assert can_arise(np.array([[3.0]]), 2.0)


def test_the_command_says_what_it_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--trials", "5", "--seed", "3"]) == 0
    said = capsys.readouterr().out
    assert said.count("holds") == len(NAMES)
    honest = list(suspects(1))
    monkeypatch.setattr(precision, "suspects", lambda *_, **__: map(floating, honest))
    assert main(["--trials", "60", "--columns", "1"]) == 1
    assert "broken" in capsys.readouterr().out
