"""`suggest_rows_per_unit`: a unit is one count in one bin, whatever its rows hold."""

import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import dplinear as dpl
from dplinear.analyst.releases import container, files
from dplinear.analyst.releases.container import Parts
from dplinear.analyst.releases.rows_per_unit import RowsPerUnitKind, shares_of
from dplinear.arguments import ArgumentTypeError
from dplinear.audit.audit import AuditResult, audit_subject
from dplinear.audit.subjects.unit_sizes import UnitSizesSubject
from dplinear.cli.main import main
from dplinear.curator.sources import open_reader, unit_rows
from dplinear.exact.unit_sizes import UnitSizes, weights_at
from dplinear.exact.weights import WHOLE, shared_weights
from dplinear.mechanisms.unit_sizes import UnitSizeHistogram
from dplinear.noise import simulation
from dplinear.planner.units import CANDIDATES
from dplinear.privacy import ZCDP, ApproxDP, Guarantee, Neighbours, PureDP
from refusals import refused

EDGES = (1, 2, 3, 5, 8, 13)
SCHEMA = dpl.Schema({"x": (0, 1)}, unit="id")
ROWS = (0, 1, 2, 3, 4, 5, 6, 8, 9, 13, 14, 64, 1_000)
WHOLE_NOISE = Fraction(1)
LEAST = 1 - 2.0**-11  # of a whole unit, as weights are rounded down


def table(seed: int = 1, units: int = 200) -> pa.Table:
    """Units of 1 to 40 rows, ids of several spellings, rows of nobody."""
    random = simulation.generator(seed)
    sizes = np.minimum(random.geometric(0.2, units), 40)
    ids = [f"{'0' * (row % 3)}{unit}" for unit, size in enumerate(sizes) for row in range(size)]
    ids += [""] * 7
    order = random.permutation(len(ids))
    return pa.table({"id": pa.array([ids[i] for i in order]), "x": random.uniform(size=len(ids))})


def counted(data: Any, edges: tuple[int, ...] = EDGES, **options: Any) -> list[int]:
    """Return the exact sums, which are private."""
    reader = open_reader(data, SCHEMA, progress=False, **options)
    return list(reader.run(UnitSizes(SCHEMA, edges)).integers())


def by_hand(data: pa.Table, edges: tuple[int, ...] = EDGES) -> list[int]:
    """Count by Python alone: spelled numbers are numbers, and nobody's rows count for nothing."""
    rows = Counter(int(each) for each in data["id"].to_pylist() if each)
    found = [0] * (len(edges) + 1)
    for size in rows.values():
        found[sum(size > edge for edge in edges)] += 1
    return found


def test_units_are_counted_as_by_hand() -> None:
    data = table()
    for edges in (EDGES, CANDIDATES, (4,), (1, 1_000)):
        sums, expected = counted(data, edges), by_hand(data, edges)
        for one, other in zip(sums, expected, strict=True):
            assert LEAST * other * WHOLE <= one <= other * WHOLE


def test_a_weight_tells_the_number_of_rows_at_every_edge() -> None:
    sizes = np.arange(1, 2_000)
    weights = shared_weights(sizes, 1)
    for edge in range(1, 1_001):
        (end,) = weights_at((edge,))
        assert ((weights >= end) == (sizes <= edge)).all()
    for wrong in ((), (2, 2), (3, 2), (10**6,)):
        with pytest.raises(ArithmeticError):
            weights_at(wrong)


def test_one_unit_moves_one_count_by_at_most_one() -> None:
    """Neighbours by all rows of a unit, of which there are 0 to 1,000, in any order."""
    random, common = simulation.generator(3), table(2, 40)
    without = counted(common, threads=1)
    for trial in range(150):
        size = ROWS[trial % len(ROWS)]
        cells = random.choice([0.0, 1.0, np.nan, 1e300, -np.inf], size)
        unit = pa.table({"id": pa.array(["new"] * size, pa.string()), "x": cells})
        both = pa.concat_tables([common, unit]).take(random.permutation(common.num_rows + size))
        moved = [one - other for one, other in zip(counted(both, threads=1), without, strict=True)]
        assert sorted(moved)[:-1] == [0] * len(EDGES)  # all but one
        assert max(moved) <= UnitSizes.sensitivity == WHOLE
        assert max(moved) >= (LEAST * WHOLE if size else 0)


def test_a_unit_whose_weights_add_up_to_more_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_rows, "shared_weights", lambda counts, k: WHOLE // k + 0 * counts)
    data = table()
    assert sum(counted(data)) > 2 * sum(by_hand(data)) * WHOLE


