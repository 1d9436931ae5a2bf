"""Sketches for single cells: what the best attacker learns, and which law the rows follow.

The oracles know the formula of the law and nothing of the code: the attacker of `leaks.py` is told
the table, but for a cell, and the noise.
"""

import dataclasses
import itertools
import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dplinear.analyst.noise_models.matrices import NoiseModel, ProjectionNoise
from dplinear.exact.grid import shape_of
from dplinear.exact.shape import Statistic
from dplinear.mechanisms import Measurement, MIProjection
from dplinear.mechanisms.cells.bounded_query import BoundedQuery, most_shift
from dplinear.mechanisms.cells.mi_projection import projected_rows
from dplinear.mechanisms.cells.table_cells import Cell, cells_of
from dplinear.noise import simulation
from dplinear.papers.showkatbakhsh.peaks import PeakStatistic
from dplinear.papers.showkatbakhsh.published import PublishedProjection
from dplinear.privacy import MIDP, ApproxDP, Neighbours
from dplinear.schema import Schema
from refusals import refused

from .leaks import Leak, leak
from .tables import Matrix

# 250 tables and fewer than 250 other comparisons, each with a share of 1e-6.
ALARM = 1e-6 / 500
NUMBERS = Schema(dict.fromkeys("abc", (-1, 1)))
BARE = Schema(dict.fromkeys("abc", (-1, 1)), intercept=False)
ONE = Schema({"a": (-1, 1)}, intercept=False)
MIXED = Schema(
    {
        "a": (-1, 1),
        "c": ["u", "v", "w"],
        "flag": {"type": "category", "levels": ["no", "yes"], "other": "no"},
    }
)


HOLES = Schema(
    {
        "a": (-1, 1),
        "m": {"type": "number", "low": -1, "high": 1, "missing": 0, "missing_indicator": True},
    }
)


def statistic(schema: Schema, table: Matrix) -> PeakStatistic:
    """Return the exact moments of a table of cells, the intercept included."""
    shape = shape_of(schema)
    integers = np.rint(table * shape.steps_per_unit).astype(np.int64).astype(object)
    assert all(sum(cell**2 for cell in row) <= shape.sensitivity for row in integers)
    peaks = np.array([max(abs(int(x)) for x in column) ** 2 for column in integers.T])
    return PeakStatistic(shape, integers.T @ integers, len(table), peaks=peaks)


def measured(
    schema: Schema,
    table: Matrix,
    *,
    bits: float = 0.5,
    seed: int = 1,
    kind: type[MIProjection] = MIProjection,
    **options: Any,
) -> Measurement:
    prepared = kind(guarantee=MIDP(bits), **options).prepare(schema, shape_of(schema))
    return prepared.run(statistic(schema, table), simulation.entropy(seed))


def ridges_of(found: Any) -> Matrix:
    assert isinstance(found.noise_model, ProjectionNoise)
    assert found.noise_model.noise is not None
    return np.array(found.noise_model.noise)


def points(cell: Cell, row: Matrix) -> Matrix:
    """Return the row with each of the values that the cell may hold, far ones for a number."""
    places = list(cell.indices)
    values: Any = np.eye(len(places))
    if cell.diameter_squared == 5:  # a number, or its flag and the middle
        values = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    elif cell.diameter_squared == 4:
        values = np.array([[1.0], [-1.0]])
    elif cell.diameter_squared == 1 or cell.freedom == len(places):
        values = np.vstack([np.zeros(len(places)), values])
    rows = np.repeat(row[None], len(values), axis=0)
    rows[:, places] = values
    return rows


