"""The exponential mechanism: a model drawn with probability ∝ exp(−unit·loss), where that is exact.

McSherry and Talwar 2007 (FOCS). A row adds between a and a + W to the loss of any model; so the
density of a model is changed by a factor of at most exp(unit·W), normalisation included: unit = ε/W
for one row more or less, and ε/2W for one replaced, without the factor 2 of the general theorem.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.convex.compression.images import Image
from dplinear.convex.example_blocks import CELLS
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
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.noise import ball, selection
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.laplace import Pure
from dplinear.privacy.rounding import down, up

_WHERE = "Exponential"
_MOST_FEATURES = 2048  # for the ball: eigenvectors take the cube of it
_MOST_NUMBERS = 1 << 26  # of all extreme points: 512 MiB
_LEAST_SPREAD = 2.0**-40  # of losses that are differences of numbers of about 1
_FLAT = 1e-12  # of the largest eigenvalue of ΦΦᵀ: below it Φ has no such direction


@dataclass(frozen=True, kw_only=True)
class Exponential(ConstrainedMechanism):
    """A model drawn by its loss: one of finitely many extreme points, or any point of a ball.

    Requires: a PureDP guarantee. Either a set whose extreme points can be listed, with any loss:
    one of them is drawn, on integers. Or the squared loss and an L2 ball: the density is then a
    normal law cut off at the image of the ball, and is drawn by rejection.
    Promises: pure ε, with no cap on tries, so that there is no failure to account for. Anything
    else would need Markov chains, which stop before they have the law that they promise: refused.
    """

    name: ClassVar[str] = "exponential"
    numerics: ClassVar[str] = "idealised"

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
        low, high = extremes(task.loss, reach)
        if high - low < (2.0**-900 if isinstance(task.loss, SquaredLoss) else _LEAST_SPREAD):
            rule = "larger: float64 cannot tell the losses of such small margins apart"
            raise arguments.rejection("image", _WHERE, rule, f"a radius of {image.radius:.3g}")
        atoms = image.atoms if _has_atoms(image) else None
        if atoms is not None:
            return PreparedSelection(task, account, atoms, reach, epsilon / steps)
        squared = isinstance(task.loss, SquaredLoss) and isinstance(image.base, L2Ball)
        if squared and task.frame.features <= _MOST_FEATURES:
            unit = down(float(epsilon / steps) / up(high - low, 64), 8)
            return PreparedBall(task, account, image.base.radius, unit)
        rule = (
            f"one with extreme points that are at most {_MOST_NUMBERS} numbers, or an L2 ball in "
            f"at most {_MOST_FEATURES} dimensions with the squared loss"
        )
        hint = "no other density can be drawn from exactly; output_perturbation is pure as well."
        shown = f"{image.base.name} in {image.dimension} dimensions, {task.loss.name} loss"
        raise arguments.rejection("image", _WHERE, rule, shown, hint)


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
        index = selection.draw(-sums, self.rate / losses.spread, entropy=entropy)
        place = atoms.columns([index])[:, 0]
        corners = task.image.base.atoms
        source = place if corners is None else corners.columns([index])[:, 0]
        facts = {"candidates": losses.size, "spread": float(losses.spread * losses.unit)}
        return Learned(place, source, self.account, facts)


@dataclass(frozen=True, eq=False)
class PreparedBall(PreparedConstrained):
    """A draw from a normal law cut off at the image of a ball: `unit` multiplies the loss."""

    task: Task
    account: Account
    radius: float
    unit: float

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Add up second moments, and draw in coordinates in which the image is a ball."""
        gram, cross = _moments(examples, self.task.frame.features)
        values, vectors = self.task.image.spectrum
        kept = values > _FLAT * values[-1]
        root = vectors[:, kept] * np.sqrt(values[kept])
        curvatures, axes = np.linalg.eigh(root.T @ gram @ root)
        slopes = axes.T @ (root.T @ cross)
        drawn = ball.truncated_normal(
            self.unit * np.maximum(curvatures, 0.0),
            self.unit * slopes,
            self.radius,
            entropy=entropy,
        )
        nearest = self.task.image.project(np.asarray(root @ (axes @ drawn)))
        return Learned(nearest.place, nearest.source, self.account, {"unit": self.unit})


def _has_atoms(image: Image) -> bool:
    """Return whether the image has extreme points few enough to hold, and to draw from."""
    if image.atoms is None or image.atoms.total > selection.MOST:
        return False
    return image.atoms.count * image.dimension <= _MOST_NUMBERS


def _moments(examples: Passes, features: int) -> tuple[Floats, Floats]:
    """Return Σ z zᵀ and Σ z·y."""
    gram, cross = np.zeros((features, features)), np.zeros(features)
    for block in examples.blocks():
        square = block.features @ block.features.T
        gram += square if isinstance(square, np.ndarray) else square.toarray()
        cross += np.asarray(block.features @ block.labels)
    return gram / CELLS**2, cross / CELLS**2
