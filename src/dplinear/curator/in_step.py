"""Solvers that run on the groups of one table in step: each pass over it serves all of them.

Every solver asks for sums of its own group, one pass after the other, and makes the next question
from the answer. Here each runs in a thread of its own, one at a time and in a fixed order, up to
its next question; then one pass over the table answers all of them. So a table is read as often as
the solver that asks most, however many groups there are, and noise is drawn in a fixed order.
"""

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from dplinear.curator.sources.source import Reader
from dplinear.exact.blocks import Part, Reduction
from dplinear.exact.groups import GroupReduction, Nothing
from dplinear.schema import Schema

_Table = TypeVar("_Table")
_Made = TypeVar("_Made")


class InStep(Generic[_Table]):
    """The groups of a table, which `each` runs something on.

    Requires: `opened`, which returns a reader of the rows in groups under the schema that it is
    given, for as many passes as are asked for; `split`, the schema that is split by the groups;
    `make`, what makes a group's table of a reader of its rows. A group that asks for sums under
    another schema than its own, as through a window, is read through that one.
    """

    def __init__(
        self,
        opened: Callable[[Schema], Reader],
        split: Schema,
        groups: int,
        make: Callable[[Reader], _Table],
    ) -> None:
        self._opened, self._split, self._groups, self._make = opened, split, groups, make
        self._plain = split.of_group()
        self._last: tuple[Schema, Reader] | None = None

    def each(self, job: Callable[[_Table], _Made]) -> list[_Made]:
        """Return what a job makes of each group's table.

        Promises: what one job raises is raised here, and the others end at their next question.
        """
        turns: list[_Turn] = []
        try:
            for _ in range(self._groups):
                turns.append(_Turn(lambda reader: job(self._make(reader))))  # noqa: PERF401 - ended below
            for turn in turns:
                turn.go_on(None)
            while any(turn.asked is not None for turn in turns):
                asked = [turn.asked or Nothing(self._plain) for turn in turns]
                split, reader = self._reader([each.schema for each in asked])
                found = reader.run(GroupReduction(split, asked))
                for turn, part in zip(turns, found.parts, strict=True):
                    if turn.asked is not None:
                        turn.go_on(part)
            return [turn.made() for turn in turns]
        finally:
            for turn in turns:
                turn.end()

    def _reader(self, schemas: Sequence[Schema]) -> tuple[Schema, Reader]:
        """Return a reader under the schemas of all groups; that of before, where they are alike."""
        alike = all(schema == self._plain for schema in schemas)
        split = self._split if alike else self._split.seen_through(schemas)
        if self._last is None or self._last[0] != split:  # rounded rows are kept for the next pass
            self._last = split, self._opened(split)
        return self._last


class _EndedError(BaseException):
    """Another job has failed, so that this one is to end."""


class _Turn:
    """A job in a thread of its own that runs only while somebody waits for it.

    `asked` is the question at which it stands still; None where it has ended.
    """

    def __init__(self, job: Callable[[Reader], Any]) -> None:
        self.asked: Reduction[Any] | None = None
        self._job = job
        self._answer: Any = None
        self._found: Any = None
        self._error: BaseException | None = None
        self._ended = False
        self._going, self._waiting = threading.Semaphore(0), threading.Semaphore(0)
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="dplinear-group", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        self._going.acquire()
        try:
            if not self._ended:
                self._found = self._job(self)
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
            self._error = error
        finally:
            self.asked = None
            self._waiting.release()

    def run(self, reduction: Reduction[Part]) -> Part:
        """Ask for a pass, as a reader of the group's rows; wait for what it comes to."""
        self.asked = reduction
        self._waiting.release()
        self._going.acquire()
        if self._ended:
            raise _EndedError
        answer: Part = self._answer
        return answer

    def go_on(self, answer: Any) -> None:
        """Let the job go on with an answer, up to its next question or its end."""
        self._answer = answer
        self._going.release()
        self._waiting.acquire()
        if self._error is not None:
            raise self._error

    def made(self) -> Any:
        """Return what the job has made."""
        return self._found

    def end(self) -> None:
        """Let a job that stands still end, and wait for that."""
        self._ended = True
        self._going.release()
        self._thread.join()
