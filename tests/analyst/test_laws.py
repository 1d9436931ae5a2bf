"""The laws' formulas against draws from the laws.

Every comparison allows 6.5 standard errors of its own average: at most 1e-10 by chance each, and
there are fewer than 10,000 of them (false-alarm rate 1e-6).
"""

from dataclasses import replace

import numpy as np
import pytest

from dplinear.analyst.noise_models.matrices import (
    InverseWishartNoise,
    NoiseModel,
    NoisyRows,
    ProjectionNoise,
    SketchNoise,
    SymmetricGaussian,
    WishartNoise,
)
from dplinear.arrays import Floats
from dplinear.noise.simulation import generator
from refusals import refused

ALLOWED = 6.5
DRAWS = 20_000
NOISE_MODELS = [
    SymmetricGaussian(2.0, 1.0),
    SymmetricGaussian(1.0, 3.0),
    WishartNoise(9.0, 0.7),
    WishartNoise(400.0, 0.1),
    SketchNoise(30.0, 0.0),
    SketchNoise(200.0, 4.0),
    ProjectionNoise(200.0, (0.0, 4.0, 1.0, 9.0, 0.5, *[2.0] * 7)),
    NoisyRows((0.0, 0.5, 1.0, 0.0, 2.0, *[1.0] * 7), 40),
    NoisyRows((1.0,) * 12, 14),
    InverseWishartNoise(60.0, 0.0),
    InverseWishartNoise(250.0, 4.0),
]


def sized(law: NoiseModel, dimension: int) -> NoiseModel:
    each = isinstance(law, ProjectionNoise | NoisyRows)
    return law.part(12, range(dimension)) if each else law


def table(dimension: int, seed: int = 4) -> Floats:
    half = generator(seed).standard_normal((3 * dimension, dimension))
    return np.asarray(half.T @ half)


def drawn(law: NoiseModel, gram: Floats, count: int = DRAWS, seed: int = 9) -> Floats:
    return law.draw(np.broadcast_to(gram, (count, *gram.shape)), generator(seed))


def symmetric(dimension: int, count: int) -> Floats:
    half = generator(2).standard_normal((count, dimension, dimension))
    return np.asarray(half + np.swapaxes(half, -1, -2))


def assert_mean(values: Floats, mean: Floats) -> None:
    error = values.std(0) / np.sqrt(len(values))
    assert (np.abs(values.mean(0) - mean) <= ALLOWED * error + 1e-9).all()


@pytest.mark.parametrize("law", NOISE_MODELS)
def test_unbiased_has_the_mean_of_the_true_matrix(law: NoiseModel) -> None:
    law, gram = sized(law, 4), table(4)
    assert_mean(law.unbiased_estimate(drawn(law, gram)), gram)


@pytest.mark.parametrize("law", NOISE_MODELS)
def test_variance_is_that_of_the_draws(law: NoiseModel) -> None:
    law, gram = sized(law, 4), table(4)
    noise = law.unbiased_estimate(drawn(law, gram)) - gram
    directions = symmetric(4, 5)
    along = np.einsum("nij,kij->nk", noise, directions)
    assert_mean(along**2, law.variance(directions, gram))


@pytest.mark.parametrize("law", NOISE_MODELS)
def test_sandwich_is_the_mean_of_noise_times_matrix_times_noise(law: NoiseModel) -> None:
    law, gram = sized(law, 4), table(4)
    noise = law.unbiased_estimate(drawn(law, gram)) - gram
    for middle in symmetric(4, 3):
        assert_mean(noise @ middle @ noise, law.sandwich(middle, gram))


@pytest.mark.parametrize("law", NOISE_MODELS)
def test_sandwich_agrees_with_variance(law: NoiseModel) -> None:
    law, gram = sized(law, 5), table(5)
    left, right = generator(1).standard_normal((2, 5))
    direction = (np.outer(left, right) + np.outer(right, left)) / 2
    sandwich = left @ law.sandwich(np.outer(right, right), gram) @ left
    assert np.isclose(sandwich, law.variance(direction, gram), rtol=1e-12)


@pytest.mark.parametrize("law", NOISE_MODELS)
def test_matrices_come_in_stacks(law: NoiseModel) -> None:
    law = sized(law, 4)
    grams = np.stack([table(4, seed) for seed in range(3)])
    middles = symmetric(4, 3)
    assert law.draw(grams, generator(0)).shape == (3, 4, 4)
    for stacked, one in (
        (law.sandwich(middles, grams), law.sandwich(middles[2], grams[2])),
        (law.variance(middles, grams), law.variance(middles[2], grams[2])),
        (law.unbiased_estimate(grams), law.unbiased_estimate(grams[2])),
        (law.positive(grams), law.positive(grams[2])),
    ):
        assert np.allclose(stacked[2], one, rtol=1e-12)


