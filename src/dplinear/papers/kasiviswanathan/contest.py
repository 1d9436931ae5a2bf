"""Who takes part: learners of the library, on rows as they are or projected, and what they pay."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dplinear.arrays import Floats
from dplinear.convex.compression.images import Image
from dplinear.convex.compression.lift import lift
from dplinear.convex.compression.projections import Projection
from dplinear.convex.learners.contract import Task
from dplinear.convex.learners.whitened import DESCENTS
from dplinear.curator.examples import Rules, read_examples
from dplinear.noise import simulation
from dplinear.papers.kasiviswanathan.tables import Text
from dplinear.planner.compression import Situation, choose, usual_clip
from dplinear.privacy.guarantees import ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import CONSTRAINED

DELTA = 1e-6
TRIVIAL = "trivial"
SHORT = {
    "noisy_gradient": "gradient",
    "frank_wolfe": "Frank-Wolfe",
    "mirror_descent": "mirror",
    "objective_perturbation": "objective",
    "output_perturbation": "output",
}


@dataclass(frozen=True, order=True)
class Contestant:
    """A learner by name, and to how many dimensions rows are projected: 0 for not at all."""

    learner: str
    dimension: int = 0

    @property
    def title(self) -> str:
        """A short name to print, with the number of dimensions if there is one."""
        name = SHORT.get(self.learner, self.learner)
        return f"{name} {self.dimension}" if self.dimension else name


def guarantee(epsilon: float, *, pure: bool) -> PureDP | ApproxDP:
    """Return what is promised in a cell."""
    return PureDP(epsilon) if pure else ApproxDP(epsilon, DELTA)


def contestants(loss: str, dimensions: tuple[int, ...], *, pure: bool) -> Iterator[Contestant]:
    """Yield whoever can keep the guarantee with the loss.

    Learners whose noise has the length of its dimension, and whitening, whose Gram matrix is noisy,
    take part in few dimensions only: in more they are lost, and slow.
    """
    few = [m for m in dimensions if m <= 100]
    yield Contestant(TRIVIAL)
    yield Contestant("frank_wolfe")
    yield from (Contestant("frank_wolfe", m) for m in dimensions if m >= 100)
    if pure:
        yield from (Contestant("output_perturbation", m) for m in few)
        yield from (Contestant("exponential", m) for m in few[-1:])  # it costs d·m for each row
        return
    yield from (Contestant(name) for name in ("noisy_gradient", "mirror_descent"))
    yield from (Contestant("noisy_gradient", m) for m in dimensions)
    yield from (Contestant("mirror_descent", m) for m in dimensions if m >= 400)
    yield from (Contestant("whitened", m) for m in few if loss in DESCENTS)
    yield from (Contestant("objective_perturbation", m) for m in few)


def automatic(loss: str, rows: int, features: int, asked: Guarantee) -> Contestant:
    """Return what the planner chooses, where it may choose everything."""
    plan = choose(situation(loss, rows, features, asked))
    return Contestant(plan.learner, plan.dimension or 0)


def situation(loss: str, rows: int, features: int, asked: Guarantee) -> Situation:
    """Return what the planner is told: the number of rows, as an order of magnitude."""
    return Situation(features, asked, loss, listed=True, rows=float(rows))


class Ground:
    """One table, read once for each number of dimensions."""

    def __init__(self, text: Text, dimension: int, seed: int) -> None:
        features = text.base.dimension
        drawn = Projection("gaussian", dimension, features, seed) if dimension else None
        labels = {"classes": (-1, 1)} if text.loss.classes else {"target_bounds": (-1.0, 1.0)}
        clip = usual_clip(dimension) if dimension else 1.0
        rules = Rules(features=features, row_norm=1.0, projection=drawn, clip=clip, **labels)
        given = text.labels.astype(int) if text.loss.classes else text.labels
        self.text, self.dimension = text, dimension
        self.task = Task(rules.frame, text.loss, Image(text.base, drawn), float(len(given)))
        self.examples = read_examples(text.rows, given, rules, progress=False)

    def model(self, contestant: Contestant, asked: Guarantee, seed: int) -> Floats:
        """Return what a contestant releases, with the planner's settings for it."""
        features, rows = self.text.base.dimension, len(self.text.labels)
        if contestant.learner == TRIVIAL:
            return np.zeros(features)
        plan = choose(
            situation(self.text.loss.name, rows, features, asked),
            learner=contestant.learner,
            projection="gaussian" if self.dimension else None,
            dimension=self.dimension or None,
        )
        learner = CONSTRAINED[plan.learner](
            guarantee=asked, neighbours=Neighbours.ADD_REMOVE, **plan.options
        )
        learned = learner.prepare(self.task).run(self.examples, simulation.entropy(seed))
        if learned.source is not None:
            return learned.source
        return lift(self.task.image, learned.point).source
