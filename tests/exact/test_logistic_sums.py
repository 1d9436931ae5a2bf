"""Logistic sums: accurate against 40 digits, exact against one row at a time, and bounded."""

import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplinear.arrays import Floats
from dplinear.exact import integers, logistic_sums
from dplinear.exact.logistic_sums import Curvatures, LogisticGradient
from dplinear.exact.row_sums import RowSum
from dplinear.exact.shape import Shape
from exact.oracles import SHAPES, integer_rows, square

pytestmark = pytest.mark.heavy

Seeded = Callable[[int], Any]
PLAIN = SHAPES["plain"]
SMALL = ["plain", "clipped", "coarse", "wide"]
KINDS = ("gradient", "weighted gradient", "first gradient", "curvatures", "weighted curvatures")


def statistics(random: Any, shape: Shape) -> dict[str, Any]:
    """Sums whose label is the last cell; margins from tiny to beyond 32."""
    d = shape.dimension
    whitening = random.normal(0, 1, (d - 1, d)) * np.exp(random.normal(0, 3, (d - 1, 1)))
    weights = random.normal(0, 1, d) * 10 ** random.uniform(-2, 2)
    whitening[:, -1] = weights[-1] = 0
    lever = 0.2 * float(shape.bound) * float(np.linalg.norm(whitening, 2))
    return {
        "gradient": LogisticGradient(shape, whitening, weights, d - 1, lever),
        "weighted gradient": LogisticGradient(shape, whitening, weights, d - 1, lever, score=0.6),
        "first gradient": LogisticGradient(shape, whitening, np.zeros(d), d - 1, lever, score=0.5),
        "curvatures": Curvatures(shape, weights),
        "weighted curvatures": Curvatures(shape, weights, score=0.5),
    }


def scalar_decay(margin: int, worth: float) -> float:
    """exp(−|η|) in Python's own floats, operation by operation."""
    if worth == 0:
        return 1.0
    small = min(min(abs(float(margin)), 32.0 / worth) * worth, 32.0) / 1024
    value = 1.0
    for term in (7, 6, 5, 4, 3, 2, 1):
        value = 1.0 - value * small * (1.0 / term)
    for _ in range(10):
        value *= value
    return value


def scalar_length(vector: list[float]) -> float:
    squares = [entry * entry for entry in vector]
    while len(squares) > 1:
        half = len(squares) // 2
        head = [a + b for a, b in zip(squares, squares[len(squares) - half :], strict=False)]
        squares = head + squares[half : len(squares) - half]
    return math.sqrt(squares[0])


def term(statistic: Any, row: list[int]) -> list[int]:
    """What one row adds."""
    lines = statistic.integers.tolist()
    products = [sum(int(a) * z for a, z in zip(line, row, strict=True)) for line in lines]
    odds = scalar_decay(products[-1], statistic._margin_unit)
    likely = 1.0 / (1.0 + odds)
    if isinstance(statistic, Curvatures):
        return [min(round(odds * likely * min(likely, statistic.score) * 2.0**28), 2**26)]
    label = row[statistic.label] > 0
    size = min(likely, statistic.score) * (odds if (products[-1] >= 0) == label else 1.0)
    whitened = [float(entry) for entry in products[:-1]]
    factor = (size if label else -size) * statistic._step
    factor *= statistic._leverage / max(scalar_length(whitened), statistic._leverage)
    vector = np.array([[round(entry * factor)] for entry in whitened], float)
    over = square(vector[:, 0])
    if over > statistic.bound**2:
        vector = integers.shrink(vector, np.array([float(over)]), statistic.bound**2)
    return [int(entry) for entry in vector[:, 0]]


def broken_promises(statistic: RowSum, rows: Floats) -> list[str]:
    broken = []
    before = rows.copy()
    with np.errstate(all="raise"):
        whole = statistic.sum(rows)
        alone = [statistic.sum(rows[:, i : i + 1].copy()).tolist() for i in range(rows.shape[1])]
    if any(square(entry) > statistic.bound**2 for entry in alone):
        broken.append("bound")
    if np.sum(alone, axis=0).tolist() != whole.tolist():
        broken.append("alone")
    if alone != [term(statistic, [int(z) for z in row]) for row in rows.T]:
        broken.append("exact")
    if (rows != before).any():
        broken.append("left as it was")
    return broken


