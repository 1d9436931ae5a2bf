"""One spend, in public terms, and the hook that a budget is kept through."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from dplinear.arguments import wrong_type
from dplinear.privacy.guarantees import ZCDP, Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Profile
from dplinear.tracebacks import PlainError

_LONGEST = 200


@dataclass(frozen=True)
class Request:
    """What a release will spend: `guarantee` between `neighbours` of `dataset`.

    `guarantee` is None where nothing is proved (a reproduction of a paper without a proof).
    `parameters` are public arguments of the release, `arguments` the fingerprint of all of them.
    `concentrated` is the ρ that the mechanism keeps besides, where one is known, and `profile` its
    whole curve.
    """

    request: str
    dataset: str | None
    guarantee: Guarantee | None
    neighbours: Neighbours
    mechanism: str
    parameters: Mapping[str, Any]
    concentrated: ZCDP | None = None
    arguments: str | None = field(default=None, compare=False)
    profile: Profile | None = field(default=None, compare=False, repr=False)


@runtime_checkable
class Ledger(Protocol):
    """Whoever keeps the budget.

    The gate calls `spend` once for each release, after all public arguments are checked and before
    a row is read. It returns None when the spend is recorded for good, and raises to refuse it. For
    a request that was made before it may return the bytes of that release: nothing is spent then,
    and nothing is read.
    """

    def spend(self, request: Request) -> bytes | None:
        """Record the spend, or raise."""


@runtime_checkable
class Keeper(Protocol):
    """A ledger that keeps releases too, so that the same request gets the same release."""

    def keep(self, request: str, content: bytes) -> None:
        """Keep the bytes of the release that a request has paid for.

        What it raises does not hold the release back, which is spent: it is returned with a
        `NotKeptWarning`. Only a DamagedLedgerError, which puts the spend itself in doubt, does.
        """


class LedgerError(PlainError):
    """A ledger that cannot be relied on, or a request that it cannot serve. Nothing is released."""


class DamagedLedgerError(LedgerError):
    """A ledger that is not as it was written: what was spent may be missing in it."""


class NotKeptWarning(UserWarning):
    """A release that was made and is spent, and that its ledger could not keep.

    `release` is it, for those who turn warnings into errors.
    """

    def __init__(self, text: str, release: Any) -> None:
        super().__init__(text)
        self.release = release


def check_request(request: Request, where: str) -> Request:
    """Return a request whose words are texts that every ledger can hold and read back, or raise.

    Words of a class of their own become plain ones: what is written is what is hashed.
    """
    if not isinstance(request, Request):
        raise wrong_type("request", where, "a Request", request)
    words = {name: getattr(request, name) for name in ("request", "dataset", "mechanism")}
    for name, word in words.items():
        if not (is_word(word) or (name == "dataset" and word is None)):
            raise wrong_type(name, where, WORD, word)
    if not isinstance(request.parameters, Mapping):
        raise wrong_type("parameters", where, "a mapping", request.parameters)
    relation = Neighbours.parse(request.neighbours, where)
    plain: dict[str, Any] = {name: word and word[:] for name, word in words.items()}
    return replace(request, **plain, neighbours=relation)


WORD = "a text of 1 to 200 printable characters"


def is_word(text: object) -> bool:
    """Return whether a text may name a dataset or a request."""
    return isinstance(text, str) and 0 < len(text) <= _LONGEST and text.isprintable()


def refusal(fact: str, hint: str = "", kind: type[LedgerError] = LedgerError) -> LedgerError:
    """Return the error of a ledger: a fact, and a hint on a line of its own."""
    return kind(fact + (f"\n\nHint: {hint}" if hint else ""))


def not_kept_warning(request: str, release: object, error: Exception) -> NotKeptWarning:
    """Return the warning for a release that could not be kept; of others' errors, their kind."""
    reason = type(error).__name__
    if isinstance(error, LedgerError):
        reason = str(error).partition("\n\n")[0].removesuffix(".")
    return NotKeptWarning(
        f"The request {request!r} is spent, and its ledger did not keep the release ({reason}).\n\n"
        "Hint: save the release now. The request, made again, may find itself spent, with nothing "
        "to return.",
        release,
    )