def worst(schema: Schema, table: Matrix, ridges: Matrix, rows: int, public: str = "") -> Leak:
    """Return what is learnt of the cell that its row and the noise hide the least.

    One cell of each kind is attacked: numbers, categories, flags.
    """
    found: dict[Any, tuple[float, int, Cell]] = {}
    for i in range(len(table)):
        others = np.delete(table, i, 0)
        inverse = np.linalg.inv(others.T @ others + np.diag(np.maximum(ridges, 1e-6)))
        for cell in cells_of(schema, "test"):
            shown = max(float(inverse[j, j]) for j in cell.indices)
            kind = cell.diameter_squared
            if cell.column != public and shown > found.get(kind, (0.0, 0, cell))[0]:
                found[kind] = (shown, i, cell)
    leaks = [
        leak(np.delete(table, i, 0), ridges, points(cell, table[i]), rows, ALARM)
        for _, i, cell in found.values()
    ]
    return max(leaks, key=lambda one: one.bits)


def conditional(schema: Schema, table: Matrix, public: str = "") -> float:
    """Return the greatest lower bound that a caller may promise, by least squares."""
    least = np.inf
    for i, cell in itertools.product(range(len(table)), cells_of(schema, "test")):
        if cell.column == public:
            continue
        kept = np.delete(table, i, 0)
        block, rest = kept[:, list(cell.indices)], np.delete(kept, list(cell.indices), 1)
        left = block - rest @ np.linalg.pinv(rest) @ block
        least = min(least, float(np.linalg.eigvalsh(left.T @ left)[0]))
    return max(least, 0.0) * (1 - 1e-9)


def with_ones(cells: Matrix) -> Matrix:
    return np.column_stack([np.ones(len(cells)), cells])


def uniform(seed: int, count: int) -> Matrix:
    return simulation.generator(seed).uniform(-1, 1, (count, 3))


def doubled(seed: int) -> Matrix:
    cells = uniform(seed, 12)
    cells[:, 1] = cells[:, 0]
    cells[3, 1] = -cells[3, 0]
    return cells


def mixed(seed: int, count: int) -> Matrix:
    """Return rows of MIXED: a number, one of three levels (and `other`), and a flag."""
    generator = simulation.generator(seed)
    width = len(MIXED.features)
    table = np.zeros((count, width))
    table[:, 0], table[:, 1] = 1.0, generator.uniform(-1, 1, count)
    cells = cells_of(MIXED, "test")
    for row, level, flag in zip(
        table, generator.integers(0, 4, count), generator.integers(0, 2, count), strict=True
    ):
        if level:
            row[cells[1].indices[level - 1]] = 1.0
        row[cells[2].indices[0]] = flag
    return table


def holes(seed: int, count: int) -> Matrix:
    """Return rows of HOLES: ones, a number, and a number that may be missing, with its flag."""
    cells = uniform(seed, count)
    missing = cells[:, 2] > 0
    return with_ones(np.column_stack([cells[:, 0], cells[:, 1] * ~missing, missing]))


# Name, schema, rows by a seed.
KINDS: dict[str, tuple[Schema, Any]] = {
    "random": (NUMBERS, lambda seed: with_ones(uniform(seed, 2 + seed % 9))),
    "one row": (NUMBERS, lambda seed: with_ones(uniform(seed, 1))),
    "doubled column": (NUMBERS, lambda seed: with_ones(doubled(seed))),
    "target a column": (BARE, lambda seed: uniform(seed, 9)[:, [0, 1, 0]]),
    "one huge row": (BARE, lambda seed: np.vstack([np.ones((1, 3)), 1e-3 * uniform(seed, 6)])),
    "one column": (ONE, lambda seed: uniform(seed, 5)[:, :1]),
    "categories": (MIXED, lambda seed: mixed(seed, 2 + seed % 7)),
    "missing numbers": (HOLES, lambda seed: holes(seed, 2 + seed % 5)),
    "sorted": (BARE, lambda seed: np.sort(uniform(seed, 8), 0)),
}


