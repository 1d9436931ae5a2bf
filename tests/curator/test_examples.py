"""Raw rows as examples: each by itself, bounded whatever it holds, and one row's worth."""

import decimal
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dplinear.convex import examples
from dplinear.convex.compression import projections
from dplinear.convex.compression.projections import KINDS, Projection
from dplinear.convex.example_blocks import CELLS
from dplinear.convex.examples import SlopeSum
from dplinear.convex.losses import LOSSES
from dplinear.curator import examples as module
from dplinear.curator.examples import Rules, check_table, read_examples
from dplinear.exact import sparse_integers
from dplinear.exact.integers import ordered_squares
from dplinear.schema.sparse_rows import SparseRows
from refusals import refused

Seeded = Callable[[int], Any]


def square(change: Any) -> int:
    return sum(int(entry) ** 2 for entry in change)


def rules(features: int, **options: Any) -> Rules:
    defaults: dict[str, Any] = {"row_norm": 2.0, "target_bounds": (-1.0, 3.0)}
    return Rules(features=features, **(defaults | options))


def dense(features: Any) -> Any:
    return features if isinstance(features, np.ndarray) else features.toarray()


def features_of(X: Any, y: Any, by: Rules) -> Any:
    """All examples side by side: features, then labels."""
    blocks = list(read_examples(X, y, by).blocks())
    parts = [np.vstack((dense(block.features), block.labels)) for block in blocks]
    assert all(part.shape[1] <= 4096 for part in parts)
    return np.hstack(parts)


def raw_rows(random: Any, count: int, features: int) -> Any:
    """Rows shorter and longer than 2, about half of their cells zero."""
    X = random.normal(size=(count, features)) * (random.random((count, features)) < 0.5)
    X *= 10.0 ** random.uniform(-3, 3, (count, 1))
    X[0], X[1] = 0.0, X[1] * 1e-12
    return X


def shuffled(X: Any, random: Any, pieces: int) -> sparse.coo_array:
    """The same matrix, its entries in any order, each of them in several pieces that add up."""
    entries = sparse.coo_array(X)
    places = random.permutation(np.repeat(np.arange(entries.nnz), pieces))
    # Halves, quarters, … so that any order adds up to the same number.
    return sparse.coo_array(
        (entries.data[places] / pieces, (entries.row[places], entries.col[places])), X.shape
    )


def test_rows_are_rounded_or_clipped(generator: Seeded) -> None:
    random = generator(1)
    X, y = raw_rows(random, 300, 7), random.normal(1, 2, 300)
    by = rules(7)
    found = features_of(X, y, by)
    clipped = 0
    for row, label, (*features, last) in zip(X, y, found.T, strict=True):
        exact = [Fraction(cell) * CELLS / 2 for cell in row]
        length = math.sqrt(sum(cell**2 for cell in exact))
        assert square(features) <= CELLS**2
        if length > CELLS:
            clipped += 1
            exact = [cell * CELLS / Fraction(length) for cell in exact]
        most = 3 if length > CELLS else 0.5 + 1e-9
        assert max(abs(a - b) for a, b in zip(exact, features, strict=True)) <= most
        place = min(max(label, -1.0), 3.0)
        assert abs(last - (place - 1.0) / 2 * CELLS) <= 0.5 + 1e-9
    assert 50 < clipped < 250


def test_sparse_rows_are_what_dense_ones_are(generator: Seeded) -> None:
    random = generator(2)
    X, y = raw_rows(random, 50, 40), random.normal(size=50)
    for by in (rules(40), rules(40, intercept=0.5)):
        whole = features_of(X, y, by)
        for kind in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
            given = getattr(sparse, f"{kind}_array")(X)
            assert (features_of(given, y, by) == whole).all()
        assert (features_of(sparse.csr_matrix(X), y, by) == whole).all()
        assert (features_of(shuffled(X, random, 4), y, by) == whole).all()
        features = next(read_examples(sparse.csr_array(X), y, by).blocks()).features
        assert isinstance(features, sparse.csc_array)
        assert features.nnz == np.count_nonzero(whole[:-1])


