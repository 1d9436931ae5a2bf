"""Standard errors from the scores of units: the same bits everywhere, and wide enough."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import dplinear as dpl
from dplinear.arguments import ArgumentError
from dplinear.curator.passes import open_table
from dplinear.curator.sources import spool, unit_rows
from dplinear.descent.settings import Settings
from dplinear.exact.grid import shape_of
from dplinear.exact.residual_sums import Gradient
from dplinear.exact.row_sums import Count
from dplinear.exact.unit_scores import UnitScores
from dplinear.ledger import open_ledger
from dplinear.noise import simulation

COLUMNS = {"x0": (-4, 4), "x1": (-4, 4), "y": (-10, 10)}
PLAIN = dpl.Schema(COLUMNS)
SCHEMA = dpl.Schema(COLUMNS, unit="id")
MATRIX = np.array([[0.0, 1.0, 0.3, 0.0], [0.0, 0.0, 1.0, 0.0]])
WEIGHTS = np.array([0.1, -0.3, -0.2, 1.0])
SCORES = UnitScores(Gradient(shape_of(SCHEMA), MATRIX, WEIGHTS, 0.4, 0.3))


def table(seed: int, people: int, correlation: float) -> pa.Table:
    """People of one to eight rows, whose features and errors are correlated."""
    random = simulation.generator(seed)
    ids = np.repeat(np.arange(people), random.integers(1, 9, people))
    shared = random.normal(0, 1, (people, 3))[ids]
    cells = math.sqrt(correlation) * shared
    cells += math.sqrt(1 - correlation) * random.normal(0, 1, shared.shape)
    x0, x1, error = cells.T
    return pa.table({"x0": x0, "x1": x1, "y": x0 + x1 + error, "id": ids})


def scores(data: Any, k: int = 3, **reading: Any) -> list[int]:
    opened = open_table(data, SCHEMA, rows_per_unit=k, progress=False, **reading)
    (found,) = opened.sums([SCORES])
    return [int(number) for number in found]


def by_hand(data: pa.Table, k: int) -> list[int]:
    """Return the same sum, one person after the other."""
    total = np.zeros(SCORES.size, object)
    for person in np.unique(data["id"]).tolist():
        own = data.filter(pa.array(np.asarray(data["id"]) == person))
        total += np.array(scores(own, k), object)
    return [int(number) for number in total]


def test_scores_add_up_over_people_and_are_the_same_bits_everywhere(tmp_path: Path) -> None:
    data = table(1, 60, 0.5)
    expected = by_hand(data, 3)
    shuffled = data.take(simulation.generator(2).permutation(data.num_rows))
    path = tmp_path / "rows.parquet"
    parquet.write_table(shuffled, path, row_group_size=50)
    for held in (data, shuffled, path):
        assert scores(held) == expected


def test_scores_of_many_people_are_held_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(3, 300, 0.5)
    expected = scores(data)
    monkeypatch.setattr(unit_rows, "_SCORES", 40)
    assert scores(data) == expected
    monkeypatch.setattr(spool.Spool.__init__, "__defaults__", (3_000,))  # rows go to files
    assert scores(data) == expected


@pytest.mark.engine
def test_scores_on_dask_are_the_same_bits() -> None:
    dask = pytest.importorskip("dask.dataframe")
    data = table(4, 60, 0.5)
    assert scores(dask.from_pandas(data.to_pandas(), npartitions=4)) == scores(data)


@pytest.mark.engine
@pytest.mark.long
def test_scores_on_spark_are_the_same_bits(tmp_path: Path) -> None:
    data = table(5, 60, 0.5)
    path = tmp_path / "rows.parquet"
    parquet.write_table(data, path, row_group_size=50)
    assert scores(path, engine="spark") == scores(data)


def test_sums_over_people_and_over_rows_are_of_different_passes() -> None:
    opened = open_table(table(6, 20, 0.5), SCHEMA, progress=False)
    with pytest.raises(TypeError):
        opened.sums([SCORES, Count()])


def test_rows_without_units_have_no_scores() -> None:
    with pytest.raises(TypeError):
        open_table(table(6, 20, 0.5), PLAIN, progress=False).sums([SCORES])


def model(data: pa.Table, schema: dpl.Schema = SCHEMA, **given: Any) -> Any:
    return dpl.release_model(data, schema, "y", epsilon=8.0, delta=1e-6, progress=False, **given)


@pytest.mark.parametrize(
    "given",
    [
        {"schema": PLAIN},
        {"schema": dpl.Schema(COLUMNS, weight=("w", 0, 2))},
        {"schema": PLAIN, "errors": "bound", "settings": Settings(unit_scores=Fraction(1, 10))},
        {"errors": "robust"},
        {"errors": 5},
    ],
    ids=["no unit", "weights alone", "settings", "no such errors", "no text"],
)
def test_clustered_errors_need_a_unit(given: dict[str, Any], tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "budget.db", create=True)
    unit = None if "schema" in given else "id"
    ledger.declare("visits", dpl.ApproxDP(9.0, 1e-5), unit=unit)
    asked = {"errors": "clustered", "ledger": ledger, "dataset": "visits", **given}
    with pytest.raises(ArgumentError) as caught:
        model(table(7, 50, 0.5), **asked)
    assert caught.value.parameter == "errors"
    assert ledger.status()[0].releases == 0


def test_clustered_errors_are_those_of_least_squares_with_clusters() -> None:
    """Of rows that are not correlated, for which the bounds are far too wide.

    Within a quarter of the sandwich: of 20,000 people it has an error of 1%, noise adds about
    5%, and a quarter is more than four of these deviations.
    """
    data, k = table(8, 20_000, 0.0), 8
    with simulation.door(9):
        wide = model(data, rows_per_unit=k, errors="bound")
        narrow = model(data, rows_per_unit=k, errors="clustered")
    assert narrow.certificate.parameters["clustered_errors"] == 1.0
    expected = sandwich(data)
    for place, name in enumerate(("x0", "x1")):
        noise = narrow.privacy_errors[name]
        found = math.sqrt(narrow.standard_errors[name] ** 2 - noise**2)
        assert 0.75 < found / expected[place] < 1.3
        assert wide.standard_errors[name] > 1.5 * narrow.standard_errors[name]


def sandwich(data: pa.Table) -> Any:
    """Return clustered standard errors of least squares, all rows alike."""
    rows = np.column_stack([data["x0"], data["x1"]])
    target, ids = np.asarray(data["y"]), np.asarray(data["id"])
    bread = np.linalg.inv(rows.T @ rows)
    residuals = target - rows @ (bread @ rows.T @ target)
    summed = np.zeros((ids.max() + 1, 2))
    np.add.at(summed, ids, rows * residuals[:, None])
    return np.sqrt(np.diag(bread @ (summed.T @ summed) @ bread))


def test_scores_that_noise_hides_leave_the_bound() -> None:
    hidden: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-6, "errors": "clustered"}
    with simulation.door(10):
        found = dpl.release_model(table(10, 150, 0.5), SCHEMA, "y", progress=False, **hidden)
    assert found.certificate.parameters["clustered_errors"] == 0.0