@pytest.mark.parametrize("law", NOISE_MODELS)
def test_the_released_matrix_is_positive_where_the_law_says_so(law: NoiseModel) -> None:
    law = sized(law, 4)
    matrices = law.positive(drawn(law, table(4), 200))
    if not isinstance(law, SymmetricGaussian):
        assert (np.linalg.eigvalsh(matrices) > 0).all()


@pytest.mark.parametrize("law", NOISE_MODELS)
def test_a_block_of_the_matrix_has_the_law_of_its_part(law: NoiseModel) -> None:
    law, gram = sized(law, 5), table(5)
    block = law.unbiased_estimate(drawn(law, gram))[:, 1:4, 1:4]
    part = law.part(5, [1, 2, 3])
    inner = gram[1:4, 1:4]
    assert_mean(block, inner)
    noise = block - inner
    middle = symmetric(3, 1)[0]
    assert_mean(noise @ middle @ noise, part.sandwich(middle, inner))
    released = drawn(law, gram, 1)[0]
    assert np.allclose(
        part.unbiased_estimate(released[1:4, 1:4]),
        law.unbiased_estimate(released)[1:4, 1:4],
        rtol=1e-9,
    )


@pytest.mark.parametrize("law", NOISE_MODELS)
@pytest.mark.parametrize("dominant", [False, True])
def test_spread_is_an_upper_estimate_of_the_spectral_norm(law: NoiseModel, dominant: bool) -> None:
    d = 12
    if isinstance(law, WishartNoise | InverseWishartNoise):
        law = replace(law, degrees=law.degrees + 3 * d)  # room for twelve columns
    gram = np.diag([1e3, *([1.0] * (d - 1))]) if dominant else 1e3 * np.eye(d)
    noise = law.unbiased_estimate(drawn(law, gram, 1_000)) - gram
    norm = float(np.abs(np.linalg.eigvalsh(noise)).max(-1).mean())
    assert norm <= law.spread(gram) <= (3.0 if dominant else 1.5) * norm


@pytest.mark.parametrize("law", NOISE_MODELS)
def test_a_law_is_plain_json_and_back(law: NoiseModel) -> None:
    assert NoiseModel.from_dict(law.to_dict()) == law


@pytest.mark.parametrize("noise", ["", 1.0, [-1.0], [float("nan")], ["1"]])
def test_ridges_are_numbers_of_at_least_zero(noise: object) -> None:
    with pytest.raises((TypeError, ValueError), match="'noise' parameter of ProjectionNoise"):
        NoiseModel.from_dict({"kind": "projection", "rows": 3.0, "noise": noise})


def test_a_law_whose_ridges_are_private_says_so() -> None:
    law = ProjectionNoise(5.0, None)
    assert not law.known
    assert law.part(3, [0]) == law
    assert NoiseModel.from_dict(law.to_dict()) == law
    for ask in (law.unbiased_estimate, law.spread):
        with refused("noise", "ProjectionNoise", "public for this"):
            ask(np.eye(2))


@pytest.mark.parametrize("content", [None, {}, {"kind": "cauchy"}, {"kind": "sketch", "rows": 3}])
def test_an_unknown_law_is_refused(content: object) -> None:
    with refused("content", "NoiseModel.from_dict"):
        NoiseModel.from_dict(content)


def test_inverse_wishart_without_a_variance_says_so() -> None:
    law = InverseWishartNoise(6.0, 0.0)
    assert np.isinf(law.variance(np.eye(4), np.eye(4)))
    assert np.isinf(law.sandwich(np.eye(4), np.eye(4))).all()
    assert law.pivot(4, 3).freedom == 0


@pytest.mark.parametrize("rows", [14.0, 60.0])
def test_the_pivot_of_a_sketch_is_that_of_least_squares(rows: float) -> None:
    d = 6
    law = SketchNoise(rows, 0.0)
    sketch = generator(3).standard_normal((int(rows), d))
    matrix = sketch.T @ sketch / rows
    inverse = np.linalg.inv(matrix[:-1, :-1])
    solution = inverse @ matrix[:-1, -1]
    contrast = np.append(-solution, 1.0)
    squares = float(np.square(sketch @ contrast).sum())
    textbook = squares / (rows - (d - 1)) * np.diag(inverse) / rows
    pivot = law.pivot(d, d - 1)
    noise = law.sandwich(np.outer(contrast, contrast), matrix)[:-1, :-1]
    assert pivot.freedom == rows - (d - 1)
    assert np.allclose(pivot.factor * np.diag(inverse @ noise @ inverse), textbook, rtol=1e-10)
