"""The least eigenvalue: proved errors against exact arithmetic, and its sensitivity for any n."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dplinear.mechanisms.moments import eigenvalues
from dplinear.mechanisms.moments.eigenvalues import (
    SENSITIVITY,
    SLACK,
    UNITS,
    certified_least,
    least_units,
    saturate,
    slack_units,
)
from dplinear.noise import simulation

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions


def exact_least(matrix: Any) -> Fraction:
    """Return λ_min of a matrix of exact numbers, to 120 digits."""
    with mpmath.workdps(120):
        entries = [[mpmath.mpf(e.numerator) / e.denominator for e in row] for row in matrix]
        lifted = mpmath.matrix(entries)
        return Fraction(str(mpmath.eigsy(lifted, eigvals_only=True)[0]))


def rotated(seed: int, values: Any) -> Any:
    """Return a matrix of floats with about these eigenvalues."""
    size = len(values)
    turn = np.linalg.qr(simulation.generator(seed).standard_normal((size, size)))[0]
    matrix = (turn * np.asarray(values, float)) @ turn.T
    return (matrix + matrix.T) / 2


SPECTRA = [
    [1.0],
    [0.0, 1.0],
    [3.0, 3.0, 3.0],
    [0.0, 0.0, 5e9],
    [1e-7, 1.0, 2.0**34],
    [17.25, 2.0**30, 2.0**34, 2.0**34],
    list(np.linspace(0, 1e6, 8)),
    [1e-3] * 11 + [2.0**33],
]


@pytest.mark.parametrize("spectrum", SPECTRA, ids=lambda s: f"{len(s)}-{max(s):g}")
@pytest.mark.parametrize("how", ["float64", "exact"])
def test_what_is_found_is_within_its_proved_error(
    spectrum: list[float], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "exact":  # as where a library's answer does not pass
        monkeypatch.setattr(eigenvalues, "_is_certain", lambda *_: False)
    for seed in range(5):
        matrix = rotated(seed, spectrum)
        rows = float(sum(spectrum)) + 1
        width = (len(spectrum) + 2) * rows * 2.0**-53
        true = exact_least([[Fraction(float(e)) for e in row] for row in matrix])
        found = certified_least(matrix, rows)
        assert -7 * width <= found - float(true) <= 7.2 * width


@pytest.mark.parametrize("off", [-1.0, 1.0])
def test_an_eigensolver_that_is_wrong_is_not_believed(
    off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = np.linalg.eigh

    def wrong(matrix: Any) -> Any:
        values, vectors = honest(matrix)
        return values + off * 1e-3, vectors

    matrix = rotated(1, [2.0, 5.0, 9.0])
    monkeypatch.setattr(np.linalg, "eigh", wrong)
    assert certified_least(matrix, 20.0) == pytest.approx(2.0, abs=1e-12)


def test_an_eigensolver_that_gives_up_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: Any) -> Any:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "eigh", failing)
    assert certified_least(rotated(2, [0.5, 4.0]), 20.0) == pytest.approx(0.5, abs=1e-12)


def exactly_saturated(gram: Any) -> Fraction:
    """Return λ_min·min(1, N/trace) of an exact matrix."""
    most = Fraction(1 << 37, len(gram) + 2)
    trace = sum((gram[i][i] for i in range(len(gram))), Fraction(0))
    return exact_least(gram) * min(Fraction(1), most / trace if trace else Fraction(1))


def tables(seed: int) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """Return second moments, over B², of two tables that differ in one row; of any size."""
    random = simulation.generator(seed)
    size = int(random.choice([1, 2, 4]))
    most = 2.0**37 / (size + 2)
    # Far from where traces are cut off, at it, and far beyond.
    trace = most * float(random.choice([1e-9, 0.25, 1 - 1e-12, 1.0, 1 + 1e-12, 3.0, 1e6]))
    values = random.dirichlet(np.ones(size) * float(random.choice([0.02, 1.0, 100.0]))) * trace
    base = rotated(seed + 1, np.maximum(values, 1.0))
    exact = [[Fraction(float(e)) for e in row] for row in base]
    near = np.linalg.eigh(base)[1][:, 0]

    def plus(weight: float) -> list[list[Fraction]]:
        row = near if random.random() < 0.7 else random.standard_normal(size)
        length = max(float(np.linalg.norm(row)), 1e-9)
        unit = [Fraction(float(e)) for e in row / length * (1 - 1e-9)]
        return [
            [e + Fraction(weight) * a * b for e, b in zip(line, unit, strict=True)]
            for line, a in zip(exact, unit, strict=True)
        ]

    return plus(1.0), (exact if seed % 2 else plus(float(random.random())))


@pytest.mark.parametrize("seed", range(60))
def test_one_row_moves_the_answer_by_its_sensitivity_whatever_the_number_of_rows(
    seed: int,
) -> None:
    pair = tables(seed)
    true = [exactly_saturated(gram) for gram in pair]
    assert abs(true[0] - true[1]) <= 1 + Fraction(1, 10**30)
    found = [least_units(np.array([[float(e) for e in row] for row in gram])) for gram in pair]
    assert abs(found[0] - found[1]) <= SENSITIVITY
    for units, exact in zip(found, true, strict=True):
        assert -SLACK - 1 <= units - float(exact * UNITS) <= SLACK


def test_traces_are_cut_off_and_ordinary_tables_are_left_alone() -> None:
    ordinary = rotated(3, [10.0, 1e6, 1e7])
    assert saturate(ordinary)[0] is ordinary
    bounded, most = saturate(rotated(3, [1e9, 1e11, 1e12]))
    assert float(np.trace(bounded)) == pytest.approx(most, rel=1e-12)
    assert least_units(rotated(3, [1e9, 1e11, 1e12])) <= UNITS * 1e9


def test_the_answer_of_an_ordinary_table_is_its_eigenvalue_rounded_down() -> None:
    assert least_units(np.diag([7.0, 9.0])) == 7 * UNITS
    assert least_units(np.zeros((3, 3))) == 0


@pytest.mark.parametrize("rows", [1, 2**28, 2**30, 2**34])
def test_slack_is_what_rounding_may_do(rows: int) -> None:
    """At 2^30 rows times columns a unit was one short: the entries' own rounding was forgotten."""
    for d in (1, 3, 40):
        proved = 7.2 * (d + 2) * rows * 2.0**-53 * UNITS
        assert slack_units(d, rows) >= 1 + proved
        assert slack_units(d, rows) <= 2 + math.ceil(1.2 * proved)
