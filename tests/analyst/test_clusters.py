"""Clusters of released rows."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from dplinear.analyst.rows.clusters import kmeans
from dplinear.analyst.rows.distance_errors import DistanceErrorModel
from dplinear.noise import simulation
from refusals import refused

LAW = DistanceErrorModel("laplace", 2, 5, 0.5, "gaussian")


def oblong(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two clusters, apart in the direction in which they are thin, with Laplace noise."""
    generator = simulation.generator(seed)
    labels = generator.integers(0, 2, 600)
    rows = generator.standard_normal((600, 2)) * [6.0, 0.3]
    rows[:, 1] += 5 * labels
    return rows + generator.laplace(0, 0.5, rows.shape), labels


def agreement(one: np.ndarray, two: np.ndarray) -> float:
    share = float(np.mean(one == two))
    return max(share, 1 - share)


def test_plain_clusters_are_those_of_scikit_learn() -> None:
    rows, _ = oblong()
    found = kmeans(rows, LAW, 3, seed=4)
    peer = KMeans(3, n_init=5, random_state=4).fit(rows)
    np.testing.assert_array_equal(found.labels, peer.labels_)
    np.testing.assert_array_equal(found.centres, peer.cluster_centers_)
    assert found.inertia == pytest.approx(peer.inertia_)
    assert found.noise == 2 * 0.5 * 597
    assert repr(found).startswith("3 clusters by k-means, of [")


def test_oblong_clusters_need_the_mixture() -> None:
    rows, labels = oblong()
    plain, aware = kmeans(rows, LAW, 2), kmeans(rows, LAW, 2, noise_aware=True)
    assert (plain.kind, aware.kind) == ("k-means", "mixture")
    assert agreement(plain.labels, labels) < 0.6
    assert agreement(aware.labels, labels) > 0.95
    again = kmeans(rows, LAW, 2, noise_aware=True)
    np.testing.assert_array_equal(again.labels, aware.labels)


@pytest.mark.parametrize("seed", range(8))
def test_a_mixture_is_not_believed_where_there_is_one_cluster(seed: int) -> None:
    generator = simulation.generator(seed)
    rows = generator.standard_normal((300, 2)) + generator.laplace(0, 0.5, (300, 2))
    assert kmeans(rows, LAW, 2, noise_aware=True).kind == "k-means"


@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize(("rows", "clusters"), [(1, 1), (2, 2), (3, 2), (50, 1), (50, 3)])
def test_few_or_equal_rows_are_clustered_all_the_same(
    rows: int, clusters: int, aware: bool
) -> None:
    found = kmeans(np.ones((rows, 2)), LAW, clusters, noise_aware=aware)
    assert found.labels.shape == (rows,)
    assert found.centres.shape == (clusters, 2)
    assert np.isfinite(found.centres).all()


@pytest.mark.parametrize("clusters", [0, 5, 1.5])
def test_there_are_as_many_clusters_as_rows_at_the_most(clusters: float) -> None:
    with refused("clusters", "kmeans"):
        kmeans(np.ones((4, 2)), LAW, clusters)  # type: ignore[arg-type]
