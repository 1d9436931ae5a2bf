"""Survey weights in groups: sums of each group, its squared weights, and those of rows left out."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import dplinear as dpl
from audit.weighted_tables import HOLDS, Row
from dplinear.analyst.design_effect import noise_of
from dplinear.analyst.releases.joined_certificate import gaussian_profile
from dplinear.curator.gates.measured import prepare_groups, side_names
from dplinear.curator.sources import open_reader, spool
from dplinear.exact.gram import Moments
from dplinear.exact.groups import GroupReduction
from dplinear.mechanisms import AnalyzeGauss
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.schema.groups import group_levels, read_by

NEEDED = {"type": "number", "low": -3, "high": 3, "missing": "leave_out"}
COLUMNS: dict[str, Any] = {"x": NEEDED, "y": (0, 4), "ward": ["a", "b"], "old": "boolean"}
WEIGHT = ("w", 0, 20)
SCHEMAS = {
    "rows": Schema(COLUMNS, weight=WEIGHT),
    "units": Schema(COLUMNS, weight=WEIGHT, unit="id"),
}
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
UNIT = 1 << 24  # of weight


def table(rows: int = 400, seed: int = 0) -> pa.Table:
    random = simulation.generator(seed)
    x = random.normal(size=rows)
    y = np.clip(2 + 0.5 * x + 0.3 * random.normal(size=rows), 0, 4)
    old = [(True, False, None)[i] for i in random.choice(3, rows, p=[0.5, 0.4, 0.1])]
    return pa.table(
        {
            "x": pa.array(x, mask=random.uniform(size=rows) < 0.1),
            "y": y,
            "ward": [("a", "b", "elsewhere")[i] for i in random.integers(0, 3, rows)],
            "old": pa.array(old, pa.bool_()),
            "w": random.lognormal(0.5, 0.8, rows),
            "id": [f"p{i}" for i in random.integers(0, rows // 3, rows)],
        }
    )


def parts_of(data: Any, kind: str, k: int = 1, by: Any = "ward", **reading: Any) -> Any:
    split = read_by(SCHEMAS[kind], by, "test")
    each = [Moments(split.of_group()) for _ in group_levels(split)]
    reader = open_reader(data, split, rows_per_unit=k, **reading)
    return reader.run(GroupReduction(split, each)).parts


# An oracle in fractions: it reads the rows one by one, and shares no code


def short(weight: Fraction) -> Fraction:
    """Return a weight in units of 2^−24, rounded down to whole ones and to twelve bits."""
    whole = math.floor(weight * UNIT)
    drop = max(whole.bit_length() - 12, 0)
    return Fraction(whole >> drop << drop, UNIT)


def capped(rows: list[dict[str, Any]], k: int) -> dict[int, Fraction]:
    """Return v = s·min(1/k, 1/Σ s) for some rows, by their numbers, each unit by itself."""
    found: dict[int, Fraction] = {}
    for unit in {row["id"] for row in rows}:
        own = [row for row in rows if row["id"] == unit]
        most = max(sum(row["s"] for row in own), Fraction(k))
        found |= {row["number"]: short(row["s"] / most) for row in own}
    return found


def expected(data: pa.Table, kind: str, k: int) -> dict[Any, tuple[Fraction, Fraction, Fraction]]:
    """Return Σ v, the weight of rows left out, and Σ v·V of each group of ward and old."""
    rows = [row | {"number": number} for number, row in enumerate(data.to_pylist())]
    for row in rows:
        row["s"] = short(Fraction(min(float(row["w"]), 20.0) / 20))
        row["group"] = (row["ward"] if row["ward"] in {"a", "b"} else "other", row["old"])
    rows = [row for row in rows if row["old"] is not None]
    kept = [row for row in rows if row["x"] is not None]
    if kind == "rows":
        weights = every = {row["number"]: row["s"] for row in rows}
        totals = weights
    else:
        weights, every = capped(kept, k), capped(rows, k)
        units: dict[str, Fraction] = {}
        for row in kept:
            units[row["id"]] = units.get(row["id"], Fraction(0)) + weights[row["number"]]
        totals = {row["number"]: units[row["id"]] for row in kept}
    zero = Fraction(0)
    found = {(ward, old): [zero] * 3 for ward in ("a", "b", "other") for old in (False, True)}
    for row in rows:
        sums, number = found[row["group"]], row["number"]
        if row["x"] is None:
            sums[1] += every[number]
        else:
            sums[0] += weights[number]
            sums[2] += weights[number] * totals[number]
    return {group: (sums[0], sums[1], sums[2]) for group, sums in found.items()}


@pytest.mark.parametrize(("kind", "k"), [("rows", 1), ("units", 1), ("units", 3)])
def test_sums_of_groups_are_those_of_the_definition(kind: str, k: int) -> None:
    data, by = table(), ["ward", "old"]
    levels = group_levels(read_by(SCHEMAS[kind], by, "test"))
    known = expected(data, kind, k)
    for level, part in zip(levels, parts_of(data, kind, k, by), strict=True):
        kept, left, squares = known[level]
        assert Fraction(part.count, UNIT) == kept
        assert Fraction(part.left, UNIT) == left
        assert Fraction(part.squares, UNIT**2) == squares
        assert kept
        assert left
    # Of all groups together a unit, or a row, has at most 1 of each.
    assert sum(each[2] for each in known.values()) <= sum(each[0] for each in known.values())


def test_matrices_of_groups_are_sums_of_weighted_rows() -> None:
    data = table()
    inner = Schema({"x": NEEDED, "y": (0, 4), "old": "boolean"}, weight=WEIGHT)
    for ward, part in zip(("a", "b", "elsewhere"), parts_of(data, "rows"), strict=True):
        own = data.filter(pa.array([name == ward for name in data["ward"].to_pylist()]))
        whole = open_reader(own, inner).run(Moments(inner))
        assert (part.integers == whole.integers).all()
        assert (part.left, part.squares) == (whole.left, whole.squares)


def array_of(data: pa.Table) -> Any:
    array = np.empty((data.num_rows, data.num_columns), object)
    for index, column in enumerate(data.columns):
        array[:, index] = column.to_pylist()
    return array


def facts(parts: Any) -> list[Any]:
    return [(part.integers.tolist(), part.count, part.left, part.squares) for part in parts]


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_same_bits_from_every_source_in_any_order(kind: str, tmp_path: Path) -> None:
    data = table()
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=97)
    csv.write_csv(data, tmp_path / "t.csv")
    order = simulation.generator(5).permutation(data.num_rows)
    known = facts(parts_of(data, kind, 2))
    paths = (tmp_path / "t.parquet", tmp_path / "t.csv")
    array = array_of(data.select(SCHEMAS[kind].read_columns))
    for other in (data.take(order), *paths, data.to_reader(50), array):
        assert facts(parts_of(other, kind, 2)) == known
    for threads in (1, 3):
        assert facts(parts_of(paths[0], kind, 2, threads=threads)) == known


@pytest.mark.engine
@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_same_bits_from_frames_sparse_matrices_and_dask(kind: str, tmp_path: Path) -> None:
    random = simulation.generator(3)
    wards: dict[str, Any] = {"type": "category", "levels": [1, 2]}
    columns = {"a": NEEDED, "b": (-3, 3), "c": (-3, 3), "ward": wards, "old": "boolean"}
    schema = Schema(columns, weight=WEIGHT, unit="id" if kind == "units" else None)
    cells = random.normal(size=(200, 3))
    cells[random.uniform(size=cells.shape) < 0.1] = np.nan
    rows = [
        Row(tuple(own), f"{random.lognormal():.3g}", ward, old, f"p{random.integers(0, 50)}")
        for own in cells.tolist()
        for ward, old in [(str(random.integers(1, 4)), str(random.choice(["true", "false"])))]
    ]
    split = read_by(schema, ["ward", "old"], "test")
    found = []
    holds = [hold(rows, split.read_columns, tmp_path, "t") for hold in HOLDS.values()]
    import dask.dataframe as dd

    for data in (*holds, dd.from_pandas(holds[1], npartitions=3)):
        each = [Moments(split.of_group()) for _ in group_levels(split)]
        reader = open_reader(data, split, rows_per_unit=2)
        found.append(facts(reader.run(GroupReduction(split, each)).parts))
    assert all(other == found[0] for other in found)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_later_passes_find_the_weights_that_the_first_one_kept(kind: str) -> None:
    data, split = table(9_000), read_by(SCHEMAS[kind], "ward", "test")
    reader = open_reader(data, split, again=True)
    found = []
    for _ in range(2):
        each = [Moments(split.of_group()) for _ in group_levels(split)]
        parts = reader.run(GroupReduction(split, each)).parts
        found.append([(part.integers.tolist(), part.count, part.squares) for part in parts])
    assert found[0] == found[1]


def test_rows_that_do_not_fit_into_memory_keep_their_groups_and_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, held = facts(parts_of(table(), "units")), spool.Spool
    monkeypatch.setattr(
        "dplinear.curator.sources.unit_rows.Spool", lambda size: held(size, held=1_000)
    )
    assert facts(parts_of(table(), "units")) == known


def test_a_row_in_no_group_weighs_nothing_of_its_unit() -> None:
    """A missing truth value is in no group; the rest of the unit's rows count as if it were not."""
    rows = {"x": [1.0, None, 1.0], "y": [1.0] * 3, "ward": ["a"] * 3, "w": [20.0] * 3}
    data = pa.table({**rows, "old": [True, True, None], "id": ["p"] * 3})
    parts = parts_of(data, "units", by="old")
    assert [part.count for part in parts] == [0, UNIT]
    assert [part.left for part in parts] == [0, UNIT // 2]


# The gates


def release(kind: str, **given: Any) -> Any:
    asked = {"by": "ward", **BUDGET, **given}
    return dpl.release_moments(asked.pop("data", table()), SCHEMAS[kind], **asked)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("kind", SCHEMAS)
def test_each_group_tells_its_own_side_sums(kind: str, neighbours: str) -> None:
    data = table(3_000)
    asked: dict[str, Any] = {"guarantee": dpl.ZCDP(1e12), "epsilon": None, "delta": None}
    groups = release(kind, data=data, neighbours=neighbours, **asked)
    assert list(groups) == ["a", "b", "other"]
    for level, part in zip(groups, parts_of(data, kind), strict=True):
        said = groups[level].certificate.parameters
        assert said["rows_left_out"] == pytest.approx(part.left / UNIT, abs=0.01)
        assert said["squared_weights"] == pytest.approx(part.squares / UNIT**2, abs=0.01)
        assert groups[level].count == pytest.approx(part.count / UNIT * 20, rel=1e-3)
        assert groups[level].rows is None
        effect = part.squares / UNIT / part.count
        assert groups[level].design_effect == pytest.approx(effect, rel=1e-3)
    assert "a total weight (by 'w') of about" in groups.summary()
    assert noise_of("squared_weights") in groups.certificate.parameters


def test_side_sums_of_pooled_groups_add_up() -> None:
    data = table(3_000)
    groups = release("units", data=data)
    for levels, fixed in ((None, False), (None, True), (["a", "b"], False)):
        whole = groups.pooled(levels, fixed_effects=fixed)
        parts = [groups[level].certificate.parameters for level in levels or groups]
        said = whole.certificate.parameters
        for name in side_names(groups["a"].schema):
            assert said[name] == pytest.approx(sum(part[name] for part in parts))
            told = math.sqrt(sum(part[noise_of(name)] ** 2 for part in parts))
            assert said[noise_of(name)] == pytest.approx(told)
    true = sum(part.squares / UNIT for part in parts_of(data, "units"))
    true /= sum(part.count for part in parts_of(data, "units"))
    precise = release("units", data=data, guarantee=dpl.ZCDP(1e12), epsilon=None, delta=None)
    for fixed in (False, True):
        found = precise.pooled(fixed_effects=fixed)
        assert found.design_effect == pytest.approx(true, rel=1e-3)
        # Of equal weights as informative: errors are those with the factor.
        plain = found.regress("y", ["x"]).intervals().sampling[1]
        bare = {k: v for k, v in found.certificate.parameters.items() if "squared" not in k}
        without = type(found)(
            found.schema,
            np.array(found.values),
            found.noise_model,
            type(found.certificate)(**{**vars(found.certificate), "parameters": bare}),
        )
        wide = without.regress("y", ["x"]).intervals().sampling[1]
        assert float(plain / wide) == pytest.approx(true, rel=0.02)


@pytest.mark.parametrize("neighbours", list(map(Neighbours, ("add_remove", "replace"))))
@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0])
@pytest.mark.parametrize("filled", [True, False])
def test_a_joined_profile_counts_the_side_sums_of_all_groups(
    kind: str, neighbours: Neighbours, epsilon: float, filled: bool
) -> None:
    """With counts of filled cells a certificate tells the distance; without, its noise does."""
    whole = SCHEMAS[kind] if filled else SCHEMAS[kind].leaving_out()
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-6, "neighbours": neighbours}
    groups: Any = dpl.release_moments(table(), whole, by="ward", **asked)
    assert ("columns_filled_in" in groups["a"].certificate.parameters) == filled
    schema, moved = groups.schema, 3 if kind == "units" else 2
    moved = moved if neighbours is Neighbours.REPLACE or kind == "units" else 1
    method = AnalyzeGauss(guarantee=dpl.ApproxDP(epsilon, 1e-6), neighbours=neighbours)
    true: Any = prepare_groups(method, schema, moved).account.profile
    for certificate in (groups["a"].certificate, groups.pooled().certificate):
        found = gaussian_profile(certificate, schema.dimension)
        assert found is not None
        assert true.mu * (1 - 1e-12) <= found.mu <= true.mu * (1 + 1e-5)
        assert found.inverse_variance >= true.inverse_variance * (1 - 1e-12)


