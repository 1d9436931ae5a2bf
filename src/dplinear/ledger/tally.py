"""Counting what a piece of code spends, however many releases it makes: `with tally() as spent`."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from dplinear.analyst import notebook
from dplinear.ledger.request import Request
from dplinear.privacy import compose
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours

_OPEN: ContextVar[tuple["Tally", ...]] = ContextVar("dplinear tallies", default=())


@dataclass(frozen=True)
class Tally:
    """The spends made in a block of code, in order. It counts; it cannot refuse."""

    requests: list[Request] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.requests)

    def total(self) -> Guarantee | None:
        """Return what all spends so far promise together, if they were all of one table.

        Valid when the releases were settled beforehand; None if there are none, if one of them has
        no proved guarantee, or if nothing is proved of all together: they hide different things
        (one row more or less, one row replaced, one cell; changes of different sizes, which are in
        half-ranges), are of kinds that do not add up, or δ reaches 1. Bits add up: what a second
        release tells is counted given what the first told.
        """
        parts = [request.guarantee for request in self.requests]
        proved = [part for part in parts if part is not None]
        relations = {_relation(one) for one in self.requests}
        if not proved or len(proved) < len(parts) or len(relations) > 1:
            return None
        try:
            return compose.guarantees(proved)
        except ValueError:
            return None

    def __str__(self) -> str:
        total = self.total()
        many = "" if len(self) == 1 else "s"
        start = f"{len(self)} release{many}:"
        if total is None:
            return f"{start} no guarantee"
        neighbours = self.requests[0].neighbours
        if len(self) == 1 or neighbours is not Neighbours.ADD_REMOVE:
            return f"{start} {total} together ({neighbours} neighbours)"
        condition = f"if all read the same table ({neighbours} neighbours)"
        return f"{start} {total} together, {condition}\n{_FOLDS}"

    def _repr_html_(self) -> str:
        return notebook.card("Spent so far", notebook.lines(str(self).splitlines()))


_FOLDS = (
    "For the folds of a cross-validation nothing is proved of all: one row more or less moves "
    "other rows from fold to fold. With neighbours='replace' the total holds for folds too."
)


def _relation(one: Request) -> tuple[str, ...]:
    """Return what a release hides, in words that are equal where it is the same."""
    change = one.parameters.get("change")
    ranges = None if change is None else one.parameters.get("half_ranges")
    public = bool(one.parameters.get("missing_public"))
    unit = one.parameters.get("unit")
    return str(one.neighbours), repr(change), repr(ranges), repr(public), repr(unit)


@contextmanager
def tally() -> Iterator[Tally]:
    """Count the releases made within this block, by this thread."""
    counted = Tally()
    token = _OPEN.set((*_OPEN.get(), counted))
    try:
        yield counted
    finally:
        _OPEN.reset(token)


def count(request: Request) -> None:
    """Tell every open tally of a spend."""
    for counted in _OPEN.get():
        counted.requests.append(request)
