"""Tasks, examples and recorders for tests of learners."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dplinear.convex.compression.images import Image
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, Frame
from dplinear.convex.learners.contract import Task
from dplinear.convex.losses import HingeLoss, HuberLoss, LogisticLoss, Loss, SquaredLoss
from dplinear.convex.sets import Box, ConvexSet, GroupBall, L1Ball, L2Ball, Polytope, Simplex
from dplinear.noise import simulation

LOSSES: dict[str, Loss] = {
    "squared": SquaredLoss(),
    "huber": HuberLoss(),
    "logistic": LogisticLoss(),
    "hinge": HingeLoss(),
}


class Matrix:
    """A public linear map."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.target, self.source = matrix.shape

    def forward(self, vector: Any) -> Any:
        return self.matrix @ vector

    def adjoint(self, vector: Any) -> Any:
        return self.matrix.T @ vector


def sets(dimension: int) -> dict[str, ConvexSet]:
    corners = simulation.generator(4).normal(size=(9, dimension))
    return {
        "l1": L1Ball(dimension, 1.5),
        "l2": L2Ball(dimension, 1.2),
        "simplex": Simplex(dimension, 1.0),
        "groups": GroupBall(np.arange(dimension) // 2, 1.3),
        "polytope": Polytope(corners),
        "box": Box(np.full(dimension, -0.4), np.full(dimension, 0.7)),
    }


def image_of(kind: str, dimension: int, target: int | None = None) -> Image:
    base = sets(dimension)[kind]
    if target is None:
        return Image(base)
    return Image(
        base, Matrix(simulation.generator(6).normal(size=(target, dimension)) / target**0.5)
    )


def examples_of(frame: Frame, features: Any, labels: Any, block: int = 64) -> Examples:
    """Rows of features, shortened to the frame's reach, and labels within ±1."""
    lengths = np.maximum(np.linalg.norm(features, axis=1) * CELLS / frame.norm, 1.0)[:, None]
    cells = np.trunc(features / lengths * CELLS * (1 - 2.0**-40))
    rows = np.vstack((cells.T, np.rint(np.clip(labels, -1, 1) * CELLS)))
    assert all(sum(int(z) ** 2 for z in row[:-1]) <= frame.norm**2 for row in rows.T)
    blocks = [Block.dense(rows[:, at : at + block]) for at in range(0, rows.shape[1], block)]
    return Examples(frame, blocks)


def made(task: Task, count: int, seed: int = 1, noise: float = 0.05) -> tuple[Examples, Any, Any]:
    """Examples whose margins a point of the set explains, but for noise: with their numbers."""
    random = simulation.generator(seed)
    features = random.normal(size=(count, task.frame.features))
    features *= (task.frame.reach / np.linalg.norm(features, axis=1))[:, None]
    towards = random.normal(size=task.image.dimension)
    place = 0.7 * task.image.forward(task.image.minimiser(towards))
    margins = features @ place
    labels = np.clip(margins + noise * random.normal(size=count), -1, 1)
    if task.loss.classes:
        labels = np.where(random.random(count) < 1 / (1 + np.exp(-4 * margins)), 1.0, -1.0)
    return examples_of(task.frame, features, labels), features, labels


def task_of(
    kind: str = "l1",
    loss: str = "squared",
    dimension: int = 5,
    target: int | None = None,
    reach: float = 1.0,
) -> Task:
    image = image_of(kind, dimension, target)
    return Task(Frame(image.dimension, reach), LOSSES[loss], image)


class Recorded:
    """Examples that remember what was asked of them."""

    denominator = 1

    def __init__(self, examples: Examples) -> None:
        self.examples = examples
        self.asked: list[Any] = []

    def sums(self, statistics: Sequence[Any]) -> list[Any]:
        self.asked.extend(statistics)
        return self.examples.sums(statistics)

    def blocks(self) -> Iterator[Block]:
        raise AssertionError("These learners ask for sums alone.")


def rows_of(examples: Examples) -> Any:
    return np.concatenate([block.rows for block in examples.blocks() if block.rows is not None], 1)


def with_rows(frame: Frame, rows: Any, block: int = 50) -> Examples:
    return Examples(
        frame, [Block.dense(rows[:, at : at + block]) for at in range(0, rows.shape[1], block)]
    )


def risk(task: Task, features: Any, labels: Any, place: Any) -> float:
    return float(task.loss.values(features @ place, labels).mean())


def shortfall(task: Task, features: Any, labels: Any, source: Any) -> float:
    """Return a bound on how much risk is above the least in the set, by duality.

    The loss is convex, so it is at most ⟨gradient, θ − the minimiser of that over C⟩.
    """
    margins = features @ task.image.forward(source)
    gradient = task.loss.slopes(margins, labels) @ features / len(labels)
    gradient = task.image.adjoint(gradient)
    return float(gradient @ (source - task.image.base.minimiser(gradient)))