@pytest.mark.heavy
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 25), marks=pytest.mark.long)])
def test_the_best_attacker_learns_no_more_than_the_bits(kind: str, seeds: range) -> None:
    schema, make = KINDS[kind]
    for seed in seeds:
        table, rows = make(seed), (1, 2, 4, 8)[seed % 4]
        bits = (0.5, 0.8)[seed % 2]
        ridges = ridges_of(measured(schema, table, bits=bits, rows=rows))
        assert worst(schema, table, ridges, rows).high <= bits


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["random", "categories", "sorted", "doubled column"])
def test_a_true_lower_bound_keeps_the_bits(kind: str) -> None:
    schema, make = KINDS[kind]
    for seed in range(4):
        table = np.vstack([make(seed), make(seed + 100)])
        bound = conditional(schema, table)
        found = measured(schema, table, rows=8, lower_bound=bound)
        assert ridges_of(found).max() == pytest.approx(max(8 - bound, 0.0), rel=1e-9)
        assert worst(schema, table, ridges_of(found), 8).high <= 0.5


@pytest.mark.heavy
def test_a_false_lower_bound_would_be_seen() -> None:
    table = with_ones(doubled(1))
    ridges = ridges_of(measured(NUMBERS, table, rows=8, lower_bound=7.5))
    assert worst(NUMBERS, table, ridges, 8).low > 0.5


@pytest.mark.heavy
def test_noise_that_forgets_the_number_of_rows_would_be_seen() -> None:
    table = with_ones(uniform(1, 1))
    found = ridges_of(measured(NUMBERS, table, rows=8))
    assert worst(NUMBERS, table, found, 8).bits > 0.4  # nearly all that is allowed
    assert worst(NUMBERS, table, found / 8, 8).low > 0.5


@pytest.mark.heavy
def test_a_public_target_has_no_noise_and_leaves_the_others_theirs() -> None:
    for seed in range(4):
        table = uniform(seed, 9)[:, [0, 1, 0]]
        table[seed % 9, 2] += 0.01 - 0.02 * (table[seed % 9, 2] > 0)
        found = measured(BARE, table, rows=4, target="c", y_public=True)
        assert 0 < ridges_of(found)[2] < 1e-8
        assert any("c, has no noise" in note for note in found.account.notes)
        assert worst(BARE, table, ridges_of(found), 4, public="c").high <= 0.5
    table = with_ones(uniform(1, 1))
    found = measured(NUMBERS, table, rows=4, target="c", y_public=True)
    assert worst(NUMBERS, table, ridges_of(found), 4).low > 0.9


def test_the_papers_noise_lets_two_lines_read_a_cell() -> None:
    def read(values: Matrix) -> bool:
        difference = values[:, 0] - values[:, 1]
        return bool(np.sqrt(np.mean(difference**2)) > 1e-3)

    paper: dict[str, Any] = {"rows": 5, "kind": PublishedProjection, "target": "c"}
    right = 0
    for seed in range(20):
        table = np.repeat(uniform(seed, 40), 2, axis=0)
        table[:, 1] = table[:, 0]
        secret = bool(seed % 3)
        table[7, 1] += 0.1 * secret * -np.sign(table[7, 0])
        found = measured(BARE, table, seed=seed, **paper)
        assert found.account.holds is None
        assert read(found.values) == secret
        right += read(measured(BARE, table, seed=seed, rows=5).values) == secret
    assert right == sum(bool(seed % 3) for seed in range(20))  # it always says yes


def test_the_papers_noise_leaves_out_the_largest_square() -> None:
    table = np.vstack([[1.0, 0.5, 1.0], np.full((8, 3), 0.5)])
    method = PublishedProjection(guarantee=MIDP(0.5), target="c", rows=4)
    prepared = method.prepare(BARE, shape_of(BARE))
    ridges = prepared._printed_variances(statistic(BARE, table), 4)
    assert ridges == pytest.approx([2.0, 2.0, 0.0], abs=1e-5)  # f² = 8/4: of both columns
    assert prepared._printed_variances(statistic(BARE, np.vstack([table] * 4)), 4).max() == 0


