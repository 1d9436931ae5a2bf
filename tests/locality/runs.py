"""Runs of many pairs of one source: counts, and what tells tables apart, with seeds."""

import os
import shutil
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fuzz.dice import Dice, seed_of

from .exceptions import excused
from .holders import Source
from .judge import Seen, apart, looked_at, sums_apart
from .pairs import Group, Pair, Table
from .weighed import weighed

NEIGHBOURS = 25  # of a base table
_COLUMNS = ("pairs", "refused", "raised", "excused", "apart", "seconds")
HEADER = f"{'source':24s}" + "".join(f"{name:>9s}" for name in _COLUMNS)


@dataclass
class Counts:
    """What came of a source's pairs.

    `refused`: the library itself raised over the odd row, and there was no table. `raised`: we
    raised, the same for both. `excused`: told apart for a listed reason (`exceptions.py`).
    """

    source: Source
    pairs: int = 0
    refused: int = 0
    raised: int = 0
    seconds: float = 0.0
    excused: dict[str, list[str]] = field(default_factory=dict)
    apart: dict[str, list[str]] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)

    @property
    def wrong(self) -> int:
        return sum(map(len, self.apart.values()))

    @property
    def left_out(self) -> int:
        return sum(map(len, self.excused.values()))

    def __str__(self) -> str:
        numbers = (self.pairs, self.refused, self.raised, self.left_out, self.wrong)
        whole = (*numbers, round(self.seconds))
        lines = [f"{self.source.name:24s}" + "".join(f"{number:9,d}" for number in whole)]
        lines += [f"  excused {len(found)} x {name}" for name, found in self.excused.items()]
        for problem, shown in sorted(self.apart.items(), key=lambda each: -len(each[1])):
            lines.append(f"  {len(shown)} x {problem}")
            lines += [f"      {line}" for line in shown[:2]]
        return "\n".join(lines)


def again(source: Source, seed: int, place: int) -> str:
    """Return the command that repeats one pair."""
    return f"python -m tests.locality --source {source.name} --seed {seed} --pair {place}"


def counted(source: Source, pairs: int, run: int) -> Counts:
    """Try so many pairs, and count. Library refusals do not count as pairs that were tried."""
    counts = Counts(source)
    began = time.perf_counter()
    place = 0
    with _workplace() as fresh:
        while counts.pairs < pairs and counts.refused <= 3 * pairs + 100:
            seed = seed_of(run, f"locality {source.name}", place)
            wanted = min(NEIGHBOURS, pairs - counts.pairs)
            group = source.group(seed, NEIGHBOURS)
            tried(source, group, seed, counts, fresh, range(wanted))
            place += 1
    counts.seconds = time.perf_counter() - began
    return counts


def tried(
    source: Source,
    group: Group,
    seed: int,
    counts: Counts,
    fresh: Callable[[], Path],
    places: range,
) -> list[tuple[Pair, str, Seen, Seen]]:
    """Compare a base table with some of its neighbours; return those that are told apart."""
    found: list[tuple[Pair, str, Seen, Seen]] = []
    held = _held(source, group.base, fresh())
    if isinstance(held, _Refused):
        counts.refused += 1
        counts.refusals[held.why] += 1
        return found
    base = looked_at(held.data, group.schema, source.door, held.folder)
    of_units = _of_units(source, group, seed, fresh) if source.door == "rows" else None
    for place in places:
        pair = group.pairs[place]
        held = _held(source, pair.other, fresh())
        if isinstance(held, _Refused):
            counts.refused += 1
            counts.refusals[held.why] += 1
            continue
        other = looked_at(held.data, group.schema, source.door, held.folder)
        problem = apart(base, other, pair, ordered=source.ordered)
        if problem is None and source.door == "rows" and place % 5 == 0:
            remade = _held(source, pair.other, fresh())
            if not isinstance(remade, _Refused):
                problem = sums_apart(remade.data, group.schema, other)
        if problem is None and of_units is not None and place % 5 == 1:
            problem = of_units(pair)
        counts.pairs += 1
        counts.raised += problem is None and base.outcome.error is not None
        if problem is None:
            continue
        found.append((pair, problem, base, other))
        reason = None
        if base.foreign is None and other.foreign is None:  # no excuse for others' words
            with warnings.catch_warnings(), _quiet():
                warnings.simplefilter("ignore")
                reason = excused(source, pair, lambda table: _made(source, table, fresh()))
        line = f"{again(source, seed, place)}\n      {pair}\n        {problem}"
        if reason is None:
            counts.apart.setdefault(_kind(problem), []).append(line)
        else:
            counts.excused.setdefault(reason, []).append(line)
    return found