def margins_of(random: Any) -> Floats:
    """Margins in units of 2^−30: none, one unit, everywhere up to 32 and beyond, both signs."""
    sizes = np.concatenate([[0, 1, 2**30], random.uniform(0, 2.0**35.2, 2000)])
    sizes = np.concatenate([sizes, 2.0 ** random.uniform(0, 53, 500)])
    return np.asarray(np.rint(sizes * random.choice([-1.0, 1.0], len(sizes))))


def exact_chance(margin: float) -> mpmath.mpf:
    return 1 / (1 + mpmath.exp(-mpmath.mpf(margin) / 2**30))


def test_the_exponential_is_accurate(generator: Seeded) -> None:
    margins = margins_of(generator(1))
    got = logistic_sums.decay(margins, 2.0**-30)
    assert ((got > 0) & (got <= 1)).all()
    with mpmath.workdps(40):
        for margin, value in zip(margins.tolist(), got.tolist(), strict=True):
            want = mpmath.exp(-min(mpmath.mpf(abs(margin)) / 2**30, 32))
            assert abs(value / want - 1) < 1e-12


def test_the_exponential_of_any_margin_is_a_number() -> None:
    margins = np.array([0.0, 1.0, -1.0, 2.0**53])
    with np.errstate(all="raise"):
        huge = logistic_sums.decay(margins, 2.0**997)
        tiny = logistic_sums.decay(margins, 2.0**-200)
    assert huge[0] == 1
    assert huge[1:] == pytest.approx(math.exp(-32), rel=1e-12)
    assert (tiny == 1).all()


@pytest.mark.parametrize("most", [0.5, 0.77, 1.0])
def test_scores_are_accurate_bounded_and_zero_on_average(most: float, generator: Seeded) -> None:
    margins = margins_of(generator(2))
    yes = logistic_sums.scores(margins, 2.0**-30, np.ones(len(margins), bool), most)
    no = logistic_sums.scores(margins, 2.0**-30, np.zeros(len(margins), bool), most)
    assert (yes >= 0).all()
    assert (no <= 0).all()
    assert max(yes.max(), -no.min()) <= most
    with mpmath.workdps(40):
        for margin, first, second in zip(margins.tolist(), yes, no, strict=True):
            chance = exact_chance(margin)
            weight = min(mpmath.mpf(1), most / max(chance, 1 - chance))
            assert abs(first - weight * (1 - chance)) < 1e-12
            assert abs(second + weight * chance) < 1e-12
            assert abs(chance * first + (1 - chance) * second) < 1e-12


def test_each_number_is_the_same_wherever_it_stands(generator: Seeded) -> None:
    """Loops over vectors have other code for their last few entries, and for odd addresses."""
    margins = margins_of(generator(3))
    whole = logistic_sums.decay(margins, 2.0**-30)
    alone = [scalar_decay(int(margin), 2.0**-30) for margin in margins]
    assert whole.tolist() == alone
    for start in range(9):
        for length in (1, 2, 3, 5, 7, 8, 9, 17):
            part = logistic_sums.decay(margins[start : start + length], 2.0**-30)
            assert (part == whole[start : start + length]).all()
    assert (logistic_sums.decay(margins[::-3], 2.0**-30) == whole[::-3]).all()


@pytest.mark.parametrize("name", SMALL)
def test_sums_keep_every_promise(name: str, generator: Seeded) -> None:
    random = generator(4)
    for _ in range(4):
        rows = integer_rows(random, SHAPES[name], 60)
        for kind, statistic in statistics(random, SHAPES[name]).items():
            assert broken_promises(statistic, rows) == [], kind
            assert broken_promises(statistic, np.asfortranarray(rows)) == [], kind


@pytest.mark.parametrize("kind", KINDS)
def test_record_replay(kind: str, generator: Seeded) -> None:
    """1,000 pairs of neighbours: the change is one row's term, and within the bound."""
    random = generator(5)
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


