"""Whitened coordinates and the frame they are in: properties and limits."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dplinear.arrays import Floats
from dplinear.descent import whitening
from dplinear.descent.frame import Frame
from dplinear.descent.whitening import Whitening, plain
from dplinear.exact.design import Design
from dplinear.exact.shape import Shape

Seeded = Callable[[int], Any]


def gram_of(random: Any, size: int, rows: int = 5000, condition: float = 100.0) -> Floats:
    """The Gram matrix of rows whose directions differ in length."""
    lengths = np.geomspace(1, 1 / math.sqrt(condition), size)
    turn = np.linalg.qr(random.normal(size=(size, size)))[0]
    samples = random.normal(size=(rows, size)) * lengths @ turn
    return np.asarray(samples.T @ samples)


def noise_of(random: Any, size: int, sigma: float) -> Floats:
    """Symmetric noise: σ on the diagonal, σ/√2 off it."""
    drawn = random.normal(0, sigma, (size, size))
    return np.asarray((drawn + drawn.T) / 2)


def white(gram: Floats, sigma: float, trace: float | None = None) -> Whitening:
    expected = float(np.trace(gram)) if trace is None else trace
    return whitening.whitening(gram, sigma, expected, 1e-3 * expected)


# Whitening


@pytest.mark.parametrize("size", [2, 5, 40])
@pytest.mark.parametrize("off", [1.0, 0.7, 1.4])
def test_a_matrix_without_noise_becomes_the_identity(
    size: int, off: float, generator: Seeded
) -> None:
    """Whatever the count says: where the noise is nothing, the matrix has the last word."""
    gram = gram_of(generator(size), size)
    found = white(gram, 1e-7, off * float(np.trace(gram)))
    inside = found.matrix.T @ gram @ found.matrix
    assert inside == pytest.approx(np.eye(size), abs=1e-6)
    assert found.expected == pytest.approx(np.ones(size), abs=1e-6)
    assert found.most == pytest.approx(np.ones(size), abs=1e-6)
    assert found.seen == 1
    assert found.dimension == pytest.approx(size, rel=1e-6)


@pytest.mark.parametrize("sigma", [1e-3, 30.0, 300.0, 3e4])
def test_turned_rows_have_turned_coordinates(sigma: float, generator: Seeded) -> None:
    random = generator(11)
    gram = gram_of(random, 8) + noise_of(random, 8, sigma)
    turn = np.linalg.qr(random.normal(size=(8, 8)))[0]
    trace = float(np.trace(gram_of(generator(11), 8)))
    one, two = white(gram, sigma, trace), white(turn @ gram @ turn.T, sigma, trace)
    assert two.seen == pytest.approx(one.seen, abs=1e-9)
    assert two.expected == pytest.approx(one.expected, rel=1e-7)
    assert two.most == pytest.approx(one.most, rel=1e-7)
    product = turn @ one.matrix @ one.matrix.T @ turn.T
    scale = float(np.abs(product).max())
    assert two.matrix @ two.matrix.T == pytest.approx(product, abs=1e-7 * scale)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_do_not_matter(factor: float, generator: Seeded) -> None:
    random = generator(12)
    gram = gram_of(random, 6) + noise_of(random, 6, 50.0)
    one = whitening.whitening(gram, 50.0, 9000.0, 20.0)
    two = whitening.whitening(factor * gram, factor * 50.0, factor * 9000.0, factor * 20.0)
    assert two.seen == pytest.approx(one.seen)
    assert two.expected == pytest.approx(one.expected)
    assert two.most == pytest.approx(one.most)
    same = np.abs(math.sqrt(factor) * two.matrix)  # vectors are known up to their signs
    assert same == pytest.approx(np.abs(one.matrix), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("size", [10, 40])
def test_in_noise_alone_all_directions_are_alike(size: int, generator: Seeded) -> None:
    """The squares of noise pass what is expected of them, and by little, only now and then."""
    random = generator(13)
    seen, spread = [], []
    for _ in range(60):
        sigma, mean = 100.0, 1.0
        gram = mean * np.eye(size) + noise_of(random, size, sigma)
        found = whitening.whitening(gram, sigma, size * mean, 0.01)
        lengths = np.linalg.svd(found.matrix, compute_uv=False)
        seen.append(found.seen)
        spread.append(float(lengths.max() / lengths.min()))
        assert found.seen < 1
        if not found.seen:
            assert lengths == pytest.approx(np.full(size, lengths[0]))
            assert found.expected == pytest.approx(np.ones(size))
    assert np.mean(seen) < 0.1
    assert np.median(spread) < 1.01


def test_a_matrix_that_drowns_gives_plain_coordinates_by_and_by(generator: Seeded) -> None:
    random = generator(14)
    gram = gram_of(random, 10)
    noise = noise_of(random, 10, 1.0)
    trace = float(np.trace(gram))
    found = [white(gram + sigma * noise, sigma, trace) for sigma in np.geomspace(1e-4, 1e7, 40)]
    seen = [one.seen for one in found]
    assert (seen[0], seen[-1]) == (1, 0)
    last = np.abs(np.linalg.svd(found[-1].matrix, compute_uv=False))
    assert last == pytest.approx(np.full(10, math.sqrt(10 / trace)), rel=0.05)
    for one in found:
        assert np.isfinite(one.matrix).all()
        assert 0 <= one.seen <= 1
        assert (one.expected > 0).all()
        assert (one.expected <= 1 + 1e-12).all()
        assert (one.most > 0).all()
        assert (one.most <= whitening.MOST_CURVATURE).all()
        assert 0 < one.dimension <= 10 + 1e-9


def test_expected_is_what_the_matrix_holds_where_it_is_seen(generator: Seeded) -> None:
    """Of strong directions next to all is expected, of hidden ones little; `most` is no less."""
    random = generator(15)
    exact = np.diag([1e6, 1e6, 1e5, 1.0, 1.0, 1.0])
    for _ in range(20):
        found = white(exact + noise_of(random, 6, 1e3), 1e3, float(np.trace(exact)))
        inside = np.diag(found.matrix.T @ exact @ found.matrix)
        order = np.argsort(found.expected)
        assert (found.expected[order[-3:]] > 0.9).all()
        assert (found.expected[order[:3]] < 0.8).all()
        assert inside[order[-3:]] == pytest.approx(found.expected[order[-3:]], abs=0.1)
        assert (inside <= 1.05 * found.most).all()


def test_traces_are_weighed_by_their_precision() -> None:
    """Size times σ² is the variance of the noisy one: as doubtful a count has half the say."""
    values = np.full(16, 30.0 / 16)
    found = whitening._trace(values, sigma=1e3, expected=10.0, count_error=4e3)
    assert found == pytest.approx(20.0, rel=1e-5)
    assert whitening._trace(values, 1e-6, 10.0, 4e3) == pytest.approx(30.0)
    assert 0 < whitening._trace(-values, 1e-6, 10.0, 4e3) < 10.0


def surprise(random: Any, sigma: float) -> float:
    """How far what a direction holds is from what is expected of it, on average."""
    exact = np.diag(np.geomspace(1000, 30, 20))
    off = []
    for _ in range(30):
        found = white(exact + noise_of(random, 20, sigma), sigma, float(np.trace(exact)))
        inside = np.diag(found.matrix.T @ exact @ found.matrix)
        off.append(np.abs(inside - found.expected).mean())
    return float(np.mean(off))


def test_what_noise_does_to_eigenvalues_is_undone(
    generator: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned = surprise(generator(20), 5.0)
    monkeypatch.setattr(whitening, "clean_eigenvalues", lambda values, _: (values, 1.0))
    assert cleaned < 0.9 * surprise(generator(20), 5.0)


def test_plain_coordinates_are_scaled_alike() -> None:
    found = plain(4, 25.0)
    assert found.matrix.T @ (25.0 * np.eye(4)) @ found.matrix == pytest.approx(np.eye(4))
    assert (found.dimension, found.seen) == (4, 0)
    assert (found.most >= found.expected).all()


@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_lowered_values_add_up_to_the_total(size: int, generator: Seeded) -> None:
    random = generator(16)
    for _ in range(50):
        values = np.sort(random.normal(0, 10, size))
        total = float(random.choice([1e-6, 1.0, 30.0, 1e4]))
        found = whitening._lower(values, total)
        assert found.sum() == pytest.approx(total, rel=1e-8)
        assert (found >= 0).all()
        assert (np.diff(found) >= 0).all()
        kept = found > 0
        taken = (values - found)[kept]
        assert taken == pytest.approx(np.full(kept.sum(), taken[0]), abs=1e-9 * (total + 100))
        assert (values[~kept] <= taken[0] + 1e-9).all()


# The frame


def frame_of(random: Any, *, intercept: bool) -> Frame:
    """Features and target in any order; the intercept's cell somewhere among them."""
    features = (4, 0, 6, 2) if intercept else (1, 5, 0)
    shape = Shape(7, 1000, 12)
    design = Design(shape, features, 3, 4, 1, intercept, (False,) * len(features))
    middle = random.normal(size=len(features) - intercept)
    return Frame(design, middle, float(random.normal()), float(random.uniform(0.2, 2)))


