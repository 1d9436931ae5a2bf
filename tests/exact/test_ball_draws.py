"""Normal laws cut off at a ball: truncated laws in closed form, and interval arithmetic."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dplinear.arrays import BigIntegers, Floats
from dplinear.exact import ball_draws
from dplinear.exact.ball_draws import CutNormal, Proposals, best_tilt, cut_normal, first_accepted
from dplinear.noise import simulation
from dplinear.noise.entropy import Words, words
from dplinear.noise.normals import normals

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

FALSE_ALARM = 1e-6
DRAWS = 500
STEP = Fraction(1, 2**40)
UNIT = 2.0**41  # so that the exponents are those of the numbers that are given


def law_of(curvatures: Any, slopes: Any, radius: float) -> CutNormal:
    """Return the law of density ∝ exp(−Σ (curvature·u² − 2·slope·u))."""
    whole = [[round(each * UNIT) for each in numbers] for numbers in (curvatures, slopes)]
    matrix = np.zeros((len(whole[0]), len(whole[0])), object)
    matrix[np.diag_indices(len(matrix))] = whole[0]
    return CutNormal(matrix, np.array(whole[1], object), Fraction(1, 2**20), Fraction(radius))


def draws(curvatures: list[float], slopes: list[float], radius: float, seed: int) -> Floats:
    entropy, law = simulation.entropy(seed), law_of(curvatures, slopes, radius)
    found = [cut_normal(law, STEP, entropy=entropy) * STEP for _ in range(DRAWS)]
    return np.array(found).astype(float)


@pytest.mark.parametrize(
    ("curvature", "slope"), [(0.4, 0.1), (2.0, 6.0), (0.0, 3.0), (50.0, -10.0)]
)
def test_in_one_dimension_it_is_the_truncated_law(curvature: float, slope: float) -> None:
    radius = 1.5
    drawn = draws([curvature], [slope], radius, 21)[:, 0]
    axis = np.linspace(-radius, radius, 200_001)
    exponent = -(curvature * axis**2 - 2 * slope * axis)
    mass = np.cumsum(np.exp(exponent - exponent.max()))
    assert np.abs(drawn).max() <= radius + float(STEP)
    found = stats.kstest(drawn, partial(np.interp, xp=axis, fp=mass / mass[-1]))
    assert found.pvalue > FALSE_ALARM


@pytest.mark.parametrize("curvature", [0.0, 1.0, 40.0])
def test_lengths_of_an_even_law_are_right_in_many_dimensions(curvature: float) -> None:
    """Then ‖u‖² is a gamma number below radius², or a power of a uniform one."""
    dimension, radius = 30, 0.8
    lengths = np.linalg.norm(draws([curvature] * dimension, [0.0] * dimension, radius, 22), axis=1)
    if curvature:
        squares = stats.gamma(dimension / 2, scale=1 / curvature)
        part = squares.cdf(lengths**2) / squares.cdf(radius**2)
    else:
        part = (lengths / radius) ** dimension
    assert stats.kstest(part, "uniform").pvalue > FALSE_ALARM


def test_an_uneven_law_off_centre_is_right() -> None:
    radius, curvatures, slopes = 1.0, np.array([6.0, 0.5]), np.array([4.0, 2.0])
    drawn = draws(list(curvatures), list(slopes), radius, 23)
    axis = np.linspace(-radius, radius, 1501)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    exponent = 2 * (slopes[0] * x + slopes[1] * y) - curvatures[0] * x**2 - curvatures[1] * y**2
    density = np.where(x**2 + y**2 <= radius**2, np.exp(exponent - 6), 0.0)
    for coordinate in (0, 1):
        mass = np.cumsum(density.sum(axis=1 - coordinate))
        law = mass / mass[-1]
        found = stats.kstest(drawn[:, coordinate], partial(np.interp, xp=axis, fp=law))
        assert found.pvalue > FALSE_ALARM


def test_tries_are_few_even_where_the_law_without_the_ball_is_far_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred dimensions, the middle at a hundred radii: a plain rejection would never end."""
    batches = []

    def counted(count: int, **keywords: Any) -> Any:
        batches.append(count // 100)
        return normals(count, **keywords)

    monkeypatch.setattr(ball_draws, "normals", counted)
    law = law_of(np.geomspace(1e-3, 1e3, 100), np.full(100, 1e4), 1.0)
    entropy = simulation.entropy(24)
    for _ in range(20):
        found = cut_normal(law, STEP, entropy=entropy) * STEP
        assert found.dot(found) <= 1 + Fraction(1, 2**30)
    assert sum(batches) <= 20 * 64 * 40


@pytest.mark.parametrize("reach", [0.03, 1.0, 1e4])
def test_proposals_are_as_long_as_the_ball_is_wide_or_shorter(reach: float) -> None:
    """The tilt that is promised: E‖u‖² = 1, or 0 where it is less without any."""
    rng = simulation.generator(25)
    for curvatures in (rng.uniform(0.0, 2.0, 6), np.zeros(6), np.full(1, 1e-3)):
        slopes = reach * rng.standard_normal(len(curvatures))

        def length(tilt: float, c: Floats = curvatures, s: Floats = slopes) -> float:
            return float((0.5 / (c + tilt) + (s / (c + tilt)) ** 2).sum())

        tilt = best_tilt(curvatures, slopes)
        if tilt == 0:
            assert length(0.0) <= 1
        else:
            assert length(tilt) == pytest.approx(1, rel=1e-4)
    assert best_tilt(np.array([1e5, 2e5]), np.array([1.0, 2.0])) == 0


class Digits:
    """Real numbers of 4000 bits behind the point, which are there already."""

    def __init__(self, whole: BigIntegers) -> None:
        self.whole = whole

    def __len__(self) -> int:
        return len(self.whole)

    def integers(self, precision: int) -> BigIntegers:
        return np.asarray(self.whole >> 4000 - precision)

    def integer(self, index: int, precision: int) -> int:
        return int(self.whole[index]) >> 4000 - precision

    def floats(self) -> Floats:
        # As short of the truth as `Normals.floats` may be.
        return np.array([math.floor(Fraction(int(k), 2**3950)) / 2**50 for k in self.whole])


class Stream:
    """Bits that are known beforehand: those of a number in [0, 1)."""

    simulated = True

    def __init__(self, number: Fraction) -> None:
        self.left = number

    def bits(self, count: int) -> int:
        whole, self.left = divmod(self.left * 2**count, 1)
        return int(whole)

    def fill(self, words: Words) -> None:
        raise AssertionError("Heights are drawn by bits.")


def exact_draw(proposals: Proposals, law: CutNormal, z: BigIntegers) -> tuple[Any, Any]:
    """Return u and its chance of acceptance, in ball arithmetic of 3000 bits; inside, at 0."""
    import flint

    with flint.ctx.workprec(3000):
        arb, matrix = flint.arb, flint.arb_mat
        rate = arb(proposals.rate.numerator) / proposals.rate.denominator
        size = len(z)
        triangle = matrix([[arb(int(cell)) for cell in row] for row in proposals._triangle])
        scale = (law.rate / proposals.rate) ** 2
        vector = matrix([[arb(int(cell * scale))] for cell in law.vector])
        noise = matrix([[arb(int(cell)) / arb(2) ** 4000] for cell in z])
        u = triangle.transpose().solve(triangle.solve(vector) * rate + noise) * (1 / rate)
        gram = matrix([[arb(int(cell * scale)) for cell in row] for row in law.matrix])
        bend = (u.transpose() * (triangle * triangle.transpose() - gram) * u)[0, 0]
        square = sum((u[i, 0] * u[i, 0] for i in range(size)), arb(0))
        radius = arb(law.radius.numerator) / law.radius.denominator
        inside = radius * radius - square
        chance = (-(rate * rate / 2) * (proposals._top * radius * radius - bend)).exp()
        return [u[i, 0] for i in range(size)], chance if inside > 0 else arb(0)


def fraction(number: Any) -> Fraction:
    """Return the middle of a ball."""
    mantissa, exponent = number.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


@pytest.mark.oracle
@pytest.mark.parametrize("precision", [12, 40, 128])
@pytest.mark.parametrize("radius", [0.6, 1.5])
def test_verdicts_and_roundings_are_those_of_ball_arithmetic(precision: int, radius: float) -> None:
    """On the same bits, from any precision; some heights and steps are as close as 2^−300."""
    generator = simulation.generator(31)
    rows = generator.normal(0, 2**21, (9, 3))
    half = np.array([[int(cell) for cell in row] for row in rows], object)
    vector = np.array([3 << 41, -(1 << 42), 5], object)
    law = CutNormal(half.T.dot(half), vector, Fraction(1, 2**20), Fraction(radius))
    accepted = refused = 0
    for seed in range(120):
        proposals = Proposals(law, ball_draws.best_ridge(law), precision)
        z = normals(3, entropy=simulation.entropy(seed)).integers(4000)
        u, chance = exact_draw(proposals, law, z)
        height = Fraction(int(generator.integers(2**62)), 2**62)
        step = Fraction(1, 2**20)
        if seed % 3 == 1 and chance > 0:  # all but the chance itself, on either side
            height = fraction(chance) * (1 + Fraction((-1) ** seed, 2**300))
        if seed % 3 == 2:  # all but half a step
            step = abs(fraction(u[0])) * Fraction(2, 15) * (1 + Fraction((-1) ** seed, 2**300))
        stream = Stream(height)
        heights = np.array([stream.bits(64)], np.uint64)
        found = first_accepted(proposals, Digits(z), heights, step, stream)
        if fraction(chance) > height:
            accepted += 1
            wanted = [math.floor(fraction(x) / step + Fraction(1, 2)) for x in u]
            assert found is not None
            assert found.tolist() == wanted
        else:
            refused += 1
            assert found is None
    assert min(accepted, refused) > 20


def test_float64_refuses_nothing_that_is_accepted() -> None:
    """And it refuses nearly all that is refused."""
    law = law_of([3.0, 0.5, 40.0], [4.0, -2.0, 9.0], 0.7)
    proposals = Proposals(law, ball_draws.best_ridge(law))
    entropy = simulation.entropy(26)
    z, heights = normals(3 * 2000, entropy=entropy), words(entropy, 2000)
    refused = proposals.refuse(z.floats().reshape(-1, 3), heights)
    verdicts = []
    for index, height in enumerate(heights):
        digits = [z.integer(3 * index + at, proposals.precision) for at in range(3)]
        verdicts.append(
            proposals.verdict(proposals.enclose(np.array(digits, object)), int(height), 64)
        )
    assert None not in verdicts
    wrong = np.array([bool(each) for each in verdicts]) == refused
    assert not (np.array(verdicts, bool) & refused).any()
    assert wrong.sum() <= 2


@pytest.mark.parametrize("ridge", [1, 2**41, 2**43, 2**44])
def test_any_ridge_gives_the_same_law(ridge: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A singular matrix, too, which float64 has no root of."""
    monkeypatch.setattr(ball_draws, "best_ridge", lambda _: ridge)
    drawn = draws([0.4, 0.0], [0.1, 0.0], 1.5, 27) if ridge > 1 else draws([0.4], [0.1], 1.5, 27)
    axis = np.linspace(-1.5, 1.5, 200_001)
    width = np.sqrt(1.5**2 - axis**2) if ridge > 1 else np.ones_like(axis)
    mass = np.cumsum(width * np.exp(-(0.4 * axis**2 - 0.2 * axis)))
    found = stats.kstest(drawn[:, 0], partial(np.interp, xp=axis, fp=mass / mass[-1]))
    assert found.pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("radius", "power"), [(1e-100, 6), (1e-8, 60), (1e100, 160), (1e100, 100), (1e-30, -31)]
)
def test_no_scale_is_too_small_or_too_large(radius: float, power: int) -> None:
    matrix = np.array([[4, 2], [2, 1]], object)
    for vector in ([0, 0], [round(4 * radius), round(-2 * radius)]):
        law = CutNormal(
            matrix, np.array(vector, object), 1 / Fraction(10) ** power, Fraction(radius)
        )
        step = Fraction(radius) / 2**30
        found = cut_normal(law, step, entropy=simulation.entropy(28))
        assert found.dot(found) <= 2**60 + 2**32