def test_lengths_beyond_exact_sums_are_added_in_the_same_order(generator: Seeded) -> None:
    """A last bit of a length seldom shows in the integers, so the lengths are compared."""
    X = np.rint(raw_rows(generator(8), 200, 60) * 1e12)
    rows, _, values = SparseRows.of(sparse.csr_array(X)).cells(0, 200)
    found = ordered_squares(X.T)
    assert (found == sparse_integers._squares(rows, values, 200)).all()
    for row, length in zip(X, found, strict=True):
        total = 0.0
        for cell in row.tolist():
            total += cell * cell
        assert total == length


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("kind", [None, "gaussian", "very_sparse"])
def test_a_row_is_the_same_bits_in_any_company(
    kind: str | None, thin: bool, generator: Seeded
) -> None:
    random = generator(3)
    count = 4096 + 60
    X, y = raw_rows(random, count, 30), random.normal(size=count)
    X[5, 3], X[6, 2], y[7] = math.inf, math.nan, math.nan
    image = None if kind is None else Projection(kind, 10, 30, 8)
    by = rules(30, projection=image)
    make = sparse.csr_array if thin else np.asarray
    whole = features_of(make(X), y, by)
    for some in ([5], [7, 6, 5, 0], list(range(4095, count)), random.permutation(count)):
        assert (features_of(make(X[some]), y[some], by) == whole[:, some]).all()


@pytest.mark.parametrize("place", [3, 4, -1, 2**31 - 1])
def test_an_entry_in_no_column_changes_no_other_row(place: int) -> None:
    rules = Rules(features=3, row_norm=1.0, target_bounds=(-1, 1))
    cells = np.array([[0.1, 0.2, 0.0], [0.3, 0.0, 0.1], [0.2, 0.2, 0.2]])
    whole, broken = sparse.csr_array(cells), sparse.csr_array(cells)
    broken.indices[3] = place  # the second row's last
    found, wanted = (
        [block.features.toarray() for block in read_examples(rows, np.zeros(3), rules).blocks()]
        for rows in (broken, whole)
    )
    assert (found[0][:, [0, 2]] == wanted[0][:, [0, 2]]).all()
    assert found[0][:, 1].tolist() == [wanted[0][0, 1], 0.0, 0.0]


def test_shared_places_are_added_up_in_an_order_of_the_rows_own() -> None:
    """SciPy sorts all rows if one is not sorted, and then adds these numbers in another order."""
    places = np.repeat(np.arange(30), 3)
    values = np.tile([1e16, 1.0, -1e16], 30) * 2.0 ** np.arange(30).repeat(3) * 1e-3
    alone = sparse.csr_array((values, places, [0, 90]), (1, 30))
    beside = sparse.csr_array(
        (np.append(values, [1.0, 1.0]), np.append(places, [9, 2]), [0, 90, 92]), (2, 30)
    )
    by = rules(30)
    found = features_of(alone, np.zeros(1), by)
    assert (features_of(beside, np.zeros(2), by)[:, :1] == found).all()


ODD: dict[str, tuple[Any, Any]] = {
    "nothing": (math.nan, 0.0),
    "none": (None, 0.0),
    "infinite": (math.inf, math.inf),
    "minus infinite": (-math.inf, -math.inf),
    "huge": (10**400, math.inf),
    "text": ("0.25", 0.25),
    "words": ("much", 0.0),
    "decimal": (decimal.Decimal("0.5"), 0.5),
    "signalling": (decimal.Decimal("sNaN"), 0.0),
    "list": ([1, 2], 0.0),
    "truth": (True, 1.0),
    "complex": (1j, 0.0),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_cells_are_read_without_a_word(name: str) -> None:
    cell, meant = ODD[name]
    X = np.full((3, 4), 0.5, dtype=object)
    X[1, 2] = cell
    y = np.array([0.0, 1.0, None], dtype=object)
    by = rules(4)
    plain = np.full((3, 4), 0.5)
    plain[1, 2] = meant
    found = features_of(X, y, by)
    assert (found == features_of(plain, np.array([0.0, 1.0, math.nan]), by)).all()
    if math.isinf(meant):
        assert found[:-1, 1] == pytest.approx([0, 0, math.copysign(CELLS, meant), 0], abs=3)


def test_labels_of_any_kind() -> None:
    X = np.zeros((6, 1))
    low, high = -float(CELLS), float(CELLS)
    numbers = np.array([-5.0, -1.0, 1.0, 3.0, math.inf, math.nan])
    found = features_of(X, numbers, rules(1))[-1]
    assert found.tolist() == [low, low, 0, high, high, 0]
    hidden = np.ma.array(numbers, mask=np.array([1, 0, 0, 1, 0, 0], bool))
    assert features_of(X, hidden, rules(1))[-1].tolist() == [0, low, 0, 0, high, 0]
    words = np.array(["no", "yes", "maybe", None, 3, "yes"], dtype=object)
    found = features_of(X, words, rules(1, target_bounds=None, classes=("no", "yes")))[-1]
    assert found.tolist() == [low, high, low, low, low, high]
    found = features_of(
        X, np.array(list("abcabc")), rules(1, target_bounds=None, classes=("a", "b"))
    )
    assert found[-1].tolist() == [low, high, low] * 2
    for given in (np.array([0, 1, 2, 1, 0, 7]), np.array([0, 1, "x", True, None, 0.5], object)):
        found = features_of(X, given, rules(1, target_bounds=None, classes=(0, 1)))[-1]
        assert found.tolist() == [low, high, low, high, low, low]


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.longdouble, np.int8, np.uint64, np.bool_, ">f8", "U5"]
)
def test_dtypes_mean_their_numbers(dtype: Any) -> None:
    X = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    y = np.array([0, 1]).astype(dtype)
    by = rules(3)
    assert (features_of(X, y, by) == features_of(X.astype(float), y.astype(float), by)).all()


