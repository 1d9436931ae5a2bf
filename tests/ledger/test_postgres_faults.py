"""Faults at every message and every statement of a spend and of a keep, against a checker.

Whatever is cut, killed or stopped: what was acknowledged is in the chain, no budget is overspent,
every request is there once, no release without its spend, and the ledger opens and verifies.
"""

import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dplinear.ledger import LedgerError
from dplinear.privacy import ZCDP
from ledger.histories import Notes, ask, check
from postgres_proxy import Cut, Proxy
from postgres_server import Server

psycopg = pytest.importorskip("psycopg")
module = pytest.importorskip("dplinear.ledger.postgres.ledger")
Session = pytest.importorskip("dplinear.ledger.postgres.session").Session
PostgresLedger = module.PostgresLedger

pytestmark = pytest.mark.engine
CUTS = [(side, when) for side in ("client", "server") for when in ("before", "half", "after")]


class Place:
    """A ledger with a budget for 10,000 spends, and the notes of those who use it."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.file = server, folder / "notes"
        self.notes = Notes(self.file)
        self.name, self.side = f"ledger_{uuid.uuid4().hex[:12]}", folder / "side.anchor"
        self.url = server.url(self.name, anchor=self.side)
        PostgresLedger.create(self.url).declare("table", ZCDP(10.0))
        self.use(self.url, "first")  # so that all later ones take as many messages

    def use(self, url: str, request: str) -> None:
        """Spend and keep, whatever becomes of it; the caller asks again, as callers do."""
        ledger = PostgresLedger.__new__(PostgresLedger)  # without a look at it first
        ledger._address, ledger.timeout = module.Address.parse(url), 10.0
        for _ in range(2):
            with suppress(LedgerError):
                if self.notes.spend(ledger, ask(request)) is None:
                    self.notes.keep(ledger, request, request.encode())

    def checked(self, what: str) -> None:
        sys.stdout.write(f"{what}: {check(self.url, self.file)}\n")


@pytest.fixture
def place(postgres: Server, tmp_path: Path) -> Place:
    return Place(postgres, tmp_path)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSES", (0.1,) * 100)  # while a server starts


# Connections that are cut


def _points(place: Place, share: int) -> Iterator[Cut]:
    """Yield every cut there can be, or one in so many, with all around the two commits."""
    with Proxy(place.server) as proxy:
        place.use(proxy.url(place.name, anchor=place.side), "counted")
        told = {side: list(kinds) for side, kinds in proxy.messages.items()}
    turn = 0
    for side, when in CUTS:
        kinds = told[side]
        # A simple query by the client, other than the first of each connection, is a COMMIT.
        ends = [i for i, kind in enumerate(kinds) if kind in {"Q", "Z"}]
        for number in range(len(kinds)):
            turn += 1
            last = any(number == end for end in ends[1:]) and side == "client"
            if turn % share == 0 or (last and share > 1):
                yield Cut(side, number, when)


@pytest.mark.parametrize("share", [101, pytest.param(1, marks=pytest.mark.long)])
def test_a_connection_may_be_cut_at_any_message(place: Place, share: int) -> None:
    cuts = 0
    for number, cut in enumerate(_points(place, share)):
        with Proxy(place.server, cut) as proxy:
            place.use(proxy.url(place.name, anchor=place.side), f"request {number}")
            cuts += proxy.done.is_set()
    place.checked(f"{cuts} cuts")
    assert cuts >= 20


def test_a_lost_acknowledgement_spends_once_and_goes_on(place: Place) -> None:
    """The answer to the commit is cut off, and the caller does not notice."""
    with Proxy(place.server) as proxy:
        place.use(proxy.url(place.name, anchor=place.side), "counted")
        kinds = list(proxy.messages["server"])
    whole = kinds.index("R", 1)  # where the next connection begins
    complete = [i for i, kind in enumerate(kinds[:whole]) if kind in {"C", "Z"}]
    lost = 0
    for number in complete[-6:]:
        with Proxy(place.server, Cut("server", number, "before")) as proxy:
            ledger = PostgresLedger(place.url)
            ledger._address = module.Address.parse(proxy.url(place.name, anchor=place.side))
            request = f"request {number}"
            with suppress(LedgerError):
                place.notes.spend(ledger, ask(request))
                lost += proxy.done.is_set()
    place.checked(f"{lost} acknowledgements lost and looked up")
    assert lost == 2  # that it was done, and that the server is ready; before, nothing was


# Statements at which the client, or the server, dies


def _at(number: int, when: str, act: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
    """Act before or after the statement of that number, commits included."""
    turn = [0]
    ask_, commit = Session.ask, Session.commit

    def counted(use: Callable[..., Any]) -> Callable[..., Any]:
        def used(*arguments: Any) -> Any:
            turn[0] += 1
            here = turn[0] == number
            if here and when == "before":
                act()
            found = use(*arguments)
            if here and when == "after":
                act()
            return found

        return used

    patch.setattr(Session, "ask", counted(ask_))
    patch.setattr(Session, "commit", counted(commit))


def _statements(place: Place, patch: pytest.MonkeyPatch) -> int:
    """Return how many statements a spend and a keep take."""
    turns = [0]
    ask_, commit = Session.ask, Session.commit

    def count(use: Callable[..., Any]) -> Callable[..., Any]:
        def used(*arguments: Any) -> Any:
            turns[0] += 1
            return use(*arguments)

        return used

    with patch.context() as once:
        once.setattr(Session, "ask", count(ask_))
        once.setattr(Session, "commit", count(commit))
        place.use(place.url, "counted")
    return turns[0]


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
def test_a_client_may_be_killed_at_any_statement(
    place: Place, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, kills = _statements(place, monkeypatch), 0
    for number in range(1, whole + 1, step):
        for when in ("before", "after"):
            child = os.fork()
            if not child:
                with monkeypatch.context() as patch:
                    _at(number, when, lambda: os.kill(os.getpid(), signal.SIGKILL), patch)
                    place.use(place.url, f"killed {number} {when}")
                os._exit(1)
            _, status = os.waitpid(child, 0)
            kills += os.WIFSIGNALED(status)
    place.checked(f"{kills} kills of the client")
    assert kills >= 2 * (whole // step) - 4


@pytest.mark.usefixtures("patient")
@pytest.mark.long
def test_a_server_may_be_killed_at_any_statement(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, kills = _statements(place, monkeypatch), 0

    def restart() -> None:
        nonlocal kills
        kills += 1
        place.server.kill()
        place.server.start()

    for number in range(1, whole + 1):
        for when in ("before", "after"):
            with monkeypatch.context() as patch:
                _at(number, when, restart, patch)
                place.use(place.url, f"killed {number} {when}")
    place.checked(f"{kills} kills of the server")
    assert kills >= 2 * whole - 4


@pytest.mark.usefixtures("patient")
def test_a_commit_whose_server_dies_is_looked_up_when_it_is_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed as the commit was done and not yet told; or before it was done."""
    commit, stands = Session.commit, [True]

    def dies(session: Any) -> bool:
        if stands:
            if stands.pop():
                session.ask("COMMIT")
            place.server.kill()
            place.server.start()
        return bool(commit(session))

    monkeypatch.setattr(Session, "commit", dies)
    ledger, notes = PostgresLedger(place.url), place.notes
    assert notes.spend(ledger, ask("stands")) is None
    stands.append(False)
    with pytest.raises(LedgerError, match="nothing was written"):
        notes.spend(ledger, ask("does not"))
    monkeypatch.undo()
    place.checked("two kills of the server at a commit")


