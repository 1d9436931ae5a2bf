"""The side file of a ledger: how far it had come, so that an older copy is not taken for it.

Two records of fixed size are written in turn, in place, and each is synced to disk before a spend
counts as made; a crash damages the one that is being written, and the other still holds. Whoever
writes to the ledger holds the file's lock, which the system lets go when a process dies. Who reads
needs no lock: the record that is not being written is whole.
"""

import json
import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dplinear.analyst.releases.files import claim, sync_folder
from dplinear.ledger.hash_chain import Entry, damage_error, sha256
from dplinear.ledger.ledger import Lines
from dplinear.ledger.request import DamagedLedgerError, refusal
from dplinear.ledger.sqlite import forks

_SIZE = 256
_BLANK = b" " * (_SIZE - 1) + b"\n"
_BEGINS = b'{"ledger": "'
_MAKE = os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # and never where a symbolic link leads
_TRIES, _PAUSE = 20, 0.001  # seconds; of a reader that meets a record which is being written


@dataclass(frozen=True)
class Mark:
    """A ledger, one of its lines, and that line's hash."""

    ledger: str
    sequence: int
    hash: str

    def record(self) -> bytes:
        """Return the record, with a check of its own."""
        content = {"ledger": self.ledger, "sequence": self.sequence, "hash": self.hash}
        text = json.dumps(content | {"check": sha256(json.dumps(content).encode())[:16]})
        return text.encode().ljust(_SIZE - 1) + b"\n"

    @staticmethod
    def read(record: bytes) -> "Mark | None":
        """Return what a record says, or None if it is not whole."""
        try:
            content = json.loads(record)
            mark = Mark(content["ledger"], content["sequence"], content["hash"])
            return mark if mark.record() == record else None
        except (ValueError, KeyError, TypeError):
            return None


class Anchor:
    """The side file, open and locked."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def marks(self) -> list[Mark | None]:
        """Return both records."""
        return [Mark.read(os.pread(self._handle, _SIZE, _SIZE * place)) for place in (0, 1)]

    def is_unused(self) -> bool:
        """Return whether its ledger was never written to beyond its own line, if it was made.

        Not so for what is no side file: every record is blank, or begins as ours do.
        """
        content = os.pread(self._handle, 2 * _SIZE + 1, 0)
        records = (content[:_SIZE], content[_SIZE : 2 * _SIZE])
        ours = all(not one.strip() or one.startswith(_BEGINS) for one in records)
        latest = self.latest()
        young = latest is None or latest.sequence <= 1
        return len(content) <= 2 * _SIZE and ours and young

    def restart(self, mark: Mark) -> None:
        """Begin with the mark of a new ledger, where `is_unused`; a crash leaves it so."""
        first, _ = self.marks()
        place = 1 if first is not None else 0
        self._write(mark.record(), place)
        self._write(_BLANK, 1 - place)

    def latest(self) -> Mark | None:
        """Return the newer of the whole records."""
        whole = [mark for mark in self.marks() if mark is not None]
        return max(whole, key=lambda mark: mark.sequence, default=None)

    def move(self, mark: Mark) -> None:
        """Write a newer record over the older one, and wait until it lasts."""
        latest, (first, _) = self.latest(), self.marks()
        if latest is not None and mark.sequence <= latest.sequence:
            return
        place = 1 if latest is not None and first == latest else 0
        self._write(mark.record(), place)

    def _write(self, record: bytes, place: int) -> None:
        """Write a record and wait until it lasts; once more, where that fails for a moment.

        By then its line is in the ledger, and would be spent for nothing. What is written anew is
        synced anew: a sync that succeeds after one that failed says nothing of what was before it.
        """
        with suppress(OSError):
            return self._write_once(record, place)
        return self._write_once(record, place)

    def _write_once(self, record: bytes, place: int) -> None:
        if os.pwrite(self._handle, record, _SIZE * place) != _SIZE:
            raise OSError("a record was written in part")
        os.fsync(self._handle)


def create(path: Path) -> None:
    """Make the side file of a ledger that is not there yet, its owner's alone; raise if it is."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        os.write(handle, _BLANK * 2)
        os.fsync(handle)
    finally:
        os.close(handle)


