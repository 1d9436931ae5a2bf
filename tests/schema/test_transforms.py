"""Logarithms, roots, bins and splines of columns: exact bounds, the same bits, a joint norm."""

import hashlib
import json
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from scipy.interpolate import BSpline

from dplinear.arguments import ArgumentError
from dplinear.exact.grid import Grid, round_to_grid
from dplinear.noise import simulation
from dplinear.schema import Schema
from dplinear.schema.encoding import Encoder
from dplinear.schema.factors import Bin, Logarithm, Root, SplineFunction
from dplinear.schema.logarithms import log, log1p, log_bounds
from dplinear.schema.splines import basis
from refusals import refused

AGES = {"age": (0, 100), "bmi": (10, 60), "smoker": ["no", "yes"]}


def spread(seed: int, count: int) -> Any:
    """Return positive numbers of all sizes, many of them near 1 and at powers of two."""
    random = simulation.generator(seed)
    return np.concatenate(
        [
            np.exp(random.uniform(-340, 340, count)),
            1 + random.normal(0, 1, count) * 2.0 ** random.uniform(-52, -2, count),
            2.0 ** random.integers(-500, 500, count),
            np.nextafter(2.0 ** random.integers(-9, 9, count), random.choice([0, np.inf], count)),
            random.uniform(0.5, 2, count),
        ]
    )


def exactly(number: float, function: Any = mpmath.log) -> Any:
    with mpmath.workdps(60):
        return function(mpmath.mpf(float(number)))


def test_logarithms_are_those_of_many_digits() -> None:
    for number in spread(1, 300):
        found, want = log(np.array([number]))[0], exactly(number)
        assert abs(found - want) <= 2.0**-50 * abs(want), number
    for number in [*spread(2, 200), 0.0, 5e-324, 2.0**-500]:
        if number < 1e300:
            found, want = log1p(np.array([number]))[0], exactly(number, mpmath.log1p)
            assert abs(found - want) <= 2.0**-50 * abs(want), number


def test_logarithms_are_functions_of_one_number_however_it_is_held() -> None:
    numbers = spread(3, 400)
    whole = log(numbers)
    alone = np.array([log(numbers[index : index + 1])[0] for index in range(len(numbers))])
    wide = np.repeat(numbers, 5).reshape(-1, 5)
    backwards = log(numbers[::-1])[::-1]
    for other in (alone, log(wide[:, 3]), log(np.asfortranarray(wide)[:, 2]), backwards):
        assert other.tobytes() == whole.tobytes()


def test_bits_are_those_of_every_machine() -> None:
    """A digest made on one machine: every operation is rounded as IEEE 754 says."""
    steps = np.arange(1, 20_001) / 1024
    inputs = np.concatenate([steps, np.ldexp(steps, -300), np.ldexp(steps, 400), 1 / steps])
    knots = [Fraction(knot) for knot in (0, 1, 3, 7, 20)]
    made = [log(inputs), log1p(inputs), basis(steps, knots)[0]]
    digests = [hashlib.sha256(each.astype("<f8").tobytes()).hexdigest()[:16] for each in made]
    assert digests == DIGESTS


DIGESTS = ["55a916f2111e45cc", "3af912ecb9e134ed", "63f3752e47db5309"]


@pytest.mark.parametrize("seed", range(20))
def test_bounds_of_logarithms_are_below_and_above_and_near(seed: int) -> None:
    random = simulation.generator(seed)
    size = Fraction(2) ** int(random.integers(-499, 500))
    near = 1 + Fraction(int(random.integers(1, 9)), 2 ** int(random.integers(1, 400)))
    for number in (size * Fraction(int(random.integers(1, 999)), 7), near, 1 / near):
        low, high = log_bounds(number)
        with mpmath.workdps(300):
            want = mpmath.log(mpmath.mpf(number.numerator) / number.denominator)
            ends = [mpmath.mpf(end.numerator) / end.denominator for end in (low, high)]
            assert ends[0] <= want <= ends[1]
            assert ends[1] - ends[0] <= min(mpmath.mpf(2) ** -62, abs(want) / 2)
    assert log_bounds(Fraction(1)) == (Fraction(0), Fraction(0))


def only(term: str, low: Any, high: Any, **options: Any) -> Any:
    return Schema({"x": (low, high)}, derived=[term], **options).features[-1]


