"""Row sums: exact against Python integers, each row by itself, and bounded, whatever it holds."""

import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplinear.exact import integers, public_maps, residual_sums, row_sums
from dplinear.exact.integers import quantise
from dplinear.exact.residual_sums import Gradient, SumOfSquares
from dplinear.exact.row_sums import ClippedGram, Count, RowSum, SquaredNorms
from dplinear.exact.shape import Shape

from .oracles import SHAPES, broken_promises, integer_rows, oracle, square, statistics

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

Seeded = Callable[[int], Any]
PLAIN = SHAPES["plain"]
KINDS = (
    "count",
    "norms",
    "all norms",
    "gram",
    "gram of neighbouring columns",
    "energy",
    "gradient",
    "mapped sum",
    "mapped norms",
    "mapped gram",
    "bands",
    "residuals",
)
SMALL = [name for name in SHAPES if name != "longest"]


@pytest.mark.parametrize("name", SMALL)
def test_sums_keep_every_promise(name: str, generator: Seeded) -> None:
    random = generator(1)
    for _ in range(3):
        rows = integer_rows(random, SHAPES[name], 60)
        for kind, statistic in statistics(random, SHAPES[name]).items():
            assert broken_promises(statistic, rows) == [], kind
            assert broken_promises(statistic, np.asfortranarray(rows)) == [], kind


def test_sums_of_the_longest_rows_are_exact(generator: Seeded) -> None:
    random = generator(2)
    shape = SHAPES["longest"]
    rows = integer_rows(random, shape, 4)
    full = np.full((shape.dimension, 1), 1_399_999.0)
    rows[:, [0]] = integers.shrink(full, np.array([square(full[:, 0])], float), shape.sensitivity)
    whitening = random.normal(0, 1, (3, shape.dimension))
    weights = random.normal(0, 1, shape.dimension)
    for statistic in (
        SquaredNorms(shape, range(shape.dimension), limit=1e9),
        ClippedGram(shape, range(20), norm=5.0),
        SumOfSquares(shape, weights, residual=10.0),
        Gradient(shape, whitening, weights, leverage=30.0, residual=10.0),
    ):
        assert statistic.sum(rows).tolist() == oracle(statistic, rows)
    assert max(square(row) for row in rows.T) >= 0.99 * 2**52


@pytest.mark.parametrize("kind", KINDS)
def test_record_replay(kind: str, generator: Seeded) -> None:
    """1,000 pairs of neighbours: the change is one row's term, and within the bound."""
    random = generator(3)
    largest = 0.0
    for _ in range(50):
        shape = SHAPES[str(random.choice(SMALL))]
        statistic = statistics(random, shape)[kind]
        rows = integer_rows(random, shape, 20)
        whole = statistic.sum(rows)
        for i in range(20):
            change = whole - statistic.sum(np.delete(rows, i, axis=1))
            assert square(change) <= statistic.bound**2
            assert (change == statistic.sum(rows[:, [i]])).all()
            largest = max(largest, square(change) / statistic.bound**2)
    assert largest > 0.99  # the bound is not a loose one


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_order_and_layout_change_nothing(kind: str, generator: Seeded) -> None:
    random = generator(4)
    shape = SHAPES["wide"]
    statistic = statistics(random, shape)[kind]
    rows = integer_rows(random, shape, 4096)
    whole = statistic.sum(rows)
    kept = rows.copy()
    for cuts in ([1], [1, 2, 3, 4095], [2048], random.integers(0, 4096, 40)):
        shuffled = rows[:, random.permutation(4096)]
        parts = np.split(shuffled, np.sort(cuts), axis=1)
        layouts = [part if i % 2 else np.asfortranarray(part) for i, part in enumerate(parts)]
        got = np.sum([statistic.sum(part) for part in layouts], axis=0)
        assert (got == whole).all()
    assert (rows == kept).all()
    assert whole.dtype == np.int64
    assert whole.shape == (statistic.size,)


CELL = st.sampled_from([0, 1, -1, 2, 3, 1_000_003, 1_185_606, -1_185_606, 2**20, 2**19 - 1])
CLIP = st.floats(1e-300, 1e300) | st.floats(1e-4, 10)
ENTRY = st.floats(-1e300, 1e300) | st.floats(-2, 2) | st.sampled_from([0.0, 1.0, 5e-324, 1 / 3])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(CELL, min_size=6, max_size=6), min_size=1, max_size=5),
    st.lists(st.lists(ENTRY, min_size=6, max_size=6), min_size=2, max_size=4),
    CLIP,
    CLIP,
)
def test_nothing_public_or_private_breaks_a_promise(
    cells: list[list[int]], public: list[list[float]], first: float, second: float
) -> None:
    rows = np.array(cells, np.float64).T
    squares = np.array([float(square(row)) for row in rows.T])
    over = squares > PLAIN.sensitivity
    rows[:, over] = integers.shrink(rows[:, over], squares[over], PLAIN.sensitivity)
    made: list[RowSum] = [
        SquaredNorms(PLAIN, [5, 0, 2], first),
        ClippedGram(PLAIN, [1, 2, 3], first),
    ]
    matrix = np.array(public)
    if matrix[0].any() and matrix[1:].any():
        made += [
            SumOfSquares(PLAIN, matrix[0], first),
            Gradient(PLAIN, matrix[1:], matrix[0], first, second),
        ]
    for statistic in made:
        assert 1 <= statistic.bound <= 2**52
        if isinstance(statistic, Gradient):
            assert 2**25 <= statistic.bound <= 2**26
        assert broken_promises(statistic, rows) == []