def residues(values: Matrix, covariance: Matrix) -> Matrix:
    """Return chances of sums of squares and of products, were the rows N(0, covariance)."""
    white = np.linalg.solve(np.linalg.cholesky(covariance), values.T).T
    count, d = white.shape
    squares = stats.chi2.cdf((white**2).sum(0), count)
    # Given one column, its product with another over its length is normal.
    pairs = list(itertools.combinations(range(d), 2))
    normal = [white[:, i] @ white[:, j] / np.sqrt((white[:, i] ** 2).sum()) for i, j in pairs]
    lower = np.append(squares, stats.norm.cdf(normal))
    return np.asarray(np.minimum(lower, 1 - lower))


@pytest.mark.heavy
def test_rows_follow_the_law_that_is_printed() -> None:
    table = mixed(4, 60)
    found = measured(MIXED, table, rows=20_000)
    gram = statistic(MIXED, table).matrix()
    ridges = ridges_of(found)
    assert 0 < ridges[0] < 1e-8 * ridges.max()
    assert len(found.values) == found.parameters["rows"] == 20_000
    least = 1e-6 / 400
    covariance = gram + np.diag(ridges)
    assert residues(found.values, covariance).min() > least
    # An intercept with noise, noise that lacks a column, noise a twentieth too small.
    assert residues(found.values, covariance + np.diag([60.0, *[0] * 5])).min() < least
    for place in range(1, 6):
        wrong = ridges.copy()
        wrong[place] = 0.0
        assert residues(found.values, gram + np.diag(wrong)).min() < least
    assert residues(found.values, gram + np.diag(ridges * 0.95)).min() < least


def test_indicators_need_a_quarter_of_the_noise() -> None:
    ridges = ridges_of(measured(MIXED, mixed(1, 5), rows=16, bits=0.5))
    assert ridges[1] == pytest.approx(16)
    assert ridges[-1] == pytest.approx(4)
    # Three features and none of them: total variance 2/3 in three dimensions.
    assert ridges[2:5] == pytest.approx(16 * (2 / 9) / (2 ** (1 / 3) - 1))


def shift(one: Matrix, other: Matrix) -> float:
    return float(np.linalg.eigvalsh(np.outer(one, one) - np.outer(other, other))[-1])


@pytest.mark.parametrize(
    "schema", [ONE, BARE, NUMBERS, MIXED], ids=["one", "bare", "ones", "mixed"]
)
def test_a_cell_moves_the_least_eigenvalue_by_no_more_than_the_bound(schema: Schema) -> None:
    generator = simulation.generator(3)
    square = shape_of(schema).bound ** 2
    for cell in cells_of(schema, "test"):
        bound, most = most_shift(cell, square), 0.0
        rest = np.sqrt(max(float(square) - 1, 0.0))
        for _ in range(500):
            # Only the length of the rest of the row matters, beside the cell itself.
            length = rest * min(1.0, generator.uniform(0.5, 2.0))
            ends = generator.uniform(-1, 1, 2) if cell.diameter_squared == 4 else np.zeros(2)
            ends = np.where(generator.uniform(size=2) < 0.3, np.sign(ends), ends)
            if cell.diameter_squared == 4:
                pair = [np.array([x, length]) for x in ends]
            else:
                whole = points(cell, np.zeros(len(schema.features)))[:, list(cell.indices)]
                chosen = generator.choice(len(whole), 2, replace=False)
                pair = [np.append(whole[k], length) for k in chosen]
            most = max(most, shift(*pair))
        assert 0.99 * bound <= most <= bound <= float(square) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_on_a_shift_is_met_by_tables(seed: int) -> None:
    """Rows that leave a single direction weak make the eigenvalue move by all of it."""
    generator = simulation.generator(seed)
    square = shape_of(BARE).bound ** 2
    rest = generator.choice([-1.0, 1.0], 2)
    one, other = np.append(1.0, rest), np.append(-1.0, rest)
    top = np.linalg.eigh(np.outer(one, one) - np.outer(other, other))[1][:, -1]
    strong = 1e4 * (np.eye(3) - np.outer(top, top))
    least = [np.linalg.eigvalsh(strong + np.outer(a, a))[0] for a in (one, other)]
    bound = most_shift(cells_of(BARE, "test")[0], square)
    assert 0.99 * bound < abs(least[0] - least[1]) <= bound


