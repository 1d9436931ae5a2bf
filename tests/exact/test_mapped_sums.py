"""Sums of mapped rows and of residuals: values, bounds on the worst rows, what replacing does."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplinear.exact import integers, mapped_sums, public_maps
from dplinear.exact.integers import quantise
from dplinear.exact.mapped_sums import MappedGram, MappedNorms, MappedSquares, MappedSum
from dplinear.exact.residual_sums import Gradient, ResidualHistogram, Residuals, SumOfSquares
from dplinear.exact.row_sums import ClippedGram, Count, RowSum, SquaredNorms
from dplinear.exact.shape import Shape
from dplinear.privacy.neighbours import Neighbours

from .oracles import SHAPES, broken_promises, integer_rows, oracle, square

Seeded = Callable[[int], Any]
PLAIN = SHAPES["plain"]
REPLACED = {
    Count: 0,
    SquaredNorms: 1,
    ClippedGram: 2,
    SumOfSquares: 1,
    Gradient: 4,
    MappedSum: 4,
    MappedNorms: 1,
    MappedGram: 2,
    MappedSquares: 2,
    ResidualHistogram: 2,
    Residuals: 4,
}


def mapped(shape: Shape, matrix: Any, clip: float, limit: float | None = None) -> list[RowSum]:
    """A sum of each kind, of the same map; its first line for the residuals."""
    made: list[RowSum] = [
        MappedSum(shape, matrix, clip),
        MappedGram(shape, matrix, clip),
        MappedNorms(shape, matrix, clip if limit is None else limit),
    ]
    if np.any(matrix[0]):
        made += [
            ResidualHistogram(shape, matrix[0], clip, (2 * clip, 3 * clip)),
            Residuals(shape, matrix[0], clip),
        ]
    return made


def exact_value(statistic: Any, matrix: Any, rows: Any) -> list[float]:
    """The sum in the cells' units, of the matrix as it was given: rationals, but for roots."""
    lines = [[Fraction(entry) for entry in line] for line in np.atleast_2d(matrix).tolist()]
    total = [Fraction(0)] * statistic.size
    for row in rows.T:
        cells = [Fraction(int(z), statistic.shape.steps_per_unit) for z in row]
        vector = [sum(a * z for a, z in zip(line, cells, strict=True)) for line in lines]
        term = _value(statistic, vector)
        total = [a + b for a, b in zip(total, term, strict=True)]
    return [float(entry) for entry in total]


def _value(statistic: Any, vector: list[Any]) -> list[Fraction]:
    if isinstance(statistic, ResidualHistogram | Residuals):
        (residual,), clip = vector, Fraction(statistic.residual)
        if isinstance(statistic, ResidualHistogram):
            first, second = (Fraction(edge) for edge in statistic.edges)
            places = (
                abs(residual) <= clip,
                first < residual <= second,
                second < residual,
                first < -residual <= second,
                second < -residual,
            )
            return [Fraction(inside) for inside in places]
        return [max(-clip, min(clip, residual))]
    squared = sum(entry**2 for entry in vector)
    if isinstance(statistic, MappedNorms):
        return [min(squared, Fraction(statistic.limit))]
    ratio = _root(squared) / Fraction(statistic.norm)
    clipped = [entry / max(ratio, Fraction(1)) for entry in vector]
    if isinstance(statistic, MappedSum):
        return clipped
    return [a * b for a in clipped for b in clipped]


