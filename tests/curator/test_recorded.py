"""Every gate takes the path of a ledger, spends there first, and returns what it kept there."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from dplinear.analyst.releases import files
from dplinear.analyst.rows import kept_rows
from dplinear.analyst.rows.row_files import sidecar
from dplinear.convex.sets import L1Ball
from dplinear.ledger import (
    BudgetExceededError,
    DamagedLedgerError,
    LedgerError,
    NotKeptWarning,
    open_ledger,
)
from dplinear.ledger.fingerprint import fingerprint
from dplinear.ledger.sqlite import ledger as sqlite
from dplinear.ledger.sqlite.ledger import SqliteLedger
from dplinear.noise import simulation
from dplinear.privacy import MIDP, ZCDP, ApproxDP, Guarantee

SCHEMA = dpl.Schema(x=(-1, 1), y=(0, 10))
ROWS = np.column_stack([np.linspace(-1, 1, 300), np.linspace(0, 10, 300)])
PAIR: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
ERM: dict[str, Any] = {
    "row_norm": 1.0,
    "constraint": L1Ball(1, 1.0),
    "target_bounds": (0, 10),
    "projection": None,
}


def rows(**more: Any) -> Any:
    return dpl.release_rows(ROWS, SCHEMA, bits=0.5, **more)


def bounds(**more: Any) -> Any:
    return dpl.suggest_bounds(ROWS, ["x", "y"], rho=0.5, **more)


KEPT: dict[str, Callable[..., Any]] = {
    "moments": lambda **more: dpl.release_moments(ROWS, SCHEMA, **PAIR, **more),
    "sketch": lambda **more: dpl.release_sketch(ROWS, SCHEMA, **PAIR, **more),
    "projection": lambda **more: dpl.release_sketch(
        ROWS, SCHEMA, mechanism="mi_projection", bits=0.5, **more
    ),
    "model": lambda **more: dpl.release_model(ROWS, SCHEMA, "y", **PAIR, **more),
    "mean": lambda **more: dpl.release_mean(ROWS, SCHEMA, **PAIR, **more),
    "covariance": lambda **more: dpl.release_covariance(ROWS, SCHEMA, **PAIR, **more),
    "release_model, constrained": lambda **more: dpl.release_model(
        ROWS[:, :1], target=ROWS[:, 1], **ERM, **PAIR, **more
    ),
}
BITS = {"projection", "rows"}
ALL = KEPT | {"rows": rows, "bounds": bounds}


def ledger_for(name: str, folder: Path, room: int = 1) -> str:
    """Return a ledger that has room for one release of a gate, in the gate's own kind."""
    path = str(folder / "budget.db")
    budget: Guarantee = ApproxDP(1.0 * room, 1e-6 * room)
    if name in BITS:
        budget = MIDP(0.5 * room)
    if name == "bounds":
        budget = ZCDP(0.5 * room)
    neighbours = "element" if name in BITS else "add_remove"
    open_ledger(path, create=True).declare("table", budget, neighbours)
    return path


@pytest.mark.parametrize("name", list(ALL))
def test_every_gate_spends_in_the_ledger(name: str, tmp_path: Path) -> None:
    path = ledger_for(name, tmp_path)
    ALL[name](ledger=path, dataset="table", request="monday")
    with pytest.raises(BudgetExceededError):
        ALL[name](ledger=path, dataset="table", request="tuesday")
    assert open_ledger(path).verify() == 4


@pytest.mark.parametrize("name", list(KEPT))
def test_the_same_request_gets_the_release_that_was_kept(name: str, tmp_path: Path) -> None:
    path = ledger_for(name, tmp_path)
    first = KEPT[name](ledger=path, dataset="table", request="monday")
    again = KEPT[name](ledger=path, dataset="table", request="monday")
    assert type(again) is type(first)
    assert files.pack(again) == files.pack(first) is not None


def test_suggested_bounds_are_kept_too(tmp_path: Path) -> None:
    path = ledger_for("bounds", tmp_path)
    first = bounds(ledger=path, dataset="table", request="monday")
    again = bounds(ledger=path, dataset="table", request="monday")
    assert files.pack(again) == files.pack(first) is not None
    assert again.bounds == first.bounds


