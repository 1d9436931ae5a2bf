"""Radial kernels of projected rows: one estimate without bias, one that says that it has some."""

import math

import numpy as np
import pytest

from dplinear.analyst.rows import kernels
from dplinear.analyst.rows.distance_errors import DistanceErrorModel
from dplinear.noise import simulation
from refusals import refused

EVERY = (np.arange(2), np.arange(2))


@pytest.mark.heavy
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("k", "bandwidth"), [(2, 1.0), (5, 2.0)])
def test_the_unbiased_kernel_has_the_kernel_as_its_mean(
    noise: str, k: int, bandwidth: float
) -> None:
    # Rows 0 and apart, released many times; each pair of rows (2i, 2i + 1) has a P of its own.
    generator = simulation.generator(2)
    count, d, scale, squared = 20_000, 3, 0.4, 2.0
    apart = np.array([1.0, -1.0, 0.0])
    images = np.einsum("d,rdk->rk", apart, generator.standard_normal((count, d, k)) / math.sqrt(k))
    draw = generator.laplace if noise == "laplace" else generator.normal
    one, two = draw(0, scale, (count, k)), images + draw(0, scale, (count, k))
    variance = scale**2 * (2 if noise == "laplace" else 1)
    law = DistanceErrorModel(noise, k, d, variance, "gaussian")
    found = np.empty(count)
    for start in range(0, count, 50):
        rows = np.concatenate([one[start : start + 50], two[start : start + 50]])
        places = (np.arange(50), np.arange(50, 100))
        matrix = kernels.kernel(rows, law, bandwidth, places, "unbiased")
        found[start : start + 50] = np.diag(matrix)
    true = math.exp(-squared / (2 * bandwidth**2))
    assert abs(found.mean() - true) < 5.5 * found.std() / math.sqrt(count)
    assert np.abs(found).max() <= kernels.amplification(law, bandwidth) * (1 + 1e-12)
    plug_in = np.exp(-np.maximum(((two - one) ** 2).sum(1) - law.offset, 0) / (2 * bandwidth**2))
    assert abs(plug_in.mean() - true) > 5.5 * plug_in.std() / math.sqrt(count)
    assert np.mean((plug_in - true) ** 2) < np.mean((found - true) ** 2)


def test_a_row_is_its_own_kernel_and_plug_ins_are_shares() -> None:
    rows = simulation.generator(0).standard_normal((30, 3))
    law = DistanceErrorModel("laplace", 3, 9, 0.5, "gaussian")
    every = np.arange(30)
    for method in kernels.METHODS:
        found = kernels.kernel(rows, law, 1.5, (every, every), method)
        np.testing.assert_array_equal(np.diag(found), 1.0)
        np.testing.assert_allclose(found, found.T, atol=1e-12)
    plug_in = kernels.kernel(rows, law, 1.5, (every, every))
    assert ((plug_in >= 0) & (plug_in <= 1)).all()


def test_equal_rows_are_as_near_as_can_be() -> None:
    law = DistanceErrorModel("laplace", 2, 9, 0.5, "gaussian")
    np.testing.assert_array_equal(kernels.kernel(np.ones((2, 2)), law, 1.0, EVERY), 1.0)
    assert math.isinf(
        kernels.amplification(DistanceErrorModel("gaussian", 2, 9, 1e6, "gaussian"), 1.0)
    )


@pytest.mark.parametrize(
    ("noise", "projection"),
    [("laplace", "orthonormal"), ("gaussian", "rademacher"), ("perturbed", "gaussian")],
)
def test_what_is_not_exact_is_refused(noise: str, projection: str) -> None:
    law = DistanceErrorModel(noise, 2, 9, 0.5, projection)
    with refused("noise_model", "amplification", hint="use method='plug-in', and mind its bias"):
        kernels.kernel(np.ones((2, 2)), law, 1.0, EVERY, "unbiased")
    with refused("bandwidth", "kernel"):
        kernels.kernel(np.ones((2, 2)), law, 0.0, EVERY)
    with refused("method", "kernel", "one of 'plug-in', 'unbiased'"):
        kernels.kernel(np.ones((2, 2)), law, 1.0, EVERY, "exact")
