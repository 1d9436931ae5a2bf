"""Forks of this process wait until none of its threads is in the middle of a ledger's file.

A child inherits what is open: a lock of `flock` then lasts until the child has closed it too, and
SQLite, in the child, would for ever believe that a thread which is not there holds the database. So
a fork waits for uses that have begun (each takes milliseconds) and holds back those that have not;
a child closes whatever side files are open, such as those of threads that still wait for a lock.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PATIENCE = 60.0  # seconds; a fork that has waited for so long goes ahead


class _Uses:
    """Who is using a ledger's file, by thread, and which side files are open."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.inside: Counter[int] = Counter()
        self.forking = 0
        self.handles: set[int] = set()

    def others(self) -> int:
        """Return how many uses other threads are in the middle of."""
        return self.inside.total() - self.inside[threading.get_ident()]


_USES = _Uses()


@contextmanager
def no_forks() -> Iterator[None]:
    """Let no other thread fork until the block ends."""
    uses, thread = _USES, threading.get_ident()
    with uses.changed:
        # Who is in the middle of one already is waited for, and so must not wait.
        uses.changed.wait_for(lambda: not uses.forking or uses.inside[thread] > 0, _PATIENCE)
        uses.inside[thread] += 1
    try:
        yield
    finally:
        with uses.changed:
            uses.inside[thread] -= 1
            uses.inside += Counter()  # without the threads that are in the middle of nothing
            uses.changed.notify_all()


def open_file(path: str | os.PathLike[str], flags: int, mode: int = 0o600) -> int:
    """Open a file that a child of this process closes."""
    with _USES.changed:  # no fork between the two
        handle = os.open(path, flags, mode)
        _USES.handles.add(handle)
    return handle


def is_own(handle: int) -> bool:
    """Return whether this process has opened the file, rather than inherited it."""
    return handle in _USES.handles


def close_file(handle: int) -> None:
    """Close a file, unless it was inherited, and is closed already."""
    with _USES.changed:
        if handle in _USES.handles:
            _USES.handles.discard(handle)
            os.close(handle)


def _before() -> None:
    _USES.changed.acquire()
    _USES.forking += 1
    _USES.changed.wait_for(lambda: _USES.others() == 0, _PATIENCE)


def _in_parent() -> None:
    _USES.forking -= 1
    _USES.changed.notify_all()
    _USES.changed.release()


def _in_child() -> None:
    global _USES  # noqa: PLW0603 - the child begins anew: the locks of its parent are not its own
    for handle in _USES.handles:
        with suppress(OSError):
            os.close(handle)
    _USES = _Uses()


# Where nothing forks (Windows), there are no hooks, and no ledgers in files either.
getattr(os, "register_at_fork", dict)(
    before=_before, after_in_parent=_in_parent, after_in_child=_in_child
)
