"""A commit whose answer is lost is looked up, and neither taken for made nor made twice."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dplinear.ledger import LedgerError, Request
from dplinear.ledger.sqlite import anchor
from dplinear.privacy import ZCDP, Neighbours
from postgres_server import Server, until

psycopg = pytest.importorskip("psycopg")
module = pytest.importorskip("dplinear.ledger.postgres.ledger")
Session = pytest.importorskip("dplinear.ledger.postgres.session").Session
PostgresLedger = module.PostgresLedger

pytestmark = pytest.mark.engine
PER = 10**11


def asked(name: str, rho: float = 0.1) -> Request:
    return Request(name, "table", ZCDP(rho), Neighbours.ADD_REMOVE, "test", {})


@pytest.fixture
def url(postgres: Server, tmp_path: Path) -> str:
    """A ledger with a budget of 1."""
    name = f"ledger_{uuid.uuid4().hex[:12]}"
    address = postgres.url(name, anchor=tmp_path / "side.anchor")
    PostgresLedger.create(address).declare("table", ZCDP(1.0))
    return address


def spent(url: str) -> int:
    (status,) = PostgresLedger(url).status()
    return int(status.spent.main)


@contextmanager
def first_commit(patch: pytest.MonkeyPatch, before: Callable[[Any], None]) -> Iterator[None]:
    """Do something when a commit is next asked for; later ones are left alone."""
    commit, seen = Session.commit, list[Any]()

    def hooked(session: Any) -> bool:
        seen.append(session)
        if len(seen) == 1:
            before(session)
        return bool(commit(session))

    with patch.context() as once:
        once.setattr(Session, "commit", hooked)
        yield
    assert seen


def _lose(server: Server, *, stands: bool) -> Callable[[Any], None]:
    def lose(session: Any) -> None:
        ((number,),) = session.ask("SELECT pg_backend_pid()")
        if stands:
            session.ask("COMMIT")
        server.sql(f"SELECT pg_terminate_backend({number})")

    return lose


def test_a_spend_whose_acknowledgement_is_lost_stands(
    url: str, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = PostgresLedger(url)
    lose = _lose(postgres, stands=True)
    with first_commit(monkeypatch, lose):
        assert ledger.spend(asked("a")) is None
    with first_commit(monkeypatch, lose):
        ledger.keep("a", b"a release")
    with first_commit(monkeypatch, lose):
        assert ledger.spend(asked("a")) == b"a release"
    with first_commit(monkeypatch, lose):
        ledger.declare("other", ZCDP(1.0))
    assert [line.kind for line in ledger.history()[2:]] == ["spend", "release", "budget"]
    assert ledger.verify() == 5
    assert anchor_of(url).sequence == 5


def anchor_of(url: str) -> Any:
    side = PostgresLedger(url)._address.anchor
    with anchor.hold_lock(side, 1.0) as known:
        return known.latest()


def test_a_spend_that_was_not_committed_is_said_to_be_undone(
    url: str, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        first_commit(monkeypatch, _lose(postgres, stands=False)),
        pytest.raises(LedgerError, match=r"(?s)was lost at the last moment.*nothing was written"),
    ):
        PostgresLedger(url).spend(asked("a"))
    assert spent(url) == 0
    assert PostgresLedger(url).spend(asked("a")) is None
    assert spent(url) == PER


def test_a_transaction_that_ends_otherwise_has_not_spent(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(session: Any) -> None:
        with suppress(psycopg.Error):
            session.ask("SELECT 1/0")  # so that the server answers COMMIT by a word: ROLLBACK

    with first_commit(monkeypatch, fail), pytest.raises(LedgerError, match="nothing was written"):
        PostgresLedger(url).spend(asked("a"))
    assert spent(url) == 0


@pytest.mark.parametrize("stands", [False, True])
def test_a_ledger_whose_making_is_not_acknowledged_is_looked_up(
    stands: bool, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres.url(f"ledger_{uuid.uuid4().hex[:12]}", anchor=tmp_path / "side.anchor")
    with first_commit(monkeypatch, _lose(postgres, stands=stands)):
        if stands:
            PostgresLedger.create(address)
        else:
            with pytest.raises(LedgerError, match="nothing was written"):
                PostgresLedger.create(address)
    ledger = PostgresLedger(address) if stands else PostgresLedger.create(address)
    assert ledger.verify() == 1


def test_a_ledger_whose_maker_was_stopped_before_the_side_file_can_be_opened(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres.url(f"ledger_{uuid.uuid4().hex[:12]}", anchor=tmp_path / "side.anchor")

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "_begin_side_file", stopped)
        with pytest.raises(KeyboardInterrupt):
            PostgresLedger.create(address)
    assert not (tmp_path / "side.anchor").exists()
    ledger = PostgresLedger(address)
    ledger.declare("table", ZCDP(1.0))
    (tmp_path / "side.anchor").unlink()
    with pytest.raises(LedgerError, match="no side file"):
        PostgresLedger(address)


def test_a_server_that_stays_away_leaves_it_open_whether_it_was_written(
    url: str, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, lose = list[object](), _lose(postgres, stands=True)

    def away(*_: object) -> Any:
        tries.append(None)
        raise LedgerError("it cannot be reached")

    def lose_for_good(session: Any) -> None:
        lose(session)
        monkeypatch.setattr(module, "session", away)

    monkeypatch.setattr(module, "_PAUSES", (0.0,) * 4)
    ledger = PostgresLedger(url)
    with first_commit(monkeypatch, lose_for_good), pytest.raises(LedgerError, match="may be spent"):
        ledger.spend(asked("a"))
    assert len(tries) == 4  # and no more
    tries.clear()
    monkeypatch.setattr(module, "_PAUSES", (1.0,) * 4)
    with pytest.raises(LedgerError, match="may be spent"):
        module._look_up(ledger._address, 0.5, anchor.Mark("a", 1, "b"))
    assert len(tries) == 1  # nor longer than the time that was given
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="is spent, and there is no release"):
        PostgresLedger(url).spend(asked("a"))


def test_while_the_server_still_works_on_the_commit_nothing_is_said(
    url: str, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction is asked for by its lock: until that is let go, it may still happen."""
    others = list[Any]()

    def cut(session: Any) -> None:
        ((number,),) = session.ask("SELECT pg_backend_pid()")
        other = psycopg.connect(postgres.url(), autocommit=True)
        ((key, half),) = other.execute(
            "SELECT classid::bigint, objid::bigint FROM pg_locks WHERE locktype = 'advisory' "
            "AND pid = %s",
            [number],
        ).fetchall()
        postgres.sql(f"SELECT pg_terminate_backend({number})")
        # Whoever holds the lock from now on stands for the server's process, still at work.
        other.execute("SELECT pg_advisory_lock(%s)", [(key << 32) + half])
        others.append(other)

    monkeypatch.setattr(module, "_PAUSES", (0.0,))
    ledger = PostgresLedger(url, timeout=0.2)
    with first_commit(monkeypatch, cut), pytest.raises(LedgerError, match="may be spent"):
        ledger.spend(asked("a"))
    others[0].close()
    assert spent(url) == 0


