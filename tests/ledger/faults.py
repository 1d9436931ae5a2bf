"""Faults at every call by which a ledger in a file reads, writes and syncs, and what they leave.

SQLite's own calls go through a VFS that stands before the system's (by ctypes, in the library that
Python's module uses), those of the side file through `os`. Both are counted as one series, and at
one of them something happens: the process is killed before it, after it, or when half is written;
the power fails, so that what was not synced is gone; the call fails (EIO, or ENOSPC with a part
written); or the process pauses, while another one uses the ledger.
"""

import ctypes
import errno
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dplinear.ledger import BudgetExceededError, LedgerError, open_ledger
from dplinear.privacy import ZCDP
from ledger.histories import Notes, ask, check

KINDS = ("before", "half", "after", "power", "EIO", "ENOSPC", "pause")
_FAILS = frozenset({"EIO", "ENOSPC"})
_DEADLY = frozenset({"before", "half", "after", "power"})
_READ, _WRITE, _FULL, _SYNC, _DELETE, _OPEN = 266, 778, 13, 1034, 2570, 14  # SQLite's codes
_PAUSE = 0.05  # seconds
_STRANGE = 3  # the exit code of a process in which something else was raised
_SHARED = b"release " * 700  # more than one page


class Plan:
    """What happens, and at which of all calls; the calls are counted all the same."""

    def __init__(self, kind: str = "", at: int = 0) -> None:
        self.kind, self.at, self.calls, self.on = kind, at, 0, False
        self.lost: list[tuple[object, Callable[[], object]]] = []  # how to undo what is not synced

    def now(self) -> str:
        """Count a call, and return what is to happen at it."""
        if not self.on:
            return ""
        self.calls += 1
        if self.calls != self.at:
            return ""
        if self.kind == "pause":
            time.sleep(_PAUSE)
        if self.kind == "power":
            for _, undo in reversed(self.lost):
                undo()
        if self.kind in {"before", "power"}:
            die()
        return self.kind

    def unsynced(self, file: object, undo: Callable[[], object]) -> None:
        """Remember how to undo a write that may be lost."""
        if self.on and self.kind == "power":
            self.lost.append((file, undo))

    def synced(self, file: object) -> None:
        """What was written to a file lasts."""
        self.lost = [(other, undo) for other, undo in self.lost if other != file]


def die() -> None:
    """End at once, as if by the system."""
    os.kill(os.getpid(), signal.SIGKILL)


PLAN = Plan()


@contextmanager
def happening(plan: Plan) -> Iterator[Plan]:
    """Let a plan be in force."""
    global PLAN  # callbacks of C have no other way to find it
    before, PLAN = PLAN, plan
    plan.on = True
    try:
        yield plan
    finally:
        plan.on, PLAN = False, before


# SQLite's calls

_Pointer, _Int, _Long = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_OPENS = ctypes.CFUNCTYPE(_Int, _Pointer, _Pointer, _Pointer, _Int, _Pointer)
_DELETES = ctypes.CFUNCTYPE(_Int, _Pointer, _Pointer, _Int)
_MOVES = ctypes.CFUNCTYPE(_Int, _Pointer, _Pointer, _Int, _Long)  # reads and writes
_CUTS = ctypes.CFUNCTYPE(_Int, _Pointer, _Long)
_SYNCS = ctypes.CFUNCTYPE(_Int, _Pointer, _Int)
_SIZES = ctypes.CFUNCTYPE(_Int, _Pointer, ctypes.POINTER(_Long))
_CLOSES = ctypes.CFUNCTYPE(_Int, _Pointer)
_METHODS = (
    ("close", _CLOSES),
    ("read", _MOVES),
    ("write", _MOVES),
    ("cut", _CUTS),
    ("sync", _SYNCS),
    ("size", _SIZES),
)


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", _Int),
        ("file_size", _Int),
        ("longest", _Int),
        ("following", _Pointer),
        ("name", ctypes.c_char_p),
        ("data", _Pointer),
        ("open", _OPENS),
        ("delete", _DELETES),
        ("others", _Pointer * 16),
    )


class _Methods(ctypes.Structure):
    _fields_ = (("version", _Int), *_METHODS, ("others", _Pointer * 12))


class _File(ctypes.Structure):
    _fields_ = (("methods", ctypes.POINTER(_Methods)),)


_KEPT: list[Any] = []  # what C holds pointers to


