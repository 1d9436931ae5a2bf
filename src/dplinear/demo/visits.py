"""A made-up table of hospital visits, so that nobody's rows are needed to try the library.

Each row is drawn by itself: an age, a body-mass index and a number of children that have nothing to
do with each other; one in five smokes; and

    charges = 250·age + 400·bmi + 14,000·smoker − 9,500 + an error with deviation 4,000,

never below 500. Charges are in whole units, the index has one decimal.
"""

import pyarrow as pa

from dplinear.noise import simulation
from dplinear.schema import Schema

ROWS = 20_000
SCHEMA = Schema(
    {
        "age": (0, 100),
        "bmi": (10, 60),
        "smoker": {"type": "category", "levels": ["no", "yes"], "other": "no"},
        "children": (0, 8),
        "charges": (0, 60_000),
    }
)


def visits(rows: int = ROWS, seed: int = 2026) -> pa.Table:
    """Return so many made-up visits; the same seed gives the same ones."""
    draw = simulation.generator(seed)
    age = draw.normal(48, 15, rows).clip(18, 95).round()
    index = draw.normal(27, 4.5, rows).clip(15, 50).round(1)
    smoker = draw.random(rows) < 0.2
    children = draw.poisson(1.1, rows).clip(0, 8)
    error = draw.normal(0, 4_000, rows)
    charges = 250 * age + 400 * index + 14_000 * smoker - 9_500 + error
    return pa.table(
        {
            "age": age.astype(int),
            "bmi": index,
            "smoker": pa.array(["yes" if one else "no" for one in smoker]),
            "children": children.astype(int),
            "charges": charges.clip(500, None).round().astype(int),
        }
    )
