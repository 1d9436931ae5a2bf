"""A gate's line in the ledger: all its public arguments, and the release they paid for."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from dplinear.analyst import files
from dplinear.ledger import Keeper, Ledger, Request
from dplinear.ledger.fingerprint import fingerprint
from dplinear.ledger.opening import as_ledger

_Arguments = ParamSpec("_Arguments")
_Release = TypeVar("_Release")
# The table itself, who counts, and how it is read: none of them changes what is released.
_OTHERS = frozenset(
    {"data", "X", "y", "Z", "ledger", "request", "output", "threads", "engine", "progress"}
)


class _ReplayError(Exception):
    """The release was made before; here are its bytes."""

    def __init__(self, content: bytes) -> None:
        super().__init__("the release was made before")
        self.content = content


class _Line:
    """A ledger, as one call of a gate sees it."""

    def __init__(self, ledger: Ledger, arguments: str) -> None:
        self._ledger, self._arguments = ledger, arguments
        self._request: str | None = None

    def spend(self, request: Request) -> None:
        """Record the spend, or raise; stop the gate if the release was made before."""
        content = self._ledger.spend(replace(request, arguments=self._arguments))
        if content is not None:
            raise _ReplayError(content)
        self._request = request.request

    def keep(self, release: object) -> None:
        """Let the ledger keep a release of a kind that has bytes."""
        content = files.packed(release)
        if self._request is not None and content is not None and isinstance(self._ledger, Keeper):
            self._ledger.keep(self._request, content)


def recorded(gate: Callable[_Arguments, _Release]) -> Callable[_Arguments, _Release]:
    """Let a gate take the path of a ledger; keep its release there, and return it if it was kept.

    Released rows have a file of their own, and suggested bounds a schema: those are not kept.
    """

    @wraps(gate)
    def through(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Release:
        ledger = as_ledger(kwargs.get("ledger"))
        if not isinstance(ledger, Ledger):  # nobody counts, or the gate will say what is wrong
            return gate(*args, **kwargs)
        bound = inspect.signature(gate).bind(*args, **kwargs)
        bound.apply_defaults()
        line = _Line(ledger, _fingerprint(gate.__name__, bound.arguments))
        kwargs["ledger"] = line
        try:
            release = gate(*args, **kwargs)
        except _ReplayError as found:
            return cast("_Release", files.unpacked(found.content))
        line.keep(release)
        return release

    return through


def _fingerprint(name: str, given: Mapping[str, Any]) -> str:
    said = dict(given) | dict(given.get("options", {}))
    public = {key: value for key, value in said.items() if key not in _OTHERS | {"options"}}
    return fingerprint([name, public])
