"""docs/mutation.md, from what is known of all mutants."""

import ast
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from scipy.stats import beta

from mutation import aside, outcomes
from mutation.live import ROOT
from mutation.operators import OPERATORS, Mutant, mutants
from mutation.rooms import HELD_OUT, PARTS, ROOMS, TRIED, files

PAGE = ROOT / "docs/mutation.md"
Known = dict[str, dict[str, Any]]

_HEAD = """# Mutation testing

A mutant is the library with one small mistake in it. Tests that still pass with the mistake in
place would not have noticed it. This page is written by `make mutation` (which takes hours; it can
be stopped, resumed and run in shards: `python -m mutation run --room privacy --shard 2/8`, with
`src:tests` as PYTHONPATH).

For every mutant the tests of its room that run its lines are run, the fastest first, until one
fails. A mutant that makes tests run for ever counts as killed. Mutants of the PostgreSQL ledger
share a server.

{samples}

{heads}
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
{rooms}

*Set aside*: not tried, as they cannot change what is promised (below). *Of these later*: survived
at first, and were killed by tests that were added for such mutants, or by slower ones. *The same
program*: survivors that change nothing that is promised, each with its reason below. *Score*:
killed of those tried that are not the same program; where only a sample was tried, with its 95%
Clopper-Pearson interval. Tests were added with the sample in view, so a fresh sample may score
less, towards what this one scored *at first*.

## Held out

Other mutants of the same rooms, drawn by the same hash. They were tried when the tests above had
been written, and what is counted is what became of them then, whatever tests were written since:
this is what the tests notice of a mistake that nobody had thought of. Each was given fifteen
seconds of tests at the most.

| | to try | tried | killed | survived | killed of all tried | the same program | score | asked |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
{held}

*Killed of all tried* counts every survivor as missed, whether it is the same program or not;
*score* leaves out those that were judged to be, afterwards and with reasons, as above. Both with
95% Clopper-Pearson intervals.

## Files

| file | made | set aside | tried | killed | survived | score |
|---|---:|---:|---:|---:|---:|---:|
{files}

## What is changed

{operators}

Left alone: docstrings, annotations, decorators, the texts of errors and hints, strings with spaces
(among them SQL), arguments of `np.errstate`, tolerances of root finders, sizes of caches, how many
units in the last place `up` and `down` move by, and numbers below 1e-8 or that multiply a unit in
the last place, which are allowances for rounding with room to spare.

## Set aside

{rules}

## Survivors

{survivors}

## Survivors that were held out

{held_survivors}
"""

_SINCE = "A test was missing, and was written when this had been counted"
_HEADS = [
    *("made", "set aside", "tried", "killed", "of these later"),
    *("survived", "the same program", "at first", "score", "asked"),
]