@pytest.mark.parametrize("compressed", [False, True])
def test_sparse_numbers_that_float64_cannot_hold(compressed: bool) -> None:
    image = Projection("rademacher", 3, 9, 0) if compressed else None
    by = rules(3, projection=image, compressed=compressed)
    huge = np.longdouble(10) ** 400
    X = sparse.csr_array(np.array([[huge, 1.0, 0.0]], np.longdouble))
    features = features_of(X, np.zeros(1), by)[:-1, 0]
    assert features == pytest.approx([by.frame.norm, 0, 0], abs=3)


def test_masked_cells_are_missing() -> None:
    X = np.ma.array([[1.0, 0.5], [9.0, 0.5]], mask=np.array([[0, 0], [1, 0]], bool))
    plain = np.array([[1.0, 0.5], [0.0, 0.5]])
    by = rules(2)
    assert (features_of(X, np.zeros(2), by) == features_of(plain, np.zeros(2), by)).all()


@pytest.mark.parametrize("value", [1e-3, 0.3, 1.0, 1e3])
@pytest.mark.parametrize("thin", [False, True])
def test_an_intercept_takes_its_share(value: float, thin: bool, generator: Seeded) -> None:
    random = generator(4)
    X, y = raw_rows(random, 60, 6), np.zeros(60)
    by = rules(6, intercept=value)
    found = features_of(sparse.csr_array(X) if thin else X, y, by)[:-1]
    assert by.dimension == by.frame.features == 7
    assert by.constant == pytest.approx(value / math.hypot(1, value), abs=2**-19)
    assert by.scale == pytest.approx(0.5 / math.hypot(1, value), abs=2**-10)
    assert (found[-1] == by.constant * CELLS).all()
    assert max(square(row) for row in found.T) <= CELLS**2
    short = np.linalg.norm(X, axis=1) < 1.99
    expected = (X * by.scale * CELLS)[short]
    assert np.abs(found[:-1].T[short] - expected).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_projected_rows_are_projections(kind: str, generator: Seeded) -> None:
    random = generator(5)
    X, y = raw_rows(random, 80, 25), np.zeros(80)
    image = Projection(kind, 12, 26, 3)
    by = rules(25, projection=image, clip=1.1, intercept=1.0)
    assert by.frame.features == 12
    assert by.frame.norm == int(1.1 * CELLS)
    for given in (X, sparse.csc_array(X)):
        block = next(read_examples(given, y, by).blocks())
        assert isinstance(block.features, np.ndarray)
        lengths = np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 2.0)
        rows = np.hstack((X * 2.0 / lengths * by.scale, np.full((80, 1), by.constant)))
        truth = image.forward(rows.T)
        norms = np.linalg.norm(truth, axis=0)
        truth *= np.minimum(1, 1.1 / np.maximum(norms, 1e-9))
        assert block.features / CELLS == pytest.approx(truth, abs=1e-4)
        assert 0 < (norms > 1.1).sum() < 80