def test_a_query_tells_no_more_than_its_bits_and_never_fails() -> None:
    table = np.vstack([uniform(seed, 50) for seed in range(4)])
    shape = shape_of(BARE)
    query = BoundedQuery(0.2, shape, cells_of(BARE, "test"))
    moments = statistic(BARE, table)
    gram = moments.matrix()
    unit = float(shape.bound**2) / 2**20
    levels = query.levels
    entropy = simulation.entropy(5)
    bounds = np.array([query.ask(moments, entropy) for _ in range(4000)])
    least = min(np.linalg.eigvalsh(gram - np.outer(row, row))[0] for row in table)
    assert bounds.max() <= np.linalg.eigvalsh(gram)[0] - float(shape.bound**2) <= least
    # Uniform over `levels` units: twenty parts of equal chance.
    top = np.linalg.eigvalsh(gram)[0] - float(shape.bound**2)
    parts = np.histogram((top - bounds) / (levels * unit), 20, (0.0, 1.0))[0]
    assert stats.chisquare(parts).pvalue > 1e-6
    # Of two tables that a cell sets apart, so many of the levels tell which it is.
    for row in table[:20]:
        for place in range(3):
            ends = []
            for end in (-1.0, 1.0):
                moved = row.copy()
                moved[place] = end
                change = np.outer(moved, moved) - np.outer(row, row)
                ends.append(float(np.linalg.eigvalsh(gram + change)[0]))
            assert (abs(ends[0] - ends[1]) / unit + 1) / levels <= 0.2


@pytest.mark.heavy
def test_what_is_left_after_a_query_keeps_the_rest_of_the_bits() -> None:
    used = []
    for seed in range(8):
        table = np.vstack([uniform(seed + k, 10) for k in range(6)])
        found = measured(BARE, table, rows=8, bits=0.9, least_eigenvalue_bits=0.4, seed=seed)
        lower = found.parameters["lambda_lower"]
        for i in range(len(table)):
            others = np.delete(table, i, 0)
            assert lower <= np.linalg.eigvalsh(others.T @ others)[0]
        needed = 8 / (2 ** (2 * 0.5) - 1)
        wanted = max(needed - max(lower, 0), 0.0)
        assert ridges_of(found) == pytest.approx(wanted, rel=1e-9, abs=1e-8)
        assert worst(BARE, table, ridges_of(found), 8).high <= 0.5
        used.append(lower > 0)
    assert sum(used) > 3


VARIANTS: list[dict[str, Any]] = [
    {},
    {"rows": "full"},
    {"target": "c", "y_public": True},
    {"lower_bound": 3.0},
    {"least_eigenvalue_bits": 0.2},
    {"kind": PublishedProjection, "target": "c"},
]


@pytest.mark.parametrize("options", VARIANTS)
def test_it_does_what_every_mechanism_does(options: dict[str, Any]) -> None:
    table = with_ones(uniform(3, 20))
    own = {name: value for name, value in options.items() if name != "kind"}
    kind = options.get("kind", MIProjection)
    method = kind(guarantee=MIDP(0.5), **own)
    assert method == kind(guarantee=MIDP(0.5), **own)
    assert hash(method) == hash(kind(guarantee=MIDP(0.5), **own))
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.calibration = "other"
    one, again, other = (measured(NUMBERS, table, seed=s, **options) for s in (4, 4, 5))
    assert np.array_equal(one.values, again.values)
    assert one.parameters == again.parameters
    assert not np.array_equal(one.values, other.values)
    assert one.account.asked == MIDP(0.5)
    assert one.account.holds == (None if "kind" in options else MIDP(0.5))
    assert (
        NoiseModel.from_dict(json.loads(json.dumps(one.noise_model.to_dict()))) == one.noise_model
    )
    assert json.loads(json.dumps(dict(one.parameters))) == dict(one.parameters)
    prepared = method.prepare(NUMBERS, shape_of(NUMBERS))
    with pytest.raises(ValueError, match="'statistic' parameter"):
        prepared.run(statistic(BARE, uniform(1, 4)), simulation.entropy(1))