def test_the_worst_rows_stay_within_the_bound() -> None:
    """Long rows, surely mistaken, whose rounding is all upwards."""
    shape = SHAPES["wide"]
    weights = np.append(np.full(44, 40.0), 0.0)
    whitening = np.eye(44, 45) * 0.999
    rows = np.full((45, 30), 1_200_000.0) - np.arange(30.0)
    rows[-1] = -1  # the label that the weights deny
    for lever in (0.5, 1.0, 2.0):
        statistic = LogisticGradient(shape, whitening, weights, 44, lever)
        assert broken_promises(statistic, rows) == []
        change = square(statistic.sum(rows[:, :1]))
        assert 0.9999 * statistic.bound**2 < change <= statistic.bound**2


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_order_and_layout_change_nothing(kind: str, generator: Seeded) -> None:
    random = generator(6)
    shape = SHAPES["wide"]
    statistic = statistics(random, shape)[kind]
    rows = integer_rows(random, shape, 4096)
    whole = statistic.sum(rows)
    for cuts in ([1], [1, 2, 3, 4095], [2048], random.integers(0, 4096, 40)):
        shuffled = rows[:, random.permutation(4096)]
        parts = np.split(shuffled, np.sort(cuts), axis=1)
        layouts = [part if i % 2 else np.asfortranarray(part) for i, part in enumerate(parts)]
        got = np.sum([statistic.sum(part) for part in layouts], axis=0)
        assert (got == whole).all()
    assert whole.dtype == np.int64
    assert whole.shape == (statistic.size,)


CELL = st.sampled_from([0, 1, -1, 2, 1_000_003, 1_185_606, -1_185_606, 2**20])
ENTRY = st.floats(-1e300, 1e300) | st.floats(-30, 30) | st.sampled_from([0.0, 5e-324, 1e-300])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(CELL, min_size=4, max_size=4), min_size=1, max_size=5),
    st.lists(st.lists(ENTRY, min_size=3, max_size=3), min_size=2, max_size=4),
    st.floats(1e-300, 1e300) | st.floats(1e-4, 10),
    st.floats(0.5, 1),
)
def test_nothing_public_or_private_breaks_a_promise(
    cells: list[list[int]], public: list[list[float]], lever: float, score: float
) -> None:
    shape = Shape(4, 1_185_606, 22)
    rows = np.array(cells, np.float64).T
    matrix = np.column_stack([np.array(public), np.zeros(len(public))])
    made: list[RowSum] = [Curvatures(shape, matrix[0], score)]
    if matrix[1:].any():
        made.append(LogisticGradient(shape, matrix[1:], matrix[0], 3, lever, score))
    for statistic in made:
        assert 2**24 <= statistic.bound <= 2**26
        assert broken_promises(statistic, rows) == []


def test_values_are_integers_times_the_unit(generator: Seeded) -> None:
    random = generator(7)
    rows = integer_rows(random, PLAIN, 50)
    cells = rows / PLAIN.steps_per_unit
    weights = np.array([1.0, -2.0, 0.0, 3.0, 0.5, 5.0])
    whitening = random.normal(0, 1, (5, 6))
    whitening[:, 2] = 0
    chances = 1 / (1 + np.exp(-weights @ cells))
    vectors = whitening @ cells
    vectors *= np.minimum(1, 1.5 / np.maximum(np.linalg.norm(vectors, axis=0), 1e-300))
    for score in (0.5, 0.8, 1.0):
        weight = np.minimum(1, score / np.maximum(chances, 1 - chances))
        gradient = LogisticGradient(PLAIN, whitening, weights, 2, 1.5, score)
        curvatures = Curvatures(PLAIN, weights, score)
        wanted: list[tuple[RowSum, Any, float]] = [
            (gradient, vectors @ (weight * ((cells[2] > 0) - chances)), 1.5 * score),
            (curvatures, [np.sum(weight * chances * (1 - chances))], 0.25),
        ]
        for statistic, want, limit in wanted:
            got = statistic.sum(rows).astype(float) * float(statistic.unit)
            assert got == pytest.approx(np.array(want), rel=1e-5, abs=1e-5)
            assert float(statistic.bound * statistic.unit) == pytest.approx(limit, rel=1e-5)
            assert statistic.bound * statistic.unit <= Fraction(limit)