def test_the_same_bits_in_any_order_and_from_files(tmp_path: Path) -> None:
    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=50)
    csv.write_csv(data, tmp_path / "t.csv")
    shuffled = data.take(simulation.generator(1).permutation(data.num_rows))
    names = [each or None for each in data["id"].to_pylist()]
    array = np.array([[math.nan if name is None else float(name)] for name in names])
    with simulation.door(5):
        expected = dpl.suggest_rows_per_unit(data, unit="id", epsilon=0.5)
    for other in (shuffled, tmp_path / "t.parquet", tmp_path / "t.csv", array, data.to_reader(40)):
        with simulation.door(5):
            found = dpl.suggest_rows_per_unit(other, unit="id", epsilon=0.5)
        assert found == expected


@pytest.mark.engine
def test_the_same_bits_from_dask() -> None:
    import dask.dataframe as dd

    data = table()
    frame: Any = dd.from_pandas(data.to_pandas(), npartitions=3)
    assert counted(frame) == counted(data)


def audited(guarantee: Guarantee, part: Fraction = WHOLE_NOISE) -> AuditResult:
    """Return an audit of two tables that differ by a unit; of a part of the noise, if so."""
    subject = UnitSizesSubject(guarantee, Neighbours.ADD_REMOVE)
    subject.prepared = replace(subject.prepared, noise=subject.prepared.noise * part)
    return audit_subject(subject, 20_000, entropy=simulation.entropy(1))


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ZCDP(2.0)], ids=str)
def test_an_audit_comes_near_the_claim_and_sees_too_little_noise(guarantee: Guarantee) -> None:
    """A promise that is kept is called broken once in 10,000 audits; the seed is fixed."""
    found = audited(guarantee)
    assert not found.broken
    assert found.ratio > 0.9
    assert audited(guarantee, part=WHOLE_NOISE / 2).broken


def test_the_guarantee_is_calibrated_exactly() -> None:
    for asked in (PureDP(0.3), ApproxDP(0.3, 1e-6)):
        prepared = UnitSizeHistogram(guarantee=asked).prepare(3)
        assert float(WHOLE / prepared.noise) == 0.3
        assert prepared.account.holds == asked
    normal = UnitSizeHistogram(guarantee=ZCDP(0.3)).prepare(3)
    assert float(WHOLE**2 / (2 * normal.noise)) == 0.3
    assert normal.account.profile is not None
    for odd in (dpl.GDP(1.0), dpl.MIDP(1.0)):
        with refused("guarantee", "suggest_rows_per_unit", kind=ArgumentTypeError):
            UnitSizeHistogram(guarantee=odd)
    for least in (PureDP(1e-12), ZCDP(1e-18)):
        with refused("guarantee", "suggest_rows_per_unit", "within reach"):
            UnitSizeHistogram(guarantee=least).prepare(3)


def test_the_choice_is_the_plans() -> None:
    data = table(3, 3_000)
    planned = dpl.ApproxDP(8.0, 1e-6)
    with simulation.door(2):
        found = dpl.suggest_rows_per_unit(data, 4, unit="id", epsilon=1.0, planned=planned)
    made = dpl.plan(
        found.expected_rows,
        4,
        guarantee=planned,
        rows_each=dict(found.rows_each),
        rows_per_unit=CANDIDATES,
    )
    assert found.rows_per_unit == made.rows_per_unit
    assert found.rows_per_unit > 1
    assert found.expected_rows == pytest.approx(data.num_rows, rel=0.1)
    assert found.units == pytest.approx(3_000, rel=0.01)
    truth = by_hand(data, CANDIDATES)
    # Of 16 Laplace numbers of scale 1, one is beyond 20 with a chance of 4e-8.
    assert all(abs(one - other) < 20 for one, other in zip(found.counts, truth, strict=True))
    assert "rows_per_unit: " in found.summary()
    assert found.certificate.protects == "all rows with one 'id', counted as one row"
    assert found.rows is None
    assert "<table" in found._repr_html_()


def test_noise_alone_speaks_for_single_rows() -> None:
    assert shares_of((1, 2), (-5.0, 3.0, 2.0), 1.0) == {1: 1.0}
    assert shares_of((1, 4), (50.0, 50.0, 100.0), 1.0) == {1: 0.25, 3: 0.25, 9: 0.5}


