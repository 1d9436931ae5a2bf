"""What a ledger makes of its lines, with the lines in a list that a test can spoil."""

import dataclasses
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dplinear.arguments import ArgumentTypeError
from dplinear.ledger import BudgetExceededError, LedgerError, Request, address
from dplinear.ledger.budget import Budget, Units
from dplinear.ledger.hash_chain import FORMAT, Entry, entry, sha256
from dplinear.ledger.ledger import BudgetLedger, Lines
from dplinear.ledger.sqlite import anchor
from dplinear.ledger.sqlite.anchor import Mark
from dplinear.ledger.verification import SO_FAR, STATE, state_of
from dplinear.privacy import ZCDP, ApproxDP, Neighbours
from refusals import refused

SECRETS = ("?password=secret", "?sslmode=require&password=secret", "?sslpassword=secret")
PER = 25 * 10**10
HASH = "1d9e52d5903d8a3510322d7415842463e70a56532113484ac0b7d77334387067"


class Listed(Lines):
    """Lines in a list, and totals that can be set apart from them."""

    def __init__(self) -> None:
        self.kept: list[tuple[Entry, bytes | None]] = []
        self.hidden = Units(0)

    def last(self, kind: str | None = None, **same: str) -> Entry | None:
        for line, _ in reversed(self.kept):
            if kind in {None, line.kind} and all(getattr(line, k) == v for k, v in same.items()):
                return line.check()
        return None

    def at(self, sequence: int) -> Entry | None:
        return next((line for line, _ in self.kept if line.sequence == sequence), None)

    def total(self, dataset: str) -> Units:
        total = self.hidden
        for line, _ in self.kept:
            if (line.kind, line.dataset) == ("spend", dataset):
                total = total.plus(line.cost)
        return total

    def output(self, request: str) -> bytes | None:
        found = [kept for line, kept in self.kept if line.request == request and kept is not None]
        return found[-1] if found else None

    def walk(self) -> Iterator[tuple[Entry, bytes | None]]:
        return iter(self.kept)

    def append(self, line: Entry, output: bytes | None = None) -> None:
        self.kept.append((line, output))

    def sound(self) -> None:
        pass


class Ledger(BudgetLedger):
    """A ledger of such lines."""

    def __init__(self) -> None:
        self.lines = Listed()
        self.lines.append(entry(None, "ledger", {"format": FORMAT}))

    def writing(self) -> AbstractContextManager[Lines]:
        return nullcontext(self.lines)

    def reading(self) -> AbstractContextManager[Lines]:
        return nullcontext(self.lines)

    def change(self, place: int, facts: dict[str, Any]) -> None:
        """Change a line, and give it the hash that it would have had."""
        line = dataclasses.replace(self.lines.kept[place][0], **facts)
        self.lines.kept[place] = (dataclasses.replace(line, hash=line.expected_hash()), None)


def asked(name: str, rho: float = 0.25, dataset: str = "table") -> Request:
    return Request(name, dataset, ZCDP(rho), Neighbours.ADD_REMOVE, "test", {})


@pytest.fixture
def ledger() -> Ledger:
    """A budget of 1, of which two quarters are spent, one of them with a release."""
    made = Ledger()
    made.declare("table", ZCDP(1.0))
    made.spend(asked("first"))
    made.keep("first", b"release")
    made.spend(asked("second"))
    return made


def test_a_change_is_the_same_in_all_spends_of_a_dataset() -> None:
    made = Ledger()
    made.declare("table", ZCDP(1.0), "element", 0.5)

    def moved(name: str, **half_ranges: float) -> Request:
        told = {"change": 0.5, "half_ranges": half_ranges}
        return Request(name, "table", ZCDP(0.1), Neighbours.ELEMENT, "test", told)

    made.spend(moved("first", age=50.0, bmi=25.0))
    made.spend(moved("other columns", bmi=25.0, charges=1e4))
    for ask in (made.spend, made.price):
        with pytest.raises(LedgerError, match="those of age were others when 'first' was released"):
            ask(moved("narrow", age=1e-9, bmi=25.0))
    assert made.status()[0].releases == 2
    (figure,) = made.figures("table", (1e-6,)).figures
    assert figure.epsilon == pytest.approx(ZCDP(0.2).to(ApproxDP, delta=1e-6).epsilon)


