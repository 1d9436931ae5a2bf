"""What budgets count and what spends cost them, in exact numbers."""

import math
import os
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dplinear.arguments import ArgumentTypeError
from dplinear.ledger import LedgerError, Request
from dplinear.ledger.budget import Budget, Units, shortest_decimal
from dplinear.ledger.fingerprint import fingerprint, plain
from dplinear.ledger.sqlite import anchor
from dplinear.ledger.sqlite.anchor import Anchor, Mark
from dplinear.ledger.sqlite.ledger import SqliteLedger
from dplinear.ledger.status import Status
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Guarantee, Neighbours, PureDP
from refusals import refused

ONE = 10**12
ADD_REMOVE, REPLACE, ELEMENT = Neighbours.ADD_REMOVE, Neighbours.REPLACE, Neighbours.ELEMENT


def asked(
    guarantee: Guarantee | None,
    neighbours: Neighbours = ADD_REMOVE,
    concentrated: ZCDP | None = None,
    **parameters: Any,
) -> Request:
    return Request("r", "table", guarantee, neighbours, "test", parameters, concentrated)


@pytest.mark.parametrize(
    ("guarantee", "limit"),
    [
        (ZCDP(0.1), Units(ONE // 10)),
        (GDP(0.3), Units(9 * ONE // 100)),
        (MIDP(2.0), Units(2 * ONE)),
        (PureDP(1 / 3), Units(333333333333)),
        (ApproxDP(0.5, 1e-6), Units(ONE // 2, ONE)),
    ],
    ids=str,
)
def test_limits_are_rounded_down_and_read_back(guarantee: Guarantee, limit: Units) -> None:
    budget = Budget(guarantee, REPLACE)
    assert budget.limit == limit
    assert Budget.from_facts(budget.facts()) == budget
    assert budget.cost(asked(guarantee, REPLACE)) in (limit, Units(limit.main + 1, limit.delta))
    assert str(budget) == f"{guarantee} (replace neighbours)"


@pytest.mark.parametrize(
    ("budget", "spend", "cost"),
    [
        (ZCDP(1.0), GDP(0.2), Fraction(2, 100)),
        (ZCDP(1.0), PureDP(0.2), 0.2 * math.tanh(0.1)),
        (ZCDP(1.0), ApproxDP(0.2, 0.0), 0.2 * math.tanh(0.1)),
        (ZCDP(1.0), ZCDP(1e-20), Fraction(1, ONE)),
        (GDP(1.0), GDP(0.2), Fraction(4, 100)),
        (PureDP(1.0), PureDP(0.2), Fraction(2, 10)),
        (ApproxDP(1.0, 1e-6), PureDP(0.2), Fraction(2, 10)),
        (MIDP(1.0), MIDP(0.2), Fraction(2, 10)),
        (MIDP(1.0), ZCDP(0.2), 0.2 / math.log(2)),
        (MIDP(1.0), GDP(0.2), 0.02 / math.log(2)),
        (MIDP(1.0), PureDP(0.2), 0.2 * math.tanh(0.1) / math.log(2)),
    ],
    ids=str,
)
def test_costs_are_those_of_the_theorems_rounded_up(
    budget: Guarantee, spend: Guarantee, cost: float
) -> None:
    found = Budget(budget).cost(asked(spend))
    assert found.delta == 0
    assert Fraction(cost) * ONE * (1 - Fraction(1, 10**13)) <= found.main
    assert found.main <= Fraction(cost) * ONE + Fraction(3, 2)


def test_pure_spends_have_a_gaussian_cost() -> None:
    """The corner of randomised response: μ = −2·Φ⁻¹(1/(1 + e^ε))."""
    found = Budget(GDP(3.0)).cost(asked(PureDP(1.0))).main / ONE
    corner = math.erfc(math.sqrt(found) / 2 / math.sqrt(2)) / 2
    assert corner == pytest.approx(1 / (1 + math.e), rel=1e-9)


def test_deltas_are_rounded_on_the_safe_side() -> None:
    budget = Budget(ApproxDP(0.5, 2.5e-18))
    assert budget.limit == Units(ONE // 2, 2)
    assert budget.cost(asked(ApproxDP(0.5, 2.5e-18))) == Units(ONE // 2, 3)


def test_deltas_are_counted_beside() -> None:
    assert Budget(ApproxDP(1.0, 1e-6)).cost(asked(ApproxDP(0.3, 2e-7))) == Units(
        3 * ONE // 10, 2 * 10**11
    )
    assert Budget(ApproxDP(1.0, 1e-6)).cost(asked(ApproxDP(0.3, 1e-30))).delta == 1


def test_what_is_known_besides_may_be_the_cheaper() -> None:
    budget = Budget(ZCDP(1.0))
    assert budget.cost(asked(ApproxDP(1.0, 1e-6), concentrated=ZCDP(0.01))).main == ONE // 100
    assert budget.cost(asked(MIDP(1.0), concentrated=ZCDP(0.01))).main == ONE // 100
    assert budget.cost(asked(PureDP(1.0), concentrated=ZCDP(0.01))).main == ONE // 100
    dear = budget.cost(asked(PureDP(0.01), concentrated=ZCDP(0.5))).main
    assert dear == pytest.approx(0.01 * math.tanh(0.005) * ONE, abs=1)
    doubled = Budget(ZCDP(1.0), REPLACE)
    spend = asked(ApproxDP(1.0, 1e-6), ADD_REMOVE, ZCDP(0.01))
    assert doubled.cost(spend).main == 4 * ONE // 100


def test_a_replacement_is_two_steps() -> None:
    assert Budget(ZCDP(1.0), REPLACE).cost(asked(ZCDP(0.1))).main == 4 * ONE // 10
    assert Budget(PureDP(1.0), ELEMENT).cost(asked(PureDP(0.1), REPLACE)).main == ONE // 10
    assert Budget(PureDP(1.0), ELEMENT).cost(asked(PureDP(0.1))).main == 2 * ONE // 10
    small = Budget(PureDP(1.0), ELEMENT, 0.5)
    assert small.cost(asked(PureDP(0.1), ELEMENT, change=0.5)).main == ONE // 10
    assert small.cost(asked(PureDP(0.1), REPLACE)).main == ONE // 10


def test_a_release_that_lets_missing_cells_show_is_for_budgets_that_do() -> None:
    """What holds for more neighbours holds for fewer, and not the other way round."""
    hidden, shown = (
        asked(PureDP(0.1), ELEMENT, change=0.5, missing_public=public) for public in (False, True)
    )
    narrow = Budget(PureDP(1.0), ELEMENT, 0.5, missing_public=True)
    assert narrow.cost(hidden).main == narrow.cost(shown).main == ONE // 10
    wide = Budget(PureDP(1.0), ELEMENT, 0.5)
    assert wide.cost(hidden).main == ONE // 10
    with pytest.raises(LedgerError, match=r"element \(by 0.5, missing cells public\)"):
        wide.cost(shown)
    assert Budget.from_facts(narrow.facts()) == narrow
    assert "missing_public" not in wide.facts()
    for bad in ({"missing_public": True}, {"change": 0.5, "missing_public": 1}):
        with pytest.raises((TypeError, ValueError), match="'missing_public' parameter of Budget"):
            Budget(PureDP(1.0), ELEMENT, **bad)


@pytest.mark.parametrize(
    ("budget", "spend", "sentence"),
    [
        (Budget(ZCDP(1.0)), asked(ZCDP(0.1), REPLACE), "says nothing of a release for replace"),
        (Budget(ZCDP(1.0)), asked(None), "it has no price"),
        (Budget(ZCDP(1.0)), asked(ApproxDP(1.0, 1e-6)), "no theorem counts ε = 1, δ = 1e-06 so"),
        (Budget(ZCDP(1.0)), asked(MIDP(1.0)), "no theorem counts 1 bits so"),
        (Budget(ZCDP(1.0)), asked(ApproxDP(0.0, 0.0)), "no theorem counts"),
        (Budget(GDP(1.0)), asked(ZCDP(0.1)), "no theorem counts"),
        (Budget(PureDP(1.0)), asked(ZCDP(0.1)), "no theorem counts"),
        (Budget(MIDP(1.0)), asked(ApproxDP(1.0, 1e-6)), "no theorem counts"),
        (Budget(MIDP(1.0), REPLACE), asked(MIDP(0.1)), "bits for two steps"),
        (Budget(ApproxDP(9.0, 0.5), REPLACE), asked(ApproxDP(9.0, 0.4)), "group's δ is below 1"),
        (
            Budget(PureDP(1.0), ELEMENT, 0.5),
            asked(PureDP(0.1), ELEMENT, change=0.25),
            r"element \(by 0.5\) neighbours, and says nothing of a release for element \(by 0.25\)",
        ),
        (Budget(PureDP(1.0), ELEMENT, 0.5), asked(PureDP(0.1), ELEMENT), "says nothing of"),
    ],
    ids=range(12),
)
def test_what_no_theorem_counts_is_refused(budget: Budget, spend: Request, sentence: str) -> None:
    with pytest.raises(LedgerError, match=sentence):
        budget.cost(spend)


def test_budgets_are_checked() -> None:
    with refused("guarantee", "Budget", "a guarantee", kind=ArgumentTypeError):
        Budget(1.0)  # type: ignore[arg-type]
    with refused("change", "Budget", "left out for neighbours that are whole rows"):
        Budget(ZCDP(1.0), change=0.5)
    with refused("change", "Budget"):
        Budget(ZCDP(1.0), ELEMENT, 0.0)
    with refused("neighbours", "Budget"):
        Budget(ZCDP(1.0), "friends")  # type: ignore[arg-type]
    with refused("guarantee", "Budget", "at most 4611686"):
        Budget(ZCDP(4_611_687.0))
    assert Budget(ZCDP(4_611_686.0), "element", 2).change == 2.0  # type: ignore[arg-type]
    assert isinstance(Budget(ZCDP(1.0), ELEMENT, 2).change, float)


def test_units_add_and_compare_side_by_side() -> None:
    assert Units(3, 4).plus(Units(10, 20)) == Units(13, 24)
    assert Units(3, 4).minus(Units(1, 1)) == Units(2, 3)
    assert Units(3, 4).within(Units(3, 4))
    assert not Units(4, 0).within(Units(3, 4))
    assert not Units(0, 5).within(Units(3, 4))
    assert shortest_decimal(0.1) == Fraction(1, 10)


@pytest.mark.parametrize(
    ("guarantee", "text"),
    [
        (ZCDP(1.0), "ρ = 0.25"),
        (GDP(1.0), "μ² = 0.25"),
        (MIDP(1.0), "0.25 bits"),
        (PureDP(1.0), "ε = 0.25, δ = 3e-18"),
        (ApproxDP(1.0, 0.1), "ε = 0.25, δ = 3e-18"),
    ],
    ids=str,
)
def test_units_are_told_in_words(guarantee: Guarantee, text: str) -> None:
    budget = Budget(guarantee)
    assert budget.text(Units(ONE // 4, 3)) == text
    status = Status("visits", budget, Units(ONE // 4, 3), 2)
    assert status.remaining == budget.limit.minus(Units(ONE // 4, 3))
    assert str(status).startswith(f"visits: {budget}; {text} spent in 2 releases, ")
    assert str(status).endswith(" left")


@dataclass(frozen=True)
class Setting:
    """Public arguments of some release."""

    width: int
    names: tuple[str, ...]


class Described:
    """Something that tells what it is made of."""

    def __init__(self, content: object) -> None:
        self.content = content

    def to_dict(self) -> dict[str, object]:
        return {"content": self.content}


def test_fingerprints_are_equal_where_arguments_are() -> None:
    floats = np.array([1.0, 2.0])
    values: list[Any] = [
        None,
        True,
        1,
        1.5,
        "1",
        [1, 2],
        [2, 1],
        {"a": 1},
        {"a": 2},
        floats,
        floats[::-1],
        floats.astype(np.float32),
        floats.reshape(2, 1),
        Setting(1, ("a",)),
        Setting(1, ("b",)),
        Described(1),
        Described(2),
        Setting,
        Described,
        np.array([None, 1], object),
    ]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint((1, 2)) == fingerprint([1, 2])
    assert fingerprint(np.float64(1.5)) == fingerprint(1.5)
    assert fingerprint(np.int64(3)) == fingerprint(3)
    assert fingerprint(floats.copy()) == fingerprint(floats)
    assert fingerprint(Described([1])) == fingerprint(Described((1,)))
    assert fingerprint(Setting(2, ("é",))) == fingerprint(Setting(2, ("é",)))
    where = Setting.__module__  # as others may have a class of this name
    assert plain(Setting(1, ("a",))) == [f"{where}.Setting", {"width": 1, "names": ["a"]}]
    assert plain(Described(1)) == [f"{where}.Described", {"content": 1}]
    assert plain(Setting).endswith(".Setting")
    assert plain(Neighbours.REPLACE) == "replace"
    assert type(plain(Neighbours.REPLACE)) is str
    assert plain(1j) == ["complex", "1j"]


def test_a_record_that_is_cut_short_is_no_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "side"
    anchor.create(path)
    with path.open("r+b") as file:
        held = Anchor(file.fileno())
        assert held.latest() is None
        held.move(Mark("ledger", 3, "a"))
        held.move(Mark("ledger", 5, "b"))
        held.move(Mark("ledger", 4, "c"))  # older, so it is left out
        assert [mark and mark.sequence for mark in held.marks()] == [3, 5]
        held.move(Mark("ledger", 6, "d"))
        assert [mark and mark.sequence for mark in held.marks()] == [6, 5]
        assert held.latest() == Mark("ledger", 6, "d")
        monkeypatch.setattr(os, "pwrite", lambda *_: 17)
        with pytest.raises(OSError, match="written in part"):
            held.move(Mark("ledger", 7, "e"))
    record = Mark("ledger", 6, "d").record()
    assert len(record) == 256
    assert Mark.read(record) == Mark("ledger", 6, "d")
    for broken in (b"", record[:-2], record.replace(b"6", b"7", 1), b"[]", b"{}", b"1"):
        assert Mark.read(broken) is None


def test_without_file_locks_nothing_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(LedgerError, match="no file locks"):
        anchor._locks()


def test_a_ledger_names_its_file(tmp_path: Path) -> None:
    ledger = SqliteLedger.create(tmp_path / "budget.db")
    assert repr(ledger) == f"SqliteLedger({str(tmp_path / 'budget.db')!r})"
