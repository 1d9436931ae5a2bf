"""Levels that nobody can list: what noisy counts tell of a unit, and what a rare level tells.

Counts come from the pass that counts units, of tables that differ by a unit which holds more levels
than it counts for. Half of δ is for normal noise on counts of levels that both tables hold: with
these alone, the audit is of that half, for which noise is calibrated exactly. The other half is for
levels that one unit alone holds: whoever sees such a level knows the table. An audit of both is of
the whole δ, and the bound that adds up the halves is not tight.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from dplinear.arrays import Floats
from dplinear.audit import densities
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.curator.level_table import CountedLevels
from dplinear.curator.sources import open_reader
from dplinear.mechanisms.levels import LevelCounts, Levels, LevelsOutcome
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_COLUMNS = ("city", "trade")
_ANY = {"type": "category", "levels": ["any"]}
_LEVELS = 2  # of a column, that a unit counts for
_PEOPLE = 800  # others, half of whom hold the first two levels: far above any threshold
_COPIES = 32  # of all counts in one release, each of levels of its own
_FIRST, _SECOND = [("p", "p"), ("q", "q")], [("r", "r"), ("s", "s")]
_RARE = [("held by nobody else", "p"), ("q", "q")]
_Row = tuple[str, str]
_Key = tuple[int, str]  # the index of a column, and a level


def _counts(people: dict[str, list[_Row]]) -> dict[_Key, int]:
    """Return how many people hold each level, as the pass of `suggest_levels` counts them."""
    rows = [(*row, person) for person, own in people.items() for row in own]
    names = (*_COLUMNS, "id")
    table = pa.table({name: [row[index] for row in rows] for index, name in enumerate(names)})
    schema = Schema(dict.fromkeys(names, _ANY))
    reader = open_reader(table, schema, threads=1, progress=False)
    found: dict[_Key, int] = {}
    for bucket in CountedLevels(reader, schema, "id", _LEVELS).buckets():
        keys = zip(bucket.columns.tolist(), bucket.levels, strict=True)
        found |= dict(zip(keys, bucket.counts.tolist(), strict=True))
    return found


def _table(held: list[_Row]) -> dict[_Key, int]:
    """Return the counts of a table in which "new" holds some levels, and others less often."""
    people = {f"p{each}": (_FIRST, _SECOND)[each % 2] for each in range(_PEOPLE)}
    return _counts(people | {"new": [*held, *held, *_FIRST, *_SECOND] if held else []})


class _Copied:
    """Counts of levels, several times over: noise is independent from level to level."""

    def __init__(self, counts: dict[_Key, int]) -> None:
        keys = sorted(counts)
        self._columns = np.tile([column for column, _ in keys], _COPIES)
        self._levels = [f"{copy} {level}" for copy in range(_COPIES) for _, level in keys]
        self._counts = np.tile([counts[key] for key in keys], _COPIES)

    def buckets(self) -> Iterator[LevelCounts]:
        """Return all of them at once."""
        yield LevelCounts(self._columns, self._levels, self._counts)


class LevelsSubject(Subject):
    """The levels of two tables; `rare`: one of those of the first is in no other unit's rows."""

    name = "suggest_levels"

    def __init__(self, guarantee: ApproxDP, neighbours: Neighbours, *, rare: bool = False) -> None:
        self.guarantee, self.neighbours = guarantee, neighbours
        method = Levels(guarantee=guarantee, neighbours=neighbours)
        self._prepared = method.prepare(len(_COLUMNS), _LEVELS)
        half = ApproxDP(guarantee.epsilon, guarantee.delta / 2)
        self.claim = Claim.of(guarantee, normal=False) if rare else Claim.of(half, normal=True)
        if rare:
            self.name = "suggest_levels (a level that one unit holds)"
            self.exact, self.chosen = False, True
        instead = _SECOND if neighbours is Neighbours.REPLACE else []
        tables = [_table(_RARE if rare else _FIRST), _table(instead)]
        self._tables = [_Copied(counts) for counts in tables]
        known = sorted(tables[0].keys() & tables[1].keys())
        self._means = [np.array([float(counts[key]) for key in known]) for counts in tables]
        self._places = {
            (column, f"{copy} {level}"): (copy, index)
            for copy in range(_COPIES)
            for index, (column, level) in enumerate(known)
        }

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Release, and compare likelihoods."""
        table, runs = self._tables[other], -(-count // _COPIES)
        found = [self._losses(self._prepared.run(table, entropy)) for _ in range(runs)]
        return np.concatenate(found)[:count]

    def _losses(self, released: LevelsOutcome) -> Floats:
        """Return what is told by the counts of known levels, or by a level that one table lacks.

        A known level that noise has hidden tells nothing.
        """
        one, other = self._means
        values = np.tile((one + other) / 2, (_COPIES, 1))
        alone = np.zeros(_COPIES)
        for column, level, noisy in released.found:
            place = self._places.get((column, level))
            if place is None:
                alone[int(level.partition(" ")[0])] = np.inf
            else:
                values[place] = noisy
        variance = np.array(float(released.parameters["sigma"]) ** 2)
        return densities.normal(values, one, other, variance) + alone
