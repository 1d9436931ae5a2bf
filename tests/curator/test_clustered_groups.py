"""Clustered standard errors of groups: scores of a unit's rows in each group, by themselves."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import dplinear as dpl
from curator.test_clustered_errors import COLUMNS, MATRIX, SCORES, WEIGHTS, sandwich
from curator.test_clustered_errors import table as people
from dplinear.curator.in_step import InStep
from dplinear.curator.passes import Table
from dplinear.curator.sources import open_reader, spool, unit_rows
from dplinear.exact.row_sums import Count
from dplinear.exact.weights import WHOLE, capped_weights
from dplinear.noise import simulation
from dplinear.schema.groups import read_by
from services import library

WARDS = ("a", "b", "other")
SCHEMA = dpl.Schema({**COLUMNS, "ward": ["a", "b"]}, unit="id")
SPLIT = read_by(SCHEMA, "ward", "test")
# Groups are at different steps: the second asks for its rows while the others ask for scores.
ASKED: Sequence[Any] = (SCORES, Count(), SCORES)


def table(seed: int, units: int, correlation: float = 0.5) -> pa.Table:
    """People with rows in several wards, and in none that is declared."""
    data = people(seed, units, correlation)
    wards = simulation.generator(seed + 1).choice(["a", "b", "elsewhere"], data.num_rows)
    return data.append_column("ward", pa.array(wards.tolist()))


def sums(data: Any, k: int = 3, split: dpl.Schema = SPLIT, **reading: Any) -> list[list[int]]:
    """Return what the groups ask for in one pass."""
    numbers = iter(range(len(ASKED)))

    def ask(reader: Any) -> list[int]:
        (found,) = Table(reader, split.of_group()).sums([ASKED[next(numbers)]])
        return [int(number) for number in found]

    def opened(schema: dpl.Schema) -> Any:
        return open_reader(data, schema, again=True, rows_per_unit=k, progress=False, **reading)

    return InStep(opened, split, 3, lambda reader: reader).each(ask)


def by_hand(data: pa.Table, k: int) -> list[Any]:
    """Return the same in floats, one person and row after the other; no code is shared."""
    leverage, residual = SCORES.gradient.leverage, SCORES.gradient.residual
    found: list[Any] = [np.zeros((2, 2)), 0.0, np.zeros((2, 2))]
    rows = data.to_pylist()
    for person in {row["id"] for row in rows}:
        own = [row for row in rows if row["id"] == person]
        weight, scores = min(1 / k, 1 / len(own)), {0: np.zeros(2), 2: np.zeros(2)}
        for row in own:
            group = WARDS.index(row["ward"]) if row["ward"] in WARDS else 2
            cells = np.array([1.0, row["x0"] / 4, row["x1"] / 4, row["y"] / 10])
            cells = np.clip(cells, -1, 1)
            image = MATRIX @ cells
            clip = residual * min(1.0, leverage / float(np.linalg.norm(image)))
            off = float(np.clip(WEIGHTS @ cells, -clip, clip))
            if group == 1:
                found[1] += weight
            else:
                scores[group] += weight * off * image
        for group, score in scores.items():
            found[group] += np.outer(score, score)
    return found


def test_scores_of_groups_are_those_of_each_units_rows_in_them() -> None:
    data, k = table(1, 60), 3
    first, second, third = sums(data, k)
    unit = float(SCORES.unit) / WHOLE
    expected = by_hand(data, k)
    assert np.array(first).reshape(2, 2) * unit == pytest.approx(expected[0], rel=1e-3)
    assert np.array(third).reshape(2, 2) * unit == pytest.approx(expected[2], rel=1e-3)
    assert second[0] / WHOLE == pytest.approx(expected[1], rel=1e-3)


def test_scores_of_groups_are_the_same_bits_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table(1, 60)
    expected = sums(data)
    shuffled = data.take(simulation.generator(2).permutation(data.num_rows))
    path = tmp_path / "rows.parquet"
    parquet.write_table(shuffled, path, row_group_size=50)
    array = np.empty((data.num_rows, 5), object)
    for index, name in enumerate((*COLUMNS, "ward", "id")):
        array[:, index] = data[name].to_pylist()
    for held in (shuffled, path, array):
        assert sums(held) == expected
    monkeypatch.setattr(unit_rows, "_SCORES", 40)  # a few people at a time
    assert sums(data) == expected
    monkeypatch.setattr(spool.Spool.__init__, "__defaults__", (3_000,))  # rows go to files
    assert sums(data) == expected


@pytest.mark.engine
def test_scores_of_groups_on_dask_are_the_same_bits(tmp_path: Path) -> None:
    dask = library("dask.dataframe")
    data = table(4, 60)
    path = tmp_path / "rows.parquet"
    parquet.write_table(data, path, row_group_size=50)
    expected = sums(data)
    assert sums(dask.from_pandas(data.to_pandas(), npartitions=4)) == expected
    assert sums(path, engine="dask") == expected


@pytest.mark.engine
@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_scores_of_groups_on_spark_are_the_same_bits(tmp_path: Path) -> None:
    data = table(5, 60)
    path = tmp_path / "rows.parquet"
    parquet.write_table(data, path, row_group_size=50)
    assert sums(path, engine="spark") == sums(data)


def test_weights_over_all_groups_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that fit into each group, but not into one unit."""
    plain = capped_weights

    def heavy(*given: Any) -> Any:
        weights, totals = plain(*given)
        return np.minimum(2 * weights, WHOLE // 2), totals

    monkeypatch.setattr(unit_rows, "capped_weights", heavy)
    with pytest.raises(ArithmeticError, match="over all groups"):
        sums(table(6, 30), 1)


def model(data: Any, **given: Any) -> Any:
    asked = {"epsilon": 8.0, "delta": 1e-6, "progress": False, "errors": "clustered", **given}
    return dpl.release_model(data, SCHEMA, "y", by="ward", **asked)


def test_groups_have_clustered_errors_of_their_own() -> None:
    """Within a quarter of the sandwich of each group's rows, as for a table without groups.

    A person has one ward here, so that weights are those of a table of its own.
    """
    data = people(8, 20_000, 0.0)
    ids = np.asarray(data["id"])
    data = data.append_column("ward", pa.array([WARDS[person % 2] for person in ids.tolist()]))
    with simulation.door(9):
        groups = model(data, rows_per_unit=8)
        wide = model(data, rows_per_unit=8, errors="bound")
    for index, ward in enumerate(WARDS[:2]):
        found = groups[ward]
        assert found.certificate.parameters["clustered_errors"] == 1.0
        expected = sandwich(data.filter(pa.array(ids % 2 == index)))
        for place, name in enumerate(("x0", "x1")):
            noise = found.privacy_errors[name]
            sampling = math.sqrt(found.standard_errors[name] ** 2 - noise**2)
            assert 0.75 < sampling / expected[place] < 1.3
            assert wide[ward].standard_errors[name] > 1.3 * found.standard_errors[name]
    assert "clustered_errors" in groups["other"].certificate.parameters
    # Errors that are no bounds say nothing of people in both groups: they add up.
    apart = groups.differences()["b"]
    assert not apart.disjoint
    assert wide.differences()["b"].disjoint


def test_the_same_bits_in_any_order_of_rows() -> None:
    data, order = table(3, 300), simulation.generator(1).permutation(table(3, 300).num_rows)
    texts = []
    for held in (data, data.take(order)):
        with simulation.door(5):
            texts.append([each.describe() for each in model(held, rows_per_unit=2).values()])
    assert texts[0] == texts[1]