@pytest.mark.parametrize(
    "learn", ["regression", "moments", "mean", "covariance", "pca", "logistic"]
)
@pytest.mark.parametrize("data", ["nothing", "nobody", "one"])
def test_no_table_and_no_noise_can_make_it_fail(data: str, learn: str) -> None:
    ids = {"nothing": [], "nobody": [None] * 5, "one": ["a"] * 3_000}[data]
    rows = pa.table({"id": pa.array(ids, pa.string())})
    for epsilon, seed in ((1e-9, 1), (1e-9, 2), (1e6, 3)):
        with simulation.door(seed):
            found = dpl.suggest_rows_per_unit(rows, 2, unit="id", epsilon=epsilon, learn=learn)
        assert found.rows_per_unit in CANDIDATES


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"unit": None}, "unit"),
    ({"unit": 3}, "unit"),
    ({"epsilon": None}, "epsilon"),
    ({"epsilon": None, "guarantee": dpl.GDP(1.0)}, "guarantee"),
    ({"candidates": []}, "candidates"),
    ({"candidates": "1,2"}, "candidates"),
    ({"candidates": [0]}, "candidates"),
    ({"candidates": [1_001]}, "candidates"),
    ({"planned": 1.0}, "planned"),
    ({"planned": dpl.PureDP(1.0)}, "planned"),
    ({"learn": "words"}, "learn"),
    ({"learn": "distances"}, "learn"),
    ({"correlation": 2.0}, "correlation"),
    ({"columns": 0}, "columns"),
    ({"columns": dpl.Schema({"x": (0, 1), "y": (0, 1)}, unit="other")}, "unit"),
    ({"steps": 3}, "steps"),
]


@pytest.mark.parametrize(("given", "named"), WRONG)
def test_what_means_nothing_is_refused_before_anything_is_spent(
    given: dict[str, Any], named: str, tmp_path: Path
) -> None:
    path = tmp_path / "budget.db"
    ledger = dpl.open_ledger(path, create=True)
    ledger.declare("t", dpl.PureDP(1.0), unit="id")
    asked: dict[str, Any] = {"unit": "id", "epsilon": 0.1, "ledger": path, "dataset": "t"}
    before = str(ledger.status()[0].spent)
    told = f"'{named}' parameter of suggest_rows_per_unit"
    with pytest.raises((ValueError, TypeError), match=told):
        dpl.suggest_rows_per_unit(table(), **(asked | given))
    assert str(ledger.status()[0].spent) == before


def test_a_ledger_counts_it_for_its_unit_and_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = dpl.open_ledger(path, create=True)
    ledger.declare("people", dpl.PureDP(0.5), unit="id")
    asked: dict[str, Any] = {"unit": "id", "epsilon": 0.4, "ledger": path, "dataset": "people"}
    first = dpl.suggest_rows_per_unit(table(), request="monday", **asked)
    assert dpl.suggest_rows_per_unit(table(), request="monday", **asked) == first
    with pytest.raises(dpl.BudgetExceededError):
        dpl.suggest_rows_per_unit(table(), **asked)
    with pytest.raises(dpl.LedgerError):
        dpl.suggest_rows_per_unit(table(), **(asked | {"unit": "x", "epsilon": 0.01}))


def test_a_file_gives_it_back_and_other_content_is_refused(tmp_path: Path) -> None:
    found = dpl.suggest_rows_per_unit(table(), unit="id", rho=0.1, candidates=[1, 4, 2])
    found.save(tmp_path / "units.json")
    assert dpl.load(tmp_path / "units.json", kind="rows_per_unit") == found
    with refused("path", "SuggestedRowsPerUnit.save", "json"):
        found.save(tmp_path / "units.txt")
    parts = RowsPerUnitKind().to_parts(found)
    plain: dict[str, Any] = {"unit": None, "rows_per_unit": None}
    changes: tuple[dict[str, Any], ...] = (
        {"edges": [1, 2]},
        {"edges": [4, 2, 1]},
        {"edges": []},
        {"edges": "1"},
        {"rows_per_unit": 0},
        {"deviation": -1.0},
        {"certificate": {}},
        {"certificate": replace(found.certificate, **plain).to_dict()},
        {"more": 1},
    )
    for change in changes:
        changed = Parts("rows_per_unit", dict(parts.facts) | change, parts.arrays)
        with pytest.raises(files.ReleaseError):
            files.unpack(container.write(changed))


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = str(tmp_path / "t.parquet"), str(tmp_path / "units.json")
    parquet.write_table(table(), source)
    words = ["release", "rows-per-unit", source, "--unit", "id", "--epsilon", "0.5"]
    words += ["--planned", "3,1e-6", "--candidates", "1,2,4", "--output", target]
    assert main([*words, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["protects"].startswith("all rows with one 'id'")
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = dpl.load(target, kind="rows_per_unit")
    assert told["rows_per_unit"] == found.rows_per_unit
    assert tuple(told["counts"]) == found.counts
    assert found.edges == (1, 2, 4)
    assert main(["report", target]) == 0
    assert "rows_per_unit" in capsys.readouterr().out
    assert main([*words[:3], "--epsilon", "1", "--output", str(tmp_path / "u.json")]) == 2
    assert main([*words[:-1], str(tmp_path / "u.csv")]) == 2
    assert main([*words[:-1], str(tmp_path / "v.json"), "--planned", "1,2,3"]) == 2
    capsys.readouterr()
