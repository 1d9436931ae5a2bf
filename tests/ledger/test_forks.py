"""Children of a process that uses a ledger hold none of its locks, and can use it themselves."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from dplinear.ledger import LedgerError
from dplinear.ledger.hash_chain import entry
from dplinear.ledger.sqlite import anchor, forks
from dplinear.ledger.sqlite.ledger import SqliteLedger
from dplinear.privacy import ZCDP
from ledger.histories import Notes, ask, check


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "budget.db"
    SqliteLedger.create(file).declare("table", ZCDP(10.0))
    return file


def fork(work: Callable[[], object]) -> int:
    """Do something in a child; return its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def sleeper() -> Iterator[None]:
    """Fork a child that lives until the block ends."""
    child = fork(lambda: time.sleep(600))
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        ended(child)


def test_a_fork_during_a_spend_locks_nobody_out(path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()
    times: list[float] = []

    def spend() -> None:
        with SqliteLedger(path).writing():
            inside.set()
            leave.wait()
            times.append(time.monotonic())

    spending = threading.Thread(target=spend)
    spending.start()
    inside.wait()
    threading.Timer(0.2, leave.set).start()
    with sleeper():
        forked = time.monotonic()
        spending.join()
        assert SqliteLedger(path, timeout=1.0).spend(ask("next")) is None
    assert forked >= times[0]  # it has waited


def test_a_child_spends_too(path: Path) -> None:
    ledger = SqliteLedger(path)
    assert ended(fork(lambda: ledger.spend(ask("child's")))) == 0
    ledger.spend(ask("parent's"))
    assert [line.request for line in ledger.history()[2:]] == ["child's", "parent's"]


def test_a_child_closes_what_a_thread_is_waiting_with(path: Path) -> None:
    """The lock comes later, to the file that both have open, and the parent may be killed then."""
    side = path.with_name("budget.db.anchor")
    with anchor.hold_lock(side, 5.0):
        waiting = threading.Thread(target=lambda: SqliteLedger(path).spend(ask("waits")))
        waiting.start()
        while len(forks._USES.handles) < 2:
            time.sleep(0.001)
        handles = set(forks._USES.handles)

        def closed() -> None:
            assert not forks._USES.handles
            for handle in handles:
                with pytest.raises(OSError, match="Bad file descriptor"):
                    os.fstat(handle)

        assert ended(fork(closed)) == 0
    waiting.join()
    assert len(SqliteLedger(path).history()) == 3


def test_a_child_of_the_very_thread_that_spends_ends_nothing(path: Path) -> None:
    ledger = SqliteLedger(path)

    def forked_within() -> None:
        with ledger.writing() as lines:
            child = os.fork()
            if child == 0:
                raise ZeroDivisionError
            assert ended(child) == 7
            lines.append(entry(lines.newest(), "budget", {}, dataset="other"))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            forked_within()
        except ZeroDivisionError:
            os._exit(7)
    assert [line.dataset for line in ledger.history()] == ["", "table", "other"]


def test_many_forks_beside_threads_that_spend(path: Path, tmp_path: Path) -> None:
    """As in the multiprocessing of those who fork: no spend is refused, and each child spends."""
    stop, errors = threading.Event(), []

    def spend(name: str) -> None:
        notes, turn = Notes(tmp_path / f"notes {name}"), 0
        while not stop.is_set():
            turn += 1
            try:
                notes.spend(SqliteLedger(path, timeout=20.0), ask(f"{name} {turn}"))
            except LedgerError as error:
                errors.append(error)

    threads = [threading.Thread(target=spend, args=(f"thread {name}",)) for name in range(3)]
    for thread in threads:
        thread.start()
    with ExitStack() as sleeping:
        for turn in range(12):
            notes, ledger = Notes(tmp_path / f"notes {turn}"), SqliteLedger(path, timeout=20.0)
            assert ended(fork(partial(notes.spend, ledger, ask(f"child {turn}")))) == 0
            sleeping.enter_context(sleeper())
        stop.set()
        for thread in threads:
            thread.join()
    assert not errors
    check(path, *tmp_path.glob("notes*"))


def test_a_fork_waits_for_uses_and_holds_back_new_ones() -> None:
    order: list[str] = []
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with forks.no_forks():
            inside.set()
            leave.wait()
            with forks.no_forks():  # who is inside already does not wait for the fork
                order.append("first")

    def second() -> None:
        with forks.no_forks():
            order.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    inside.wait()

    def release() -> None:
        for _ in range(2000):
            if not forks._USES.forking:
                time.sleep(0.001)
        threads[1].start()
        time.sleep(0.05)
        leave.set()

    releasing = threading.Thread(target=release)
    releasing.start()
    forks._before()
    order.append("fork")
    forks._in_parent()
    for thread in (releasing, *threads):
        thread.join()
    assert order == ["first", "fork", "second"]
    assert not forks._USES.inside


def test_a_child_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_USES", forks._Uses())
    handle = forks.open_file(tmp_path / "file", os.O_CREAT | os.O_RDWR)
    assert forks.is_own(handle)
    forks._USES.handles.add(10**6)  # closed by somebody else
    forks._in_child()
    assert not forks.is_own(handle)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)
    forks.close_file(handle)  # which is no longer its own to close


def test_what_was_inherited_is_neither_unlocked_nor_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a child sees it that was forked within the block."""
    with SqliteLedger(path).reading():
        monkeypatch.setattr(os, "getpid", lambda: -1)
    monkeypatch.undo()
    with anchor.hold_lock(path.with_name("budget.db.anchor"), 1.0) as held:
        monkeypatch.setattr(forks, "_USES", forks._Uses())
    assert held.latest() is not None  # still open
    os.close(held._handle)
