"""What every ledger keeps, wherever its lines are. One body for all of them."""

import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.arguments import ArgumentTypeError
from dplinear.curator import SourceError
from dplinear.ledger import (
    BudgetExceededError,
    LedgerError,
    NotKeptWarning,
    Request,
    open_ledger,
    tally,
)
from dplinear.ledger.ledger import BudgetLedger
from dplinear.noise import simulation
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Guarantee, Neighbours, PureDP
from refusals import refused
from spenders import context, spend_for_ever, spend_until

if TYPE_CHECKING:
    from postgres_server import Server

SCHEMA = dpl.Schema(x=(-1, 1), y=(0, 10))
ROWS = np.column_stack([np.linspace(-1, 1, 50), np.linspace(0, 10, 50)])


class Unreadable:
    """A table that can be described, and not read."""

    def __arrow_c_stream__(self, requested: object = None) -> object:
        names = pa.schema([("x", pa.float64()), ("y", pa.float64())])
        reader = pa.RecordBatchReader.from_batches(names, map(_read, [0]))
        return reader.__arrow_c_stream__(requested)


def _read(_: int) -> pa.RecordBatch:
    raise AssertionError("rows were read")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.engine)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger that was just made; a further kind is one more way to make one."""
    makers = {"sqlite": _in_a_file, "postgres": _on_a_server}
    path = makers[request.param](tmp_path, request)
    open_ledger(path, create=True)
    return path


def _in_a_file(folder: Path, _: pytest.FixtureRequest) -> str:
    return str(folder / "budget.db")


def _on_a_server(folder: Path, request: pytest.FixtureRequest) -> str:
    server: Server = request.getfixturevalue("postgres")
    return server.url(f"ledger_{uuid.uuid4().hex[:12]}", anchor=folder / "side.anchor")


def asked(
    name: str, guarantee: Guarantee | None = None, dataset: str | None = "table", **more: Any
) -> Request:
    facts = {"neighbours": Neighbours.ADD_REMOVE, "mechanism": "test", "parameters": {}} | more
    return Request(name, dataset, guarantee or ZCDP(0.1), **facts)


def spent(ledger: BudgetLedger) -> int:
    return sum(each.spent.main for each in ledger.status())


def test_what_is_written_as_the_budget_is_admitted_and_no_more(address: str) -> None:
    ledger = open_ledger(address)
    ledger.declare("table", ZCDP(1.0))
    for turn in range(10):
        assert ledger.spend(asked(f"request {turn}")) is None
    with pytest.raises(BudgetExceededError, match=r"needs ρ = 1e-12, but .* ρ = 0 left"):
        ledger.spend(asked("one more", ZCDP(1e-20)))
    assert spent(open_ledger(address)) == 10**12
    assert ledger.verify() == 12


def test_deltas_have_a_limit_of_their_own(address: str) -> None:
    ledger = open_ledger(address)
    ledger.declare("table", ApproxDP(10.0, 1e-6))
    ledger.spend(asked("first", ApproxDP(0.1, 6e-7)))
    with pytest.raises(BudgetExceededError):
        ledger.spend(asked("second", ApproxDP(0.1, 6e-7)))
    ledger.spend(asked("third", ApproxDP(0.1, 4e-7)))


def test_budgets_are_declared_once_and_apart(address: str) -> None:
    ledger = open_ledger(address)
    ledger.declare("table", ZCDP(0.1))
    ledger.declare("other", ZCDP(0.2))
    with pytest.raises(LedgerError, match="has a budget already"):
        ledger.declare("table", ZCDP(5.0))
    ledger.spend(asked("first"))
    ledger.spend(asked("second", dataset="other"))
    with pytest.raises(BudgetExceededError):
        ledger.spend(asked("third"))
    with pytest.raises(LedgerError, match="'unknown' has no budget"):
        ledger.spend(asked("fourth", dataset="unknown"))
    with pytest.raises(LedgerError, match="none was named"):
        ledger.spend(asked("fifth", dataset=None))
    with refused("dataset", "declare", "printable", kind=ArgumentTypeError):
        ledger.declare("", ZCDP(1.0))
    left = {each.dataset: each.remaining.main for each in ledger.status()}
    assert left == {"table": 0, "other": 10**11}
    assert [line.kind for line in ledger.history("table")] == ["budget", "spend"]


def test_the_same_request_gets_the_same_bytes_and_spends_once(address: str) -> None:
    ledger = open_ledger(address)
    ledger.declare("table", ZCDP(1.0))
    request = asked("monday", arguments="a")
    assert ledger.spend(request) is None
    with pytest.raises(LedgerError, match="'monday' is spent, and there is no release"):
        ledger.spend(request)
    ledger.keep("monday", b"the release")
    assert open_ledger(address).spend(request) == b"the release"
    for other in (
        asked("monday", arguments="b"),
        asked("monday", ZCDP(0.2), arguments="a"),
        asked("monday", arguments="a", mechanism="another"),
    ):
        with pytest.raises(LedgerError, match="with other arguments"):
            ledger.spend(other)
    with pytest.raises(LedgerError, match="has its release already"):
        ledger.keep("monday", b"another release")
    with pytest.raises(LedgerError, match="has paid for nothing"):
        ledger.keep("tuesday", b"a release")
    assert spent(ledger) == 10**11
    assert ledger.verify() == 4


def test_a_gate_takes_the_address_and_returns_what_it_returned_before(address: str) -> None:
    open_ledger(address).declare("table", ApproxDP(1.0, 1e-6))
    call: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "dataset": "table", "request": "monday"}
    with tally() as counted:
        first = dpl.release_moments(ROWS, SCHEMA, **call, ledger=address)
        again = dpl.release_moments(Unreadable(), SCHEMA, **call, ledger=address, threads=1)
    assert np.array_equal(first.values, again.values)
    assert first.certificate == again.certificate
    assert len(counted) == 1
    with pytest.raises(LedgerError, match="with other arguments"):
        dpl.release_moments(Unreadable(), dpl.Schema(x=(-1, 1)), **call, ledger=address)
    with pytest.raises(BudgetExceededError):
        dpl.release_moments(
            Unreadable(), SCHEMA, **(call | {"request": "tuesday"}), ledger=open_ledger(address)
        )


def test_a_gate_that_fails_after_the_spend_has_spent(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_ledger(address).declare("table", ZCDP(1.0))
    call: dict[str, Any] = {"guarantee": ZCDP(0.4), "dataset": "table", "request": "monday"}
    with pytest.raises(SourceError, match="Reading the stream failed"):
        dpl.release_moments(Unreadable(), SCHEMA, **call, ledger=address)
    assert spent(open_ledger(address)) == 4 * 10**11
    with pytest.raises(LedgerError, match="is spent, and there is no release"):
        dpl.release_moments(ROWS, SCHEMA, **call, ledger=address)
    monkeypatch.setattr(BudgetLedger, "keep", _full)
    with pytest.warns(NotKeptWarning, match="full"):
        release = dpl.release_moments(ROWS, SCHEMA, **(call | {"request": "b"}), ledger=address)
    assert release.certificate.request == "b"
    assert spent(open_ledger(address)) == 8 * 10**11
    with pytest.raises(LedgerError, match="'b' is spent, and there is no release"):
        dpl.release_moments(ROWS, SCHEMA, **(call | {"request": "b"}), ledger=address)
    assert spent(open_ledger(address)) == 8 * 10**11


def _full(*_: object) -> None:
    raise LedgerError("the disk is full")


SPENDS: dict[str, tuple[Guarantee, str, Request, int | None, int]] = {
    "rho": (ZCDP(9), "add_remove", asked("a", ZCDP(0.1)), 10**11, 0),
    "mu as rho": (ZCDP(9), "add_remove", asked("a", GDP(0.3)), 45 * 10**9, 0),
    # 0.5·tanh(0.25) = 0.12245933120185456... by an independent calculation.
    "pure as rho": (ZCDP(9), "add_remove", asked("a", PureDP(0.5)), 122459331202, 0),
    "pairs have no rho": (ZCDP(9), "add_remove", asked("a", ApproxDP(1, 1e-6)), None, 0),
    "pairs with a rho": (
        ZCDP(9),
        "add_remove",
        asked("a", ApproxDP(1, 1e-6), concentrated=ZCDP(0.03)),
        3 * 10**10,
        0,
    ),
    "bits are no rho": (ZCDP(9), "add_remove", asked("a", MIDP(1)), None, 0),
    "mu": (GDP(3), "add_remove", asked("a", GDP(0.5)), 25 * 10**10, 0),
    "rho is no mu": (GDP(3), "add_remove", asked("a", ZCDP(0.5)), None, 0),
    "a pair": (ApproxDP(2, 1e-5), "add_remove", asked("a", ApproxDP(1, 1e-6)), 10**12, 10**12),
    "pure as a pair": (ApproxDP(2, 1e-5), "add_remove", asked("a", PureDP(0.5)), 5 * 10**11, 0),
    "rho is no pair": (ApproxDP(2, 1e-5), "add_remove", asked("a", ZCDP(0.5)), None, 0),
    "bits": (MIDP(2), "add_remove", asked("a", MIDP(0.5)), 5 * 10**11, 0),
    # 0.5/ln 2 = 0.72134752044448170...
    "rho as bits": (MIDP(2), "add_remove", asked("a", ZCDP(0.5)), 721347520445, 0),
    "a replaced row is two steps": (ZCDP(9), "replace", asked("a", ZCDP(0.1)), 4 * 10**11, 0),
    "and so for what a profile says": (
        ZCDP(9),
        "replace",
        asked("a", ApproxDP(1, 1e-6), concentrated=ZCDP(0.03)),
        12 * 10**10,
        0,
    ),
    # δ·(1 + e) = 3.718281828459045e-6...
    "two steps of a pair": (
        ApproxDP(9, 1e-3),
        "replace",
        asked("a", ApproxDP(1, 1e-6)),
        2 * 10**12,
        3718281828460,
    ),
    "no replacement adds a row": (
        ZCDP(9),
        "add_remove",
        asked("a", ZCDP(0.1), neighbours=Neighbours.REPLACE),
        None,
        0,
    ),
    "a cell is within a row": (
        ZCDP(9),
        "element",
        asked("a", ZCDP(0.1), neighbours=Neighbours.REPLACE),
        10**11,
        0,
    ),
    "a row is not within a cell": (
        ZCDP(9),
        "replace",
        asked("a", ZCDP(0.1), neighbours=Neighbours.ELEMENT),
        None,
        0,
    ),
    "changes of other sizes": (
        ZCDP(9),
        "element",
        asked("a", ZCDP(0.1), neighbours=Neighbours.ELEMENT, parameters={"change": 0.5}),
        None,
        0,
    ),
    "bits have no steps": (MIDP(2), "replace", asked("a", MIDP(0.5)), None, 0),
}


@pytest.mark.parametrize("case", list(SPENDS))
def test_costs_are_rounded_up_and_only_by_theorems(tmp_path: Path, case: str) -> None:
    budget, neighbours, request, main, delta = SPENDS[case]
    ledger = open_ledger(tmp_path / "budget.db", create=True)  # the same sums wherever lines are
    ledger.declare("table", budget, neighbours)
    if main is None:
        with pytest.raises(LedgerError, match=r"budget is|No theorem"):
            ledger.spend(request)
        main = 0
    else:
        ledger.spend(request)
    (status,) = ledger.status()
    assert status.spent.delta == pytest.approx(delta, abs=1)
    assert status.spent.main == main


def test_what_is_not_proved_has_no_price(address: str) -> None:
    ledger = open_ledger(address)
    ledger.declare("table", ZCDP(1))
    unproved = Request("a", "table", None, Neighbours.ADD_REMOVE, "test", {})
    with pytest.raises(LedgerError, match="Nothing is proved"):
        ledger.spend(unproved)


def test_a_clock_that_is_set_back_changes_nothing(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(address)
    ledger.declare("table", ZCDP(0.2))
    ledger.spend(asked("first"))
    past = SimpleNamespace(now=lambda _: datetime(1970, 1, 1, tzinfo=UTC))
    monkeypatch.setattr("dplinear.ledger.hash_chain.datetime", past)
    ledger.spend(asked("second"))
    with pytest.raises(BudgetExceededError):
        ledger.spend(asked("third"))
    assert ledger.verify() == 4
    assert ledger.history()[-1].time.startswith("1970")


# Many at once


@pytest.mark.parametrize(
    ("processes", "spends"), [(4, 16), pytest.param(32, 1000, marks=pytest.mark.long)]
)
def test_many_processes_spend_the_budget_and_nothing_more(
    address: str, processes: int, spends: int
) -> None:
    half = processes * spends // 2
    open_ledger(address).declare("table", ZCDP(half / 1000))
    processing = context()
    accepted = processing.Queue()
    workers = [
        processing.Process(target=spend_until, args=(address, name, spends, accepted))
        for name in range(processes)
    ]
    for worker in workers:
        worker.start()
    total = sum(accepted.get() for _ in workers)
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * processes
    ledger = open_ledger(address)
    over = max(0, spent(ledger) - half * 10**9)
    sys.stdout.write(
        f"{type(ledger).__name__}: {processes} processes x {spends} spends against a budget of "
        f"{half}: {total} accepted, overspend {over}\n"
    )
    assert total == half
    assert spent(ledger) == half * 10**9
    assert ledger.verify() == half + 2


def test_threads_may_share_a_ledger(address: str) -> None:
    ledger = open_ledger(address)
    ledger.declare("table", ZCDP(0.5))

    def spend(turn: int) -> bool:
        try:
            ledger.spend(asked(f"request {turn}"))
        except BudgetExceededError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spend, range(10))) == 5


@pytest.mark.parametrize("kills", [24, pytest.param(1000, marks=pytest.mark.long)])
def test_whatever_is_killed_has_returned_nothing_that_is_not_spent(
    address: str, kills: int, tmp_path: Path
) -> None:
    ledger = open_ledger(address)
    ledger.declare("table", ZCDP(1000))
    generator, processing = simulation.generator(41), context()
    told = tmp_path / "returned"
    told.touch()
    reach, seen = 0.05, 0  # seconds; so that about half of them return something before they die
    for turn in range(kills):
        ready = processing.Event()
        worker = processing.Process(target=spend_for_ever, args=(address, turn, told, ready))
        worker.start()
        ready.wait()
        time.sleep(float(generator.uniform(0, reach)))
        worker.kill()
        worker.join()
        reach, seen = reach * (1.3 if told.stat().st_size == seen else 0.8), told.stat().st_size
    returned = set(told.read_text(encoding="utf-8").splitlines())
    lines = ledger.history()
    paid = {line.request for line in lines if line.kind == "spend"}
    kept = {line.request for line in lines if line.kind == "release"}
    sys.stdout.write(
        f"{type(ledger).__name__}: {kills} kills: {len(paid)} spends recorded, {len(returned)} "
        f"releases returned, {len(returned - paid)} of them not recorded\n"
    )
    assert returned <= kept <= paid
    assert len(returned) > 0
    assert spent(ledger) == len(paid) * 10**6
    assert ledger.verify() == len(lines)