def _root(number: Fraction) -> Fraction:
    """The square root, rounded down to 80 bits after the point."""
    return Fraction(math.isqrt(number.numerator * 4**80 // number.denominator), 2**80)


@pytest.mark.parametrize("name", ["plain", "clipped", "one", "coarse"])
def test_values_are_those_of_exact_arithmetic(name: str, generator: Seeded) -> None:
    """A row is off by a few units of a norm of 2^19 or more; twice that in its Gram."""
    random, shape = generator(20), SHAPES[name]
    rows = integer_rows(random, shape, 40)
    for _ in range(3):
        matrix = random.normal(0, 1, (3, shape.dimension)) * random.choice([1e-9, 1.0, 1e12])
        spread = float(np.linalg.norm(matrix, 2)) * float(shape.bound)
        for clip in (0.1 * spread, 0.4 * spread, 2 * spread):
            for statistic in mapped(shape, matrix, clip, clip**2):
                lines = (
                    matrix[0] if isinstance(statistic, ResidualHistogram | Residuals) else matrix
                )
                got = statistic.sum(rows).astype(float) * float(statistic.unit)
                want = exact_value(statistic, lines, rows)
                most = float(statistic.bound * statistic.unit)
                assert got == pytest.approx(np.array(want), rel=0, abs=40 * most * 2.0**-16)


@pytest.mark.parametrize("name", ["plain", "one", "coarse", "wide"])
def test_bounds_are_the_clips(name: str, generator: Seeded) -> None:
    shape = SHAPES[name]
    matrix = generator(21).normal(0, 1, (3, shape.dimension))
    summed, gram, norms, bands, residuals = mapped(shape, matrix, 0.3, 0.09)
    for statistic, clip in ((summed, 0.3), (gram, 0.09), (norms, 0.09), (residuals, 0.3)):
        assert float(statistic.bound * statistic.unit) == pytest.approx(clip, rel=2.0**-17)
        assert statistic.bound * statistic.unit <= Fraction(clip) * (1 + Fraction(1, 2**52))
    assert bands.bound * bands.unit == 1
    assert 2**25 - 1 <= summed.bound <= 2**26
    assert (2**19 - 1) ** 2 <= gram.bound <= 2**40
    assert (summed.size, gram.size, norms.size, bands.size) == (3, 9, 1, 5)


CELL = st.sampled_from([0, 1, -1, 2, 3, 1_000_003, 1_185_606, -1_185_606, 2**20, 2**19 - 1])
CLIP = st.floats(1e-300, 1e300) | st.floats(1e-4, 10)
ENTRY = st.floats(-1e300, 1e300) | st.floats(-2, 2) | st.sampled_from([0.0, 1.0, 5e-324, 1 / 3])


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(CELL, min_size=6, max_size=6), min_size=1, max_size=5),
    st.lists(st.lists(ENTRY, min_size=6, max_size=6), min_size=1, max_size=4),
    CLIP,
)
def test_no_map_and_no_row_breaks_a_promise(
    cells: list[list[int]], public: list[list[float]], clip: float
) -> None:
    rows = np.array(cells, np.float64).T
    squares = np.array([float(square(row)) for row in rows.T])
    over = squares > PLAIN.sensitivity
    rows[:, over] = integers.shrink(rows[:, over], squares[over], PLAIN.sensitivity)
    matrix = np.array(public)
    if not matrix.any():
        return
    for statistic in mapped(PLAIN, matrix, clip):
        assert 1 <= statistic.bound <= 2**50
        assert broken_promises(statistic, rows) == []


def equal_entries(generator: Seeded) -> tuple[Shape, Any, Any]:
    """Rows that a map turns into vectors of equal entries: rounding moves all of them one way."""
    shape = SHAPES["one"]
    rows = np.rint(generator(22).uniform(2.0**19, 2.0**20, (1, 400)))
    return shape, np.ones((300, 1)), rows


