"""Examples: gradients exact against Python's numbers, in any blocks, dense or sparse."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, Frame, SlopeSum
from dplinear.convex.losses import LOSSES, HuberLoss, SquaredLoss
from dplinear.exact import totals
from dplinear.exact.row_sums import ClippedGram, Count
from exact.oracles import square
from refusals import refused

Seeded = Callable[[int], Any]
REACHES = (0.25, 1.0, 1.5, 8.0)


def scalar_logistic(margin: float, label: float) -> float:
    """The slope in Python's own floats, operation by operation, as docs/exact-pass.md has it."""
    small = min(abs(margin), 32.0) / 1024
    odds = 1.0
    for term in (7, 6, 5, 4, 3, 2, 1):
        odds = 1.0 - odds * small * (1.0 / term)
    for _ in range(10):
        odds *= odds
    size = (odds if (margin >= 0) == (label > 0) else 1.0) / (1.0 + odds)
    return -size if label > 0 else size


def scalar_hinge(margin: float, label: float) -> float:
    sign = 1.0 if label > 0 else -1.0
    return -sign if sign * margin < 1 else 0.0


SLOPES: dict[str, Callable[[float, float], float]] = {
    "squared": lambda margin, label: 2.0 * (margin - label),
    "huber": lambda margin, label: max(-0.25, min(0.25, margin - label)),
    "logistic": scalar_logistic,
    "hinge": scalar_hinge,
}


def oracle(total: SlopeSum, rows: Any) -> list[int]:
    """The gradient, row by row, in Python's integers; a slope's unit is that of the sum."""
    weights = [int(weight) for weight in total.integers]
    steps_to_one = 1 / (total.unit * CELLS)
    result = [0] * total.size
    for row in rows.T:
        *features, label = (int(entry) for entry in row)
        exact = sum(a * b for a, b in zip(weights, features, strict=True))
        margin = float(Fraction(exact) * Fraction(2) ** -total.scale / CELLS)
        slope = SLOPES[total.loss.name](margin, label / CELLS)
        step = max(-total.steepest, min(total.steepest, round(Fraction(slope) * steps_to_one)))
        result = [sum_ + step * x for sum_, x in zip(result, features, strict=True)]
    return result


def rows_of(random: Any, frame: Frame, count: int) -> Any:
    """Features up to the longest allowed, some few, some zero; then a label."""
    features = random.normal(size=(frame.features, count))
    features[:, ::4] *= random.random(features[:, ::4].shape) < 0.1
    lengths = np.maximum(np.linalg.norm(features, axis=0), 1e-9)
    sizes = random.choice([0.0, 1e-3, 1.0, 1.0], count) * (frame.norm - 1)
    features = np.trunc(features / lengths * sizes)
    labels = np.rint(random.choice([-1.0, -0.3, 0.0, 0.7, 1.0], count) * CELLS)
    assert max(square(row) for row in features.T) <= frame.norm**2
    return np.vstack((features, labels))


def blocks(rows: Any, size: int, *, thin: bool) -> list[Block]:
    parts = [rows[:, at : at + size].copy() for at in range(0, rows.shape[1], size)]
    if thin:
        return [Block(sparse.csc_array(part[:-1]), part[-1]) for part in parts]
    return [Block.dense(part) for part in parts]


def gradient(random: Any, frame: Frame, name: str, slope: float | None = None) -> SlopeSum:
    place = random.normal(size=frame.features) * random.choice([0.1, 3.0])
    loss = LOSSES[name]()
    return SlopeSum(frame, loss, place, slope or loss.steepest(3.0))


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reach", [0.25, 1.5])
def test_gradients_are_exact(name: str, reach: float, thin: bool, generator: Seeded) -> None:
    random = generator(1)
    frame = Frame(9, reach)
    rows = rows_of(random, frame, 40)
    for slope in (None, 1e-7, 1e5):
        total = gradient(random, frame, name, slope)
        exact = oracle(total, rows)
        for size in (1, 13, 40):
            (found,) = Examples(frame, blocks(rows, size, thin=thin)).sums([total])
            assert found.tolist() == exact
        order = random.permutation(40)
        (found,) = Examples(frame, blocks(rows[:, order], 16, thin=thin)).sums([total])
        assert found.tolist() == exact
        for i in range(40):
            alone = total.sum(rows[:, [i]])
            assert square(alone) <= total.bound**2