@pytest.mark.parametrize(("low", "high"), [(1, 60_000), (0.1, 0.3), ("1/3", 7), (1e-140, 1e140)])
def test_features_have_the_bounds_of_their_columns_ends(low: Any, high: Any) -> None:
    functions = {
        "log(x)": mpmath.log,
        "log1p(x)": mpmath.log1p,
        "sqrt(x)": mpmath.sqrt,
    }
    ends = [Fraction(end) for end in (low, high)]
    for term, function in functions.items():
        feature = only(term, low, high)
        with mpmath.workdps(200):
            want = [function(mpmath.mpf(end.numerator) / end.denominator) for end in ends]
            got = [mpmath.mpf(e.numerator) / e.denominator for e in (feature.low, feature.high)]
            width = want[1] - want[0]
            assert want[0] - width * 2.0**-40 <= got[0] <= want[0]
            assert want[1] <= got[1] <= want[1] + width * 2.0**-40
        assert feature.centre == (feature.low + feature.high) / 2
        assert feature.half_width == (feature.high - feature.low) / 2
        plain = only(term, low, high, intercept=False)
        assert (plain.centre, plain.half_width) == (0, max(abs(plain.low), plain.high))


def test_features_know_what_they_are() -> None:
    schema = Schema(
        AGES,
        derived=[
            "log(bmi)",
            "sqrt( age )",
            "log1p(age)",
            "bins(age, 30, 50)",
            "spline(age,3)",
        ],
    )
    made = {feature.name: feature.factors for feature in schema.features[5:]}
    knots = (Fraction(0), Fraction(100))
    assert made == {
        "log(bmi)": (Logarithm("bmi", 0),),
        "sqrt(age)": (Root("age"),),
        "log1p(age)": (Logarithm("age", 1),),
        "age[30, 50)": (Bin("age", (Fraction(30), Fraction(50)), 1),),
        "age[50, 100]": (Bin("age", (Fraction(30), Fraction(50)), 2),),
        **{f"spline(age, 3)[{i}]": (SplineFunction("age", knots, i),) for i in (1, 2, 3)},
    }
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    part = schema.select(["age[50, 100]", "log(bmi)"])
    assert part.columns == ("age", "bmi")
    assert part.names == ("intercept", "age", "bmi", "log(bmi)", "age[30, 50)", "age[50, 100]")


def test_a_column_that_is_named_like_a_call_stays_that_column() -> None:
    schema = Schema({"log(x)": (0, 9), "x": (1, 3)}, derived=["log(x)*x", "sqrt(x)"])
    assert [factor.column for factor in schema.features[3].factors] == ["log(x)", "x"]
    with refused("mapping", "Schema", "features of the same name"):
        Schema({"log(x)": (0, 9), "x": (1, 3)}, derived=["log(x)"])


def encoded(schema: Schema, values: Any, name: str = "x") -> Any:
    return schema.encode(pa.RecordBatch.from_pydict({name: values}))


def test_logarithms_and_roots_of_rows_are_scaled_to_their_bounds() -> None:
    schema = Schema({"x": (1, 50)}, derived=["log(x)", "log1p(x)", "sqrt(x)"])
    values = [1.0, 50.0, 7.25, 1 / 3 + 1, -5.0, 1e300, None, float("nan"), float("-inf")]
    used = [1.0, 50.0, 7.25, 1 / 3 + 1, 1.0, 50.0, 25.5, 25.5, 1.0]
    cells = encoded(schema, values)
    for place, function in ((2, mpmath.log), (3, mpmath.log1p), (4, mpmath.sqrt)):
        feature = schema.features[place]
        want = [
            float((exactly(value, function) - float(feature.centre)) / float(feature.half_width))
            for value in used
        ]
        assert cells[place].tolist() == pytest.approx(want, abs=1e-14)
        assert np.abs(cells[place]).max() <= 1


def test_each_row_is_in_the_bin_that_holds_it() -> None:
    edges = [Fraction(30), Fraction("50.5"), Fraction(65)]
    schema = Schema({"x": (0, 100)}, derived=["bins(x, 30, 50.5, 65)"])
    random = simulation.generator(5)
    at = np.array([30, 50.5, 65.0])
    values = np.concatenate(
        [random.uniform(-10, 110, 200), at, np.nextafter(at, 0), np.nextafter(at, 99), [0, 100]]
    )
    cells = encoded(schema, values)[2:]
    for value, row in zip(values.tolist(), cells.T.tolist(), strict=True):
        inside = min(max(Fraction(value), Fraction(0)), Fraction(100))
        number = sum(edge <= inside for edge in edges)
        assert row == [float(number == index) for index in (1, 2, 3)]