def test_values_are_integers_times_the_unit(generator: Seeded) -> None:
    random = generator(5)
    rows = integer_rows(random, PLAIN, 50)
    cells = rows / PLAIN.steps_per_unit
    weights = np.array([0.1, -0.2, 0.3, 0, 1, 0.5])
    whitening = random.normal(0, 1, (5, 6))

    def value(statistic: RowSum) -> Any:
        return statistic.sum(rows).astype(float) * float(statistic.unit)

    def shortened(vectors: Any, clip: float) -> Any:
        return vectors * np.minimum(1, clip / np.maximum(np.linalg.norm(vectors, axis=0), 1e-300))

    residuals = np.clip(weights @ cells, -0.5, 0.5)
    lengths = np.maximum(np.linalg.norm(whitening @ cells, axis=0), 1e-9)
    limits = np.minimum(0.5, 0.75 / lengths)
    gradients = (whitening @ cells) * np.clip(weights @ cells, -limits, limits)
    clipped = shortened(cells[[0, 3]], 0.7)
    squares = np.minimum((cells[1:4] ** 2).sum(axis=0), 0.9).sum()
    want: list[tuple[RowSum, Any]] = [
        (Count(), [50]),
        (SquaredNorms(PLAIN, [1, 2, 3], 0.9), [squares]),
        (ClippedGram(PLAIN, [0, 3], 0.7), (clipped @ clipped.T).ravel()),
        (SumOfSquares(PLAIN, weights, 0.5), [np.square(residuals).sum()]),
        (Gradient(PLAIN, whitening, weights, 1.5, 0.5), gradients.sum(axis=1)),
    ]
    for statistic, expected in want:
        assert value(statistic) == pytest.approx(np.array(expected), rel=1e-5, abs=1e-5)
    for (statistic, _), limit in zip(want, [1, 0.9, 0.49, 0.25, 0.75], strict=True):
        assert float(statistic.bound * statistic.unit) == pytest.approx(limit, rel=1e-5)
        assert statistic.bound * statistic.unit <= Fraction(limit)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(ENTRY, min_size=3, max_size=3), min_size=1, max_size=4),
    st.integers(1, 26),
)
def test_public_matrices_have_as_many_bits_as_are_exact(
    public: list[list[float]], exponent: int
) -> None:
    matrix = np.array(public)
    if not matrix.any():
        return
    rounded, scale = quantise(matrix, exponent)
    squares = [square(line) for line in rounded.tolist()]
    assert max(squares) <= 4 ** (53 - exponent)
    # Half as many again would do, but not twice as many: within rounding of the largest row.
    assert max(squares) * 4 * 1.01 + 4**4 > 4 ** (53 - exponent)
    exact = [[Fraction(entry) * Fraction(2) ** scale for entry in line] for line in public]
    off = [
        abs(Fraction(a) - b)
        for x, y in zip(rounded.tolist(), exact, strict=True)
        for a, b in zip(x, y, strict=True)
    ]
    assert max(off) <= Fraction(1, 2)


def test_squared_lengths_are_those_of_each_column_alone(generator: Seeded) -> None:
    for count in (1, 2, 3, 5, 41, 100):
        values = generator(count).normal(0, 2.0**40, (count, 300))
        whole = integers.squared_lengths(values)
        for i in range(300):
            assert integers.squared_lengths(values[:, i : i + 1])[0] == whole[i]


@pytest.mark.heavy
def test_lengths_are_verified_even_if_they_were_reckoned_wrongly(generator: Seeded) -> None:
    rows = np.rint(generator(11).uniform(-1e6, 1e6, (6, 100)))
    squares = np.array([float(square(row)) for row in rows.T])
    for wrong in (1.0, 0.999, 0.5):
        shorter = integers.shrink(rows, squares * wrong, 10**10)
        assert max(square(row) for row in shorter.T) <= 10**10


def test_sums_are_frozen_and_can_be_sent(generator: Seeded) -> None:
    random = generator(6)
    rows = integer_rows(random, PLAIN, 30)
    for statistic in statistics(random, PLAIN).values():
        sent = pickle.loads(pickle.dumps(statistic))
        assert (sent.sum(rows) == statistic.sum(rows)).all()
        assert (sent.bound, sent.size, sent.unit) == (
            statistic.bound,
            statistic.size,
            statistic.unit,
        )
        with pytest.raises(AttributeError):
            statistic.bound = 7


