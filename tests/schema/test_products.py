"""Products whose running value no float64 holds: numbers in every row, and zeros kept."""

from fractions import Fraction
from math import prod

import numpy as np
import pyarrow as pa
import pytest

from dplinear.noise import simulation
from dplinear.schema import Schema

BIG, TINY = 2.0**400, 2.0**-400
LEVELS = ["a", "b", "c"]
FACTORS = {"p": (0, BIG), "q": (-BIG, BIG), "r": (0, BIG), "s": (0, TINY), "t": (0, TINY)}


def schema(term: str, *, intercept: bool = True) -> Schema:
    return Schema({**FACTORS, "level": LEVELS}, derived=[term], intercept=intercept)


def rows(seed: int, count: int) -> pa.RecordBatch:
    """Return rows anywhere within their bounds, many of them at an end, and some beyond."""
    random = simulation.generator(seed)
    ends = {name: np.array([low, high, 0.0, 2 * high]) for name, (low, high) in FACTORS.items()}
    columns = {
        name: np.where(
            random.random(count) < 0.5,
            random.choice(ends[name], count),
            random.uniform(low, high, count),
        )
        for name, (low, high) in FACTORS.items()
    }
    names = random.choice([*LEVELS, "d"], count)
    return pa.RecordBatch.from_pydict({**columns, "level": names})


@pytest.mark.parametrize(
    "term",
    [
        "p*q*r*s*t*level",  # overflows on the way
        "level*p*q*r*s*t",
        "s*t*level*p*q",  # all but vanishes on the way
        "p^3*s^3*q*t*level",
        "p*q*r*s*t",
    ],
)
@pytest.mark.parametrize("intercept", [True, False])
def test_products_are_what_exact_numbers_make_of_them(term: str, *, intercept: bool) -> None:
    of, batch = schema(term, intercept=intercept), rows(3, 200)
    cells = of.encode(batch)
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    for place, feature in enumerate(of.features):
        if feature.term.label != term:
            continue
        for row in range(batch.num_rows):
            value = prod((factor_of(f, columns, row) for f in feature.factors), start=Fraction(1))
            assert cells[place, row] == pytest.approx(float(feature.cell(value)), abs=1e-12)


def factor_of(factor: object, columns: dict[str, list[object]], row: int) -> Fraction:
    cell = columns[factor.column][row]  # type: ignore[attr-defined]  # as all factors have
    if factor.column == "level":  # type: ignore[attr-defined]
        code = LEVELS.index(str(cell)) if cell in LEVELS else -1
        return Fraction(code == factor.code)  # type: ignore[attr-defined]
    low, high = FACTORS[factor.column]  # type: ignore[attr-defined]
    inside = min(max(Fraction(float(cell)), Fraction(low)), Fraction(high))  # type: ignore[arg-type]
    return Fraction(inside**factor.exponent)  # type: ignore[attr-defined]


@pytest.mark.parametrize("term", ["p*q*r*s*t*level", "p^16*s^16*level"])
def test_a_level_that_a_row_does_not_hold_is_zero_whatever_overflows(term: str) -> None:
    of = schema(term)
    cells = of.encode(rows(4, 300))
    own = [place for place, feature in enumerate(of.features) if feature.term.label == term]
    assert np.isfinite(cells).all()
    assert (np.count_nonzero(cells[own], axis=0) <= 1).all()
    assert np.count_nonzero(cells[own]) > 0


def test_many_factors_near_one_neither_overflow_nor_vanish() -> None:
    """A power of two for each factor would add up to more than float64 has, either way."""
    columns = {f"x{i}": (0, 1.01 if i % 2 else 0.995) for i in range(400)}
    term = "*".join(f"{name}^3" for name in columns)
    of = Schema(columns, derived=[term])
    ends = {name: [float(high), 0.0] for name, (_, high) in columns.items()}
    cells = of.encode(pa.RecordBatch.from_pydict(ends))
    assert cells[-1].tolist() == pytest.approx([1.0, -1.0], abs=1e-9)
