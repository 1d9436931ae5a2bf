"""Likelihood ratios against SciPy's densities."""

from typing import Any

import numpy as np
from scipy import stats

from dplinear.analyst.noise_models.matrices import (
    InverseWishartNoise,
    SketchNoise,
    SymmetricGaussian,
    WishartNoise,
)
from dplinear.audit import densities
from dplinear.noise import simulation

D, N = 3, 5


def spread(seed: int) -> Any:
    rows = simulation.generator(seed).normal(size=(7, D))
    return rows.T @ rows


ONE, OTHER = spread(1), spread(2)


LAWS: Any = stats


def wishart_values(degrees: int, scale: Any) -> Any:
    roots = np.linalg.cholesky(scale) @ simulation.generator(5).normal(size=(N, D, degrees))
    return roots @ np.swapaxes(roots, 1, 2)


def test_normal_and_laplace() -> None:
    values = simulation.generator(4).normal(size=(N, D))
    a, b, variance = values[0], 2 * values[1], np.array([0.5, 1.0, 3.0])
    exact = [
        LAWS.norm.logpdf(x, a, variance**0.5).sum() - LAWS.norm.logpdf(x, b, variance**0.5).sum()
        for x in values
    ]
    np.testing.assert_allclose(densities.normal(values, a, b, variance), exact, rtol=1e-9)
    exact = [
        (LAWS.laplace.logpdf(x, a, 0.7) - LAWS.laplace.logpdf(x, b, 0.7)).sum() for x in values
    ]
    np.testing.assert_allclose(densities.laplace(values, a, b, 0.7), exact, rtol=1e-9)


def test_symmetric_gaussian_counts_each_entry_once() -> None:
    law = SymmetricGaussian(2.0, 1.0)
    values = wishart_values(5, np.eye(D))
    upper = np.triu_indices(D)
    sigma = np.where(upper[0] == upper[1], 2.0, 1.0) ** 0.5
    exact = [
        (LAWS.norm.logpdf(x[upper], ONE[upper], sigma)).sum()
        - (LAWS.norm.logpdf(x[upper], OTHER[upper], sigma)).sum()
        for x in values
    ]
    np.testing.assert_allclose(
        densities.symmetric_gaussian(values, ONE, OTHER, law), exact, rtol=1e-9
    )


def test_wishart_noise_is_positive_definite() -> None:
    law = WishartNoise(9, 2.0)
    near = ONE - 0.01 * np.eye(D)
    values = ONE + wishart_values(9, 2.0 * np.eye(D))
    noise = stats.wishart(9, 2.0 * np.eye(D))
    exact = [noise.logpdf(x - ONE) - noise.logpdf(x - near) for x in values]
    np.testing.assert_allclose(
        densities.wishart_noise(values, ONE, near, law), exact, rtol=1e-8, atol=1e-10
    )
    far = ONE + 1e6 * np.eye(D)
    assert np.isposinf(densities.wishart_noise(values, ONE, far, law)).all()
    assert np.isneginf(densities.wishart_noise(values, far, ONE, law)).all()
    assert (densities.wishart_noise(values, far, 2 * far, law) == 0).all()


def test_sketch_and_inverse_wishart() -> None:
    values = wishart_values(8, ONE)
    hidden = [gram + 0.5 * np.eye(D) for gram in (ONE, OTHER)]
    exact = [
        stats.wishart(8, hidden[0]).logpdf(8 * x) - stats.wishart(8, hidden[1]).logpdf(8 * x)
        for x in values
    ]
    found = densities.sketch(values, ONE, OTHER, SketchNoise(8, 0.5))
    np.testing.assert_allclose(found, exact, rtol=1e-8)
    exact = [
        stats.invwishart(8, hidden[0]).logpdf(x) - stats.invwishart(8, hidden[1]).logpdf(x)
        for x in values
    ]
    found = densities.inverse_wishart(values, ONE, OTHER, InverseWishartNoise(8, 0.5))
    np.testing.assert_allclose(found, exact, rtol=1e-8)


def test_every_law_has_a_density() -> None:
    assert set(densities.BY_NOISE_MODEL) == {
        SymmetricGaussian,
        WishartNoise,
        SketchNoise,
        InverseWishartNoise,
    }
