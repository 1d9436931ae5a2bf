"""The benchmark of principal components judges directions by the table's own covariance."""

import numpy as np
import pytest

from benchmarks import components
from benchmarks.components import Found, Judge, Numbers, lines
from dplinear.noise import simulation


def test_directions_are_judged_by_the_variance_along_them() -> None:
    judge = Judge(np.diag([4.0, 3.0, 1.0]))
    own = Found(np.eye(3), np.array([2.0, 3.0, 1.0]))
    assert judge.captured(own, 1) == judge.captured(own, 2) == 1
    assert judge.captured(Found(np.eye(3)[::-1], own.variances), 1) == 0.25
    assert judge.told(own, 1) == 0.5
    assert judge.told(own, 2) == pytest.approx(5 / 7)


def test_with_a_large_budget_all_ways_find_them() -> None:
    generator = simulation.generator(1)
    rows = np.clip(generator.normal(0.3, [0.3, 0.1, 0.05], (400, 3)), -1, 1)
    made = lines(Numbers("a table", rows, [(-1.0, 1.0)] * 3), [1e6], 1)
    assert [line[:4] for line in made] == [
        ("a table", "400 x 3", "1e+06", str(k)) for k in components.COUNTS
    ]
    assert all(float(cell) > 0.999 for line in made for cell in line[4:6])
    assert all(line[-1] == "1.00" for line in made)


@pytest.mark.parametrize("name", ["digits", "diabetes", "breast_cancer"])
def test_tables_are_within_their_bounds(name: str) -> None:
    table = components.numbers(name)
    low, high = np.array(table.bounds).T
    assert (table.rows >= low).all()
    assert (table.rows <= high).all()
    assert (table.rows.std(axis=0) < high - low).all()