_HANGS = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def test_a_standby_that_does_not_answer_leaves_it_open_whether_it_was_written(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that hangs is cut; one whose wait is cancelled is only there, and not sure."""
    commit, sessions, found = Session.commit, list[Any](), list[str]()

    def watched(session: Any) -> bool:
        sessions.append(session)
        return bool(commit(session))

    def catch(name: str) -> None:
        try:
            PostgresLedger(url).spend(asked(name))
        except LedgerError as error:
            found.append(str(error))

    monkeypatch.setattr(module, "_PAUSES", (0.0,))
    monkeypatch.setattr(Session, "commit", watched)
    with postgres.set("synchronous_standby_names", "nobody"):
        for turn in range(2):
            waiting = threading.Thread(target=catch, args=(f"hangs {turn}",))
            waiting.start()
            until(lambda: postgres.sql(f"SELECT pid {_HANGS}") != [])
            if turn == 0:
                sessions[-1]._cut()
            # The look at what became of it must last as well, so it hangs in its turn.
            while waiting.is_alive():
                postgres.sql(f"SELECT pg_cancel_backend(pid) {_HANGS}")
                waiting.join(0.05)
    assert ["may be spent" in said for said in found] == [True, True]
    assert spent(url) == 2 * PER


def test_a_side_file_that_fails_after_the_commit_says_that_it_is_spent(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = PostgresLedger(url)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(anchor.Anchor, "move", full)
        with pytest.raises(LedgerError, match=r"(?s)\(No space left on device\).*is spent"):
            ledger.spend(asked("a"))
    assert spent(url) == PER


@pytest.mark.parametrize(
    ("severity", "word", "sure"),
    [
        ("WARNING", "COMMIT", False),
        ("NOTICE", "COMMIT", True),
        ("NOTICE", "ROLLBACK", False),
        ("NOTICE", None, False),
    ],
)
def test_only_a_plain_answer_to_a_commit_is_sure(
    severity: str, word: str | None, sure: bool
) -> None:
    session = Session.__new__(Session)
    session._warned = ["of a statement before"]

    class Connection:
        def execute(self, _: bytes) -> Any:
            session._note_warning(
                SimpleNamespace(severity_nonlocalized=severity, message_primary="so it is")
            )
            if word is None:
                raise psycopg.OperationalError
            return SimpleNamespace(statusmessage=word)

    session._connection = Connection()
    assert session.commit() is sure
