"""What is done to a matrix that noise made indefinite."""

import math
from typing import Any

import numpy as np
import pytest

from dplinear.analyst.noise_models.matrices import (
    InverseWishartNoise,
    SketchNoise,
    SymmetricGaussian,
    WishartNoise,
)
from dplinear.analyst.regression.repair import (
    METHODS,
    block_of,
    choose_repair,
    floor_eigenvalues,
    is_positive_definite,
    raise_diagonal,
    repair_matrix,
    subtract_noise_mean,
)
from dplinear.noise import simulation

GAUSSIAN = SymmetricGaussian(2.0, 1.0)
BENT = np.array([[3.0, 4.0], [4.0, 3.0]])  # eigenvalues 7 and -1


def test_nothing_is_done_to_a_clear_matrix() -> None:
    matrix = 100 * np.eye(3)
    for method in ("auto", "none", "scaled", "clipped", "floor"):
        found = repair_matrix(matrix, GAUSSIAN, method)
        assert (found.matrix == matrix).all()
        assert found.positive_definite
    assert repair_matrix(matrix, GAUSSIAN).method == "none"


def test_auto_shrinks_where_noise_swamps_a_direction() -> None:
    # The spread is 2√(2·1) = 2.83, and twice that is 5.66.
    assert choose_repair(block_of(5.67 * np.eye(2), GAUSSIAN, [0, 1])) == "none"
    assert choose_repair(block_of(5.65 * np.eye(2), GAUSSIAN, [0, 1])) == "shrunk"
    assert choose_repair(block_of(np.eye(2), SketchNoise(4, 1.0), [0, 1])) == "released"


def test_scaled_adds_the_noise_norm_only_to_an_indefinite_matrix() -> None:
    found = repair_matrix(BENT, GAUSSIAN, "scaled")
    assert found.matrix == pytest.approx(BENT + 2 * math.sqrt(2) * np.eye(2))
    assert found.positive_definite
    positive = np.array([[3.0, 2.9], [2.9, 3.0]])
    assert (repair_matrix(positive, GAUSSIAN, "scaled").matrix == positive).all()
    assert raise_diagonal(BENT, 0.5) == pytest.approx(BENT + 0.5 * np.eye(2))


def test_wishart_noise_is_removed_as_far_as_the_matrix_stays_positive() -> None:
    law = WishartNoise(100, 2.0)
    all_of_it = subtract_noise_mean(300 * np.eye(4), law, 1e-6)
    assert all_of_it == pytest.approx(100 * np.eye(4))
    edge = (10 - 2 - math.sqrt(2 * math.log(4e6))) ** 2
    some = subtract_noise_mean(150 * np.eye(4), law, 1e-6)
    assert some == pytest.approx((150 - 2 * edge) * np.eye(4))
    assert (
        subtract_noise_mean(2 * edge * 0.9 * np.eye(4), law, 1e-6) == 2 * edge * 0.9 * np.eye(4)
    ).all()
    # √k − √d − √(2 ln(4/δ)) is negative here: nothing may be subtracted.
    few = WishartNoise(9, 2.0)
    assert (subtract_noise_mean(10 * np.eye(4), few, 0.5) == 10 * np.eye(4)).all()
    assert repair_matrix(150 * np.eye(4), law, "scaled", delta=1e-6).matrix == pytest.approx(some)
    assert repair_matrix(150 * np.eye(4), law, "scaled", delta=1e-3).matrix[0, 0] < some[0, 0]


@pytest.mark.parametrize("law", [SketchNoise(8, 5.0), InverseWishartNoise(9, 5.0)])
def test_sketches_stay_as_released(law: Any) -> None:
    matrix = law.draw(20 * np.eye(4), simulation.generator(1))
    assert repair_matrix(matrix, law, "scaled").matrix == pytest.approx(law.positive(matrix))
    assert repair_matrix(matrix, law, "released").matrix == pytest.approx(law.positive(matrix))
    assert repair_matrix(matrix, law, "none").matrix == pytest.approx(law.unbiased_estimate(matrix))


def test_negative_eigenvalues_are_set_to_zero_or_one() -> None:
    values = np.linalg.eigvalsh(repair_matrix(BENT, GAUSSIAN, "clipped").matrix)
    assert values == pytest.approx([0.0, 7.0], abs=1e-12)
    assert np.linalg.eigvalsh(repair_matrix(BENT, GAUSSIAN, "floor").matrix) == pytest.approx(
        [1.0, 7.0]
    )
    nearest = floor_eigenvalues(BENT, 0.0)
    assert nearest == pytest.approx(np.full((2, 2), 3.5))
    assert (nearest == nearest.T).all()


def test_features_outside_a_regression_change_nothing_in_it() -> None:
    matrix = np.array([[100.0, 1, 9], [1, 100.0, 9], [9, 9, -50.0]])
    found = repair_matrix(matrix, GAUSSIAN, used=[0, 1])
    assert found.method == "none"
    assert (found.matrix == matrix).all()
    assert found.positive_definite
    whole = repair_matrix(matrix, GAUSSIAN)
    assert whole.method == "shrunk"
    assert whole.positive_definite


def test_a_block_of_an_inverse_wishart_has_fewer_degrees() -> None:
    law = InverseWishartNoise(30, 5.0)
    matrix = law.draw(np.diag([50.0, 60, 70, 80]), simulation.generator(2))
    block = block_of(matrix, law, [1, 3])
    assert isinstance(block.noise_model, InverseWishartNoise)
    assert block.noise_model.degrees == 28
    corner = np.ix_([1, 3], [1, 3])
    assert block.noise_model.unbiased_estimate(matrix[corner]) == pytest.approx(
        law.unbiased_estimate(matrix)[corner]
    )
    assert block.unbiased_estimate == pytest.approx(law.unbiased_estimate(matrix)[corner])
    assert block_of(matrix, GAUSSIAN, [0]).noise_model is GAUSSIAN


@pytest.mark.parametrize("method", sorted(METHODS))
def test_the_release_itself_is_never_changed(method: str) -> None:
    matrix = BENT.copy()
    matrix.flags.writeable = False
    found = repair_matrix(matrix, GAUSSIAN, method)
    assert (matrix == BENT).all()
    assert found.method == method
    assert not np.shares_memory(found.matrix, matrix)
    assert found.positive_definite == is_positive_definite(found.matrix)
