"""Perturbed minima and draws from a ball to the last bit: ball arithmetic, and a precision attack.

The attack asks of a released float whether it can arise at all from either of two tables. It sees
noise that is added as floats, and learns nothing from what is released now.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dplinear.arrays import Floats
from dplinear.convex.certified_gradient import Point
from dplinear.convex.compression.images import Image
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, Frame
from dplinear.convex.learners import perturbation
from dplinear.convex.learners.contract import Task
from dplinear.convex.learners.exponential import Exponential, PreparedBall, second_moments
from dplinear.convex.learners.objective_perturbation import ObjectivePerturbation
from dplinear.convex.learners.output_perturbation import OutputPerturbation
from dplinear.convex.learners.perturbation import Lattice
from dplinear.convex.losses import LOSSES
from dplinear.convex.minimiser import minimise
from dplinear.convex.sets import L2Ball
from dplinear.noise import simulation
from dplinear.noise.chi import chis
from dplinear.noise.normals import normals
from dplinear.privacy import GDP, ApproxDP, PureDP
from dplinear.privacy.profiles import Objective

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

FALSE_ALARM = 1e-6
RUNS = 300
DIGITS = 2000


def examples(rows: Any, features: int) -> Examples:
    integers = np.rint(np.asarray(rows, float).reshape(-1, features + 1).T * CELLS)
    return Examples(Frame(features, 1.0), [Block.dense(integers)])


def task(name: str, features: int, radius: float = 1e4) -> Task:
    return Task(Frame(features, 1.0), LOSSES[name](), Image(L2Ball(features, radius)), rows=100)


def rows_of(count: int, features: int, seed: int) -> Floats:
    draw = simulation.generator(seed)
    x = draw.normal(size=(count, features))
    x *= 0.99 / np.linalg.norm(x, axis=1)[:, None]
    return np.column_stack([x, draw.uniform(-1, 1, count)])


def exact_values(point: Point) -> list[Fraction]:
    return [Fraction(int(each)) / Fraction(2) ** point.exponent for each in point.integers]


def record_points(patch: pytest.MonkeyPatch) -> list[Any]:
    """Keep what is minimised, and the point that was found."""
    kept: list[Any] = []

    def minimise_and_keep(problem: Any, blocks: Any, tolerance: float) -> Point:
        found = minimise(problem, blocks, tolerance)
        kept.append((problem, found))
        return found

    patch.setattr(perturbation, "minimise", minimise_and_keep)
    return kept


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_a_lattice_is_as_fine_as_was_asked_and_hardly_finer(size: int) -> None:
    for length in (Fraction(1, 3), Fraction(10) ** 40, Fraction(1, 7**90), Fraction(1, 2**20)):
        lattice = Lattice.within(length, size)
        assert lattice.diagonal <= length
        assert lattice.diagonal > length / 5
        assert lattice.diagonal**2 >= size * lattice.step**2


@pytest.mark.oracle
@pytest.mark.parametrize("guarantee", [PureDP(0.5), ApproxDP(0.5, 1e-6), GDP(0.3)])
def test_a_perturbed_output_is_the_rounded_sum_of_the_same_bits(
    guarantee: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is released is the ideal noise about a point of the lattice, rounded to the lattice."""
    import flint

    kept = record_points(monkeypatch)
    prepared = OutputPerturbation(guarantee=guarantee, regularisation=2.0).prepare(task("huber", 3))
    step = prepared.lattice.step
    for seed in range(20):
        found = prepared.run(examples(rows_of(6, 3, seed), 3), simulation.entropy(seed))
        bits = simulation.entropy(seed)
        # Digits are appended, so those that settled a rounding are the first of these.
        pure = isinstance(guarantee, PureDP)
        length = chis([4], entropy=bits) if pure else None
        z = normals(3, entropy=bits).integers(68)
        y = 1 << 68 if length is None else length.integer(0, 66) << 2
        for at, exact in enumerate(exact_values(kept[-1][1])):
            cell = math.floor(exact / step + Fraction(1, 2))
            assert abs(exact - cell * step) <= step / 2
            with flint.ctx.workprec(300):
                noise = flint.arb(int(z[at]), 1) * flint.arb(y, 4 * pure) / flint.arb(2) ** 136
                scale = Fraction(prepared.scale) / step
                whole = cell + noise * scale.numerator / scale.denominator + flint.arb("0.5")
                nearest = whole.floor().unique_fmpz()
            assert nearest is not None
            assert found.point[at] == float(int(nearest) * step)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["logistic", "huber"])