def test_lines_follow_each_other(ledger: Ledger) -> None:
    lines = [line for line, _ in ledger.lines.kept]
    assert [line.sequence for line in lines] == [1, 2, 3, 4, 5]
    assert [line.previous for line in lines[1:]] == [line.hash for line in lines[:-1]]
    assert [line.kind for line in lines] == ["ledger", "budget", "spend", "release", "spend"]
    assert lines[1].cost == Units(10**12)
    assert (lines[4].cost, lines[4].spent) == (Units(25 * 10**10), Units(50 * 10**10))
    assert lines[3].digest == sha256(b"release")
    assert (lines[0].content()["format"], lines[2].content()["mechanism"]) == (1, "test")
    assert lines[3].content() == {"bytes": 7}
    assert lines[2].content()["guarantee"] == "ρ = 0.25"
    assert ledger.verify() == 5
    assert Ledger().verify() == 1
    assert ledger.lines.first() is lines[0]
    assert ledger.lines.newest() is lines[4]


def test_what_was_kept_is_given_back(ledger: Ledger) -> None:
    assert ledger.kept_release("first") == b"release"
    assert ledger.kept_release("second") is None
    assert ledger.kept_release("third") is None
    assert ledger.spend(asked("first")) == b"release"
    with pytest.raises(LedgerError, match="'second' is spent, and there is no release"):
        ledger.spend(asked("second"))
    with pytest.raises(LedgerError, match="with other arguments"):
        ledger.spend(asked("first", 0.125))
    assert len(ledger.lines.kept) == 5
    ledger.keep("second", b"another")
    assert [ledger.kept_release("first"), ledger.kept_release("second")] == [b"release", b"another"]


def test_a_line_says_nothing_that_it_was_not_told() -> None:
    line = entry(None, "ledger", {"name": "é"})
    assert (line.cost, line.spent, line.dataset) == (Units(0, 0), Units(0, 0), "")
    assert line.time.endswith("+00:00")
    assert "." not in line.time
    assert line.facts == '{"name": "é"}'
    # Written down once: what is in a ledger must be found sound by every later version.
    known = dataclasses.replace(line, time="2026-01-02T03:04:05+00:00", dataset="é")
    assert known.expected_hash() == HASH


def test_a_budget_is_spent_to_its_end_and_no_further(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceededError, match=r"needs ρ = 0\.75, but .* ρ = 0\.5 left"):
        ledger.spend(asked("much", 0.75))
    assert ledger.spend(asked("rest", 0.5)) is None
    with pytest.raises(BudgetExceededError):
        ledger.spend(asked("more", 1e-12))
    (status,) = ledger.status()
    assert (status.spent, status.remaining) == (Units(10**12), Units(0))
    assert (status.dataset, status.releases) == ("table", 3)


def test_a_spend_names_a_dataset_that_has_a_budget(ledger: Ledger) -> None:
    for ask in (ledger.spend, ledger.price):
        with pytest.raises(LedgerError, match="none was named"):
            ask(replace(asked("third"), dataset=None))
        with pytest.raises(LedgerError, match="'other' has no budget"):
            ask(asked("third", dataset="other"))
    with pytest.raises(LedgerError, match="'other' has no budget"):
        ledger.figures("other")


def test_spends_of_former_versions_are_counted(ledger: Ledger) -> None:
    """Their lines do not say how many there were before them."""
    facts = {
        name: said for name, said in ledger.lines.kept[4][0].content().items() if name != SO_FAR
    }
    ledger.change(4, {"facts": json.dumps(facts)})
    assert ledger.status()[0].releases == 2
    ledger.spend(asked("third"))
    assert ledger.lines.newest().content()[SO_FAR]["spends"] == 3
    assert ledger.status()[0].releases == 3


def test_history_is_that_of_a_dataset(ledger: Ledger) -> None:
    ledger.declare("other", ApproxDP(1.0, 1e-6))
    assert [line.sequence for line in ledger.history()] == [1, 2, 3, 4, 5, 6]
    assert [line.sequence for line in ledger.history("table")] == [2, 3, 4, 5]
    assert [each.releases for each in ledger.status()] == [2, 0]