def test_sums_are_frozen_and_can_be_sent(generator: Seeded) -> None:
    random = generator(8)
    rows = integer_rows(random, PLAIN, 30)
    for statistic in statistics(random, PLAIN).values():
        sent = pickle.loads(pickle.dumps(statistic))
        assert (sent.sum(rows) == statistic.sum(rows)).all()
        assert (sent.bound, sent.unit) == (statistic.bound, statistic.unit)
        with pytest.raises(AttributeError):
            statistic.bound = 7


PART = np.eye(5, 6)  # leaves the last cell out
ONES = np.append(np.ones(5), 0.0)
BAD: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "no shape": (lambda: Curvatures(None, [1.0]), TypeError, "a Shape"),  # type: ignore[arg-type]
    "weights": (lambda: Curvatures(PLAIN, np.ones(5)), ValueError, "one for each cell"),
    "words": (lambda: Curvatures(PLAIN, ["a"] * 6), TypeError, "finite real"),
    "infinite": (lambda: Curvatures(PLAIN, [np.inf] * 6), ValueError, "finite"),
    "score": (lambda: Curvatures(PLAIN, ONES, 0.4), ValueError, r"\[0.5, 1\]"),
    "score above 1": (
        lambda: LogisticGradient(PLAIN, PART, ONES, 5, 1.0, 1.1),
        ValueError,
        r"\[0.5, 1\]",
    ),
    "whitening": (
        lambda: LogisticGradient(PLAIN, np.zeros((2, 6)), ONES, 5, 1.0),
        ValueError,
        "not all zero",
    ),
    "leverage": (lambda: LogisticGradient(PLAIN, PART, ONES, 5, 0.0), ValueError, "above 0"),
    "label beyond": (lambda: LogisticGradient(PLAIN, PART, ONES, 6, 1.0), ValueError, r"\[0, 5\]"),
    "label in whitening": (
        lambda: LogisticGradient(PLAIN, np.eye(6), ONES, 5, 1.0),
        ValueError,
        "neither whitening nor weights",
    ),
    "label in weights": (
        lambda: LogisticGradient(PLAIN, PART, np.ones(6), 5, 1.0),
        ValueError,
        "neither whitening nor weights",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_arguments_raise_one_sentence(case: str) -> None:
    make, error, words = BAD[case]
    with pytest.raises(error, match=words):
        make()


def test_planted_bugs_go_red(generator: Seeded, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = SHAPES["wide"]
    rows = integer_rows(generator(9), shape, 100)
    whitening = np.eye(44, 45)
    start = LogisticGradient(shape, whitening, np.zeros(45), 44, 0.05, 0.5)
    sure = LogisticGradient(shape, whitening, np.append(np.full(44, 9.0), 0), 44, 0.05, 0.5)
    assert not broken_promises(start, rows) + broken_promises(sure, rows)

    def unclipped(columns: Any, _: int) -> Any:
        return columns

    def likelihood(margins: Any, worth: float, labels: Any, _: float) -> Any:
        return honest(margins, worth, labels, 1.0)

    def library(margins: Any, worth: float) -> Any:
        return np.exp(-np.minimum(np.abs(margins) * worth, 32.0))

    honest = logistic_sums.scores
    with monkeypatch.context() as patch:
        patch.setattr(logistic_sums, "bound_norms", unclipped)
        assert "bound" in broken_promises(start, rows)
        patch.setattr(logistic_sums, "scores", likelihood)
        assert "bound" in broken_promises(sure, rows)
    with monkeypatch.context() as patch:
        patch.setattr(logistic_sums, "scores", likelihood)
        # Still bounded, because integers are compared; but no longer the sum that was promised.
        assert broken_promises(sure, rows) == ["exact"]
    with monkeypatch.context() as patch:
        patch.setattr(logistic_sums, "decay", library)
        values = logistic_sums.decay(margins_of(generator(3)), 2.0**-30)
        alone = [scalar_decay(int(m), 2.0**-30) for m in margins_of(generator(3))]
        assert values.tolist() != alone