@pytest.mark.parametrize("spline", ["3", "4", "9", "[30]", "[1, 2, 97.5]", "[50, 50.001]"])
def test_splines_are_those_of_scipy(spline: str) -> None:
    schema = Schema({"x": (-20, 100)}, derived=[f"spline(x, {spline})"])
    factor = schema.features[-1].factors[0]
    assert isinstance(factor, SplineFunction)
    knots = [float(knot) for knot in factor.knots]
    if not spline.startswith("["):
        assert len(knots) == int(spline) - 1
        assert np.diff(knots) == pytest.approx(120 / (len(knots) - 1))
    values = np.concatenate(
        [simulation.generator(6).uniform(-20, 100, 300), knots, np.nextafter(knots, 0)]
    )
    inside = np.clip(values, -20, 100)
    want = BSpline.design_matrix(inside, [-20.0] * 3 + knots + [100.0] * 3, 3).toarray().T
    cells = encoded(schema, values)[2:]
    assert len(cells) == len(want) - 1
    assert cells == pytest.approx(want[1:], abs=1e-12)
    assert (cells >= 0).all()


TERMS = [
    "bins(age, 30, 50, 65)",
    "spline(age, 3)",
    "spline(age, 7)",
    "spline(age, [20, 21])*smoker",
    "spline(age, 4)*spline(bmi, 3)",
    "spline(age, 4)*log(bmi)",
    "bins(age, 30)*bins(bmi, 20, 30)*smoker",
    "sqrt(age)*log(bmi)*smoker",
]


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("intercept", [True, False])
def test_all_features_of_a_term_cost_the_norm_of_one(term: str, *, intercept: bool) -> None:
    """On the integers that are added: the bound that is declared, with nothing shrunk."""
    random = simulation.generator(7)
    schema = Schema(AGES, derived=[term], intercept=intercept)
    assert schema.norm_squared == Schema(AGES, intercept=intercept).norm_squared + 1
    grid = Grid.of(schema)
    ends = {"age": [0.0, 100.0, 30.0, 50.0], "bmi": [10.0, 60.0, 20.0]}
    numbers = {
        name: np.where(
            random.random(500) < 0.3,
            random.choice(values, 500),
            random.uniform(values[0], values[1], 500),
        )
        for name, values in ends.items()
    }
    levels = random.choice(["no", "yes", "pipe"], 500)
    batch = pa.RecordBatch.from_pydict({**numbers, "smoker": levels})
    encoder = Encoder(schema, float(grid.steps_per_unit))
    mapped = encoder.columns({name: batch.column(name) for name in AGES}, 500)
    own = [i for i, feature in enumerate(schema.features) if feature.term.label == term]
    squares = (np.rint(mapped[own]).astype(object) ** 2).sum(axis=0)
    assert max(squares) <= grid.steps_per_unit**2
    rows = round_to_grid(grid, mapped.copy(), encoder.missing)
    assert (rows.astype(object) ** 2).sum(axis=0).max() <= grid.sensitivity


def test_a_row_is_encoded_alike_among_any_others() -> None:
    terms = ["log(bmi)", "log1p(age)*smoker", "sqrt(age)", "bins(age, 20, 90)", "spline(age, 5)"]
    schema = Schema(AGES, derived=[*terms, "spline(bmi, [12])*log(bmi)"])
    random = simulation.generator(8)
    batch = pa.RecordBatch.from_pydict(
        {
            "age": random.uniform(10, 70, 60),
            "bmi": random.uniform(15, 30, 60),
            "smoker": random.choice(["no", "yes"], 60),
        }
    )
    whole = schema.encode(batch)
    alone = np.hstack([schema.encode(batch.slice(index, 1)) for index in range(60)])
    assert alone.tobytes() == whole.tobytes()


def test_products_keep_their_zeros_and_have_factors_of_any_size() -> None:
    """Nine roots of 2^200 each overflow on the way, before nine of 2^-200 come."""
    big, small = [f"x{i}" for i in range(9)], [f"t{i}" for i in range(9)]
    columns = dict.fromkeys(big, (0, 2.0**400)) | dict.fromkeys(small, (0, 2.0**-400))
    term = "*".join([f"sqrt({name})" for name in columns] + ["level"])
    schema = Schema({**columns, "level": ["a", "b", "c"]}, derived=[term])
    data = {name: [columns[name][1], columns[name][1] / 4, columns[name][1]] for name in columns}
    cells = schema.encode(pa.RecordBatch.from_pydict({**data, "level": ["b", "c", "a"]}))
    assert cells[-3:].tolist() == [[1, 0, 0], [0, 2.0**-18, 0], [0, 0, 0]]