def test_a_perturbed_objective_is_within_its_tolerance_of_the_ideal_slope(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradient with all digits of b, in ball arithmetic, is at most τ: what was cut joins τ."""
    import flint

    kept = record_points(monkeypatch)
    learner = ObjectivePerturbation(guarantee=ApproxDP(0.5, 1e-6), tolerance=2.0**-20)
    prepared = learner.prepare(task(name, 3))
    profile = prepared.account.profile
    assert isinstance(profile, Objective)
    near = Fraction(prepared.sum.tolerance) / Fraction(prepared.sum.weight)
    assert Fraction(profile.output_mu) * Fraction(prepared.output) >= (
        2 * near + prepared.lattice.diagonal
    )
    for seed in range(8):
        table = rows_of(7, 3, seed)
        prepared.run(examples(table, 3), simulation.entropy(seed))
        problem, point = kept[-1]
        z = normals(3, entropy=simulation.entropy(seed)).integers(DIGITS)
        x = np.rint(table * CELLS).astype(int)
        with flint.ctx.workprec(DIGITS):
            arb = flint.arb
            theta = [arb(each.numerator) / each.denominator for each in exact_values(point)]
            total = [
                arb(prepared.sum.weight) * theta[k]
                + arb(prepared.sigma) * arb(int(z[k])) / arb(2) ** DIGITS
                for k in range(3)
            ]
            for row in x.tolist():
                margin = sum((theta[k] * row[k] / CELLS for k in range(3)), arb(0))
                if name == "logistic":
                    sign = 1 if row[3] > 0 else -1
                    slope = -sign / (1 + (sign * margin).exp())
                else:
                    slope = (margin - arb(row[3]) / CELLS).max(arb("-0.25")).min(arb("0.25"))
                total = [total[k] + slope * row[k] / CELLS for k in range(3)]
            assert sum((each * each for each in total), arb(0)).sqrt() <= prepared.sum.tolerance
        assert problem.linear.values == pytest.approx(
            [prepared.sigma * (int(k) / 2**DIGITS) for k in z], rel=1e-6
        )


def reachable(released: float, centre: float, scale: float) -> bool:
    """Return whether some float f has centre + scale·f = released, as float64 adds and rounds."""
    middle = (released - centre) / scale
    tries = middle + np.arange(-64, 65) * np.spacing(abs(middle))
    return bool((centre + scale * tries == released).any())


def guesses(numbers: Floats, centres: tuple[float, float], scales: tuple[float, float]) -> int:
    """Return how many numbers can arise from the first table, and not from the second."""
    pairs = list(zip(centres, scales, strict=True))
    return sum(reachable(o, *pairs[0]) and not reachable(o, *pairs[1]) for o in numbers.tolist())


def prepared_and_model(
    kind: str, size: int
) -> tuple[Any, list[Examples], list[tuple[float, float]], float]:
    """Return a learner, two tables, and the law of a float version's first number on each."""
    row = [1.0, *[0.0] * (size - 1), 1.0]
    tables = [examples([], size), examples([row], size)]
    if kind == "exponential":
        ball = Exponential(guarantee=PureDP(0.5)).prepare(task("squared", size, 1.0))
        assert isinstance(ball, PreparedBall)
        models = []
        for table in tables:
            gram, cross = second_moments(table.blocks(), Frame(size, 1.0))
            raised = ball.unit * float(gram[0, 0]) / CELLS**2 + 0.4
            centre = ball.unit * float(cross[0]) / CELLS**2 / raised
            models.append((centre, math.sqrt(0.5 / raised)))
        return ball, tables, models, float(ball.step)
    prepared: Any
    if kind == "output":
        learner = OutputPerturbation(guarantee=PureDP(0.5), regularisation=3.0)
        prepared = learner.prepare(task("huber", size))
        moved = [prepared.sum.minimum(table, Point.zero(size)).values[0] for table in tables]
        models = [(float(centre), prepared.scale) for centre in moved]
    else:
        asked = ApproxDP(0.5, 1e-6)
        prepared = ObjectivePerturbation(guarantee=asked, regularisation=30.0).prepare(
            task("huber", size)
        )
        scale = prepared.sigma / 30.0
        models = [(0.0, scale), (prepared.sum.gradient / 30.0, scale)]
    return prepared, tables, models, float(prepared.lattice.step)


@pytest.mark.parametrize("size", range(1, 6))
@pytest.mark.parametrize("kind", ["output", "objective", "exponential"])
def test_what_can_arise_from_one_table_can_arise_from_the_other(kind: str, size: int) -> None:
    prepared, tables, models, step = prepared_and_model(kind, size)
    draw = simulation.generator(71)
    (first, wide), (second, other) = models
    centres, scales = (first, second), (wide, other)
    # Noise that is added as a float: many releases can come from their own table alone.
    floats = first + wide * draw.standard_normal(RUNS)
    assert guesses(floats, centres, scales) > RUNS / 50
    assert all(reachable(o, first, wide) for o in floats.tolist())
    # As it is now, every release is a step of one public lattice, whichever table it is from...
    entropy = simulation.entropy(72)
    released = [
        np.array([prepared.run(table, entropy).point[0] for _ in range(RUNS)]) for table in tables
    ]
    for numbers in released:
        assert (numbers / step == np.rint(numbers / step)).all()
        assert len(np.unique(np.rint(numbers / step) % 64)) > 32
    # ... and what the attack guesses is as likely for the other, within e^ε (δ is 1e-6 or 0).
    most = math.exp(0.5)
    for side in ((0, 1), (1, 0)):
        counts = [
            guesses(
                released[at],
                (centres[side[0]], centres[side[1]]),
                (scales[side[0]], scales[side[1]]),
            )
            for at in side
        ]
        low = stats.beta.ppf(FALSE_ALARM / 4, counts[0], RUNS - counts[0] + 1) if counts[0] else 0
        high = stats.beta.isf(FALSE_ALARM / 4, counts[1] + 1, RUNS - counts[1])
        assert low <= most * high + 1e-6


def test_second_moments_are_exact_in_any_blocks() -> None:
    rows = np.rint(rows_of(9000, 4, 73).T * CELLS)
    frame = Frame(4, 1.0)
    whole = rows.astype(np.int64).astype(object)
    for size, count in ((1, 300), (700, 9000), (9000, 9000)):
        part = rows[:, :count]
        blocks = [Block.dense(part[:, at : at + size]) for at in range(0, part.shape[1], size)]
        gram, cross = second_moments(blocks, frame)
        exact = whole[:, : part.shape[1]]
        assert (gram == exact[:-1].dot(exact[:-1].T)).all()
        assert (cross == exact[:-1].dot(exact[-1])).all()


def test_the_image_that_is_drawn_from_is_the_one_whose_losses_are_bounded() -> None:
    """On the integers: no row's losses within the image are farther apart than ε over the unit."""

    class Wide:
        source, target = 5, 2
        matrix = np.array([[0.8, 0.3, -0.2, 1.0, 0.1], [0.1, -0.5, 0.6, 0.2, 0.9]])

        def forward(self, vector: Floats) -> Floats:
            return np.asarray(self.matrix @ vector)

        def adjoint(self, vector: Floats) -> Floats:
            return np.asarray(self.matrix.T @ vector)

    public = Task(Frame(2, 1.0), LOSSES["squared"](), Image(L2Ball(5, 1.2), Wide()))
    prepared = Exponential(guarantee=PureDP(0.8)).prepare(public)
    assert isinstance(prepared, PreparedBall)
    assert prepared.map is not None
    exact = prepared.rate**2 / 2 * (CELLS << prepared.exponent) ** 2
    # The largest margin of a row of norm 1: the longest semiaxis, found apart from the bound.
    stretched = np.array(prepared.map / (1 << prepared.exponent), float)
    reach = Fraction(float(np.linalg.norm(stretched, 2))) * Fraction(1.2)
    spread = (reach + 1) ** 2 if reach >= 1 else 4 * reach
    assert exact * spread <= Fraction(0.8) * (1 + Fraction(1, 2**45))
    assert exact * spread >= Fraction(0.8) * (1 - Fraction(1, 2**20))


@pytest.mark.parametrize("features", [1, 3, 50])
def test_the_lattice_is_part_of_the_sensitivity(features: int) -> None:
    prepared = OutputPerturbation(guarantee=PureDP(0.5), regularisation=3.0).prepare(
        task("huber", features)
    )
    row, tolerance = Fraction(prepared.sum.gradient), Fraction(prepared.sum.tolerance)
    found = (row + 2 * tolerance) / Fraction(prepared.sum.weight)
    rest = Fraction(prepared.sensitivity) - found
    assert rest > 0
    assert rest**2 >= features * prepared.lattice.step**2
    assert Fraction(prepared.scale) * Fraction(0.5) >= Fraction(prepared.sensitivity)


@pytest.mark.parametrize("kind", ["output", "pure", "objective", "exponential"])
@pytest.mark.parametrize(("epsilon", "radius"), [(1e-300, 1.0), (1e-60, 1e100), (0.5, 1e200)])
@pytest.mark.filterwarnings("error")
def test_sizes_that_float64_cannot_square_are_refused_before_a_table_is_read(
    kind: str, epsilon: float, radius: float
) -> None:
    makers: dict[str, Any] = {
        "output": lambda: OutputPerturbation(guarantee=ApproxDP(epsilon, 1e-6)),
        "pure": lambda: OutputPerturbation(guarantee=PureDP(epsilon)),
        "objective": lambda: ObjectivePerturbation(guarantee=ApproxDP(epsilon, 1e-6)),
        "exponential": lambda: Exponential(guarantee=PureDP(epsilon)),
    }
    try:
        prepared = makers[kind]().prepare(task("squared", 2, radius))
    except ValueError:
        return
    for table in (examples([], 2), examples([[0.6, 0.6, -1.0]] * 50, 2)):
        learned = prepared.run(table, simulation.entropy(3))
        assert np.isfinite(learned.point).all()
