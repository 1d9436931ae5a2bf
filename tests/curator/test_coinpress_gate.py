"""The gate for means and covariances: order, certificates, sources, files, and what it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import dplinear as dpl
from dplinear.analyst.releases.location import CovarianceRelease, MeanRelease
from dplinear.curator.windows import Windowed
from dplinear.exact.blocks import Blocks
from dplinear.ledger import Request, tally
from dplinear.noise import simulation
from dplinear.privacy import GDP, ZCDP, ApproxDP, PureDP
from dplinear.schema import Schema
from services import library

pytestmark = pytest.mark.heavy  # our own rules, whatever the versions

GATES: list[Any] = [dpl.release_mean, dpl.release_covariance]
SCHEMA = Schema({"a": (-1e6, 1e6), "b": (-1e6, 1e6)})
BUDGET: dict[str, Any] = {"guarantee": ZCDP(0.5)}


def rows(seed: int = 0, count: int = 1500) -> Any:
    return simulation.generator(seed).normal(size=(count, 2)) @ [[1, 3], [0, 2]] + [7, -40]


def numbers(release: Any) -> Any:
    return getattr(release, "covariance", release.mean).values


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[int] = []
    update = Blocks.update_array

    def watched(self: Blocks[Any], block: Any) -> None:
        seen.append(len(block))
        update(self, block)

    monkeypatch.setattr(Blocks, "update_array", watched)
    return seen


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("guarantee", [ZCDP(0.5), ApproxDP(1.0, 1e-6)], ids=str)
def test_releases_say_what_holds_and_are_near_the_truth(guarantee: Any, relation: str) -> None:
    table = rows(1)
    with simulation.door(2), tally() as spent:
        mean = dpl.release_mean(table, SCHEMA, guarantee=guarantee, neighbours=relation)
        spread = dpl.release_covariance(table, SCHEMA, guarantee=guarantee, neighbours=relation)
    assert len(spent) == 2
    assert isinstance(mean, MeanRelease)
    assert isinstance(spread, CovarianceRelease)
    for release, name in ((mean, "coinpress_mean"), (spread, "coinpress_covariance")):
        certificate = release.certificate
        assert (certificate.mechanism, certificate.numerics) == (name, "exact")
        assert certificate.asked == certificate.holds == guarantee
        assert certificate.simulated
        spent_share: Any = certificate.parameters["spent"]
        assert 0.999 < spent_share <= 1
        assert release.rows == (1500 if relation == "replace" else None)
        assert release.count == pytest.approx(1500, abs=300)
        assert certificate.mechanism in repr(release)
    scale = table.std(axis=0)
    assert (np.abs(mean.mean.values - table.mean(axis=0)) < 0.2 * scale).all()
    truth = np.cov(table.T)
    assert (np.abs(spread.covariance.values - truth) < 0.4 * np.outer(scale, scale)).all()
    assert spread["a", "b"] == spread.covariance.values[0, 1]
    assert mean["b"] == mean.mean.values[1]
    np.testing.assert_allclose(np.diag(spread.correlation.values), 1)
    assert (mean.privacy_errors.values > 0).all()
    assert np.linalg.eigvalsh(spread.covariance.values).min() >= -1e-9


@pytest.mark.parametrize("gate", GATES)
def test_files_bring_releases_back(gate: Callable[..., Any], tmp_path: Path) -> None:
    release = gate(rows(), SCHEMA, **BUDGET)
    release.save(tmp_path / "release")
    loaded = dpl.load(tmp_path / "release")
    assert type(loaded) is type(release)
    assert numbers(loaded).tobytes() == numbers(release).tobytes()
    assert repr(loaded) == repr(release)
    assert loaded.certificate == release.certificate
    with pytest.raises(ValueError, match="read-only"):
        numbers(loaded)[0] = 1.0


@pytest.mark.parametrize("gate", GATES)
def test_a_file_whose_numbers_are_not_of_its_schema_is_refused(
    gate: Callable[..., Any], tmp_path: Path
) -> None:
    release = gate(rows(), SCHEMA, **BUDGET)
    object.__setattr__(release, "schema", Schema({"a": (0, 1)}))
    with pytest.raises(dpl.ReleaseError, match="loaded again"):
        release.save(tmp_path / "release")


@pytest.mark.parametrize("gate", GATES)
def test_every_source_gives_the_same_bits(gate: Callable[..., Any], tmp_path: Path) -> None:
    table = rows(3)
    arrow = pa.table({"b": table[:, 1], "a": table[:, 0], "c": ["?"] * len(table)})
    parquet.write_table(arrow, tmp_path / "rows.parquet", row_group_size=400)
    sources = [table, np.asfortranarray(table), arrow, str(tmp_path / "rows.parquet")]
    found = []
    for source in sources:
        with simulation.door(4):
            found.append(numbers(gate(source, SCHEMA, **BUDGET, threads=2)).tobytes())
    assert len(set(found)) == 1


def bounds(data: Any, schema: Schema, **options: Any) -> Any:
    return dpl.suggest_bounds(data, schema.columns, **options)


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize(
    "engine", ["pandas", "dask", pytest.param("spark", marks=pytest.mark.long)]
)
def test_engines_look_through_the_same_windows(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    table = rows(3, count=600)
    arrow = pa.table({"a": table[:, 0], "b": table[:, 1]})
    parquet.write_table(arrow, tmp_path / "rows.parquet", row_group_size=200)
    more: dict[str, Any] = {}
    held: Any = library("pandas").DataFrame({"a": table[:, 0], "b": table[:, 1]})
    if engine == "dask":
        held, more = str(tmp_path / "rows.parquet"), {"engine": "dask"}
    if engine == "spark":
        listed = [(float(a), float(b)) for a, b in table]
        held = request.getfixturevalue("spark").createDataFrame(listed, "a double, b double")
    for gate in (
        *GATES,
        lambda data, _, **options: dpl.suggest_bounds(data, ["a", "b"], **options),
    ):
        found = []
        for source, options in ((table, {}), (held, more)):
            with simulation.door(4):
                release: Any = gate(source, SCHEMA, **BUDGET, **options)
            given = release.bounds if hasattr(release, "bounds") else numbers(release).tobytes()
            found.append(given)
        assert found[0] == found[1]


WRONG: dict[str, dict[str, Any]] = {
    "no guarantee": {"guarantee": None},
    "a pure one": {"guarantee": PureDP(1.0)},
    "another kind": {"guarantee": GDP(1.0)},
    "twice": {"epsilon": 1.0},
    "neighbours": {"neighbours": "element"},
    "no steps": {"steps": 0},
    "too many steps": {"steps": 51},
    "a text for a scale": {"scale": "wide"},
    "a scale of 0": {"scale": 0.0},
    "scales for others": {"scale": (1.0, 2.0, 3.0)},
    "an option of nobody": {"radius": 3},
    "the paper's constants": {"calibration": "paper"},
    "a ledger of another kind": {"ledger": 3},
    "nothing left": {"guarantee": ZCDP(1e-14)},
}


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused_is_neither_spent_nor_read(
    gate: Callable[..., Any], case: str, reads: list[int]
) -> None:
    with tally() as spent, pytest.raises((TypeError, ValueError), match="parameter of"):
        gate(rows(), SCHEMA, **(BUDGET | WRONG[case]))
    assert len(spent) == 0
    assert reads == []


SCHEMAS: dict[str, Any] = {
    "none": None,
    "categories": Schema({"a": (0, 1), "b": ["x", "y"]}),
    "derived": Schema({"a": (0, 1), "b": (0, 1)}, derived=["a*b"]),
    "clipped rows": Schema({"a": (0, 1), "b": (0, 1)}, row_norm=0.5),
    "no intercept": Schema({"a": (0, 1), "b": (0, 1)}, intercept=False),
    "an indicator": Schema({"a": {"low": 0, "high": 1, "missing_indicator": True}, "b": (0, 1)}),
    "squares that are no numbers": Schema({"a": (0, 1e120), "b": (0, 1)}),
}


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("case", SCHEMAS)
def test_schemas_that_are_not_of_numbers_alone_are_refused(
    gate: Callable[..., Any], case: str, reads: list[int]
) -> None:
    with tally() as spent, pytest.raises((TypeError, ValueError), match="'schema' parameter of"):
        gate(rows(), SCHEMAS[case], **BUDGET)
    assert len(spent) == 0
    assert reads == []


@pytest.mark.parametrize("gate", GATES)
def test_tables_without_the_columns_and_streams_are_refused(
    gate: Callable[..., Any], reads: list[int]
) -> None:
    stream = pa.RecordBatchReader.from_batches(
        pa.schema({"a": pa.float64(), "b": pa.float64()}), iter([])
    )
    for table in (rows()[:, :1], pa.table({"a": [1.0]}), stream):
        with tally() as spent, pytest.raises((TypeError, ValueError), match="parameter of"):
            gate(table, SCHEMA, **BUDGET)
        assert len(spent) == 0
    assert reads == []


class RefusedError(Exception):
    pass


class Strict:
    """A ledger that refuses, and remembers."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def spend(self, request: Request) -> None:
        self.requests.append(request)
        raise RefusedError


