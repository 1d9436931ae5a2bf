"""Table 1: how well k-means finds two clusters in rows that were made private."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from dplinear.analyst.rows.clusters import kmeans
from dplinear.analyst.rows.distance_errors import DistanceErrorModel
from dplinear.arguments import integer
from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.papers.dhaliwal.design import ROWS, SETTINGS, agreement, blobs
from dplinear.papers.dhaliwal.techniques import AFTER, BEFORE, TECHNIQUES, Draws, Technique

NONE = "no projection, no noise"
AWARE = (AFTER, BEFORE)
Watch = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True, eq=False)
class Study:
    """Accuracies: for each way, an array of shape (settings, repetitions), paired over ways."""

    settings: tuple[tuple[int, int], ...]
    accuracy: dict[str, Floats]

    def means(self, way: str) -> Floats:
        """Return the mean accuracy in each setting."""
        return np.asarray(self.accuracy[way].mean(1))

    def gain(self, way: str, other: str) -> tuple[Floats, Floats]:
        """Return the mean of paired differences of two ways, and its standard error."""
        apart = self.accuracy[way] - self.accuracy[other]
        count = apart.shape[1]
        return apart.mean(1), apart.std(1, ddof=1) / np.sqrt(count)


def aware(technique: Technique) -> str:
    """Return the name of noise-aware clusters of a technique's rows."""
    return f"{technique.name}, noise-aware"


def run(
    seed: int,
    *,
    repetitions: int = 200,
    rows: int = ROWS,
    settings: Sequence[tuple[int, int]] = SETTINGS,
    techniques: Sequence[Technique] = TECHNIQUES,
    noise_aware: Sequence[Technique] = AWARE,
    watch: Watch = iter,
) -> Study:
    """Cluster fresh tables: in each repetition one table, one projection, one draw of the noise.

    `watch` wraps the loop over repetitions, to show how far it is.
    """
    repetitions = integer(repetitions, "repetitions", "dhaliwal.run", low=2, high=2**16)
    found: dict[str, Floats] = {}
    # Tables this small are slower in several threads.
    with threadpool_limits(1):
        for repetition in watch(range(repetitions)):
            for index, (dimension, k) in enumerate(settings):
                own = simulation.generator((seed << 16 | repetition) << 8 | index)
                table = blobs(rows, dimension, own)
                draws = Draws.of(rows, dimension, k, own)
                plain = DistanceErrorModel("gaussian", dimension, dimension, 1e-18, "orthonormal")
                ways = {NONE: kmeans(table.rows, plain, 2)}
                for technique in techniques:
                    released = draws.release(table.rows, technique)
                    ways[technique.name] = kmeans(*released, 2)
                    if technique in noise_aware:
                        ways[aware(technique)] = kmeans(*released, 2, noise_aware=True)
                for way, clusters in ways.items():
                    cells = found.setdefault(way, np.empty((len(settings), repetitions)))
                    cells[index, repetition] = agreement(table.labels, clusters.labels)
    return Study(tuple(settings), found)
