"""Inputs of `open_ledger`: ledgers whose files are damaged, mixed up or missing; odd spends."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dplinear
from dplinear.ledger import Request
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP

from .cases import GUARANTEES, Case
from .dice import Dice
from .strange import damaged
from .values import odd

_NAMES = ("open_ledger", "declare", "Budget", "SqliteLedger", *GUARANTEES)
_NAME, _SIDE = "budget.db", "budget.db.anchor"


@cache
def sound_ledgers() -> tuple[dict[str, bytes], ...]:
    """Return the files of a ledger at two moments of its life, and of another one."""
    found = []
    with TemporaryDirectory() as place:
        for name in ("one", "two"):
            folder = Path(place) / name
            folder.mkdir()
            ledger = dplinear.open_ledger(folder / _NAME, create=True)
            ledger.declare("people", ZCDP(1.0))
            ledger.spend(_request("first"))
            ledger.keep("first", b"the release")
            found.append(_files(folder))
            ledger.spend(_request("second"))
            found.append(_files(folder))
    return tuple(found)


def _files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def _request(name: str) -> Request:
    return Request(
        request=name,
        dataset="people",
        guarantee=ZCDP(0.1),
        neighbours=Neighbours.ADD_REMOVE,
        mechanism="m",
        parameters={},
    )


def ledger(dice: Dice) -> Case:
    if dice.chance(0.15):
        given, create = odd(dice), dice.chance(0.2)
        return Case(_NAMES, lambda folder: _opened(folder, given, create=create), releases=False)
    before = dict(dice.pick(sound_ledgers()))
    match dice.below(6):
        case 0 | 1 | 2:
            victim = dice.pick((_NAME, _NAME, _NAME, _SIDE))
            before[victim] = damaged(dice, before[victim])
        case 3:
            before[_SIDE] = dice.pick(sound_ledgers())[_SIDE]
        case 4:
            before[dice.pick((f"{_NAME}-journal", f"{_NAME}-wal", _NAME, _SIDE))] = dice.bytes(
                dice.below(600)
            )
    act = _act(dice)

    def call(folder: Path) -> Any:
        for name, content in before.items():
            (folder / name).write_bytes(content)
        return act(dplinear.open_ledger(folder / _NAME))

    return Case(_NAMES, call, releases=False)


def _opened(folder: Path, given: Any, *, create: bool) -> Any:
    """Open what is no ledger; nothing is made but in the folder."""
    if isinstance(given, str):
        given = f"{folder}/{given}"
    return dplinear.open_ledger(given, create=create and isinstance(given, str))


def _act(dice: Dice) -> Callable[[Any], Any]:
    """Return something that is done with an open ledger."""
    dataset: Any
    match dice.below(6):
        case 0:
            return lambda book: book.verify()
        case 1:
            return lambda book: [str(each) for each in book.status()]
        case 2:
            dataset = dice.pick((None, "people", "none"))
            return lambda book: book.history(dataset)
        case 3:
            name = dice.pick(("first", "second", "third"))
            return lambda book: book.spend(_request(name))
        case 4:
            guarantee = dice.make(
                (
                    lambda: ZCDP(1.0),
                    lambda: GDP(1.0),
                    lambda: PureDP(1e300),
                    lambda: MIDP(1.0),
                    lambda: ApproxDP(1.0, 1e-6),
                    lambda: odd(dice),
                )
            )
            dataset = dice.pick(("people", "others", "", 3, None))
            relation = dice.pick(("add_remove", "replace", "element", 3))
            return lambda book: book.declare(dataset, guarantee, neighbours=relation)
    request = dice.pick(("first", "second", "none"))
    return lambda book: book.keep(request, b"bytes")