BAD: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "no shape": (lambda: SumOfSquares(None, [1.0], 1.0), TypeError, "a Shape"),  # type: ignore[arg-type]
    "grid too fine": (
        lambda: SquaredNorms(Shape(2, 2**22, 23), [0], 1.0),
        ValueError,
        "products are exact",
    ),
    "exponent": (lambda: SquaredNorms(Shape(2, 2**20, 27), [0], 1.0), ValueError, "exponent"),
    "no columns": (lambda: SquaredNorms(PLAIN, [], 1.0), ValueError, "none twice"),
    "twice": (lambda: ClippedGram(PLAIN, [1, 1], 1.0), ValueError, "none twice"),
    "beyond": (lambda: ClippedGram(PLAIN, [6], 1.0), ValueError, r"\[0, 5\]"),
    "text": (lambda: ClippedGram(PLAIN, "01", 1.0), TypeError, "indices"),  # type: ignore[arg-type]
    "limit": (lambda: SquaredNorms(PLAIN, [0], 0.0), ValueError, "above 0"),
    "norm": (lambda: ClippedGram(PLAIN, [0], float("nan")), ValueError, "finite"),
    "residual": (lambda: SumOfSquares(PLAIN, np.ones(6), -1.0), ValueError, "above 0"),
    "weights": (lambda: SumOfSquares(PLAIN, np.ones(5), 1.0), ValueError, "one for each cell"),
    "zero": (lambda: SumOfSquares(PLAIN, np.zeros(6), 1.0), ValueError, "not all zero"),
    "words": (lambda: SumOfSquares(PLAIN, ["a"] * 6, 1.0), TypeError, "finite real"),
    "infinite": (lambda: SumOfSquares(PLAIN, [np.inf] * 6, 1.0), ValueError, "finite"),
    "flat": (
        lambda: Gradient(PLAIN, np.ones(6), np.ones(6), 1.0, 1.0),
        ValueError,
        r"shape \(6,\)",
    ),
    "empty": (
        lambda: Gradient(PLAIN, np.ones((0, 6)), np.ones(6), 1.0, 1.0),
        ValueError,
        "not all zero",
    ),
    "leverage": (
        lambda: Gradient(PLAIN, np.eye(6), np.ones(6), 0.0, 1.0),
        ValueError,
        "above 0",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_arguments_raise_one_sentence(case: str) -> None:
    make, error, words = BAD[case]
    with pytest.raises(error, match=words):
        make()


def unclipped(rows: Any, _: int) -> Any:
    return rows


def away_from_zero(rows: Any, squares: Any, most: int) -> Any:
    scaled = rows * (np.sqrt(float(most)) / np.sqrt(squares))
    return np.sign(scaled) * np.ceil(np.abs(scaled))


def finer(matrix: Any, exponent: int) -> Any:
    return quantise(matrix, exponent - 12)


def limitless(statistic: RowSum, name: str) -> RowSum:
    object.__setattr__(statistic, name, 2.0**60)
    return statistic


def cancelling(generator: Seeded, shape: Shape) -> list[str]:
    """Rows of equal cells, weights that cancel: small residuals show how products are rounded."""
    even = Shape(44, shape.steps_per_unit, shape.exponent)
    rows = np.tile(integer_rows(generator(9), SHAPES["one"], 50), (44, 1))
    weights = generator(10).normal(0, 1, 44)
    weights[-1] = -weights[:-1].sum()
    gradient = Gradient(even, np.eye(44), weights, leverage=1e-3, residual=1e-9)
    broken = broken_promises(SumOfSquares(even, weights, residual=1e-9), rows)
    broken += broken_promises(gradient, rows)
    return [promise for promise in broken if promise == "exact"]


def test_planted_bugs_go_red(generator: Seeded, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = SHAPES["wide"]
    rows = integer_rows(generator(7), shape, 200)

    def broken(kind: str) -> list[str]:
        made = statistics(generator(8), shape)
        # Clips that nearly every row meets, so that half of them are too long once rounded.
        weights = np.linspace(0.1, 1, 45)
        made["gradient"] = Gradient(shape, np.eye(45), weights, leverage=0.05, residual=0.01)
        return broken_promises(made[kind], rows)

    assert not broken("gram") + broken("gradient") + broken("energy")
    with monkeypatch.context() as patch:
        patch.setattr(row_sums, "shrink", lambda rows, *_: rows)
        assert {"bound", "neighbours", "exact"} <= set(broken("gram"))
    with monkeypatch.context() as patch:
        patch.setattr(residual_sums, "bound_norms", unclipped)
        assert "bound" in broken("gradient")
    with monkeypatch.context() as patch:
        patch.setattr(integers, "shrink", away_from_zero)
        patch.setattr(row_sums, "shrink", away_from_zero)
        assert "bound" in broken("gram")
        assert "bound" in broken("gradient")
    with monkeypatch.context() as patch:
        assert not cancelling(generator, shape)
        patch.setattr(public_maps, "quantise", finer)
        assert cancelling(generator, shape) == ["exact", "exact"]
    energy = limitless(statistics(generator(8), shape)["energy"], "_clip")
    assert "bound" in broken_promises(energy, rows)