@pytest.mark.parametrize("name", LOSSES)
def test_a_gradient_is_worth_what_it_says(name: str, generator: Seeded) -> None:
    random = generator(2)
    frame = Frame(12, 1.0)
    rows = rows_of(random, frame, 200)
    total = gradient(random, frame, name)
    features, labels = rows[:-1] / CELLS, rows[-1] / CELLS
    margins = total.integers * 2.0**-total.scale @ features
    slopes = total.loss.slopes(margins, labels)
    truth = features @ np.clip(slopes, -total.slope, total.slope)
    (found,) = Examples(frame, blocks(rows, 50, thin=False)).sums([total])
    assert found.astype(float) * float(total.unit) == pytest.approx(truth, abs=200 * 2**-19)
    assert total.integers * 2.0**-total.scale == pytest.approx(np.asarray(total.theta), rel=1e-6)


@pytest.mark.parametrize("thin", [False, True])
def test_full_blocks_of_the_longest_rows_are_exact(thin: bool) -> None:
    """4096 equal rows of one odd entry: one bit more and float64 would lose it."""
    for reach in REACHES:
        frame = Frame(2, reach)
        rows = np.zeros((3, 4096))
        rows[0], rows[2] = frame.norm - 1, -CELLS
        total = SlopeSum(frame, SquaredLoss(), np.zeros(2), 2 - 2.0**-40)
        assert total.steepest % 2
        (found,) = Examples(frame, blocks(rows, 4096, thin=thin)).sums([total])
        assert found.tolist() == [4096 * (frame.norm - 1) * total.steepest, 0]


@pytest.mark.parametrize("reach", REACHES)
def test_gram_matrices_of_long_rows_are_exact(reach: float) -> None:
    frame = Frame(2, reach)
    entry = frame.norm - 1 - frame.norm % 2
    rows = np.zeros((3, 4096))
    rows[0, 1:], rows[1, :1] = entry, 1.0
    gram = ClippedGram(frame.shape, range(3), norm=64.0)
    (found,) = Examples(frame, blocks(rows, 4096, thin=False)).sums([gram])
    assert found[0] == 4095 * entry**2
    assert found[4] == 1


def test_totals_carry_before_they_overflow(
    generator: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = generator(3)
    frame = Frame(4, 1.0)
    rows = rows_of(random, frame, 300)
    total = gradient(random, frame, "squared")
    monkeypatch.setattr(totals, "_LARGEST", 15 * total.bound)
    carried = []
    whole = totals.normalise

    def watched(*words: Any) -> Any:
        carried.append(1)
        return whole(*words)

    monkeypatch.setattr(totals, "normalise", watched)
    found, count = Examples(frame, blocks(rows, 10, thin=False)).sums([total, Count()])
    assert found.tolist() == oracle(total, rows)
    assert count.tolist() == [300]
    assert len(carried) > 10


def test_sparse_examples_are_counted_but_have_no_other_sums() -> None:
    frame = Frame(3, 1.0)
    table = Examples(frame, blocks(np.ones((4, 7)), 3, thin=True))
    assert table.sums([Count()])[0].tolist() == [7]
    with refused("statistics", "Examples.sums"):
        table.sums([ClippedGram(frame.shape, range(3), norm=1.0)])
    assert "private" in repr(table)
    assert "1." not in repr(table).replace("1.0", "")


def test_no_examples_add_up_to_nothing() -> None:
    frame = Frame(3, 1.0)
    total = SlopeSum(frame, HuberLoss(), np.ones(3), 0.25)
    found, count = Examples(frame, []).sums([total, Count()])
    assert found.tolist() == [0, 0, 0]
    assert count.tolist() == [0]


@pytest.mark.parametrize("reach", REACHES)
def test_frames_bound_features_and_label(reach: float) -> None:
    frame = Frame(5, reach)
    assert frame.norm == math.floor(Fraction(reach) * CELLS)
    assert frame.norm**2 + CELLS**2 <= frame.shape.sensitivity < 4 * (frame.norm**2 + CELLS**2)


@pytest.mark.parametrize("reach", [0.0, 2.0**-21, 8.1, math.inf, "1"])
def test_a_reach_out_of_range_is_one_error(reach: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="'reach' parameter of Frame"):
        Frame(3, reach)


@pytest.mark.parametrize(
    ("place", "slope", "parameter"),
    [
        (np.zeros(2), 1.0, "theta"),
        ([1.0, math.nan, 0.0], 1.0, "theta"),
        (np.zeros(3), 0.0, "slope"),
        (np.zeros(3), math.inf, "slope"),
    ],
)
def test_wrong_arguments_are_one_error(place: Any, slope: float, parameter: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"'{parameter}' parameter of SlopeSum"):
        SlopeSum(Frame(3, 1.0), SquaredLoss(), place, slope)