@pytest.mark.parametrize("gate", GATES)
def test_a_ledger_is_told_first_and_may_refuse(gate: Callable[..., Any], reads: list[int]) -> None:
    ledger = Strict()
    with pytest.raises(RefusedError):
        gate(rows(), SCHEMA, **BUDGET, ledger=ledger, dataset="visits", scale=np.array([1.0, 2.0]))
    (request,) = ledger.requests
    assert request.guarantee == ZCDP(0.5)
    assert request.parameters["scale"] == (1.0, 2.0)
    assert reads == []


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(
    "table",
    [
        np.zeros((0, 2)),
        np.zeros((3, 2)),
        np.full((50, 2), np.nan),
        np.full((50, 2), 1e300),
        np.array([["x", "y"]] * 9, object),
    ],
    ids=["no rows", "zeros", "no numbers", "far out", "texts"],
)
def test_whatever_rows_hold_there_is_a_finite_release(gate: Callable[..., Any], table: Any) -> None:
    for relation in ("add_remove", "replace"):
        for bounds in ((-1e6, 1e6), (5, 6), (-1e-9, 1e90)):
            schema = Schema({"a": bounds, "b": bounds})
            found = numbers(gate(table, schema, **BUDGET, neighbours=relation))
            assert np.isfinite(found).all()