def before_keeping(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Let something happen between the spend and the keeping of the release."""
    keep = SqliteLedger.keep

    def late(self: SqliteLedger, request: str, content: bytes) -> None:
        happens()
        keep(self, request, content.ljust(10**6))  # more than an old page has room for

    monkeypatch.setattr(SqliteLedger, "keep", late)


@pytest.mark.parametrize("name", list(ALL))
def test_what_a_ledger_could_not_keep_is_returned_and_stays_spent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ledger_for(name, tmp_path, room=2)
    call: dict[str, Any] = {"ledger": path, "dataset": "table", "request": "monday"}
    with monkeypatch.context() as patch:
        before_keeping(patch, lambda: patch.setitem(sqlite._WRITING, "max_page_count", "1"))
        with pytest.warns(NotKeptWarning, match=r"'monday' is spent.*disk is full\)") as caught:
            release = ALL[name](**call)
    warning = caught[0].message
    assert isinstance(warning, NotKeptWarning)
    assert warning.release is release
    assert caught[0].filename == __file__  # it points to the caller
    assert "nothing is released" not in str(warning)
    with pytest.raises(LedgerError, match="'monday' is spent, and there is no release"):
        ALL[name](**call)
    assert open_ledger(path).verify() == 3  # itself, the budget, the spend


def test_where_warnings_are_errors_the_error_has_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ledger_for("moments", tmp_path)
    before_keeping(monkeypatch, Path(path).unlink)
    with pytest.raises(NotKeptWarning) as caught:  # as they are in all tests
        KEPT["moments"](ledger=path, dataset="table", request="monday")
    assert caught.value.release.certificate.request == "monday"


def test_nothing_leaves_over_a_ledger_that_has_forgotten_the_spend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(ledger_for("moments", tmp_path))
    side = path.with_name(f"{path.name}.anchor")
    lines, mark = path.read_bytes(), side.read_bytes()
    with monkeypatch.context() as patch:
        before_keeping(patch, lambda: path.write_bytes(lines))
        with pytest.raises(DamagedLedgerError, match="an older copy"):
            KEPT["moments"](ledger=path, dataset="table")
    side.write_bytes(mark)
    before_keeping(monkeypatch, lambda: (path.write_bytes(lines), side.write_bytes(mark)))
    with pytest.raises(DamagedLedgerError, match="has paid for nothing"):
        KEPT["moments"](ledger=path, dataset="table")


def test_the_words_of_others_ledgers_are_not_repeated() -> None:
    class Talkative:
        def spend(self, _: Any) -> None:
            return None

        def keep(self, _: str, content: bytes) -> None:
            raise OSError(f"postgresql://me:secret@host {len(content)}")

    with pytest.warns(NotKeptWarning, match=r"the release \(OSError\)\.") as caught:
        KEPT["moments"](ledger=Talkative(), dataset="table", request="monday")
    assert "secret" not in str(caught[0].message)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_few_rows_are_kept_whole(suffix: str, tmp_path: Path) -> None:
    path = ledger_for("rows", tmp_path)
    call: dict[str, Any] = {"ledger": path, "dataset": "table", "request": "monday"}
    first = rows(**call)
    assert np.array_equal(rows(**call).values, first.values)
    output = tmp_path / f"rows.{suffix}"
    for _ in range(2):  # written from what was kept, then found there
        again = rows(**call, output=output)
        assert again.path == output
        assert np.array_equal(again.values, first.values)
    assert again.certificate == first.certificate
    with pytest.raises(LedgerError, match="with other arguments"):
        dpl.release_rows(ROWS, SCHEMA, bits=0.25, **call)
    assert open_ledger(path).verify() == 4


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_many_rows_are_known_by_the_digest_of_their_file(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_rows, "WHOLE", 1000)
    path = ledger_for("rows", tmp_path)
    output, moved = tmp_path / f"rows.{suffix}", tmp_path / f"moved.{suffix}"
    call: dict[str, Any] = {"ledger": path, "dataset": "table", "request": "monday"}
    first = rows(**call, output=output)
    assert np.array_equal(rows(**call, output=output).values, first.values)
    for other in (None, moved):
        with pytest.raises(LedgerError, match=r"(?s)not kept in the ledger.*SHA-256.*stays spent"):
            rows(**call, output=other)
    values = first.values
    output.rename(moved)
    if suffix == "csv":
        sidecar(output).rename(sidecar(moved))
    assert np.array_equal(rows(**call, output=moved).values, values)
    changed = sidecar(moved) if suffix == "csv" else moved
    changed.write_bytes(changed.read_bytes().replace(b'"simulated": false', b'"simulated":  false'))
    with pytest.raises((LedgerError, ValueError), match=r"not as it was|not there yet"):
        rows(**call, output=moved)
    assert open_ledger(path).verify() == 4


def test_a_file_of_other_rows_is_not_taken_for_the_released_one(tmp_path: Path) -> None:
    path, output = ledger_for("rows", tmp_path), tmp_path / "rows.parquet"
    rows(ledger=path, dataset="table", request="monday", output=output)
    output.unlink()
    rows(dataset="table", request="monday", output=output)  # another draw, and nobody counts it
    with pytest.raises(LedgerError, match="is not as it was when the request 'monday' was"):
        rows(ledger=path, dataset="table", request="monday", output=output)


def test_many_rows_in_memory_are_not_kept_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_rows, "WHOLE", 1000)
    path = ledger_for("rows", tmp_path, room=2)
    rows(ledger=path, dataset="table", request="monday")
    with pytest.raises(LedgerError, match=r"(?s)not kept in the ledger.*in memory alone"):
        rows(ledger=path, dataset="table", request="monday")
    unnamed = rows(ledger=path, dataset="table", output=tmp_path / "rows.arrow")
    kept = open_ledger(path).kept_release(unnamed.certificate.request)
    assert kept is not None
    assert kept_rows.read(kept).stream is None
    assert open_ledger(path).kept_release("tuesday") is None


def test_kept_rows_that_are_not_as_they_were_are_refused() -> None:
    content = kept_rows.pack(rows(), whole=True)
    read = kept_rows.read(content)
    assert read.is_in(Path("anywhere"))
    for other in (
        b"{}\n",
        b"3\n",
        b"no\n",
        content.replace(b'"version": 1', b'"version": 2', 1),
        content.replace(b'"digests": []', b'"digests": 3', 1),
    ):
        with pytest.raises(files.ReleaseError, match="kept"):
            kept_rows.read(other)
    for broken in (None, b"", read.stream[:-900]):  # type: ignore[index]
        with pytest.raises(files.ReleaseError, match="released rows"):
            replace(read, stream=broken).release()
    with pytest.raises(files.ReleaseError, match="3 released rows"):
        replace(read, rows=3).release()
    with pytest.raises(files.ReleaseError, match="can be read"):
        replace(read, digests=("x",)).is_in(Path("nowhere"))


def test_ledgers_that_keep_nothing_are_asked_for_nothing(tmp_path: Path) -> None:
    class Counting:
        def spend(self, _: Any) -> None:
            return None

    output = tmp_path / "rows.parquet"
    call: dict[str, Any] = {"ledger": Counting(), "dataset": "table", "request": "monday"}
    first = rows(**call, output=output)
    assert np.array_equal(rows(**call, output=output).values, first.values)


def test_gaussian_noise_for_a_pair_is_counted_by_its_rho(tmp_path: Path) -> None:
    path = str(tmp_path / "budget.db")
    ledger = open_ledger(path, create=True)
    ledger.declare("table", ZCDP(0.1))
    release = KEPT["moments"](ledger=path, dataset="table")
    (status,) = ledger.status()
    # A Gaussian of (1, 1e-6) has μ = 0.2367; the grid's is a little less.
    assert 0.027 < status.spent.main / 1e12 < 0.2367**2 / 2 + 1e-4
    assert release.certificate.holds == ApproxDP(1.0, 1e-6)
    with pytest.raises(LedgerError, match="no theorem counts"):
        KEPT["sketch"](ledger=path, dataset="table")


def test_estimators_take_a_path_too(tmp_path: Path) -> None:
    path = ledger_for("model", tmp_path)
    model = dpl.PrivateLinearRegression(
        **PAIR, bounds=(-1, 1), target_bounds=(0, 10), ledger=path, dataset="table"
    )
    model.fit(ROWS[:, :1], ROWS[:, 1])
    with pytest.raises(BudgetExceededError):
        model.fit(ROWS[:, :1], ROWS[:, 1])


def test_a_function_that_has_another_ones_address_gets_no_release_of_its(tmp_path: Path) -> None:
    path = ledger_for("release_model, constrained", tmp_path, room=2)
    call: dict[str, Any] = ERM | PAIR | {"ledger": path, "dataset": "table", "request": "monday"}

    def within(radius: float) -> Callable[[int], L1Ball]:
        return lambda dimension: L1Ball(dimension, radius)

    dpl.release_model(ROWS[:, :1], target=ROWS[:, 1], **(call | {"constraint": within(1.0)}))
    with pytest.raises(LedgerError, match="with other arguments"):
        dpl.release_model(ROWS[:, :1], target=ROWS[:, 1], **(call | {"constraint": within(2.0)}))


def test_columns_in_another_order_are_another_request(tmp_path: Path) -> None:
    path = ledger_for("moments", tmp_path, room=2)
    call: dict[str, Any] = PAIR | {"ledger": path, "dataset": "table", "request": "monday"}
    dpl.release_moments(ROWS, dpl.Schema(x=(-1, 1), y=(-1, 1)), **call)
    with pytest.raises(LedgerError, match="with other arguments"):
        dpl.release_moments(ROWS, dpl.Schema(y=(-1, 1), x=(-1, 1)), **call)


def test_rows_of_more_columns_are_another_request(tmp_path: Path) -> None:
    path = ledger_for("release_model, constrained", tmp_path, room=2)
    call: dict[str, Any] = ERM | PAIR | {"ledger": path, "dataset": "table", "request": "monday"}
    call["constraint"] = 1.0  # a radius, in any number of dimensions
    dpl.release_model(ROWS[:, :1], target=ROWS[:, 1], **call)
    with pytest.raises(LedgerError, match="with other arguments"):
        dpl.release_model(ROWS, target=ROWS[:, 1], **call)


def test_fingerprints_tell_arguments_apart() -> None:
    values = [
        None, 1, 1.5, "1", [1], {"a": 1}, {"a": 2}, np.ones(2), np.ones(3), np.ones(2, np.float32),
        SCHEMA, dpl.Schema(x=(-1, 1)), ZCDP(1), ZCDP(2), MIDP(1), L1Ball(2, 1.0), L1Ball(2, 2.0),
        L1Ball, dict,
    ]  # fmt: skip
    assert len({fingerprint(value) for value in values}) == len(values)
    for value in (SCHEMA, dpl.Schema(x=(-1, 1), y=(0, 10))):
        assert fingerprint(value) == fingerprint(SCHEMA)
    assert fingerprint((np.int64(1), np.float64(0.5))) == fingerprint([1, 0.5])


def test_what_a_seed_made_is_not_taken_for_a_release(tmp_path: Path) -> None:
    path = ledger_for("moments", tmp_path, room=3)
    call: dict[str, Any] = {"ledger": path, "dataset": "table"}
    with simulation.door(7):
        seeded = KEPT["moments"](**call, request="monday")
        assert np.array_equal(KEPT["moments"](**call, request="monday").values, seeded.values)
    with pytest.raises(LedgerError, match="with other arguments"):
        KEPT["moments"](**call, request="monday")
    with simulation.door(8), pytest.raises(LedgerError, match="with other arguments"):
        KEPT["moments"](**call, request="monday")
    real = KEPT["moments"](**call, request="tuesday")
    assert not real.certificate.simulated
    with simulation.door(7), pytest.raises(LedgerError, match="with other arguments"):
        KEPT["moments"](**call, request="tuesday")


@pytest.mark.parametrize("name", ["moments", "rows"])
def test_what_a_seed_made_for_a_former_version_is_not_taken_for_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whose fingerprints held no seed."""
    path = ledger_for(name, tmp_path, room=2)
    call: dict[str, Any] = {"ledger": path, "dataset": "table", "request": "monday"}
    with simulation.door(7), monkeypatch.context() as patch:
        drawn = simulation.entropy_for_release
        former = SimpleNamespace(seed_for_release=lambda: None, entropy_for_release=drawn)
        patch.setattr("dplinear.curator.passage.simulation", former)
        patch.setattr("dplinear.curator.request_fingerprint.simulation", former)
        ALL[name](**call)
    with pytest.raises(LedgerError, match="'monday' was made with a seed"):
        ALL[name](**call)


def test_a_mapping_and_its_schema_are_one_request(tmp_path: Path) -> None:
    path = ledger_for("moments", tmp_path)
    call: dict[str, Any] = {**PAIR, "ledger": path, "dataset": "table", "request": "monday"}
    columns = {"a": (-1, 1), "b": (-1, 1)}
    first = dpl.release_moments(ROWS, columns, **call)
    again = dpl.release_moments(ROWS, dpl.Schema(columns), **call)
    assert np.array_equal(first.values, again.values)


@pytest.mark.parametrize("one", [1, 1.0, np.float64(1), np.int64(1), np.float32(1), Fraction(1)])
def test_equal_numbers_are_one_request(tmp_path: Path, one: Any) -> None:
    path = ledger_for("moments", tmp_path)
    call: dict[str, Any] = {"delta": 1e-6, "ledger": path, "dataset": "table", "request": "monday"}
    first = dpl.release_moments(ROWS, SCHEMA, epsilon=1, **call)
    again = dpl.release_moments(ROWS, SCHEMA, epsilon=one, **call)
    assert np.array_equal(first.values, again.values)
    with pytest.raises(LedgerError, match="with other arguments"):
        dpl.release_moments(ROWS, SCHEMA, epsilon=0.5, **call)