WEIGHED: dict[str, Any] = {
    "whitened_descent": lambda data, schema, **given: dpl.release_model(
        data, schema, "y", ["x"], **given
    ),
    "adassp": lambda data, schema, **given: dpl.release_model(
        data, schema, "y", ["x"], mechanism="adassp", **given
    ),
    "coinpress": lambda data, schema, **given: dpl.release_model(
        data, schema, "y", ["x"], mechanism="coinpress", **given
    ),
    "mean": dpl.release_mean,
    "covariance": dpl.release_covariance,
}


@pytest.mark.parametrize("name", WEIGHED)
def test_a_group_with_little_noise_is_its_weighted_table(name: str) -> None:
    """Weights that are larger on one side pull the means; a table of one group has the same."""
    data = table(4_000)
    x, w = np.nan_to_num(np.array(data["x"], float)), np.array(data["w"])
    data = data.set_column(4, "w", pa.array(np.where(x > 0, w, w / 5)))
    columns = {"x": NEEDED, "y": (0, 4)}
    whole = Schema({**columns, "ward": ["a", "b"]}, weight=WEIGHT)
    asked: dict[str, Any] = {"guarantee": dpl.ZCDP(1e9)}
    groups = WEIGHED[name](data, whole, by="ward", **asked)
    for ward in ("a", "b"):
        own = data.filter(pa.array([each == ward for each in data["ward"].to_pylist()]))
        one, other = groups[ward], WEIGHED[name](own, Schema(columns, weight=WEIGHT), **asked)
        assert one.count == pytest.approx(other.count, rel=1e-3)
        if name in {"mean", "covariance"}:
            assert np.allclose(one.mean.values, other.mean.values, atol=0.02)
        else:
            assert one.coefficients["x"] == pytest.approx(other.coefficients["x"], abs=0.02)
        assert "a total weight (by 'w')" in repr(one)


def test_groups_with_weights_are_one_file(tmp_path: Path) -> None:
    groups = release("units")
    groups.save(tmp_path / "g.json")
    loaded = dpl.load(tmp_path / "g.json", kind="groups")
    assert loaded.describe() == groups.describe()
    for level in groups:
        assert loaded[level].certificate == groups[level].certificate
        assert loaded[level].design_effect == groups[level].design_effect