def _of_units(
    source: Source, group: Group, seed: int, fresh: Callable[[], Path]
) -> Callable[[Pair], str | None]:
    """Return what compares neighbours whose rows belong to units, and have weights."""
    schema = weighed(group.schema, seed)

    def seen(table: Table) -> Seen | None:
        held = _held(source, table, fresh())
        if isinstance(held, _Refused):
            return None
        return looked_at(held.data, schema, "units", held.folder)

    def compared(pair: Pair) -> str | None:
        base, other = seen(pair.base), seen(pair.other)
        if base is None or other is None:
            return None
        problem = apart(base, other, pair, ordered=source.ordered, units=True)
        return problem and f"with unit {schema.unit!r}, weight {schema.weight_name!r}: {problem}"

    return compared


def _kind(problem: str) -> str:
    """Return a problem without its numbers, so that like problems are listed together."""
    plain = problem.partition(": ")[2] if problem.startswith("with unit") else problem
    return plain.partition(":")[0][:100] if "other rows" not in plain else "other rows change"


@dataclass(frozen=True)
class _Refused:
    """The library raised before there was a table."""

    why: str


@dataclass(frozen=True)
class _Held:
    data: Any
    folder: Path


def _made(source: Source, table: Table, folder: Path) -> Any:
    """Return a table that was made before, once more."""
    held = _held(source, table, folder)
    assert isinstance(held, _Held)
    return held.data


def _held(source: Source, table: Table, folder: Path) -> _Held | _Refused:
    with warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")
        try:
            return _Held(source.hold(table, Dice(table.public), folder), folder)
        except (KeyboardInterrupt, AssertionError):
            raise
        except BaseException as error:
            return _Refused(f"{type(error).__module__}.{type(error).__name__}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Let a library's own words go: panics print, and errors nobody can catch are shown."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _workplace() -> Iterator[Callable[[], Path]]:
    """Give a maker of an empty folder, under the same name each time: words may hold it."""
    memory = Path("/dev/shm")  # noqa: S108 - where there is one, files cost no disk
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        folder = Path(name) / "folder"
        folder.mkdir()

        def fresh() -> Path:
            for entry in os.scandir(folder):
                shutil.rmtree(entry.path) if entry.is_dir() else Path(entry.path).unlink()
            return folder

        yield fresh


def one(source: Source, seed: int, place: int) -> str:
    """Return all there is to say about one pair."""
    counts = Counts(source)
    group = source.group(seed, max(NEIGHBOURS, place + 1))
    with _workplace() as fresh:
        found = tried(source, group, seed, counts, fresh, range(place, place + 1))
    pair = group.pairs[place]
    lines = [str(pair), str(group.schema), f"public throws: {pair.base.public}"]
    lines += [f"base:  {_shown(row)}" for row in pair.base.rows[:20]]
    lines += [f"other: {_shown(row)}" for row in pair.other.rows[:20]]
    for _, problem, base, other in found:
        lines += [f"told apart: {problem}"]
        for seen in (base, other):
            lines += [repr(seen.outcome.seen()), str(seen.rows), seen.outcome.trace]
    if not found:
        lines.append(f"the library refuses: {dict(counts.refusals)}" if counts.refused else "alike")
    return "\n".join(lines)


def _shown(row: Any) -> str:
    try:
        return repr(row)[:500]
    except Exception as error:
        return f"(cannot be shown: {type(error).__name__})"