@pytest.mark.parametrize(
    ("place", "facts", "sentence"),
    [
        (2, {"sequence": 9}, "line 9 does not follow the one before it"),
        (2, {"previous": "0"}, "line 3 does not follow the one before it"),
        (0, {"sequence": 2}, "line 2 does not follow the one before it"),
        (4, {"cost": Units(1)}, "line 5 does not follow|line 5 spends what is not there"),
        (4, {"spent": Units(1)}, "line 5 spends what is not there"),
        (4, {"cost": Units(10**12), "spent": Units(125 * 10**10)}, "line 5 spends what is not"),
        (4, {"dataset": "other", "spent": Units(25 * 10**10)}, "line 5 spends what is not there"),
        (4, {"dataset": "other", "cost": Units(1), "spent": Units(1)}, "line 5 spends what is not"),
        (4, {"dataset": "other", "cost": Units(0), "spent": Units(0)}, "line 5 spends what is not"),
        (4, {"dataset": "other", "cost": Units(-1), "spent": Units(-1)}, "line 5 spends what is"),
        (4, {"cost": Units(-PER), "spent": Units(0)}, "line 5 spends what is not there"),
        (4, {"cost": Units(-1), "spent": Units(PER - 1)}, "line 5 spends what is not there"),
        (4, {"cost": Units(0, -1), "spent": Units(PER, -1)}, "line 5 spends what is not there"),
    ],
)
def test_a_line_that_was_forged_is_found(
    ledger: Ledger, place: int, facts: dict[str, Any], sentence: str
) -> None:
    ledger.change(place, facts)
    with pytest.raises(LedgerError, match=sentence):
        ledger.verify()


def test_what_lines_say_of_those_before_them_is_checked(ledger: Ledger) -> None:
    lines = [line for line, _ in ledger.lines.kept]
    true = state_of([("table", lines[1].hash, lines[2].hash)])
    for said, sentence in (({STATE: true}, ""), ({STATE: "0"}, "line 5 tells of another state")):
        facts = {**lines[4].content(), **said}
        ledger.change(4, {"facts": json.dumps(facts)})
        if sentence:
            with pytest.raises(LedgerError, match=sentence):
                ledger.verify()
        else:
            assert ledger.verify() == 5
    assert lines[4].content()[SO_FAR] == {"spends": 2, "half_ranges": {}}
    ledger.change(4, {"facts": json.dumps({SO_FAR: {"spends": 3, "half_ranges": {}}})})
    with pytest.raises(LedgerError, match="line 5 counts other spends"):
        ledger.verify()


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"request": 5}, "request"),
        ({"request": ""}, "request"),
        ({"request": "two\nlines"}, "request"),
        ({"request": "\ud800"}, "request"),
        ({"request": "a" * 201}, "request"),
        ({"dataset": 5}, "dataset"),
        ({"mechanism": None}, "mechanism"),
        ({"parameters": 3}, "parameters"),
        ({"neighbours": 3}, "neighbours"),
    ],
)
def test_a_request_of_another_type_is_refused(
    ledger: Ledger, changes: dict[str, Any], parameter: str
) -> None:
    for ask in (ledger.spend, ledger.price):
        with pytest.raises((TypeError, ValueError), match=f"The '{parameter}' parameter of"):
            ask(replace(asked("third"), **changes))
    with refused("request", "spend", "a Request", kind=ArgumentTypeError):
        ledger.spend("third")  # type: ignore[arg-type]
    assert len(ledger.lines.kept) == 5


def test_what_is_kept_are_bytes_by_name(ledger: Ledger) -> None:
    with refused("content", "keep", kind=ArgumentTypeError):
        ledger.keep("second", "release")  # type: ignore[arg-type]
    with refused("request", "keep", kind=ArgumentTypeError):
        ledger.keep(2, b"release")  # type: ignore[arg-type]
    assert len(ledger.lines.kept) == 5


class Veiled(str):
    """A text that prints as another one."""

    __slots__ = ()

    def __str__(self) -> str:
        return "hidden"


def test_words_of_a_class_of_their_own_are_written_as_they_are(ledger: Ledger) -> None:
    ledger.spend(asked(Veiled("third")))
    line = ledger.lines.newest()
    assert (line.request, type(line.request)) == ("third", str)


@pytest.mark.parametrize("change", [{"request": "5"}, {"time": ""}])
def test_a_line_that_reads_otherwise_is_not_written(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, change: dict[str, str]
) -> None:
    append = Listed.append

    def changed(lines: Listed, line: Entry, output: bytes | None = None) -> None:
        append(lines, replace(line, **change), output)  # type: ignore[arg-type]

    monkeypatch.setattr(Listed, "append", changed)
    with pytest.raises(LedgerError, match="line 6 does not read as it was written"):
        ledger.spend(asked("third"))