def stand_before_sqlite() -> bool:
    """Let every file that SQLite opens from now on go through here; False where that cannot be."""
    import _sqlite3

    try:
        library = ctypes.CDLL(_sqlite3.__file__)
        find, register = library.sqlite3_vfs_find, library.sqlite3_vfs_register
    except (AttributeError, OSError):
        return False
    find.restype = ctypes.POINTER(_Vfs)
    real = find(None)
    ours = _Vfs()
    ctypes.memmove(ctypes.byref(ours), real, ctypes.sizeof(_Vfs))
    ours.name = b"faulty"
    ours.open = _OPENS(lambda *words: _open(real, *words))
    ours.delete = _DELETES(lambda _, name, sync: _delete(real, name, sync))
    _KEPT.append(ours)
    return bool(register(ctypes.byref(ours), 1) == 0)


def _open(real: Any, _: int, name: int, file: int, flags: int, out: int) -> int:
    now = PLAN.now()
    if now in _FAILS:
        return _OPEN
    code = int(real.contents.open(ctypes.cast(real, _Pointer), name, file, flags, out))
    opened = ctypes.cast(file, ctypes.POINTER(_File)).contents
    if code == 0 and opened.methods:
        opened.methods = ctypes.pointer(_faulty(opened.methods.contents))
    return _after(now, code)