def test_rows_that_rounding_lengthens_are_shortened_again(
    generator: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, matrix, rows = equal_entries(generator)
    # As many clips as parts of a unit that an entry may be left with.
    made = [MappedSum(shape, matrix, clip) for clip in np.linspace(1.0, 1.000001, 40)]
    assert all(broken_promises(statistic, rows[:, :3]) == [] for statistic in made)
    monkeypatch.setattr(integers, "bound_norms", lambda rows, _: rows)
    assert any("bound" in broken_promises(statistic, rows[:, :3]) for statistic in made)


def test_rows_beside_far_longer_ones_are_scaled_the_same(generator: Seeded) -> None:
    """A block with a row beyond 2^53 reckons lengths in another way, to the same bits."""
    shape = SHAPES["wide"]
    random = generator(23)
    matrix = random.normal(0, 1, (41, 45))
    rows = integer_rows(random, shape, 30)
    small = np.rint(rows * 1e-4)
    clip = 2e-4 * float(np.linalg.norm(matrix, 2))
    for kind in (MappedSum, MappedGram):
        statistic = kind(shape, matrix, clip)
        both = statistic.sum(np.concatenate((small, rows), axis=1))
        assert (both == statistic.sum(small) + statistic.sum(rows)).all()
        assert statistic.sum(small).tolist() == oracle(statistic, small)


def test_lengths_that_an_order_could_sway_are_taken_by_halving(
    generator: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def watched(values: Any) -> Any:
        asked.append(values.shape)
        return np.square(values).sum(axis=0)

    monkeypatch.setattr(integers, "squared_lengths", watched)
    rows = generator(28).normal(0, 1.0, (5, 8))
    integers.shorten(rows * 2.0**21, 2**20)
    assert not asked  # exact in any order
    integers.shorten(rows * np.array([1.0] * 7 + [2.0**30]), 2**20)
    assert asked == [(5, 8)]


def test_a_residual_at_an_edge_is_on_the_near_side() -> None:
    shape = Shape(2, 2**20, 21)
    rows = np.array([[2**19, -(2**19), 2**19, 2**19, -(2**19)], [0, 0, 1, -1, -1]], float)
    weights = [1.0, 2.0**-20]
    beyond = [0, 0, 1, 0, -1]
    near = ResidualHistogram(shape, weights, residual=0.5, edges=(0.9,))
    got = [near.sum(rows[:, [i]]).tolist() for i in range(5)]
    assert got == [[1 - abs(b), 0, 0] for b in beyond]
    far = ResidualHistogram(shape, weights, residual=0.4, edges=(0.5,))
    got = [far.sum(rows[:, [i]]).tolist() for i in range(5)]
    assert got == [[0, int(b > 0), int(b < 0)] for b in beyond]
    both = ResidualHistogram(shape, weights, residual=0.4, edges=(0.45, 0.5))
    got = [both.sum(rows[:, [i]]).tolist().index(1) for i in range(5)]
    assert got == [1, 3, 2, 1, 4]


def test_no_row_is_in_two_bands(generator: Seeded) -> None:
    """Nor where the edges are one, or next to nothing, or beyond all rows."""
    rows = integer_rows(generator(29), PLAIN, 60)
    for near, *edges in (
        (0.3, 0.3),
        (0.3, 0.3, 0.3, 0.4),
        (1e-300, 1e-300),
        (1e300, 1e300, 1e300),
        (1e-300, 1e-299, 1e300),
        (0.1, 0.2, 0.4, 0.8),
    ):
        bands = ResidualHistogram(PLAIN, np.linspace(-1, 1, 6), near, tuple(edges))
        assert max(int(bands.sum(rows[:, [i]]).sum()) for i in range(60)) <= 1
        assert broken_promises(bands, rows) == []


def test_longest_rows_and_widest_blocks_are_exact(generator: Seeded) -> None:
    """4096 rows at the clip: the largest sums that a block can have."""
    shape = Shape(2, 1_000_000, 20)
    rows = np.tile(np.array([[1_000_000.0], [123_457.0]]), (1, 4096))
    rows[:, ::2] *= -1
    matrix = np.array([[1.0, 0.3], [0.0, 1e-3]])
    for clip in (0.5, 1.0, 1e9):
        for statistic in mapped(shape, matrix, clip):
            one, other = statistic.sum(rows[:, :1]), statistic.sum(rows[:, 1:2])
            assert (statistic.sum(rows) == 2048 * (one + other)).all()
    long = SHAPES["longest"]
    few = integer_rows(generator(24), long, 4)
    matrix = generator(25).normal(0, 1, (3, long.dimension))
    for statistic in mapped(long, matrix, 30.0):
        assert statistic.sum(few).tolist() == oracle(statistic, few)


def ends() -> dict[str, tuple[RowSum, list[float], list[float]]]:
    """For each sum, two rows that are as far apart as rows can be, up to rounding."""
    eye, first = np.eye(6), np.eye(6)[0]
    plus, minus = [1e6, 0, 0, 0, 0, 0], [-1e6, 0, 0, 0, 0, 0]
    up, down = [1e6, 1e6, 0, 0, 0, 0], [1e6, -1e6, 0, 0, 0, 0]
    other, zero = [0, 1e6, 0, 0, 0, 0], [0.0] * 6
    at = 1e6 / PLAIN.steps_per_unit  # as long as these rows are
    return {
        "count": (Count(), plus, zero),
        "norms": (SquaredNorms(PLAIN, [0, 1], 0.5), plus, zero),
        "gram": (ClippedGram(PLAIN, [0, 1], 0.5), plus, other),
        "energy": (SumOfSquares(PLAIN, first, 0.5), plus, zero),
        "gradient": (Gradient(PLAIN, eye[1:], first, 0.5, 0.5), up, down),
        "mapped sum": (MappedSum(PLAIN, eye, 0.5), plus, minus),
        "mapped norms": (MappedNorms(PLAIN, eye, 0.5), plus, zero),
        "mapped gram": (MappedGram(PLAIN, eye, 0.5), plus, other),
        "mapped squares": (MappedSquares(PLAIN, eye, 0.2), plus, other),
        "tapered": (Gradient(PLAIN, eye[1:], first, 0.5, 0.5, taper=1.0), up, down),
        "tapered at once": (Gradient(PLAIN, eye[1:], first, 2.0, 0.5, taper=at), up, down),
        "bands": (ResidualHistogram(PLAIN, first, 0.2, (0.5, 2.0)), plus, minus),
        "residuals": (Residuals(PLAIN, first, 0.5), plus, minus),
    }


@pytest.mark.parametrize("kind", ends())
def test_replacing_a_row_may_do_what_is_said_and_no_more(kind: str) -> None:
    statistic, one, other = ends()[kind]
    rows = np.array([one, other], np.float64).T
    change = square(statistic.sum(rows[:, :1]) - statistic.sum(rows[:, 1:]))
    most = statistic.sensitivity_squared(Neighbours.REPLACE)
    assert (1 - 1e-4) * most <= change <= most
    assert most == REPLACED[type(statistic)] * statistic.bound**2


def test_every_sum_says_what_replacing_does() -> None:
    for statistic, _, _ in ends().values():
        assert statistic.replaced == REPLACED[type(statistic)]
        assert statistic.sensitivity_squared(Neighbours.ADD_REMOVE) == statistic.bound**2
        assert isinstance(statistic.sensitivity_squared(Neighbours.REPLACE), int)


@pytest.mark.parametrize("wrong", [Neighbours.ELEMENT, "nearby", None])
def test_other_neighbours_are_refused(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"Count\.sensitivity_squared"):
        Count().sensitivity_squared(wrong)


def test_replaced_rows_stay_within_the_factor(generator: Seeded) -> None:
    random = generator(26)
    rows = integer_rows(random, PLAIN, 60)
    matrix = random.normal(0, 1, (4, 6))
    for statistic in mapped(PLAIN, matrix, 0.7):
        terms = [statistic.sum(rows[:, [i]]) for i in range(60)]
        most = statistic.sensitivity_squared(Neighbours.REPLACE)
        assert max(square(a - b) for a in terms for b in terms) <= most


ONE: Any = np.ones(6)
BAD: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "no shape": (lambda: MappedSum(None, ONE, 1.0), TypeError, "MappedSum must be a Shape"),  # type: ignore[arg-type]
    "no shape to weigh": (
        lambda: SumOfSquares(None, ONE, 1.0),  # type: ignore[arg-type]
        TypeError,
        "SumOfSquares must be a Shape",
    ),
    "flat": (lambda: MappedGram(PLAIN, ONE, 1.0), ValueError, r"shape \(6,\)"),
    "narrow": (lambda: MappedGram(PLAIN, np.ones((2, 5)), 1.0), ValueError, r"shape \(2, 5\)"),
    "empty": (lambda: MappedSum(PLAIN, np.ones((0, 6)), 1.0), ValueError, "not all zero"),
    "zero": (lambda: MappedSum(PLAIN, np.zeros((2, 6)), 1.0), ValueError, "not all zero"),
    "infinite": (lambda: MappedNorms(PLAIN, [[np.inf] * 6], 1.0), ValueError, "finite"),
    "words": (lambda: MappedNorms(PLAIN, [["a"] * 6], 1.0), TypeError, "finite real"),
    "limit": (lambda: MappedNorms(PLAIN, ONE[None], 0.0), ValueError, "'limit'.*above 0"),
    "norm": (lambda: MappedGram(PLAIN, ONE[None], -1.0), ValueError, "'norm'.*above 0"),
    "no number": (lambda: MappedSum(PLAIN, ONE[None], np.nan), ValueError, "'norm'.*finite"),
    "weights": (lambda: Residuals(PLAIN, ONE[:5], 1.0), ValueError, "'weights' .* of Residuals"),
    "no weights": (
        lambda: ResidualHistogram(PLAIN, np.zeros(6), 1.0, (2.0,)),
        ValueError,
        "not all zero",
    ),
    "residual": (
        lambda: ResidualHistogram(PLAIN, ONE, 0.0, (1.0,)),
        ValueError,
        "'residual' .* of ResidualHistogram",
    ),
    "edge": (
        lambda: ResidualHistogram(PLAIN, ONE, 1.0, (0.0,)),
        ValueError,
        "'edges' .* of ResidualHistogram.*above 0",
    ),
    "nearer": (
        lambda: ResidualHistogram(PLAIN, ONE, 0.5, (0.4,)),
        ValueError,
        "'edges'.*none below",
    ),
    "descending": (
        lambda: ResidualHistogram(PLAIN, ONE, 0.5, (0.9, 0.7)),
        ValueError,
        "'edges'.*ascending",
    ),
    "an edge": (lambda: ResidualHistogram(PLAIN, ONE, 0.5, 0.9), TypeError, "'edges'.*a tuple"),  # type: ignore[arg-type]
    "no edges": (lambda: ResidualHistogram(PLAIN, ONE, 0.5, ()), ValueError, "'edges'.*ascending"),
    "taper": (
        lambda: Gradient(PLAIN, ONE[None], ONE, 1.0, 1.0, taper=0.0),
        ValueError,
        "'taper'.*above 0",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_arguments_raise_one_sentence(case: str) -> None:
    make, error, words = BAD[case]
    with pytest.raises(error, match=words):
        make()


def finer(matrix: Any, exponent: int) -> Any:
    return quantise(matrix, exponent - 12)


def never_shortened(rows: Any, _: int) -> Any:
    return np.rint(rows)


def test_planted_bugs_go_red(generator: Seeded, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = SHAPES["wide"]
    random = generator(27)
    rows = integer_rows(random, shape, 150)
    matrix = random.normal(0, 1, (30, 45))

    def broken() -> list[list[str]]:
        return [broken_promises(statistic, rows) for statistic in mapped(shape, matrix, 0.7)]

    assert broken() == [[]] * 5
    with monkeypatch.context() as patch:
        patch.setattr(mapped_sums, "shorten", never_shortened)
        assert all({"bound", "neighbours", "exact"} <= set(kind) for kind in broken()[:2])
    with monkeypatch.context() as patch:
        patch.setattr(public_maps, "quantise", finer)
        assert any("exact" in kind for kind in broken())
    residuals = mapped(shape, matrix, 0.01)[4]
    object.__setattr__(residuals, "_clip", 2.0**60)
    assert "bound" in broken_promises(residuals, rows)


def test_squares_that_are_not_shortened_are_seen_to_break_their_bound(generator: Seeded) -> None:
    """A row at the end of its range moves the sum by its bound, and without the check by more."""
    statistic = MappedSquares(PLAIN, np.eye(6), 0.2)
    rows = np.full((6, 1), float(PLAIN.steps_per_unit // 2))
    assert square(statistic.sum(rows)) <= statistic.bound**2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped_sums, "shorten", lambda values, _norm: np.rint(values))
        assert square(statistic.sum(rows)) > statistic.bound**2


def test_a_sparse_map_multiplies_as_a_dense_one_does(generator: Seeded) -> None:
    """Rows that use a feature and the constant, or one of them, or nothing; then a dense one."""
    random = generator(27)
    rows = random.integers(-1000, 1000, (9, 50)).astype(float)
    matrix = np.zeros((9, 9))
    matrix[np.arange(7), np.arange(7)] = random.integers(1, 99, 7)
    matrix[2:6, 0] = random.integers(1, 99, 4)
    matrix[8] = random.integers(1, 99, 9)
    support = integers.support_of(matrix)
    assert support.shape == (2, 8)
    assert np.array_equal(integers.product(matrix, rows, support, 0.5), matrix @ rows / 2)
    assert not integers.support_of(np.ones((9, 9))).size