def test_the_papers_numbers_of_rows() -> None:
    assert projected_rows("full", 20_000) == 20_000
    assert projected_rows("linear", 20_000) == 10_500
    assert projected_rows("logarithmic", 20_000) == round(1000 * (np.log(20) + 1))
    assert projected_rows("logarithmic", 5_000, 500) == round(500 * (np.log(10) + 1))
    for rule in ("full", "linear", "logarithmic"):
        assert projected_rows(rule, 300) == 300
        assert projected_rows(rule, 0) == 1
    assert projected_rows("full", 10**9) == 1_000_000


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"guarantee": ApproxDP(1.0, 1e-6)}, "guarantee"),
        ({"guarantee": MIDP(1e-320)}, "bits"),
        ({"guarantee": MIDP(100.0), "kind": PublishedProjection, "target": "c"}, "bits"),
        ({"neighbours": Neighbours.REPLACE}, "neighbours"),
        ({"rows": 0}, "rows"),
        ({"rows": "most"}, "rows"),
        ({"rows": 2.5}, "rows"),
        ({"base": 0}, "base"),
        ({"target": "z"}, "target"),
        ({"y_public": True}, "target"),
        ({"y_public": 1, "target": "c"}, "y_public"),
        ({"kind": PublishedProjection}, "target"),
        ({"lower_bound": -1.0}, "lower_bound"),
        ({"lower_bound": 1.0, "kind": PublishedProjection, "target": "c"}, "lower_bound"),
        ({"least_eigenvalue_bits": 0.5}, "least_eigenvalue_bits"),
        ({"least_eigenvalue_bits": 0.0}, "least_eigenvalue_bits"),
        ({"least_eigenvalue_bits": 1.0, "guarantee": MIDP(3.0)}, "least_eigenvalue_bits"),
        ({"least_eigenvalue_bits": 0.1, "lower_bound": 1.0}, "least_eigenvalue_bits"),
    ],
)
def test_what_is_wrong_is_refused(options: dict[str, Any], parameter: str) -> None:
    given = {"guarantee": MIDP(0.5), **options}
    kind = given.pop("kind", MIProjection)
    with pytest.raises((TypeError, ValueError), match=f"'{parameter}' parameter"):
        kind(**given).prepare(NUMBERS, shape_of(NUMBERS))


def test_schemas_that_tie_cells_together_are_refused() -> None:
    method = MIProjection(guarantee=MIDP(0.5), target="a", y_public=True)
    for schema in (
        Schema({"a": (-1, 1), "b": (0, 2)}, derived=["a*b"]),
        Schema({"a": (-1, 1), "b": (0, 2)}, row_norm=1.0),
        Schema({"a": (-1, 1)}),
    ):
        with refused("schema", "MIProjection"):
            method.prepare(schema, shape_of(schema))


@pytest.mark.parametrize("options", [{}, {"least_eigenvalue_bits": 0.1}, {"lower_bound": 3.0}])
def test_tables_without_rows_and_with_one_are_tables(options: dict[str, Any]) -> None:
    for count in (0, 1):
        shape, table = shape_of(NUMBERS), with_ones(uniform(1, count))
        integers = np.rint(table * shape.steps_per_unit).astype(np.int64).astype(object)
        gram = integers.T @ integers if count else np.zeros((4, 4), object)
        prepared = MIProjection(guarantee=MIDP(0.5), **options).prepare(NUMBERS, shape)
        found = prepared.run(Statistic(shape, gram, count), simulation.entropy(1))
        assert np.isfinite(found.values).all()
        assert found.values.shape == (8, 4)
        assert (abs(found.values[:, 0]) < 1e-3).all() == (count == 0)
