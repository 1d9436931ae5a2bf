"""One input of a gate: the call, the same call on a neighbouring table, and what both may do."""

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dplinear.noise import simulation
from dplinear.schema import Schema

from .containers import CONTAINERS, flavours_of, held
from .dice import Dice, Maker
from .judge import Outcome, watched
from .surface import sound, surface
from .tables import Private

GUARANTEES = ("PureDP", "ApproxDP", "ZCDP", "GDP", "MIDP")

Call = Callable[[Path], Any]


@dataclass(frozen=True)
class Case:
    """An input. `names` are the callers that its errors may name."""

    names: tuple[str, ...]
    call: Call
    neighbour: Call | None = None
    releases: bool = True
    shown: str = ""


@dataclass(frozen=True)
class Verdict:
    """What came of an input: accepted or refused, and the problem, if there is one."""

    accepted: bool
    compared: bool
    problem: str | None = None
    detail: str = ""


def tried(case: Case, seed: int) -> Verdict:
    """Make the call, and the neighbour's; say what came of them."""
    first = _made(case, case.call, seed)
    problem, detail = first.problem, ""
    if problem is None and case.releases and first.error is None:
        checked = watched(lambda: sound(first.value), case.names)
        problem = checked.value if checked.error is None else f"unsound: {checked.error}"
        detail = "" if problem is None else checked.trace
    if problem is None and case.neighbour is not None:
        second = _made(case, case.neighbour, seed)
        problem = _difference(case, first, second)
        detail = "" if problem is None else second.trace
    detail = "" if problem is None else first.trace + detail
    return Verdict(first.error is None, case.neighbour is not None, problem, detail)


def _made(case: Case, call: Call, seed: int) -> Outcome:
    with _folder() as folder, simulation.door(seed % 1000):
        return watched(lambda: call(folder), case.names)


@contextmanager
def _folder() -> Iterator[Path]:
    """Give an empty folder: always the same, since its name is part of what errors say."""
    folder = _scratch()
    try:
        yield folder
    finally:
        for file in folder.iterdir():
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink()


@cache
def _scratch() -> Path:
    """Return a folder that goes with the process."""
    kept = tempfile.TemporaryDirectory(prefix="fuzz")
    atexit.register(kept.cleanup)
    return Path(kept.name)


def _difference(case: Case, first: Outcome, second: Outcome) -> str | None:
    if second.problem is not None:
        return f"a neighbour {second.problem}"
    one, other = first.seen(), second.seen()
    for name in one:
        if one[name] != other[name]:
            return f"{name} differs between neighbours: {one[name]} | {other[name]}"
    if case.releases and first.error is None:
        left, right = surface(first.value), surface(second.value)
        if left != right:
            return f"the outline differs between neighbours: {left} | {right}"
    return None


def mutated(dice: Dice, base: Mapping[str, Any], makers: Mapping[str, Maker]) -> dict[str, Any]:
    """Return arguments of which none, one or a few are something else."""
    wrong = dice.pick((0, 0, 1, 1, 1, 1, 2, 3))
    arguments = dict(base)
    for _ in range(wrong):
        name = dice.pick(list(makers))
        arguments[name] = makers[name](dice)
    return arguments


@dataclass(frozen=True)
class Tabled:
    """A table in a container, and its neighbour in the same kind of container."""

    container: str
    table: Private
    other: Private
    seed: int

    def held(self, folder: Path) -> Any:
        return held(self.table, self.container, Dice(self.seed), folder)

    def other_held(self, folder: Path) -> Any:
        return held(self.other, self.container, Dice(self.seed), folder)


def tabled(
    dice: Dice, names: Sequence[str], *, replace: bool, containers: Sequence[str] = CONTAINERS
) -> Tabled:
    """Return a table with these columns, in any container, and a neighbour."""
    container = dice.pick(containers)
    table = Private.thrown(dice, names, flavours_of(container))
    other = table.neighbour(dice, replace=replace, lines=container == "csv")
    return Tabled(container, table, other, dice.below(2**40))


_DECLARATIONS: tuple[Any, ...] = (
    (-1, 1),
    (0, 10),
    (-3.5, 2),
    (-1e9, 1e9),
    {"type": "integer", "low": 0, "high": 9},
    "boolean",
    ["a", "b"],
    {"type": "category", "levels": [1, 2, 3]},
    {"type": "category", "levels": ["a", "b"], "other": "a"},
    {"type": "date", "low": "2000-01-01", "high": "2030-01-01"},
    {"type": "number", "low": 0, "high": 1, "missing": 0.25, "missing_indicator": True},
)
_PLAIN = ((-1, 1), (0, 10), (-3.5, 2), (-1e9, 1e9))
NAMES = ("a", "b", "c", "d")


def schema_of(dice: Dice, *, plain: bool = False) -> Schema:
    """Return a sound schema of a few columns."""
    names = NAMES[: 1 + dice.below(3)]
    some = _PLAIN if plain or dice.chance(0.5) else _DECLARATIONS
    declared = {name: dice.pick(some) for name in names}
    options: dict[str, Any] = {}
    if not plain and dice.chance(0.2):
        options["row_norm"] = dice.pick((0.5, 1.0, 3.0))
    if not plain and some is _PLAIN and dice.chance(0.2):
        options["derived"] = ["a^2"]
    return Schema(declared, **options)
