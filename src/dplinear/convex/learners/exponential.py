"""The exponential mechanism: a model drawn with probability ∝ exp(−unit·loss), where that is exact.

McSherry and Talwar 2007 (FOCS). A row adds between a and a + W to the loss of any model; so the
density of a model is changed by a factor of at most exp(unit·W), normalisation included: unit = ε/W
for one row more or less, and ε/2W for one replaced, without the factor 2 of the general theorem.
Rows of a unit of privacy, whose weights add up to at most 1, add no wider an interval to Σ v·loss.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.arrays import BigIntegers
from dplinear.convex.compression.images import Image
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Frame
from dplinear.convex.learners.contract import (
    ConstrainedMechanism,
    Learned,
    Passes,
    PreparedConstrained,
    Task,
)
from dplinear.convex.loss_sums import LossSum, extremes
from dplinear.convex.losses import SquaredLoss
from dplinear.convex.sets.contract import Atoms
from dplinear.convex.sets.l2 import L2Ball
from dplinear.exact.ball_draws import CutNormal, cut_normal
from dplinear.exact.integers import EXACT
from dplinear.exact.products import product
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.noise import selection
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.laplace import Pure
from dplinear.privacy.rounding import root_ceiling, up

_WHERE = "Exponential"
_MOST_FEATURES = 2048  # for the ball: eigenvectors take the cube of it
_MOST_NUMBERS = 1 << 26  # of all extreme points: 512 MiB
_MOST_REACH = 1e120  # whose square is a float
_LEAST_SPREAD = 2.0**-40  # of losses that are differences of numbers of about 1
_MAP_BITS = 30  # of the numbers of a map from a ball onto its image
_FLAT = 1e-12  # of the largest eigenvalue of ΦΦᵀ: below it Φ has no such direction


@dataclass(frozen=True, kw_only=True)
class Exponential(ConstrainedMechanism):
    """A model drawn by its loss: one of finitely many extreme points, or any point of a ball.

    Requires: a PureDP guarantee. Either a set whose extreme points can be listed, with any loss:
    one of them is drawn, on integers. Or the squared loss and an L2 ball: the density is then a
    normal law cut off at the image of the ball, and is drawn by rejection (`ball_draws.py`).
    Promises: pure ε, with no cap on tries, so that there is no failure to account for. Both are
    exact: a point of the ball is the ideal draw, of the exact second moments, rounded to a public
    step; what a row can do is bounded for the very image, of exact numbers, that is drawn from.
    Anything else would need Markov chains, which stop before they have the law that they promise:
    refused.
    """

    name: ClassVar[str] = "exponential"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        if not isinstance(self.guarantee, PureDP):
            hint = "it is pure as it stands; with a δ, other learners need less noise."
            rule = "a PureDP guarantee"
            raise arguments.wrong_type("guarantee", _WHERE, rule, self.guarantee, hint)

    def prepare(self, task: Task) -> "PreparedSelection | PreparedBall":
        """Choose the unit."""
        assert isinstance(self.guarantee, PureDP)  # noqa: S101 - checked when it was made
        epsilon, image = Fraction(self.guarantee.epsilon), task.image
        account = checks.exact_account(
            self.guarantee, Pure(self.guarantee.epsilon, self.neighbours)
        )
        steps = 2 if self.neighbours is Neighbours.REPLACE else 1
        reach = up(task.frame.reach * image.radius, 8)
        if not reach <= _MOST_REACH:
            rule = f"smaller: margins are {_MOST_REACH:g} at the most"
            raise arguments.rejection("constraint", _WHERE, rule, f"a radius of {image.radius:.3g}")
        low, high = extremes(task.loss, reach)
        if high - low < (2.0**-900 if isinstance(task.loss, SquaredLoss) else _LEAST_SPREAD):
            rule = "larger: float64 cannot tell the losses of such small margins apart"
            raise arguments.rejection("constraint", _WHERE, rule, f"a radius of {image.radius:.3g}")
        atoms = image.atoms if _has_atoms(image) else None
        if atoms is not None:
            return PreparedSelection(task, account, atoms, reach, epsilon / steps)
        squared = isinstance(task.loss, SquaredLoss) and isinstance(image.base, L2Ball)
        if squared and task.frame.features <= _MOST_FEATURES:
            return _prepare_ball(task, account, Fraction(image.base.radius), epsilon / steps)
        rule = (
            f"one with extreme points that are at most {_MOST_NUMBERS} numbers, or an L2 ball in "
            f"at most {_MOST_FEATURES} dimensions with the squared loss"
        )
        hint = "no other density can be drawn from exactly; output_perturbation is pure as well."
        shown = f"{image.base.name} in {image.dimension} dimensions, {task.loss.name} loss"
        raise arguments.rejection("constraint", _WHERE, rule, shown, hint)


@dataclass(frozen=True, eq=False)
class PreparedSelection(PreparedConstrained):
    """A draw among extreme points: `rate` is what a row's whole spread of losses may weigh."""

    task: Task
    account: Account
    atoms: Atoms
    reach: float
    rate: Fraction

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Add up the losses at every point, and draw one."""
        task, atoms = self.task, self.atoms
        matrix = np.eye(atoms.count) if atoms.matrix is None else atoms.matrix
        losses = LossSum(
            task.frame, task.loss, matrix * atoms.size, self.reach, signed=atoms.signed
        )
        (sums,) = examples.sums([losses])
        unit = self.rate / (losses.spread * examples.denominator)
        index = selection.draw(-sums, unit, entropy=entropy)
        point = atoms.columns([index])[:, 0]
        corners = task.image.base.atoms
        source = point if corners is None else corners.columns([index])[:, 0]
        facts = {"candidates": losses.size, "spread": float(losses.spread * losses.unit)}
        return Learned(point, source, self.account, facts)


@dataclass(frozen=True, eq=False)
class PreparedBall(PreparedConstrained):
    """A draw from a normal law cut off at the image of a ball: `unit` multiplies the loss.

    The image is that of the ball under the integers `map` over 2^`exponent`, or the ball itself;
    `rate`²/2 is `unit` in the integers' own units.
    """

    task: Task
    account: Account
    radius: Fraction
    rate: Fraction
    map: BigIntegers | None
    exponent: int

    @property
    def unit(self) -> float:
        """What a loss of 1 adds to the exponent."""
        return float(self.rate**2 / 2 * (CELLS << self.exponent) ** 2)

    @property
    def step(self) -> Fraction:
        """What points of the ball are rounded to: 2^−32 of its radius, or less."""
        shift = self.radius.denominator.bit_length() - self.radius.numerator.bit_length()
        return 1 / Fraction(2) ** (shift + 33)

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Add up second moments, and draw in coordinates in which the image is a ball."""
        gram, cross = second_moments(examples.blocks(), self.task.frame)
        if self.map is not None:
            gram = product(product(self.map.T, gram), self.map)
            cross = self.map.T.dot(cross) << self.exponent
        # Of weights in units of 4^−12 the moments are so many times as large.
        rate = self.rate / math.isqrt(examples.denominator)
        cut = CutNormal(gram, cross, rate, self.radius)
        drawn = cut_normal(cut, self.step, entropy=entropy) * self.step
        point = drawn if self.map is None else self.map.dot(drawn) / (1 << self.exponent)
        nearest = self.task.image.project(point.astype(np.float64))
        facts = {"unit": self.unit, "step": float(self.step)}
        return Learned(nearest.point, nearest.source, self.account, facts)