def test_a_release_that_reads_otherwise_is_not_kept(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Listed.append

    def cut(lines: Listed, line: Entry, output: bytes | None = None) -> None:
        append(lines, line, None if output is None else output[:-1])

    monkeypatch.setattr(Listed, "append", cut)
    with pytest.raises(LedgerError, match="does not read as it was written"):
        ledger.keep("second", b"release")


def test_a_line_that_was_changed_is_found(ledger: Ledger) -> None:
    line, _ = ledger.lines.kept[4]
    for name, value in {"time": "", "request": "x", "facts": "{}", "cost": Units(0)}.items():
        ledger.lines.kept[4] = (dataclasses.replace(line, **{name: value}), None)  # type: ignore[arg-type]
        with pytest.raises(LedgerError, match="line 5 is not as it was written"):
            ledger.verify()


def test_a_release_that_was_changed_is_found(ledger: Ledger) -> None:
    line, _ = ledger.lines.kept[3]
    for output in (b"another", None):
        ledger.lines.kept[3] = (line, output)
        with pytest.raises(LedgerError, match="the release in line 4 is not as it was kept"):
            ledger.verify()
    ledger.lines.kept[3] = (line, b"another")
    with pytest.raises(LedgerError, match="'first' is not as it was kept"):
        ledger.spend(asked("first"))
    with pytest.raises(LedgerError, match="'first' is not as it was kept"):
        ledger.kept_release("first")


def test_totals_that_disagree_are_found(ledger: Ledger) -> None:
    ledger.lines.hidden = Units(0, 1)
    for use in (ledger.verify, ledger.status, lambda: ledger.spend(asked("third"))):
        with pytest.raises(LedgerError, match="the spends of 'table' do not add up"):
            use()


def test_what_exceeds_a_budget_is_refused_without_adding_up_its_history(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[str] = []
    total = Listed.total

    def counted(lines: Listed, dataset: str) -> Units:
        asked_for.append(dataset)
        return total(lines, dataset)

    monkeypatch.setattr(Listed, "total", counted)
    with pytest.raises(BudgetExceededError):
        ledger.spend(asked("much", 0.75))
    assert asked_for == []
    ledger.spend(asked("rest", 0.5))
    assert asked_for == ["table"]
    ledger.lines.hidden = Units(1)
    with pytest.raises(BudgetExceededError):  # whatever the sum is: what is spent never shrinks
        ledger.spend(asked("more"))
    assert ledger.lines.newest().request == "rest"


def test_a_release_that_is_gone_is_not_there(ledger: Ledger) -> None:
    line, content = ledger.lines.kept[3]
    assert ledger.kept_release("first") == content == b"release"
    ledger.lines.kept[3] = (line, None)
    assert ledger.kept_release("first") is None
    with pytest.raises(LedgerError, match="is spent, and there is no release of it"):
        ledger.spend(asked("first"))


def test_what_is_no_json_is_written_as_its_text() -> None:
    line = entry(None, "spend", {"width": Fraction(1, 3)})
    assert line.check().content() == {"width": "Fraction(1, 3)"}
    # As a file may hold whatever somebody has put into it.
    with pytest.raises(LedgerError, match="line 1 is not as it was written") as told:
        dataclasses.replace(line, dataset=b"bytes").check()  # type: ignore[arg-type]
    assert str(told.value).startswith("The ledger is damaged: line 1 is not as it was written.\n\n")


def test_a_ledger_of_another_format_is_refused() -> None:
    lines = Listed()
    for spoilt in (None, entry(None, "ledger", {"format": "none"})):
        lines.kept = [] if spoilt is None else [(spoilt, None)]
        with pytest.raises(LedgerError, match="first line is missing, or of a format"):
            lines.first()
    lines.kept = [(entry(None, "ledger", {"format": FORMAT}), None)]
    assert lines.newest().sequence == 1


@pytest.mark.parametrize("name", ["", "a" * 201, "two\nlines", 3])
def test_names_of_datasets_can_be_printed(name: str) -> None:
    with refused("dataset", "declare", "1 to 200 printable characters", kind=ArgumentTypeError):
        Ledger().declare(name, ZCDP(1.0))
    Ledger().declare("a" * 200, ZCDP(1.0))
    Ledger().declare("a", ZCDP(1.0))


def test_a_budget_is_declared_once(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="'table' has a budget already"):
        ledger.declare("table", ZCDP(2.0))
    ledger.declare("cells", ZCDP(1.0), "element", 0.5)
    declared = ledger.lines.kept[-1][0]
    budget = Budget(ZCDP(1.0), Neighbours.ELEMENT, 0.5)
    assert Budget.from_facts(declared.content()) == budget
    with pytest.raises(LedgerError, match="'third' has paid for nothing"):
        ledger.keep("third", b"")
    with pytest.raises(LedgerError, match="'first' has its release already"):
        ledger.keep("first", b"release")


def test_a_password_is_kept_out_of_what_is_printed() -> None:
    address.check_shown("postgresql://user@host/database", "here")
    address.check_shown(None, "here")
    for start in ("user:secret@host/database", *(f"host/db{mark}" for mark in SECRETS)):
        with refused("ledger", "here", "a URL without a password") as told:
            address.check_shown(f"postgresql://{start}", "here")
        assert "secret" not in str(told.value)
        assert "postgresql://…" in str(told.value)


def test_an_address_is_taken_apart_and_put_together_again() -> None:
    given = (
        "postgresql://user:pass@host:5432/data%20base?ledger=visits&sslmode=require&anchor=a%2Fb"
    )
    found = address.Address.parse(given + "&connect_timeout=3")
    assert (
        found.url
        == "postgresql://user:pass@host:5432/data%20base?sslmode=require&connect_timeout=3"
    )
    assert (found.database, found.ledger, found.anchor) == ("data base", "visits", Path("a/b"))
    assert "pass" not in f"{found!r} {found}"
    short = address.Address.parse("postgresql://host")
    assert (short.url, short.database) == ("postgresql://host/", "")
    plain = address.Address.parse("postgres://host/db")
    assert (plain.url, plain.ledger, plain.anchor) == ("postgres://host/db", "dplinear", None)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://us@er:pa@host/db", "a URL such as postgresql://user@host/database. Got"),
        ("postgresql://host/db?ledger", "can be read"),
        ("postgresql://host/db?=visits", "can be read"),
        ("postgresql://host/db?ledger=Visits", "at most 40 letters"),
        ("postgresql://host/db?anchor=", "with a path after"),
    ],
    ids=["marks", "no value", "no name", "letters", "no path"],
)
def test_an_address_that_cannot_be_read_is_not_quoted(url: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)) as told:
        address.Address.parse(url)
    assert url not in str(told.value)
    assert "postgresql://…" in str(told.value)
    assert str(told.value).startswith("The 'path' parameter of open_ledger must be ")