@dataclass
class Count:
    """What became of some mutants."""

    made: int = 0
    aside: int = 0
    tried: int = 0
    missing: int = 0  # that should have been tried
    again: int = 0  # that were killed, but not at first
    survivors: list[tuple[Mutant, str, bool]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    @property
    def same(self) -> int:
        return sum(same for _, _, same in self.survivors)

    @property
    def killed(self) -> int:
        return self.tried - len(self.survivors)

    @property
    def whole(self) -> bool:
        return self.tried + self.aside == self.made

    def score(self) -> str:
        """Return the share killed, with an interval if only a sample was tried."""
        told = self.tried - self.same
        if not told:
            return "–"
        return f"{self.killed / told:.1%}" if self.whole else share(self.killed, told)

    def at_first(self) -> str:
        """Return the share killed before tests were added or slower ones were run."""
        told = self.tried - self.same
        return f"{(self.killed - self.again) / told:.1%}" if told else "–"

    def cells(self) -> list[object]:
        return [self.made, self.aside, self.tried, self.killed, len(self.survivors)]

    def plus(self, other: "Count") -> "Count":
        return Count(
            self.made + other.made,
            self.aside + other.aside,
            self.tried + other.tried,
            self.missing + other.missing,
            self.again + other.again,
            self.survivors + other.survivors,
            self.keys + other.keys,
        )


def share(part: int, whole: int) -> str:
    """Return a share with its 95% Clopper-Pearson interval."""
    low = beta.ppf(0.025, part, whole - part + 1) if part else 0.0
    high = beta.ppf(0.975, part + 1, whole - part) if part < whole else 1.0
    return f"{part / whole:.1%} ({low:.1%} to {high:.1%})"


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


@cache
def _made(file: str) -> tuple[Mutant, ...]:
    return tuple(mutants(file, ast.parse((ROOT / file).read_text())))


def _count(
    file: str, known: Known, rules: Counter[str], parts: Container[int], *, at_first: bool = False
) -> Count:
    """Count a file's mutants in some of the parts, which are numbered from 1.

    With `at_first`, what was killed after it had survived is counted as a survivor.
    """
    count = Count()
    for mutant in _made(file):
        count.keys.append(mutant.key)
        entry = known.get(mutant.key)
        if entry and entry["outcome"] == "invalid":
            continue
        count.made += 1
        why = aside.by_rule(mutant.file, mutant.unit, mutant.first, mutant.last)
        if why:
            rules[why] += 1
            count.aside += 1
        elif int(mutant.key, 16) % PARTS + 1 in parts:
            if entry is None:
                count.missing += 1
                continue
            count.tried += 1
            count.again += entry["again"] and entry["outcome"] != "survived"
            why, same = aside.of_survivor(mutant.key)
            if entry["outcome"] == "survived":
                count.survivors.append((mutant, why, same))
            elif at_first and entry["again"]:
                count.survivors.append((mutant, why if same else _SINCE, same))
    return count


def _survivor(mutant: Mutant) -> str:
    change = mutant.change.replace("|", "\\|").replace("`", "'")
    place = f"{mutant.file.removeprefix('src/dplinear/')}:{mutant.first}"
    return f"- {place} {mutant.unit or 'module'} ({mutant.key}): `{change}`"


def _survivors(count: Count, unexplained: str) -> str:
    groups: dict[tuple[str, bool], list[str]] = {}
    for mutant, why, same in count.survivors:
        groups.setdefault((why, same), []).append(_survivor(mutant))
    said = []
    for (why, same), lines in sorted(groups.items(), key=lambda pair: (-pair[0][1], pair[0][0])):
        title = why or unexplained
        said.append(f"**{title}**{' (the same program)' if same else ''}\n\n" + "\n".join(lines))
    return "\n\n".join(said)


def _held_out(known: Known) -> tuple[list[str], Count]:
    """Return the rows of what was held out, and all of it together."""
    rows, whole = [], Count()
    for room, parts in HELD_OUT.items():
        total = Count()
        for file in files(room):
            total = total.plus(_count(file, known, Counter[str](), parts, at_first=True))
        facts = [total.tried + total.missing, total.tried, total.killed, len(total.survivors)]
        shares = share(total.killed, total.tried) if total.tried else "–", total.same, total.score()
        rows.append(_row([room, *facts, *shares, f"{ROOMS[room][0]:.0%}"]))
        whole = whole.plus(total)
    return rows, whole


def write() -> None:
    """Write the page, and down what it was made of."""
    known = outcomes.so_far()
    text, keys = page(known)
    PAGE.write_text(text)
    for room in ROOMS:
        outcomes.keep(room, keys[room], known)


def page(known: Known) -> tuple[str, dict[str, list[str]]]:
    """Return the page, and the keys of each room's mutants."""
    rules, keys = Counter[str](), dict[str, list[str]]()
    whole, room_rows, file_rows, samples = Count(), [], [], []
    for room, (asked, _, _) in ROOMS.items():
        total = Count()
        for file in files(room):
            count = _count(file, known, rules, TRIED[room])
            if count.made:
                name = file.removeprefix("src/dplinear/")
                file_rows.append(_row([name, *count.cells(), count.score()]))
            total = total.plus(count)
        keys[room] = total.keys
        cells = total.cells()
        cells.insert(4, total.again)
        room_rows.append(
            _row([room, *cells, total.same, total.at_first(), total.score(), f"{asked:.0%}"])
        )
        if not total.whole:
            missing = f", {total.missing} still to be tried" if total.missing else ""
            samples.append(f"`{room}` ({total.tried} of {total.made - total.aside}{missing})")
        whole = whole.plus(total)
    sampled = "All mutants were tried."
    if samples:
        sampled = (
            "Which mutants were tried was settled by a hash of each, so they are a random sample: "
            + ", ".join(samples)
            + "."
        )
    held, unseen = _held_out(known)
    text = _HEAD.format(
        samples=sampled,
        heads=_row(["", *_HEADS]),
        rooms="\n".join(room_rows),
        files="\n".join(file_rows),
        operators="\n".join(f"- {name}: {text}" for name, text in OPERATORS.items()),
        rules="\n".join(f"- {why}: {count}" for why, count in rules.most_common()) or "Nothing.",
        survivors=_survivors(whole, "Not looked into: a test may be missing") or "None.",
        held="\n".join(held),
        held_survivors=_survivors(unseen, "A test is missing") or "None.",
    )
    return text, keys