def test_missing_cells_are_their_constants() -> None:
    terms = ["log1p(x)", "sqrt(x)", "bins(x, 3, 7)", "spline(x, 4)"]
    declared = {"type": "number", "low": 0, "high": 10, "missing": 2.5}
    schema = Schema({"x": declared}, derived=terms)
    gone, there = encoded(schema, [None, float("nan")]), encoded(schema, [2.5, 2.5])
    assert gone.tobytes() == there.tobytes()


@pytest.mark.parametrize(
    ("low", "high", "term", "rule"),
    [
        (0, 9, "log(x)", "lower bound is above 0"),
        (-1, 9, "log(x)", "lower bound is above 0"),
        ("1e-200", 9, "log(x)", "lower bound is above 0"),
        (-1, 9, "log1p(x)", "lower bound is 0 or more"),
        (-1, 9, "sqrt(x)", "lower bound is 0 or more"),
        (0, 9, "bins(x)", "at least one edge"),
        (0, 9, "bins(x, 0, 3)", "edges of bins that rise"),
        (0, 9, "bins(x, 3, 3)", "edges of bins that rise"),
        (0, 9, "bins(x, 5, 3)", "edges of bins that rise"),
        (0, 9, "bins(x, 3, 9)", "edges of bins that rise"),
        (0, 9, "bins(x, 1e9999)", "edges of bins that rise"),
        (1, 1.1, "bins(x, 1.05, 1.0500000000000000001)", "edges of bins that rise"),
        (0, 9, "spline(x)", "a spline with a number of features"),
        (0, 9, "spline(x, 2)", "a spline with a number of features"),
        (0, 9, "spline(x, 4, 5)", "a spline with a number of features"),
        (0, 9, "spline(x, [9])", "knots that rise"),
        (0, 9, "spline(x, [3, 3])", "knots that rise"),
        (0, 9, "spline(x, 99999)", "at most 8192 features"),
        (0, 9, "sqrt(x, 2)", "of one column"),
        (0, 9, "sqrt(x)*sqrt( x)", "named twice"),
        (0, 9, "sqrt(z)", "functions of numbers"),
        (0, 9, "sqrt(level)", "functions of numbers"),
        (0, 9, "exp(x)", "made of declared columns"),
        (0, 9, "sqrt(x)^2", "made of declared columns"),
        (0, 9, "sqrt(x*x)", "made of declared columns"),
    ],
)
def test_what_has_no_bounds_is_refused_by_name(low: Any, high: Any, term: str, rule: str) -> None:
    with pytest.raises(ArgumentError, match=rule) as caught:
        Schema({"x": (low, high), "level": ["a", "b"]}, derived=[term])
    assert caught.value.parameter == "derived"


@pytest.mark.parametrize("term", ["bins(x, y)", "spline(x, [a])", "bins(x, 1/0)"])
def test_what_is_no_number_is_refused(term: str) -> None:
    with pytest.raises(TypeError, match="derived"):
        Schema({"x": (0, 9)}, derived=[term])


def test_the_hint_names_the_column_and_what_to_write() -> None:
    with pytest.raises(ArgumentError) as caught:
        Schema({"charges": (0, 9)}, derived=["log(charges)"])
    assert "log1p(charges)" in str(caught.value)
    assert "'charges'" in str(caught.value)


def test_edges_of_dates_are_dates() -> None:
    schema = Schema(
        {"day": ("2020-01-01", "2026-01-01")}, derived=["bins(day, 2021-01-01, '2023-07-01')"]
    )
    assert schema.names[2:] == ("day[2021-01-01, 2023-07-01)", "day[2023-07-01, 2026-01-01]")
    cells = encoded(schema, ["2020-12-31", "2021-01-01", "2024-01-01"], "day")
    assert cells[2:].tolist() == [[0, 1, 0], [0, 0, 1]]


def test_knots_nearer_than_floats_can_be_divided_by_are_refused() -> None:
    for term in ("spline(x, [1e-310])", "spline(x, [0.5, 0.50000000001])", "bins(x, 1e-300)"):
        with refused("derived", "Schema", "rise"):
            Schema({"x": (0, 1)}, derived=[term])


def test_a_schema_of_the_widest_bounds_is_read_as_it_was_written() -> None:
    schema = Schema({"q": (2.0**-500, 2.0**499)}, derived=["log(q)"])
    assert Schema.from_dict(schema.to_dict()) == schema