def _prepare_ball(task: Task, account: Account, radius: Fraction, rate: Fraction) -> PreparedBall:
    """Choose the unit: `rate` is what a row's whole spread of losses may weigh.

    A row's margin is at most ‖row‖·‖map‖·radius, and ‖map‖² at most the largest sum of a row of
    |mapᵀ·map|, whose columns are all but orthogonal.
    """
    matrix, exponent = _integer_map(task.image)
    longest = Fraction(1)
    if matrix is not None:
        square = np.abs(product(matrix.T, matrix)).sum(axis=1)
        longest = Fraction(root_ceiling(Fraction(int(square.max())))) / (1 << exponent)
    reach = Fraction(task.frame.norm, CELLS) * longest * radius
    nearest = min(reach, Fraction(1))
    spread = reach * (reach + 2) - nearest * (nearest - 2)
    return PreparedBall(
        task,
        account,
        radius,
        _root_below(2 * rate / spread / (CELLS << exponent) ** 2),
        matrix,
        exponent,
    )


def _integer_map(image: Image) -> tuple[BigIntegers | None, int]:
    """Return a map from a ball onto an image, as integers over a power of two; None for itself."""
    if image.map is None:
        return None, 0
    values, vectors = image.spectrum
    kept = values > _FLAT * values[-1]
    root = vectors[:, kept] * np.sqrt(values[kept])
    exponent = max(_MAP_BITS - math.frexp(float(np.abs(root).max()))[1], 0)
    whole = np.rint(np.ldexp(root, exponent))
    return np.array([[int(each) for each in row] for row in whole.tolist()], object), exponent


def _root_below(square: Fraction) -> Fraction:
    """Return a rational of at most the root, right to 2^−50 of it."""
    shift = (square.denominator.bit_length() - square.numerator.bit_length()) // 2 + 52
    scaled = square * Fraction(4) ** shift
    return Fraction(math.isqrt(int(scaled))) / Fraction(2) ** shift


def _has_atoms(image: Image) -> bool:
    """Return whether the image has extreme points few enough to hold, and to draw from."""
    if image.atoms is None or image.atoms.total > selection.MOST:
        return False
    return image.atoms.count * image.dimension <= _MOST_NUMBERS


def second_moments(blocks: Iterable[Block], frame: Frame) -> tuple[BigIntegers, BigIntegers]:
    """Return Σ z zᵀ and Σ z·y of integer rows, exactly; of weighted rows Σ a·z zᵀ and Σ a·z·y.

    No partial sum of a few thousand products is beyond 2^53, in any order.
    """
    features = frame.features
    most = max(1, (1 << EXACT) // max(frame.norm, CELLS) ** 2)
    total = np.zeros((features, features + 1), object)
    for times, block in (part for whole in blocks for part in whole.parts()):
        for start in range(0, len(block.labels), most):
            part = block.features[:, start : start + most]
            square = part @ part.T
            dense = square if isinstance(square, np.ndarray) else square.toarray()
            cross = np.asarray(part @ block.labels[start : start + most])
            total += times * np.column_stack((dense, cross)).astype(np.int64).astype(object)
    return total[:, :-1], total[:, -1]