def _faulty(real: _Methods) -> _Methods:
    """Return the methods of a file, with faults before them."""
    ours = _Methods()
    ctypes.memmove(ctypes.byref(ours), ctypes.byref(real), ctypes.sizeof(_Methods))
    calls = {name: getattr(real, name) for name, _ in _METHODS}

    def read(file: int, *words: int) -> int:
        return _READ if PLAN.now() in _FAILS else int(calls["read"](file, *words))

    def write(file: int, content: int, length: int, start: int) -> int:
        now = PLAN.now()
        if now == "EIO":
            return _WRITE
        if now in {"ENOSPC", "half"}:
            calls["write"](file, content, length // 2, start)
            return _after(now, _FULL)
        if PLAN.kind == "power":
            PLAN.unsynced(file, _as_it_was(calls, file, length, start))
        return _after(now, int(calls["write"](file, content, length, start)))

    def cut(file: int, size: int) -> int:
        now = PLAN.now()
        return _WRITE if now in _FAILS else _after(now, int(calls["cut"](file, size)))

    def sync(file: int, flags: int) -> int:
        now = PLAN.now()
        if now in _FAILS:
            return _SYNC
        code = int(calls["sync"](file, flags))
        PLAN.synced(file)
        return _after(now, code)

    ours.read, ours.write, ours.cut, ours.sync = (
        _MOVES(read),
        _MOVES(write),
        _CUTS(cut),
        _SYNCS(sync),
    )
    _KEPT.append(ours)
    return ours


def _after(now: str, code: int) -> int:
    """Return the code of a call that was made, if there is still time."""
    if now in {"after", "half"}:
        die()
    return code


def _as_it_was(calls: dict[str, Any], file: int, length: int, start: int) -> Callable[[], object]:
    """Return what brings back the bytes that a write is about to replace, and the file's length."""
    size, before = _Long(), ctypes.create_string_buffer(length)
    calls["size"](file, ctypes.byref(size))
    calls["read"](file, ctypes.cast(before, _Pointer), length, start)

    def undo() -> None:
        calls["write"](file, ctypes.cast(before, _Pointer), length, start)
        calls["cut"](file, size)

    return undo


def _delete(real: Any, name: int, sync: int) -> int:
    now = PLAN.now()
    if now in _FAILS:
        return _DELETE
    PLAN.lost.clear()  # of the journal, which is synced and closed; the ledger is synced before
    return _after(now, int(real.contents.delete(ctypes.cast(real, _Pointer), name, sync)))


# The side file's calls


@contextmanager
def stand_before_the_system() -> Iterator[None]:
    """Let what Python's `os` reads, writes and syncs go through here."""
    pread, pwrite, fsync = os.pread, os.pwrite, os.fsync

    def reading(handle: int, length: int, start: int) -> bytes:
        _fail(PLAN.now())
        return pread(handle, length, start)

    def writing(handle: int, content: bytes, start: int) -> int:
        now = PLAN.now()
        if now == "EIO":
            _fail(now)
        if now in {"ENOSPC", "half"}:
            return _after(now, pwrite(handle, content[: len(content) // 2], start))
        before = pread(handle, len(content), start)
        PLAN.unsynced(handle, lambda: pwrite(handle, before, start))
        return _after(now, pwrite(handle, content, start))

    def syncing(handle: int) -> None:
        now = PLAN.now()
        _fail(now)
        fsync(handle)
        PLAN.synced(handle)
        _after(now, 0)

    os.pread, os.pwrite, os.fsync = reading, writing, syncing  # type: ignore[assignment]
    try:
        yield
    finally:
        os.pread, os.pwrite, os.fsync = pread, pwrite, fsync


def _fail(now: str) -> None:
    if now in _FAILS:
        code = getattr(errno, now)
        raise OSError(code, os.strerror(code))


# Cases


def use(path: Path, told: Path) -> None:
    """Spend, keep, ask again, and spend once more; whatever is refused is refused in a sentence."""
    notes = Notes(told)
    ledger = open_ledger(path)
    turns: list[Callable[[], object]] = [
        lambda: notes.spend(ledger, ask("one")),
        lambda: notes.keep(ledger, "one", _SHARED),
        lambda: notes.spend(ledger, ask("one")),
        lambda: notes.spend(ledger, ask("two")),
    ]
    for turn in turns:
        try:
            turn()
        except (LedgerError, BudgetExceededError):
            continue


def make(path: Path, told: Path) -> None:
    """Make a ledger, declare a budget, and spend."""
    notes = Notes(told)
    try:
        ledger = open_ledger(path, create=True)
        ledger.declare("table", ZCDP(0.003))
        notes.spend(ledger, ask("one"))
    except LedgerError:
        pass


def run(work: str, kind: str, every: int, counts: Any) -> None:
    """Let one kind of fault happen at every call of a piece of work (or every so many), and check.

    Puts how many calls there are, and what came of the calls of the ledger, or the error's text.
    """
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - no disk is needed
    try:
        with tempfile.TemporaryDirectory(dir=memory) as folder:
            counts.put(_run({"use": use, "make": make}[work], kind, every, Path(folder)))
    except BaseException as error:
        counts.put(f"{type(error).__name__}: {error}")


def _run(
    work: Callable[[Path, Path], None], kind: str, every: int, folder: Path
) -> tuple[int, dict[str, int]] | None:
    if not stand_before_sqlite():
        return None
    base = folder / "base"
    base.mkdir()
    if work is use:
        ledger = open_ledger(base / "budget.db", create=True)
        ledger.declare("table", ZCDP(0.004))
        notes = Notes(base / "notes")
        notes.spend(ledger, ask("zero"))
        notes.keep(ledger, "zero", b"release")
    found: dict[str, int] = {}
    with stand_before_the_system():
        counting = Plan()
        shutil.copytree(base, folder / "counted")
        with happening(counting):
            work(folder / "counted" / "budget.db", folder / "counted" / "notes")
        for at in range(1, counting.calls + 1, every):
            place = folder / f"{at}"
            shutil.copytree(base, place)
            _happens(work, Plan(kind, at), place)
            for name, count in _left(work, place, f"{kind} at call {at}").items():
                found[name] = found.get(name, 0) + count
            shutil.rmtree(place)
    return counting.calls, found


def _happens(work: Callable[[Path, Path], None], plan: Plan, place: Path) -> None:
    """Do the work in a process of its own, with a fault; beside one that pauses, do some here."""
    child = os.fork()
    if child == 0:
        code = _STRANGE
        try:
            with happening(plan):
                work(place / "budget.db", place / "notes")
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    if plan.kind == "pause" and work is use:
        notes, ledger = Notes(place / "others"), open_ledger(place / "budget.db")
        notes.read(ledger)
        with suppress(BudgetExceededError):
            notes.spend(ledger, ask("other"))
        notes.read(ledger)
    _, status = os.waitpid(child, 0)
    died = os.WIFSIGNALED(status) and plan.kind in _DEADLY
    assert died or os.WEXITSTATUS(status) == 0, f"{plan.kind} at call {plan.at} raised"


def _left(work: Callable[[Path, Path], None], place: Path, when: str) -> dict[str, int]:
    """Check what is left, by the history that was written down."""
    path = place / "budget.db"
    try:
        if work is make:
            _made_at_last(path)
        return check(path, place / "notes", place / "others")
    except Exception as error:
        raise AssertionError(f"{when}: {error}") from error


def _made_at_last(path: Path) -> None:
    """Whatever was left by making a ledger, it is there, or can be made."""
    try:
        ledger = open_ledger(path)
    except LedgerError:
        ledger = open_ledger(path, create=True)
    if not ledger.status():
        ledger.declare("table", ZCDP(0.003))