# Pauses


def _stopped(place: Place, patch: pytest.MonkeyPatch) -> int:
    """Return the number of a process that is stopped before its first commit, with the lock."""
    commit = Session.commit

    def stop(session: Any) -> bool:
        os.kill(os.getpid(), signal.SIGSTOP)
        return bool(commit(session))

    child = os.fork()
    if not child:
        with patch.context() as once:
            once.setattr(Session, "commit", stop)
            with suppress(LedgerError):
                place.notes.spend(PostgresLedger(place.url), ask("stopped"))
        os._exit(0)
    os.waitpid(child, os.WUNTRACED)
    return child


def _continued(child: int) -> None:
    os.kill(child, signal.SIGCONT)
    while not os.WIFEXITED(os.waitpid(child, os.WUNTRACED)[1]):
        os.kill(child, signal.SIGCONT)


def test_who_is_stopped_holds_nobody_up_for_ever_and_spends_nothing_twice(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = _stopped(place, monkeypatch)
    ledger, notes = PostgresLedger(place.url, timeout=0.2), place.notes
    assert [line.kind for line in notes.read(ledger)][:2] == ["ledger", "budget"]  # not held up
    with pytest.raises(LedgerError, match="locked by another"):
        notes.spend(ledger, ask("meanwhile"))
    _continued(child)
    assert notes.spend(ledger, ask("meanwhile")) is None
    place.checked("one who was stopped")


def test_who_is_stopped_for_too_long_has_spent_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends a transaction that is idle for too long, and others go on."""
    begin = Session.begin

    def soon(session: Any, *arguments: Any) -> None:
        begin(session, *arguments)
        session.ask("SET LOCAL idle_in_transaction_session_timeout = 200")

    with monkeypatch.context() as patch:
        patch.setattr(Session, "begin", soon)
        child = _stopped(place, monkeypatch)
    ledger, notes = PostgresLedger(place.url), place.notes
    assert notes.spend(ledger, ask("meanwhile")) is None  # once the server has let go
    _continued(child)
    place.checked("one who was stopped for too long")
