"""Every row sum keeps its declared sensitivity where what it is derived from is wrong.

Rows are handed over that no pass would make, eight times too long, and quantities that sums derive
from their arguments are planted eight times too large. The sums of one row must still be within
`bound`, as the clip is on the integers that are added.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from descent.descents import shape_of
from dplinear.coinpress.octaves import Octaves
from dplinear.coinpress.products import Products
from dplinear.convex.cell_sums import CellSlopeSum
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, ExampleSum, Frame, SlopeSum
from dplinear.convex.loss_sums import LossSum
from dplinear.convex.losses import SquaredLoss
from dplinear.exact import weights
from dplinear.exact.block_moments import BlockMoments
from dplinear.exact.histograms import Histograms
from dplinear.exact.logistic_grams import LogisticGram
from dplinear.exact.logistic_sums import Curvatures, LogisticGradient
from dplinear.exact.mapped_sums import (
    InnerGram,
    MappedGram,
    MappedNorms,
    MappedSquares,
    MappedSum,
)
from dplinear.exact.residual_sums import Gradient, ResidualHistogram, Residuals, SumOfSquares
from dplinear.exact.row_sums import (
    ClippedGram,
    Count,
    FilledIn,
    LeftOut,
    RowSum,
    SquaredNorms,
    SquaredWeights,
)
from dplinear.exact.score_sums import LengthHistogram, ScoreGram, ScoreHistogram
from dplinear.exact.unit_scores import UnitScores
from dplinear.noise import simulation
from dplinear.privacy import Neighbours
from dplinear.scores.histograms import LabelledScores, ResidualSizes
from dplinear.scores.predictions import LinearPredictor
from dplinear.scores.terms import LabelTerms, ResidualTerms

SHAPE = shape_of(4)
MATRIX = np.array([[1.0, 0.3, 0.0, 0.0], [0.0, -2.0, 0.5, 0.0]])
WEIGHTS = np.array([0.5, 0.0, -1.0, 1.0])
FRAME = Frame(3, 1.0)
PLACE = np.array([0.3, -0.2, 0.9])
WHOLE = float(SHAPE.bound)  # the norm of the longest row: nothing to clip, so it is said

PREDICTOR = LinearPredictor(SHAPE, [0.5, -1.5, 2.0, 0.0])

# Each sum, with the quantities that it derives and does not clip by.
SUMS: dict[str, tuple[Callable[[], RowSum], tuple[str, ...]]] = {
    "count": (Count, ()),
    "terms of residuals": (
        lambda: ResidualTerms(SHAPE, PREDICTOR, 3, tuple(ResidualTerms.known), 0.3),
        ("clip", "spread"),
    ),
    "terms of labels": (lambda: LabelTerms(SHAPE, PREDICTOR, 3, tuple(LabelTerms.known)), ()),
    "sizes of residuals": (lambda: ResidualSizes(SHAPE, PREDICTOR, 3, (0.2, 0.4)), ("edges",)),
    "scores by label": (lambda: LabelledScores(SHAPE, PREDICTOR, 3, (-0.5, 0.5)), ("edges",)),
    "left_out": (LeftOut, ()),
    "filled_in": (lambda: FilledIn(3), ()),
    "squared weights": (SquaredWeights, ()),
    "unit scores": (lambda: UnitScores(Gradient(SHAPE, MATRIX, WEIGHTS, 0.4, 0.3)), ()),
    "squares": (lambda: SquaredNorms(SHAPE, [0, 1, 2], 1.0), ()),
    "gram": (lambda: ClippedGram(SHAPE, [0, 1, 2], 0.7), ()),
    "whole gram": (lambda: ClippedGram(SHAPE, [0, 1, 2, 3], WHOLE), ()),
    "blocks": (lambda: BlockMoments(SHAPE, [0, 1, 3], 2, SHAPE.unit, SHAPE.unit), ()),
    "vector": (lambda: MappedSum(SHAPE, MATRIX, 0.4), ("integers", "_step")),
    "mapped gram": (lambda: MappedGram(SHAPE, MATRIX, 0.4), ("integers", "_step")),
    "mapped norms": (lambda: MappedNorms(SHAPE, MATRIX, 0.4), ("integers", "_step")),
    "mapped squares": (lambda: MappedSquares(SHAPE, MATRIX, 0.4), ("integers", "_step")),
    "energy": (lambda: SumOfSquares(SHAPE, WEIGHTS, 0.3), ("integers", "_step")),
    "inner gram": (
        lambda: InnerGram(SHAPE, MATRIX, 0.4, WEIGHTS, 0.3),
        ("integers", "_step", "_inside", "_most"),
    ),
    "score gram": (
        lambda: ScoreGram(Gradient(SHAPE, MATRIX, WEIGHTS, 0.4, 0.3)),
        ("_step",),
    ),
    "score histogram": (
        lambda: ScoreHistogram(SHAPE, MATRIX, WEIGHTS, 0.3, (0.1, 0.2, 0.9)),
        ("integers", "_clip", "_edges"),
    ),
    "length histogram": (
        lambda: LengthHistogram(SHAPE, MATRIX, (0.1, 0.2, 0.9)),
        ("integers", "_edges"),
    ),
    "residuals": (lambda: Residuals(SHAPE, WEIGHTS, 0.3), ("integers", "_step")),
    "bands": (lambda: ResidualHistogram(SHAPE, WEIGHTS, 0.3, (0.5, 0.9)), ("integers", "_step")),
    "gradient": (
        lambda: Gradient(SHAPE, MATRIX, WEIGHTS, 0.4, 0.3),
        ("integers", "_step", "_clips"),
    ),
    "tapered": (
        lambda: Gradient(SHAPE, MATRIX, WEIGHTS, 0.4, 0.3, taper=0.8),
        ("integers", "_step", "_clips", "_taper"),
    ),
    "logistic": (
        lambda: LogisticGradient(SHAPE, MATRIX, [0.5, 0.0, -1.0, 0.0], 3, 0.4),
        ("integers", "_step", "_leverage"),
    ),
    "curvatures": (lambda: Curvatures(SHAPE, [0.5, 0.0, -1.0, 0.0]), ("integers", "_margin_unit")),
    "curvature gram": (
        lambda: LogisticGram(SHAPE, MATRIX, [0.5, 0.0, -1.0, 0.0], 0.4),
        ("integers", "_step", "_leverage", "_margin_unit"),
    ),
    "logistic score gram": (
        lambda: LogisticGram(SHAPE, MATRIX, [0.5, 0.0, -1.0, 0.0], 0.4, 0.6, 3),
        ("integers", "_step", "_leverage"),
    ),
    "histograms": (lambda: Histograms(SHAPE, [0, 2, 3], 16), ()),
    "octaves": (lambda: Octaves(SHAPE, [0, 2, 3]), ("_edges",)),
    "products": (
        lambda: Products(SHAPE, MATRIX, WEIGHTS, (0.1, -0.4), 0.2),
        ("integers", "_step", "units"),
    ),
    "slopes": (lambda: SlopeSum(FRAME, SquaredLoss(), PLACE, 0.5), ("integers", "_step")),
    "cell slopes": (
        lambda: CellSlopeSum(FRAME, SquaredLoss(), PLACE, 0.5, 0.2),
        ("integers", "_step"),
    ),
    "losses": (lambda: LossSum(FRAME, SquaredLoss(), np.eye(3), 1.0), ("integers",)),
}
CASES = [(name, None) for name in SUMS] + [
    (name, what) for name, (_, facts) in SUMS.items() for what in facts
]


def descendants(kind: type[RowSum]) -> set[type[RowSum]]:
    return {kind}.union(*map(descendants, kind.__subclasses__()))


def test_no_sum_is_left_out() -> None:
    root: Any = RowSum
    own = {kind for kind in descendants(root) if kind.__module__.startswith("dplinear.")}
    made = {type(make()) for make, _ in SUMS.values()}
    assert {kind for kind in own if not getattr(kind, "__abstractmethods__", None)} - made <= {
        kind for kind in own if kind.__name__.startswith("_")
    }


def planted(name: str, what: str | None, times: float = 8.0) -> RowSum:
    """Return a sum, one of whose derived quantities is too large."""
    statistic = SUMS[name][0]()
    if what is not None:
        found: Any = getattr(statistic, what)
        larger = tuple(times * f for f in found) if isinstance(found, tuple) else times * found
        object.__setattr__(statistic, what, larger)
    return statistic


def long_rows(seed: int, count: int) -> Any:
    """Return integer rows, most of them up to eight times as long as any row may be."""
    random = simulation.generator(seed)
    cells = random.standard_normal((4, count)) * random.choice([0.1, 1.0, 8.0], count)
    cells[:, : count // 4] = np.sign(cells[:, : count // 4]) * 8
    return np.rint(cells * SHAPE.steps_per_unit)


def long_examples(seed: int, count: int, *, thin: bool) -> Block:
    """Return examples that are too long, with labels that are too large."""
    random = simulation.generator(seed)
    x = np.rint(random.standard_normal((3, count)) * CELLS * random.choice([0.1, 8.0], count))
    y = np.rint(random.standard_normal(count) * 5 * CELLS)
    return Block(sparse.csc_array(x), y) if thin else Block.dense(np.vstack((x, y)))


def sums_of_rows(statistic: RowSum, seed: int, count: int) -> list[Any]:
    if isinstance(statistic, UnitScores):
        whole = np.full(1, weights.WHOLE)
        rows = long_rows(seed, count)
        return [
            statistic.of_units(statistic.of_rows(rows[:, [place]], whole), whole).astype(object)
            for place in range(count)
        ]
    if not isinstance(statistic, ExampleSum):
        rows = long_rows(seed, count)
        return [statistic.sum(rows[:, [place]]).astype(object) for place in range(count)]
    found = []
    for place in range(count):
        block = long_examples(seed + place, 1, thin=bool(place % 2))
        found += Examples(FRAME, [block]).sums([statistic])
    return found


@pytest.mark.parametrize(("name", "what"), CASES, ids=str)
def test_one_row_is_within_the_bound_whatever_is_planted(name: str, what: str | None) -> None:
    statistic = planted(name, what)
    each = sums_of_rows(statistic, 5, 60)
    added = statistic.sensitivity_squared(Neighbours.ADD_REMOVE)
    assert max(int((one**2).sum()) for one in each) <= added
    replaced = statistic.sensitivity_squared(Neighbours.REPLACE)
    assert max(int(((a - b) ** 2).sum()) for a, b in pairwise(each)) <= replaced


@pytest.mark.parametrize("thin", [False, True])
def test_examples_are_held_to_their_norm_and_labels_to_1(thin: bool) -> None:
    block = long_examples(3, 200, thin=thin)
    (held,) = Examples(FRAME, [block]).blocks()
    features = held.features.toarray() if thin else held.features
    squares = (features.astype(np.int64) ** 2).sum(axis=0)
    assert squares.max() <= FRAME.norm**2
    assert np.abs(held.labels).max() == CELLS
    given = block.features.toarray() if thin else block.features
    fine = (given.astype(np.int64) ** 2).sum(axis=0) <= FRAME.norm**2
    assert fine.any()
    assert np.array_equal(features[:, fine], given[:, fine])
    # Towards zero, each by itself, and as long as it may be.
    assert (np.abs(features) <= np.abs(given)).all()
    assert squares[~fine].min() > 0.999 * FRAME.norm**2


def test_parts_of_a_sparse_cell_are_added_before_the_norm_is_taken() -> None:
    half = 0.8 * CELLS
    parts = sparse.csc_array((np.array([half, half]), np.array([1, 1]), np.array([0, 2])), (3, 1))
    (held,) = Examples(FRAME, [Block(parts, np.zeros(1))]).blocks()
    assert held.features.toarray()[1, 0] <= FRAME.norm


def test_blocks_hold_features_and_target_each_to_its_own() -> None:
    statistic = BlockMoments(SHAPE, [0, 1, 3], 2, 2 * SHAPE.unit, SHAPE.unit // 4)
    for row in long_rows(7, 40).T:
        found = statistic.sum(row[:, None]).astype(object).reshape(4, 4)
        own = [0, 1, 3]
        assert int((found[np.ix_(own, own)] ** 2).sum()) <= statistic.feature_square**2
        cross = int((found[own, 2] ** 2).sum())
        assert cross <= statistic.feature_square * statistic.target_square
        assert int(found[2, 2]) <= statistic.target_square
    short = np.rint(long_rows(7, 40) / 100)
    whole = statistic.sum(short).reshape(4, 4)
    assert np.array_equal(whole, (short @ short.T).astype(np.int64))
