import numpy as np
import pytest

from dplinear.analyst.noise_models.matrices import (
    InverseWishartNoise,
    SketchNoise,
    SymmetricGaussian,
    WishartNoise,
)
from dplinear.analyst.regression.shrinkage import (
    clean_eigenvalues,
    cleaned_matrix,
    noise_scale,
    shrunken_coefficients,
)
from dplinear.noise import simulation


def noise(d: int, sigma: float, seed: int) -> np.ndarray:
    law = SymmetricGaussian(sigma**2, sigma**2 / 2)
    return law.draw(np.zeros((d, d)), simulation.generator(seed))


def table(n: int, d: int, seed: int, tilt: float = 1.0) -> np.ndarray:
    rows = simulation.generator(seed).standard_normal((n, d)) * np.geomspace(1, tilt, d)
    return np.asarray(rows.T @ rows)


def test_scale_of_the_noise_is_known_where_it_does_not_depend_on_the_table() -> None:
    assert noise_scale(SymmetricGaussian(4.0, 2.0)) == pytest.approx(2.0)
    # Off the diagonal its variance is kτ⁴, half of the diagonal's.
    assert noise_scale(WishartNoise(50.0, 3.0)) == pytest.approx(np.sqrt(2 * 50.0) * 3.0)
    assert noise_scale(SketchNoise(40.0, 1.0)) is None
    assert noise_scale(InverseWishartNoise(40.0, 1.0)) is None


def test_cleaning_pure_noise_leaves_next_to_nothing() -> None:
    noisy = noise(60, 1.0, 1)
    values, left = clean_eigenvalues(np.linalg.eigvalsh(noisy), 1.0)
    assert np.square(values).mean() < 0.2 * np.square(np.linalg.eigvalsh(noisy)).mean()
    assert left < 0.3


def test_cleaning_beats_clipping_on_a_noisy_matrix() -> None:
    truth = table(200, 40, 2, 0.1)
    noisy = truth + noise(40, 10.0, 3)
    values, vectors = np.linalg.eigh(noisy)
    clipped = (vectors * np.maximum(values, 0)) @ vectors.T
    better, _ = cleaned_matrix(noisy, 10.0)
    assert np.linalg.norm(better - truth) < 0.9 * np.linalg.norm(clipped - truth)
    assert np.linalg.eigvalsh(better)[0] > 2.49


def test_filtered_coefficients_are_least_squares_without_noise() -> None:
    truth = table(500, 8, 4)
    wanted = np.linalg.solve(truth[:6, :6], truth[:6, 6:])
    for sigma, within in ((1e-1, 1e-3), (1e-4, 1e-6)):
        assert shrunken_coefficients(truth, sigma, 6) == pytest.approx(wanted, abs=within)


def test_filtered_coefficients_vanish_in_noise_and_stay_finite() -> None:
    assert (np.abs(shrunken_coefficients(noise(8, 100.0, 5), 100.0, 6)) < 1.0).all()
    assert (shrunken_coefficients(-np.eye(4), 1.0, 3) == 0).all()


def test_filtering_is_continuous_and_knows_no_units() -> None:
    noisy = table(300, 10, 6, 0.2) + noise(10, 20.0, 7)
    here = shrunken_coefficients(noisy, 20.0, 9)
    assert shrunken_coefficients(1e6 * noisy, 2e7, 9) == pytest.approx(here, abs=1e-9)
    assert shrunken_coefficients(noisy + 1e-7 * noise(10, 1.0, 8), 20.0, 9) == pytest.approx(
        here, abs=1e-6
    )


def test_filtering_is_far_better_than_solving_what_noise_left() -> None:
    truth = table(400, 12, 9, 0.1)
    beta = np.linalg.solve(truth[:11, :11], truth[:11, 11])
    plain, shrunk = [], []
    for seed in range(30):
        noisy = truth + noise(12, 15.0, 100 + seed)
        plain.append(np.linalg.norm(np.linalg.solve(noisy[:11, :11], noisy[:11, 11]) - beta))
        shrunk.append(np.linalg.norm(shrunken_coefficients(noisy, 15.0, 11)[:, 0] - beta))
    assert np.median(shrunk) < 0.5 * np.median(plain)
