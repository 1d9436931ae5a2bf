"""What a call may do: return, or refuse with a sentence of ours; and what of it an onlooker sees.

An onlooker sees the kind of an error and its words, warnings, log records, what is printed, and the
shape of what is released. Released numbers, and whatever is computed from them, are public: their
digits, the size of a compressed file of them, the pattern of a sparse model, a warning that a
release shows no rows. None of that may be compared between neighbours, since privacy allows it to
differ; everything else must be equal to the byte (`surface.py` says what "everything else" is).
"""

import io
import logging
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import dplinear
from dplinear.analyst.releases.files import ReleaseError
from dplinear.arguments import ArgumentError
from dplinear.curator.sources.source import SourceError
from dplinear.ledger import LedgerError, tally

OURS = Path(dplinear.__file__).parent
PATIENCE = 60  # seconds, for one call
_BREAKS_OFF = re.compile(r"Reading .+ failed, so nothing was computed or released\.")
_OWN_WARNINGS = ("the noise is larger than the table", "A column-vector y was passed")
# Said of what was released, and so as public as that is.
_OF_THE_RELEASE = "the noise is larger than the table"


class HangError(BaseException):
    """A call took too long. Not an Exception, so that few handlers swallow it; `seen` tells."""

    seen = False


@dataclass(frozen=True)
class Outcome:
    """What one call did, as an onlooker sees it, and what is wrong with it."""

    value: Any = None
    error: tuple[str, str] | None = None
    warned: tuple[tuple[str, str], ...] = ()
    logged: tuple[str, ...] = ()
    printed: str = ""
    spent: tuple[str, ...] = ()
    problem: str | None = None
    raised: BaseException | None = field(default=None, repr=False)

    @property
    def trace(self) -> str:
        """The traceback of what was raised."""
        return "" if self.raised is None else "".join(traceback.format_exception(self.raised))

    def seen(self) -> dict[str, Any]:
        """Return what must not differ between neighbours, but for what was returned."""
        words = tuple(said for said in self.warned if _OF_THE_RELEASE not in said[1])
        return {
            "error": self.error,
            "warnings": words,
            "log": self.logged,
            "printed": self.printed,
            "what is spent": self.spent,
        }


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


def watched(call: Callable[[], Any], names: tuple[str, ...]) -> Outcome:
    """Make a call, and say what it did. `names`: the callers that a sentence may name."""
    records = _Records()
    root = logging.getLogger()
    level = root.level
    root.addHandler(records)
    root.setLevel(logging.DEBUG)
    value: Any = None
    error: BaseException | None = None
    try:
        with _printed() as text, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with _patience(), tally() as counted:
                    value = call()
            except (Exception, HangError) as raised:
                error = raised
    finally:
        root.removeHandler(records)
        root.setLevel(level)
    warned = tuple((each.category.__name__, str(each.message)) for each in caught)
    places = [f" ({_place(each.filename)}:{each.lineno})" for each in caught]
    problem = _warning_problem(warned, places) or (
        None if error is None else _problem(error, names)
    )
    spent = tuple(f"{one.guarantee} {one.mechanism} {one.neighbours}" for one in counted.requests)
    if problem is None and spent and isinstance(error, ValueError | TypeError):
        problem = f"refuses what is already spent: {_message(error)[:200]}"
    told = None if error is None else (type(error).__name__, _message(error))
    return Outcome(value, told, warned, tuple(records.lines), text[0], spent, problem, error)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as worse:
        return f"(cannot be shown: {type(worse).__name__})"


def _problem(error: BaseException, names: tuple[str, ...]) -> str | None:  # noqa: PLR0911 - one each
    kind, message = type(error).__name__, _message(error)
    if HangError.seen:
        return f"hangs for more than {PATIENCE} s"
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1].filename if frames else ""
    if not Path(last).is_relative_to(OURS):
        return f"{kind} from {_place(last)}: {message[:200]}"
    if error.__cause__ is not None:
        return f"{kind} that shows its cause: {message[:200]}"
    if isinstance(error, LedgerError | ReleaseError):
        return None
    if type(error) is SourceError:
        return (
            None if _BREAKS_OFF.match(message) else f"SourceError in other words: {message[:200]}"
        )
    if not isinstance(error, ArgumentError) or not (_one_line(error.parameter) and error.rule):
        return f"{kind} that is no sentence of ours: {message[:200]}"
    if error.where not in names:
        return f"names {error.where}: {message[:200]}"
    return None


def _one_line(text: str) -> bool:
    return len(text) > 0 and "\n" not in text


def _place(file: str) -> str:
    parts = Path(file).parts
    return "/".join(
        parts[parts.index("site-packages") + 1 :] if "site-packages" in parts else parts[-2:]
    )


def _warning_problem(warned: tuple[tuple[str, str], ...], places: list[str]) -> str | None:
    for (kind, message), place in zip(warned, places, strict=True):
        if not any(own in message for own in _OWN_WARNINGS):
            return f"warns {kind}: {message[:200]}{place}"
    return None


@contextmanager
def _printed() -> Iterator[list[str]]:
    """Give what is printed within, by Python or by libraries that write by themselves."""
    said: list[str] = []
    text, file = io.StringIO(), _paper()
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    try:
        os.dup2(file, 1)
        os.dup2(file, 2)
        with redirect_stdout(text), redirect_stderr(text):
            yield said
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for handle in kept:
            os.close(handle)
        written = os.pread(file, 1 << 20, 0)
        if written:
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
        said.append(text.getvalue() + written.decode("utf-8", "replace"))


@cache
def _paper() -> int:
    """Return an open file for what is printed, the same for all calls."""
    return os.memfd_create("printed")


@contextmanager
def _patience() -> Iterator[None]:
    def ring(_: int, __: FrameType | None) -> NoReturn:
        HangError.seen = True
        raise HangError

    HangError.seen = False
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
