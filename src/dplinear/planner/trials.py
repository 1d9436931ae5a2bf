"""One simulated table, and what each learner makes of it, in each dimension that it may have."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from dplinear.arrays import Floats
from dplinear.convex.compression.images import Image
from dplinear.convex.compression.lift import lift_point
from dplinear.convex.compression.projections import Projection
from dplinear.convex.examples import Examples
from dplinear.convex.learners.contract import Task
from dplinear.convex.learners.whitened import DESCENTS
from dplinear.noise import simulation
from dplinear.planner.compression import DIRECT, Situation, choose, usual_clip
from dplinear.planner.populations import seed_of
from dplinear.planner.texts import Assumed, SimulatedTable, frame_of
from dplinear.privacy.guarantees import ApproxDP, Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import CONSTRAINED

DIMENSIONS = (50, 100, 400, 1000)
MOST_ENTRIES = 50_000_000  # of Φ, 400 MB
_FEW = 100  # dimensions, beyond which direct learners are lost, and slow
_SEED_BITS = 53  # of a projection's seed

Contestant = tuple[str, int | None]  # a learner by name, and its dimension if rows are projected


@dataclass(frozen=True, eq=False)
class Trial:
    """What is asked of each table of so many `rows`."""

    assumed: Assumed
    rows: int
    guarantee: Guarantee
    neighbours: Neighbours
    clip: float | None

    @property
    def situation(self) -> Situation:
        """What the planner's rule is told."""
        base = self.assumed.base
        listed, loss = base.atoms is not None, self.assumed.loss.name
        return Situation(base.dimension, self.guarantee, loss, listed, float(self.rows))

    def contestants(
        self, learners: Sequence[str] | None, dimensions: Sequence[int] | None
    ) -> list[Contestant]:
        """Return who takes part: all that is asked for, or what suits the guarantee and the loss.

        Direct learners, whose noise has the length of its dimension, have few dimensions unless
        others are asked for.
        """
        features = self.assumed.base.dimension
        fits = [m for m in DIMENSIONS if m < features and m * features <= MOST_ENTRIES]
        found: list[Contestant] = []
        for name in self._suitable_learners() if learners is None else learners:
            plain = name not in DIRECT or features <= _FEW
            plain &= name != "whitened" or self.assumed.nonzeros is None  # it needs dense rows
            usual = [m for m in fits if m <= _FEW or name not in DIRECT]
            found.extend([(name, None)] * plain)
            found.extend((name, m) for m in (usual if dimensions is None else dimensions))
        return list(dict.fromkeys(found))

    def _suitable_learners(self) -> Iterator[str]:
        situation = self.situation
        if situation.listed or not situation.pure:
            yield "frank_wolfe"
        if situation.pure:
            yield "output_perturbation"
            return
        yield "noisy_gradient"
        if isinstance(self.guarantee, ApproxDP):
            yield "objective_perturbation"
        if self.assumed.loss.name in DESCENTS:
            yield "whitened"

    def run(self, contestants: Sequence[Contestant], seed: int) -> tuple[float, Floats]:
        """Return the excess risk of the model that needs no data, and what each contestant did.

        That is a line for each: the excess risk in units of the former, and the seconds it took.
        """
        found = np.empty((len(contestants), 2))
        with threadpool_limits(1, "blas"):  # more threads only wait for each other
            table = SimulatedTable.draw(self.assumed, self.rows, seed_of("table", seed))
            trivial = table.excess(self.assumed.usual)
            for dimension in dict.fromkeys(m for _, m in contestants):
                start = time.perf_counter()
                drawn = self.projection(dimension, seed_of("map", seed))
                task = self.task(drawn)
                examples = table.examples(drawn, self._clip(drawn))
                reading = time.perf_counter() - start
                for index, (name, own) in enumerate(contestants):
                    if own != dimension:
                        continue
                    start = time.perf_counter()
                    model = self.model(name, task, examples, seed_of(name, dimension, seed))
                    seconds = time.perf_counter() - start
                    found[index] = table.excess(model) / trivial, reading + seconds
        return trivial, found

    def projection(self, dimension: int | None, seed: int) -> Projection | None:
        """Return a projection to so many dimensions, if any."""
        if dimension is None:
            return None
        features = self.assumed.base.dimension
        return Projection("gaussian", dimension, features, seed % (1 << _SEED_BITS))

    def _clip(self, projection: Projection | None) -> float:
        if projection is None:
            return 1.0
        return usual_clip(projection.target) if self.clip is None else self.clip

    def task(self, projection: Projection | None) -> Task:
        """Return what is public about the examples of a table."""
        base, rows = self.assumed.base, float(self.rows)
        frame = frame_of(base, projection, self._clip(projection))
        return Task(frame, self.assumed.loss, Image(base, projection), rows)

    def model(self, learner: str, task: Task, examples: Examples, seed: int) -> Floats:
        """Return what a learner releases, with the planner's settings for it."""
        given = task.image.map
        plan = choose(
            self.situation,
            learner=learner,
            projection=None if given is None else "gaussian",
            dimension=None if given is None else given.target,
        )
        kind = CONSTRAINED[plan.learner]
        made = kind(guarantee=self.guarantee, neighbours=self.neighbours, **plan.options)
        learned = made.prepare(task).run(examples, simulation.entropy(seed))
        return lift_point(task.image, learned.point, learned.source).source