def test_compressed_rows_are_as_if_projected_here(generator: Seeded) -> None:
    random = generator(6)
    image = Projection("gaussian", 12, 50, 1)
    X = random.normal(size=(40, 50))
    X *= 2.0 / np.linalg.norm(X, axis=1, keepdims=True)
    X[:5] *= 0.01
    y = random.normal(size=40)
    here = rules(50, projection=image, clip=1.05)
    there = rules(12, projection=image, clip=1.05, compressed=True)
    assert there.frame == here.frame
    assert (there.dimension, there.scale) == (50, 0.5)
    sent = image.forward(X.T).T
    long = np.linalg.norm(sent, axis=1) > 2.1
    assert 0 < long.sum() < 40
    ours = features_of(X, y, here)
    for given in (sent, sparse.csr_array(sent), shuffled(sent, random, 2)):
        theirs = features_of(given, y, there)
        assert np.abs(theirs - ours).max() <= 20
        assert max(square(row) for row in theirs[:-1].T) <= there.frame.norm**2
    with refused("compressed", "Rules"):
        rules(12, compressed=True)


# Record-replay: whatever row is removed or replaced, a gradient moves by at most its bound.


def adversaries(image: Projection | None, features: int, random: Any) -> Any:
    """Rows that a projection makes as long as it can, and rows longer than allowed."""
    rows = [np.zeros(features), np.full(features, 7.0), np.eye(features)[0] * 2.0]
    if image is not None:
        whole = image.forward(np.eye(features))
        worst = np.linalg.svd(whole)[2][0] * 2.0
        longest = np.eye(features)[np.argmax(np.linalg.norm(whole, axis=0))] * 2.0
        rows += [worst, -worst, 1e9 * worst, longest, -longest]
    rows += list(random.normal(size=(8, features)) * 5.0)
    return np.array(rows)


def replay(name: str, image: Projection | None, thin: bool, random: Any) -> list[float]:
    """The changes of a gradient, squared, in units of what is promised."""
    features = 40
    by = rules(features, projection=image, clip=1.2)
    strange = adversaries(image, features, random)
    X = np.vstack((strange, raw_rows(random, 12, features)))
    y = random.choice([-9.0, 9.0, math.nan], len(X))
    loss = LOSSES[name]()
    found = []
    for direction in (0, 3, len(strange) - 1):
        seen = X[direction : direction + 1]
        example = features_of(seen, np.zeros(1), by)[:-1, 0] / CELLS
        for sign in (-4.0, 0.0, 4.0):  # margins as large as they come, on either side
            total = SlopeSum(by.frame, loss, sign * example, loss.steepest(by.frame.reach * 4))

            def gradient(X: Any, y: Any, total: SlopeSum = total) -> Any:
                table = read_examples(sparse.csr_array(X) if thin else X, y, by)
                return table.sums([total])[0]

            whole = gradient(X, y)
            for i in range(len(strange)):
                rest = np.delete(np.arange(len(X)), i)
                found.append(Fraction(square(whole - gradient(X[rest], y[rest])), total.bound**2))
                other, label = X.copy(), y.copy()
                other[i], label[i] = -X[direction], -9.0 * np.sign(sign or 1.0)
                found.append(Fraction(square(whole - gradient(other, label)), 4 * total.bound**2))
    return [float(change) if change <= 1 else math.inf for change in found]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", [None, "gaussian", "sparse"])
def test_record_replay(name: str, kind: str | None, generator: Seeded) -> None:
    random = generator(7)
    image = None if kind is None else Projection(kind, 8, 40, 6)
    changes = replay(name, image, kind != "gaussian", random)
    assert max(changes) <= 1
    assert max(changes) > 0.9  # the bound is not a loose one


@pytest.mark.parametrize("name", LOSSES)
def test_unclipped_projections_are_caught(
    name: str, generator: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projections, "shorten", lambda rows, _: np.rint(rows))
    image = Projection("gaussian", 8, 40, 6)
    assert max(replay(name, image, False, generator(7))) <= 1  # examples are verified once more
    monkeypatch.setattr(examples, "held_block", lambda block, _: block)
    assert max(replay(name, image, False, generator(7))) > 1


@pytest.mark.parametrize("name", LOSSES)
def test_unclipped_rows_are_caught(
    name: str, generator: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "shorten", lambda rows, *_: np.rint(rows))
    assert max(replay(name, None, False, generator(7))) <= 1
    monkeypatch.setattr(examples, "held_block", lambda block, _: block)
    assert max(replay(name, None, False, generator(7))) > 1


