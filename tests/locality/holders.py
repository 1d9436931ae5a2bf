"""Sources: how rows become a table of each library, by its own makers, writers and readers.

A holder is what a user does before dplinear sees a table. What raises there is the library's own
refusal of an odd cell: no table was made, so there is nothing to be local. Such pairs are counted
(`refused` in the printed table), and each source says how large their share may be.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz.dice import Dice

from .pairs import Demands, Group, Table, group_of

Hold = Callable[[Table, Dice, Path], Any]


@dataclass(frozen=True)
class Source:
    """A kind of table and the door it goes through (`doors.py`).

    `needs` is the library it takes; `share`, how many pairs it gets beside the others; `refused`,
    the largest share of pairs that its library may refuse to hold. `infers`: its library chooses
    types or reads text before dplinear does; only then may an exemption apply (`exceptions.py`), to
    at most the share `excused`.
    """

    name: str
    hold: Hold
    demands: Demands
    door: str = "rows"
    needs: str | None = None
    share: float = 1.0
    refused: float = 0.0
    excused: float = 0.15
    ordered: bool = True
    infers: bool = False

    def group(self, seed: int, count: int) -> Group:
        """Throw a base table for this source, and neighbours of it."""
        return group_of(seed, self.demands, count)

    @property
    def installed(self) -> bool:
        return self.needs is None or importlib.util.find_spec(self.needs) is not None


SOURCES: dict[str, Source] = {}


def source(name: str, **options: Any) -> Callable[[Hold], Hold]:
    """Enter a holder into the list of sources, under a name."""
    demands = Demands(
        **{key: options.pop(key) for key in ("kinds", "plain", "named") if key in options}
    )

    def enter(hold: Hold) -> Hold:
        assert name not in SOURCES
        SOURCES[name] = Source(name, hold, demands, **options)
        return hold

    return enter