@pytest.mark.parametrize("intercept", [True, False])
def test_maps_agree_with_the_algebra(*, intercept: bool, generator: Seeded) -> None:
    random = generator(17)
    frame = frame_of(random, intercept=intercept)
    design, size = frame.design, frame.design.dimension
    cells = random.uniform(-1, 1, (7, 30))
    coefficients = random.normal(size=size)
    features, target = cells[list(design.features)], cells[3]
    if intercept:
        cells[4] = 1.0
        centred = cells[[0, 6, 2]] - frame.middle[:, None]
        rows = np.vstack((np.full(30, frame.constant), centred))
        goal = target - frame.target_mean
    else:
        centred = rows = features
        goal = target
    assert frame.matrix @ cells == pytest.approx(rows)
    assert frame.features @ cells == pytest.approx(centred)
    assert frame.residual(coefficients) @ cells == pytest.approx(goal - coefficients @ rows)
    own = cells[list(design.features)]
    predicted = target - frame.residual(coefficients) @ cells
    assert frame.readout(coefficients) @ own == pytest.approx(predicted)
    # What no feature takes part in has no weight.
    others = sorted(set(range(7)) - set(design.features) - {3})
    assert not frame.residual(coefficients)[others].any()
    assert not frame.matrix[:, [*others, 3]].any()


@pytest.mark.parametrize("intercept", [True, False])
def test_the_spread_is_that_of_models_read_out(*, intercept: bool, generator: Seeded) -> None:
    random = generator(18)
    frame = frame_of(random, intercept=intercept)
    size = frame.design.dimension
    root = random.normal(size=(size, size))
    # The readout is affine, so its slope is exact from differences.
    start = frame.readout(np.zeros(size))
    slope = np.column_stack([frame.readout(unit) - start for unit in np.eye(size)])
    assert frame.spread(root @ root.T) == pytest.approx(slope @ root @ root.T @ slope.T)


def test_a_flat_model_predicts_the_goal(generator: Seeded) -> None:
    frame = frame_of(generator(19), intercept=True)
    assert frame.readout(np.zeros(4)).tolist() == [frame.target_mean, 0, 0, 0]
    assert not frame_of(generator(19), intercept=False).readout(np.zeros(3)).any()