URL = "postgresql://me:hush@host/base"


class Odd:
    """Something that stands for a path, in bytes."""

    def __fspath__(self) -> bytes:
        return URL.encode()


@pytest.mark.parametrize("given", [URL, Path(URL), URL.encode(), Odd()], ids=range(4))
def test_an_address_is_whole_and_prints_without_its_password(given: object) -> None:
    found = address.veil(given)
    assert (str(found), repr(found)) == ("postgresql://…", "'postgresql://…'")
    assert f"{found:>20}" == "postgresql://…".rjust(20)
    assert found == (str(given) if isinstance(given, Path) else URL)
    assert address.veil(found) is found


@pytest.mark.parametrize(
    "given", ["budget.db", Path("budget.db"), b"budget.db", None, 3], ids=ascii
)
def test_what_is_no_address_is_left_as_it_is(given: object) -> None:
    assert address.veil(given) is given


def test_a_side_file_begins_whole_and_is_held_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "side"
    mark = Mark("ledger", 1, "a")
    anchor.begin(path, mark)
    assert [each.name for each in tmp_path.iterdir()] == ["side"]
    assert path.stat().st_size == 512
    with pytest.raises(FileExistsError):
        anchor.begin(path, mark)
    assert [each.name for each in tmp_path.iterdir()] == ["side"]
    with anchor.hold_lock(path, 5.0) as held:
        assert held.marks() == [mark, None]
        with pytest.raises(LedgerError, match=r"locked for 0\.01 s"), anchor.hold_lock(path, 0.01):
            pass
    freed, queued, queue = threading.Event(), threading.Event(), anchor._queue

    def noted(handle: int, timeout: float) -> None:
        queued.set()
        queue(handle, timeout)

    monkeypatch.setattr(anchor, "_queue", noted)

    def wait() -> None:
        with anchor.hold_lock(path, 30.0):
            freed.set()

    with anchor.hold_lock(path, 5.0):
        waiting = threading.Thread(target=wait)
        waiting.start()
        queued.wait()
        assert not freed.is_set()
    waiting.join()
    assert freed.is_set()


