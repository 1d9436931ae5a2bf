"""A gate's line in the ledger: all its public arguments, and the release they paid for."""

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from dplinear.analyst.releases import files
from dplinear.analyst.rows import kept_rows
from dplinear.analyst.rows.release import RowsRelease
from dplinear.arguments import renamed
from dplinear.ledger import Keeper, Ledger, Request
from dplinear.ledger.fingerprint import fingerprint, former_fingerprint
from dplinear.ledger.ledger import BudgetLedger
from dplinear.ledger.opening import as_ledger
from dplinear.ledger.request import (
    DamagedLedgerError,
    LedgerError,
    NotKeptWarning,
    not_kept,
    refusal,
)
from dplinear.ledger.spent import note_spent, note_unsure
from dplinear.noise import simulation
from dplinear.privacy.compose import BudgetExceededError

_Arguments = ParamSpec("_Arguments")
_Release = TypeVar("_Release")
# The table itself, who counts, and how it is read: none of them changes what is released.
_OTHERS = frozenset(
    {"data", "X", "y", "Z", "ledger", "request", "output", "threads", "engine", "progress"}
)
# Whose parameters a gate passes on under the same names: an error names the gate that was called.
_INNER = frozenset(
    {
        "second_moments",
        "Bounds",
        "Rules",
        "SmoothLoss",
        "variance_for",
        "RowMap",
        "calibrate.sketch",
        "calibrate.inverse_wishart",
    }
)


class _ReplayError(Exception):
    """The release was made before; here are its bytes."""

    def __init__(self, content: bytes) -> None:
        super().__init__("the release was made before")
        self.content = content


class _Line:
    """A ledger, as one call of a gate sees it."""

    def __init__(self, ledger: Ledger, arguments: Callable[[], tuple[str, str | None]]) -> None:
        self._ledger, self._arguments = ledger, arguments
        self._request: str | None = None

    def spend(self, request: Request) -> None:
        """Record the spend, or raise; stop the gate if the release was made before."""
        arguments, former = self._arguments()
        asked = replace(request, arguments=arguments, former=former)
        try:
            content = self._ledger.spend(asked)
        except (LedgerError, BudgetExceededError):  # which say that nothing is spent
            raise
        except BaseException as error:
            note_unsure(error, request.request)
            raise
        if content is not None:
            raise _ReplayError(content)
        self._request = request.request

    def keep(self, release: object, *, named: bool) -> NotKeptWarning | None:
        """Let the ledger keep a release, or return the warning that it did not.

        Rows are kept whole only if they can be asked for by name. What is spent is not lost with a
        full disk: it is the user's. A ledger in which the spend itself may be missing still raises.
        """
        if self._request is None or not isinstance(self._ledger, Keeper):
            return None
        try:
            content = _content(release, named=named)
            if content is not None:
                self._ledger.keep(self._request, content)
        except DamagedLedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - of a ledger of any kind
            return not_kept(self._request, release, error)
        return None

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Let whatever is raised after the spend say that the request is spent."""
        try:
            yield
        except BaseException as error:
            if self._request is not None:
                note_spent(error, self._request)
            raise

    def kept(self, request: str) -> bytes | None:
        """Return what the ledger kept for a request, if it can say."""
        return self._ledger.kept(request) if isinstance(self._ledger, BudgetLedger) else None


def recorded(gate: Callable[_Arguments, _Release]) -> Callable[_Arguments, _Release]:
    """Let a gate take the path of a ledger; keep its release there, and return it if it was kept.

    Of rows that are many, the ledger keeps the digest of their file, and not the rows.
    """

    @wraps(gate)
    def through(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Release:
        try:
            return counted(*args, **kwargs)
        except (ValueError, TypeError) as error:
            named = renamed(error, _INNER, gate.__name__)
            if named is error:
                raise
            for note in getattr(error, "__notes__", ()):
                named.add_note(note)
            raise named.with_traceback(error.__traceback__) from None

    def counted(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Release:
        ledger = as_ledger(kwargs.get("ledger"))
        if not isinstance(ledger, Ledger):  # nobody counts, or the gate will say what is wrong
            return gate(*args, **kwargs)
        bound = inspect.signature(gate).bind(*args, **kwargs)
        bound.apply_defaults()
        # Written when it is needed: by then the gate has checked all that is in it.
        line = _Line(ledger, partial(_fingerprints, gate.__name__, bound.arguments))
        kwargs["ledger"] = line
        try:
            with line.telling():
                release = gate(*args, **kwargs)
                warning = line.keep(release, named=bound.arguments.get("request") is not None)
        except _ReplayError as found:
            return cast("_Release", _again(found.content, bound.arguments))
        if warning is not None:
            warnings.warn(warning, stacklevel=3)
        return release

    return through


def _content(release: object, *, named: bool) -> bytes | None:
    """Return the bytes that a ledger keeps of a release."""
    if isinstance(release, RowsRelease):
        return kept_rows.pack(release, whole=named)
    return files.packed(release)


def _again(content: bytes, given: Mapping[str, Any]) -> Any:
    """Return the release that a request got before."""
    if not kept_rows.recognised(content):
        return _unseeded(files.unpacked(content), given)
    kept = kept_rows.read(content)
    if kept.stream is None:
        where = "they were returned in memory alone"
        if kept.digests:
            where = f"they are in a file with the SHA-256 {kept.digests[0]}: give it as `output`"
        raise refusal(
            f"The rows of the request {given['request']!r} are not kept in the ledger.",
            f"{where}. Nothing is spent or read again, and what was spent stays spent.",
        )
    release = _unseeded(kept.release(), given)
    if given["output"] is None:
        return release
    release.save(given["output"])
    return files.load(given["output"])


def _unseeded(release: Any, given: Mapping[str, Any]) -> Any:
    """Return a release, unless a seed made it and none is in force: former versions hid seeds."""
    if release.certificate.simulated and simulation.seed_for_release() is None:
        hint = "its noise can be taken away again. Give the real release another name."
        raise refusal(f"The request {given['request']!r} was made with a seed.", hint)
    return release


def check_file(ledger: object, request: str, path: Path) -> None:
    """Raise if a ledger knows the rows of a request, and a file is not the one that held them."""
    content = ledger.kept(request) if isinstance(ledger, _Line) else None
    if content is None or not kept_rows.recognised(content):
        return
    if not kept_rows.read(content).is_in(path):
        raise refusal(
            f"The file {path.name!r} is not as it was when the request {request!r} was released.",
            "bring back the file; or give another `output`, for rows that the ledger keeps.",
        )


def _fingerprints(name: str, given: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the digest of all public arguments, and the one that former versions made of them.

    A seed is one of them: what it made is no release, and is not to be taken for one.
    """
    said = dict(given) | dict(given.get("options", {}))
    public = {
        key: float(value) if isinstance(value, np.longdouble) else value
        for key, value in said.items()
        if key not in _OTHERS | {"options"}
    }
    # Of rows without a schema the columns are a public argument: a model has a number for each.
    public |= {key: int(given[key].shape[1]) for key in ("X", "Z") if key in given}
    seed = simulation.seed_for_release()
    former = former_fingerprint([name, public]) if seed is None else None
    return fingerprint([name, public, {"seed": seed}]), former