def begin(path: Path, mark: Mark) -> None:
    """Make a side file with its first record, whole or not at all; raise if there is one."""
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        create(beside)
        with hold_lock(beside, 1.0) as side:
            side.move(mark)
        claim(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)


def read_mark(path: Path) -> Mark | None:
    """Return how far a ledger had come at the least, without waiting for those who write to it.

    A record that is being written is not whole; unless the file is damaged, one of them soon is.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        side = Anchor(handle)
        for _ in range(_TRIES):
            known = side.latest()
            if known is not None:
                return known
            time.sleep(_PAUSE)
        return None
    finally:
        os.close(handle)


def mark_of(first: Entry, line: Entry) -> Mark:
    """Return the mark of a line of the ledger whose own line is `first`."""
    return Mark(first.content()["id"], line.sequence, line.hash)


def check_age(lines: Lines, known: Mark | None) -> None:
    """Raise for a ledger that is older than what its side file knows of."""
    if known is None:
        raise damage_error("its side file holds no whole record")
    first, newest = lines.first(), lines.newest()
    if known.ledger != first.content()["id"]:
        raise damage_error("its side file belongs to another ledger")
    at = lines.at(known.sequence)
    if newest.sequence < known.sequence or at is None or at.hash != known.hash:
        hint = "spends would be forgotten. Bring back the newest copy."
        fact = f"it ends with line {newest.sequence}, and line {known.sequence} was written"
        told = f"This is an older copy of the ledger, or another one: {fact}."
        raise refusal(told, hint, DamagedLedgerError)


@contextmanager
def hold_lock(path: Path, timeout: float, *, make: bool = False) -> Iterator[Anchor]:
    """Open the side file and hold its lock; with `make`, make an empty one where there is none.

    The lock is let go by its own call, and not only by closing the file: a child that was forked
    meanwhile holds a copy of it.
    """
    handle = _open_locked(path, timeout, os.O_RDWR | (_MAKE if make else 0))
    try:
        yield Anchor(handle)
    finally:
        if forks.is_own(handle):
            locks = _locks()
            locks.flock(handle, locks.LOCK_UN)
        forks.close_file(handle)


def _open_locked(path: Path, timeout: float, flags: int) -> int:
    """Return the side file, locked: the one that has the name now, and not had it before a wait."""
    while True:
        handle = forks.open_file(path, flags)
        try:
            _lock(handle, timeout)
            if _is_named(handle, path):
                return handle
        except BaseException:
            forks.close_file(handle)
            raise
        forks.close_file(handle)


def _is_named(handle: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), path.stat())
    return False


def _lock(handle: int, timeout: float) -> None:
    locks = _locks()
    try:
        locks.flock(handle, locks.LOCK_EX | locks.LOCK_NB)
    except BlockingIOError:
        _queue(handle, timeout)


def _queue(handle: int, timeout: float) -> None:
    """Wait for the lock in the system's own queue.

    Asking again and again would let those go first, for ever, who ask at the right moment. If the
    wait is given up, the file is closed, and the lock goes with it should it still come.
    """
    held = threading.Event()
    waiting = threading.Thread(target=_wait, args=(handle, held), daemon=True)
    waiting.start()
    waiting.join(timeout)
    if not held.is_set():
        hint = "another process is spending; try again when it has ended."
        raise refusal(f"The ledger is locked for {timeout:g} seconds.", hint)


def _wait(handle: int, held: threading.Event) -> None:
    locks = _locks()
    with suppress(OSError):
        locks.flock(handle, locks.LOCK_EX)
        held.set()


def _locks() -> Any:
    try:
        import fcntl
    except ImportError:
        raise refusal("This system has no file locks that a ledger could rely on.") from None
    return fcntl