def test_a_lock_that_comes_late_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(_: int, how: int) -> None:
        if how & 4:
            raise BlockingIOError
        time.sleep(0.05)

    anchor.begin(tmp_path / "side", Mark("ledger", 1, "a"))
    locks = SimpleNamespace(flock=flock, LOCK_EX=2, LOCK_NB=4, LOCK_UN=8)
    monkeypatch.setattr(anchor, "_locks", lambda: locks)
    with anchor.hold_lock(tmp_path / "side", 60.0) as held:
        assert held.latest() == Mark("ledger", 1, "a")


def test_whoever_gave_up_waiting_keeps_no_program_from_ending(tmp_path: Path) -> None:
    path = tmp_path / "side"
    anchor.create(path)
    before = set(threading.enumerate())
    with anchor.hold_lock(path, 5.0):
        with pytest.raises(LedgerError, match="locked"), anchor.hold_lock(path, 0.01):
            pytest.fail("locked twice")
        (waiting,) = set(threading.enumerate()) - before
        assert waiting.daemon
    waiting.join()


def test_a_side_file_begins_where_files_have_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    mark = Mark("ledger", 1, "a")
    anchor.begin(tmp_path / "side", mark)
    assert [each.name for each in tmp_path.iterdir()] == ["side"]
    with anchor.hold_lock(tmp_path / "side", 5.0) as held:
        assert held.latest() == mark


def test_a_side_file_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        anchor.create(tmp_path / "side")
    finally:
        os.umask(before)
    assert (tmp_path / "side").stat().st_mode & 0o777 == 0o600


def test_a_price_is_told_and_nothing_is_spent(ledger: Ledger) -> None:
    told = ledger.price(asked("third", 0.125))
    assert (told.cost, told.left) == (Units(125 * 10**9), Units(5 * 10**11))
    assert not told.repeated
    again = ledger.price(asked("first"))
    assert (again.cost, again.left, again.repeated) == (Units(0), Units(5 * 10**11), True)
    with pytest.raises(LedgerError, match="with other arguments"):
        ledger.price(asked("first", 0.125))
    much = ledger.price(asked("much", 3.0))
    assert (much.cost, much.after) == (Units(3 * 10**12), Units(-25 * 10**11))
    assert not much.suffices
    assert ledger.price(asked("rest", 0.5)).suffices
    assert len(ledger.lines.kept) == 5


def test_a_notebook_shows_what_is_left(ledger: Ledger) -> None:
    (status,) = ledger.status()
    shown = status._repr_html_()
    for text in ("table", "ρ = 1", "ρ = 0.5", "2", "50% spent", ">budget<", ">spent<", ">left<"):
        assert text in shown
    # A budget of less than one unit is rounded down to nothing.
    (empty,) = declared("tiny", ZCDP(1e-14)).status()
    assert empty.remaining == Units(0)
    assert ">0% spent<" in empty._repr_html_()
    # Of two limits the one that is nearer is shown.
    made = Ledger()
    made.declare("pairs", ApproxDP(1.0, 1e-6))
    made.spend(replace(asked("one", dataset="pairs"), guarantee=ApproxDP(0.25, 5e-7)))
    made.spend(replace(asked("two", dataset="pairs"), guarantee=ApproxDP(0.0, 1e-7)))
    assert ">60% spent<" in made.status()[0]._repr_html_()
    assert made.verify() == 4  # a spend of δ alone is one


def declared(dataset: str, guarantee: ZCDP) -> Ledger:
    made = Ledger()
    made.declare(dataset, guarantee)
    return made


def test_what_was_declared_and_never_spent_is_sound() -> None:
    assert declared("table", ZCDP(1.0)).verify() == 2
    none = Ledger()
    none.lines.kept.clear()
    assert none.verify() == 0


def test_a_ledger_whose_file_is_not_sound_is_not_verified(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ledger.verify() == 5

    def damaged() -> None:
        raise LedgerError("The ledger is damaged.")

    monkeypatch.setattr(ledger.lines, "sound", damaged)
    with pytest.raises(LedgerError, match="damaged"):
        ledger.verify()


def test_an_anchor_has_a_path() -> None:
    with refused("path", "open_ledger", "with a path after ?anchor="):
        address.Address.parse("postgresql://here/ledger?anchor=")