class Unread:
    """A cell that must not be looked at."""

    def __float__(self) -> float:
        raise AssertionError


BAD: dict[str, tuple[Any, Any, str]] = {
    "list": ([[1.0]], np.zeros(1), "data"),
    "one dimension": (np.full(37, Unread()), np.zeros(37), "data"),
    "columns": (np.full((37, 3), Unread()), np.zeros(37), "data"),
    "complex": (np.zeros((37, 2), complex), np.zeros(37), "data"),
    "complex sparse": (sparse.csr_array((37, 2), dtype=complex), np.zeros(37), "data"),
    "times": (np.zeros((37, 2), "M8[s]"), np.zeros(37), "data"),
    "sparse columns": (sparse.csr_array((37, 3)), np.zeros(37), "data"),
    "longer": (np.zeros((37, 2)), np.full(38, Unread()), "target"),
    "table of labels": (np.zeros((37, 2)), np.zeros((37, 1)), "target"),
    "list of labels": (np.zeros((37, 2)), [0.0] * 37, "target"),
    "sparse labels": (np.zeros((37, 2)), sparse.csr_array((37, 1)), "target"),
    "times of labels": (np.zeros((37, 2)), np.zeros(37, "M8[s]"), "target"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_table_is_one_error_before_a_cell_is_read(name: str) -> None:
    X, y, parameter = BAD[name]
    for call in (read_examples, lambda X, y, by: check_table(X, y, by, "read_examples")):
        with pytest.raises(
            (TypeError, ValueError), match=f"'{parameter}' parameter of read_ex"
        ) as e:
            call(X, y, rules(2))
        assert "3" not in str(e.value).replace("(3,)", "")


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"features": 0}, "features"),
        ({"row_norm": 0.0}, "row_norm"),
        ({"row_norm": 5e-324}, "row_norm"),
        ({"clip": 9.0}, "clip"),
        ({"clip": 1e-4}, "clip"),
        ({"intercept": -1.0}, "intercept"),
        ({"intercept": 1e-6}, "intercept"),
        ({"target_bounds": None}, "target_bounds"),
        ({"classes": (0, 1)}, "target_bounds"),
        ({"target_bounds": (1.0, 1.0)}, "target_bounds"),
        ({"target_bounds": (1.0, math.inf)}, "target_bounds"),
        ({"target_bounds": 3.0}, "target_bounds"),
        ({"target_bounds": None, "classes": (1, 1)}, "classes"),
        ({"target_bounds": None, "classes": ("a", 1)}, "classes"),
        ({"target_bounds": None, "classes": (0, 1, 2)}, "classes"),
        ({"projection": Projection("rademacher", 3, 6, 0)}, "projection"),
    ],
)
def test_wrong_rules_are_one_error(change: dict[str, Any], parameter: str) -> None:
    options: dict[str, Any] = {"features": 5, "row_norm": 1.0, "target_bounds": (0.0, 1.0)} | change
    with pytest.raises((TypeError, ValueError), match=f"'{parameter}' parameter of Rules"):
        Rules(**options)


def test_no_rows_are_no_examples() -> None:
    for X in (np.zeros((0, 2)), sparse.csr_array((0, 2))):
        assert list(read_examples(X, np.zeros(0), rules(2)).blocks()) == []


@pytest.mark.parametrize("shown", [True, None])
def test_progress_is_shown_when_asked_for(
    shown: bool | None, capfd: pytest.CaptureFixture[str]
) -> None:
    read_examples(np.zeros((9, 2)), np.zeros(9), rules(2), progress=shown)
    assert ("Reading rows" in capfd.readouterr().err) is bool(shown)


def test_rows_are_as_long_as_the_rules_say_before_they_are_verified_again() -> None:
    rules = Rules(features=4, row_norm=2.0, target_bounds=(-1, 1), intercept=0.5)
    rows = rules.dense(np.array([[9.0, -9.0, 3.0, 0.0], [0.1, 0.2, 0.0, 0.0], [1e300, 0, 0, 0]]))
    squares = (rows.astype(np.int64) ** 2).sum(axis=0)
    assert squares.max() <= rules.frame.norm**2
    assert squares[0] > 0.999 * rules.frame.norm**2