@pytest.mark.parametrize("bounds", [10.0, 1e9], ids=str)
def test_noise_widens_no_direction_until_it_has_no_inverse(bounds: float) -> None:
    """Many steps of little budget each: what is released stays within what bounds allow."""
    table = simulation.generator(0).normal(size=(200, 2))
    schema = Schema({"a": (-bounds, bounds), "b": (-bounds, bounds)})
    for seed in range(4):
        with simulation.door(seed):
            found = dpl.release_covariance(table, schema, epsilon=0.1, delta=1e-6, steps=50)
        assert np.isfinite(found.covariance.values).all()


def looked_through(table: Any, schema: Schema) -> tuple[Any, list[Any]]:
    """Return a released mean, and the columns of every window that was opened for it."""
    seen: list[Any] = []
    through = Windowed.through

    def watched(self: Windowed, low: Any, high: Any) -> Any:
        view = through(self, low, high)
        seen.append(view.schema.declared)
        return view

    with pytest.MonkeyPatch.context() as patch, simulation.door(6):
        patch.setattr(Windowed, "through", watched)
        return dpl.release_mean(table, schema, guarantee=ZCDP(2.0)), seen


def test_columns_of_other_numeric_types_are_seen_through_windows() -> None:
    """Integers keep whole bounds, booleans theirs; a missing cell is its public number."""
    count = {"type": "integer", "low": -1000, "high": 100_000, "missing": 3}
    day = {"type": "date", "low": "1900-01-01", "high": "2100-01-01"}
    schema = Schema({"count": count, "flag": "boolean", "day": day})
    random = simulation.generator(5)
    table = pa.table(
        {
            "count": random.integers(0, 7, 3000),
            "flag": random.integers(0, 2, 3000).astype(bool),
            "day": pa.array(random.integers(10_000, 10_100, 3000), pa.int32()).cast(pa.date32()),
        }
    )
    found, windows = looked_through(table, schema)
    off = (found.mean.values - [3, 0.5, 10_049.5]) / [2.0, 0.5, 29.0]
    assert np.abs(off).max() < 0.1
    narrow = windows[-1]
    assert narrow["count"].high < 100
    assert narrow["count"].low.denominator == narrow["count"].high.denominator == 1
    assert narrow["count"].low <= narrow["count"].missing <= narrow["count"].high
    assert narrow["flag"] == schema.declared["flag"]
    assert narrow["day"].high - narrow["day"].low < 1000


def test_windows_of_constant_columns_stay_open_and_soon_stop() -> None:
    """Of whole numbers and of seconds, too, which cannot be narrowed without end."""
    count = {"type": "integer", "low": -1000, "high": 100_000}
    day = {"type": "date", "low": "1960-01-01", "high": "1980-01-01"}
    schema = Schema({"count": count, "flag": "boolean", "day": day, "x": (-1e9, 1e9)})
    table = pa.table(
        {
            "count": np.full(3000, 3),
            "flag": np.zeros(3000, bool),
            "day": pa.array(np.zeros(3000, np.int32)).cast(pa.date32()),
            "x": np.full(3000, 7.0),
        }
    )
    found, windows = looked_through(table, schema)
    np.testing.assert_allclose(found.mean.values, [3, 0, 0, 7], atol=1e-2)
    assert len(windows) < 20
    assert all(column.low < column.high for each in windows for column in each.values())


def test_missing_cells_are_their_public_number_in_every_window() -> None:
    column = {"type": "number", "low": -1e6, "high": 1e6, "missing": 3.0}
    table = np.full((2000, 1), np.nan)
    table[:500] = 50.0
    found, windows = looked_through(table, Schema({"a": column}))
    assert found["a"] == pytest.approx(0.75 * 3 + 0.25 * 50, abs=1)
    assert all(each["a"].missing == 3 for each in windows)
