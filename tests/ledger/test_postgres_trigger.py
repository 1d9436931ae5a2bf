"""Whoever may add lines may spend, and no more: what is written by hand is held to the rules."""

import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dplinear.ledger import LedgerError, Request
from dplinear.ledger.budget import Units
from dplinear.ledger.hash_chain import Entry, entry, sha256
from dplinear.privacy import ZCDP, Neighbours
from postgres_lines import insert
from postgres_server import Server

psycopg = pytest.importorskip("psycopg")
PostgresLedger = pytest.importorskip("dplinear.ledger.postgres.ledger").PostgresLedger

pytestmark = pytest.mark.engine
PER = 10**11
FACTS = {"neighbours": "add_remove", "parameters": {}, "figures": {}}
DIGEST = sha256(b"")


def asked(name: str, rho: float = 0.1) -> Request:
    return Request(name, "table", ZCDP(rho), Neighbours.ADD_REMOVE, "test", {})


class Books:
    """A ledger, the role that made it, and two that may add lines and nothing else."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.name = f"ledger_{uuid.uuid4().hex[:12]}"
        self.roles = [f"{who}_{self.name}" for who in ("ann", "bob")]
        self.own = server.url(self.name, anchor=folder / "side.anchor")
        self.plain = server.url()
        self.keeper = PostgresLedger.create(self.own)
        self.keeper.declare("table", ZCDP(1.0))
        self.length = 0  # when `next` looked last
        for role in self.roles:
            server.sql(
                f"CREATE ROLE {role} LOGIN",
                f'GRANT USAGE ON SCHEMA "{self.name}" TO {role}',
                f'GRANT SELECT, INSERT ON "{self.name}".lines TO {role}',
            )

    def ledger(self, role: str) -> Any:
        return PostgresLedger(self.own.replace("user=keeper", f"user={role}"))

    def insert(self, who: str, line: Entry, output: bytes | None = None, **other: Any) -> None:
        url = self.plain.replace("user=keeper", f"user={who}")
        insert(url, self.name, line, output, **other)

    def last(self) -> Entry:
        line: Entry = self.keeper.history()[-1]
        return line

    def next(self, **said: Any) -> Entry:
        """Return a spend of nothing after the last line, or another line."""
        *_, last = lines = self.keeper.history()
        self.length = len(lines)
        spent = [line.spent for line in lines if line.kind == "spend"][-1]
        whole = {"dataset": "table", "request": uuid.uuid4().hex, "digest": DIGEST, "spent": spent}
        whole |= said
        kind, facts = whole.pop("kind", "spend"), whole.pop("facts", FACTS)
        if facts and kind == "spend":
            count = sum((line.kind, line.dataset) == ("spend", "table") for line in lines)
            ranges = {name: value for line in lines for name, value in _ranges(line).items()}
            facts = {"so_far": {"spends": count + 1, "half_ranges": ranges}} | facts
        return entry(last, kind, facts, **whole)


def _ranges(line: Entry) -> dict[str, float]:
    return dict(line.content().get("parameters", {}).get("half_ranges", {}))


@pytest.fixture(scope="module")
def books(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Books:
    """A ledger with a budget of 1, of which ann has spent 0.1 for `hers` and bob 0.1 for `his`."""
    made = Books(postgres, tmp_path_factory.mktemp("books"))
    for role, request in zip(made.roles, ("hers", "his"), strict=True):
        made.ledger(role).spend(asked(request))
    return made


def refused(books: Books, who: str, line: Entry, output: bytes | None = None, **other: Any) -> None:
    """The line is refused, by the trigger, and the ledger is as it was for everyone."""
    with pytest.raises(psycopg.Error) as error:
        books.insert(who, line, output, **other)
    assert error.value.sqlstate in {"DPL01", "P0001"}
    assert books.keeper.verify() == books.length


def rehashed(line: Entry) -> Entry:
    return replace(line, hash=line.expected_hash())


# Hashes


def test_a_line_with_a_false_hash_does_not_brick_the_ledger(books: Books) -> None:
    ann, bob = books.roles
    refused(books, bob, replace(books.next(), hash="0" * 64))
    refused(books, bob, replace(books.next(), hash=""))
    refused(books, bob, replace(books.next(), hash=books.next().hash.upper()))
    refused(books, bob, rehashed(replace(books.next(), previous=DIGEST)))
    refused(books, bob, books.next(), time="2026-01-01T00:00:00+00:00")
    refused(books, bob, books.next(), request="x")
    refused(books, bob, books.next(), facts="{}")
    assert books.ledger(ann).spend(asked(uuid.uuid4().hex, 1e-6)) is None


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TEXTS.filter(len), st.dictionaries(TEXTS, TEXTS | st.floats() | st.integers(), max_size=4))
def test_every_line_of_the_library_has_the_hash_that_the_trigger_wants(
    books: Books, request_: str, facts: dict[str, Any]
) -> None:
    """The canonical bytes are the same in Python and in SQL, for any text and any number."""
    said = {**FACTS, "parameters": {"x": facts | {"nul": "a\0b\\u0000", "nan: NaN": "[NaN]"}}}
    line = books.next(request=request_ + uuid.uuid4().hex, facts=said)
    books.insert(books.roles[0], line)
    assert books.last() == line.check()


# Results


def test_nobody_keeps_a_release_under_what_another_role_has_spent(books: Books) -> None:
    ann, bob = books.roles
    forged = b"a forged release"
    release = {"kind": "release", "request": "hers", "spent": Units(0), "facts": {"bytes": 16}}
    refused(books, bob, books.next(**release, digest=sha256(forged)), forged)
    refused(books, bob, books.next(**release, digest=sha256(forged)), forged, role=ann)
    with pytest.raises(LedgerError, match="was spent by another role"):
        books.ledger(bob).keep("hers", forged)
    with pytest.raises(LedgerError, match="was spent by another role"):
        books.keeper.keep("hers", forged)
    books.ledger(ann).keep("hers", b"a release")
    assert books.ledger(bob).kept_release("hers") == b"a release"


def test_a_release_is_what_its_request_has_paid_for(books: Books) -> None:
    _, bob = books.roles
    content = b"a release"
    whole: dict[str, Any] = {"kind": "release", "request": "his", "spent": Units(0)}
    whole |= {"digest": sha256(content), "facts": {}}
    refused(books, bob, books.next(**whole | {"request": "nobody's"}), content)
    refused(books, bob, books.next(**whole | {"request": ""}), content)
    refused(books, bob, books.next(**whole | {"dataset": "other"}), content)
    refused(books, bob, books.next(**whole | {"digest": DIGEST}), content)
    refused(books, bob, books.next(**whole), None)
    refused(books, bob, books.next(**whole | {"cost": Units(1)}), content)
    refused(books, bob, books.next(**whole | {"spent": Units(1)}), content)
    refused(books, bob, books.next(), content)  # a spend keeps no bytes
    books.insert(bob, books.next(**whole), content)
    refused(books, bob, books.next(**whole), content)
    assert books.ledger(bob).kept_release("his") == content


# Budgets and spends


def test_only_the_owner_declares_budgets(books: Books, postgres: Server) -> None:
    ann, _ = books.roles
    with pytest.raises(LedgerError, match="only its owner declares budgets"):
        books.ledger(ann).declare("another name of the table", ZCDP(1.0))
    member = f"member_{books.name}"
    postgres.sql(f"CREATE ROLE {member} LOGIN IN ROLE keeper")
    books.ledger(member).declare(f"of {member}", ZCDP(1.0))


@pytest.mark.parametrize("role", ["owner", "spender"])
@pytest.mark.parametrize(
    "line",
    [
        {"kind": "budget", "cost": Units(9 * 10**12), "spent": Units(0)},
        {"kind": "budget", "cost": Units(9), "spent": Units(1), "dataset": "new"},
        {"kind": "budget", "cost": Units(-9), "spent": Units(0), "dataset": "new"},
        {"kind": "budget", "cost": Units(9), "spent": Units(0), "dataset": ""},
        {"kind": "budget", "cost": Units(9), "spent": Units(0), "dataset": "new", "request": "x"},
        {"kind": "budget", "cost": Units(9), "spent": Units(0), "dataset": "n" * 201},
        {"kind": "ledger", "spent": Units(0), "dataset": ""},
        {"kind": "note", "spent": Units(0)},
        {"kind": "", "spent": Units(0)},
        {"cost": Units(-PER), "spent": Units(PER)},
        {"cost": Units(0, -1), "spent": Units(2 * PER, -1)},
        {"cost": Units(0), "spent": Units(0)},
        {"cost": Units(0, 1), "spent": Units(2 * PER, 1)},
        {"cost": Units(9 * PER), "spent": Units(11 * PER)},
        {"cost": Units(0), "spent": Units(0), "dataset": "unknown"},
        {"cost": Units(0), "spent": Units(0), "dataset": ""},
        {"request": ""},
        {"request": "r" * 201},
        {"request": "hers"},
        {"digest": ""},
        {"digest": DIGEST[:-1] + "G"},
        {"facts": {}},
        {"facts": FACTS | {"parameters": []}},
        {"facts": FACTS | {"parameters": {"half_ranges": 3}}},
        {"facts": FACTS | {"figures": None}},
        {"facts": FACTS | {"neighbours": 3}},
        {"facts": FACTS | {"more": "x" * 2**24}},
        {"facts": FACTS | {"state": DIGEST}},
        {"facts": FACTS | {"so_far": None}},
        {"facts": FACTS | {"so_far": {"spends": 1, "half_ranges": {}}}},
        {"facts": FACTS | {"so_far": {"spends": 3, "half_ranges": {"x": 1.0}}}},
    ],
    ids=lambda line: str(line)[:70],
)
def test_whoever_may_add_lines_may_not_add_budget(
    books: Books, role: str, line: dict[str, Any]
) -> None:
    said = {"digest": ""} | line if line.get("kind") in {"budget", "ledger"} else line
    said = {"request": ""} | said if line.get("kind") == "budget" else said
    refused(books, "keeper" if role == "owner" else books.roles[0], books.next(**said))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("facts", "nothing"),
        ("facts", "[]"),
        ("facts", json.dumps(FACTS)[:-1] + ', "deep": ' + "[" * 80 + "]" * 80 + "}"),
        ("time", ""),
        ("time", "2026-01-01T00:00:00+00:00\x1b[2J"),
        ("time", "yesterday"),
        ("sequence", 1),
        ("sequence", 10**6),
        ("sequence", -1),
    ],
)
def test_lines_that_readers_could_not_take_apart_are_refused(
    books: Books, name: str, value: Any
) -> None:
    line: Any = replace(books.next(), **{name: value})
    refused(books, books.roles[0], rehashed(line))


@pytest.mark.parametrize(
    "name", ["sequence", "time", "kind", "dataset", "request", "digest", "cost", "facts", "hash"]
)
def test_nothing_is_left_out(books: Books, name: str) -> None:
    refused(books, books.roles[0], books.next(), **{name: None})


def test_who_wrote_a_line_is_what_the_server_says(books: Books, postgres: Server) -> None:
    ann, bob = books.roles
    line = books.next()
    books.insert(bob, line, role=ann)
    found = postgres.sql(f'TABLE "{books.name}".lines ORDER BY sequence DESC LIMIT 1')
    assert found[0][-1] == bob


def test_half_ranges_of_earlier_spends_are_not_forgotten(postgres: Server, tmp_path: Path) -> None:
    """A change of one half-range costs what it says only if the half-range stays what it was."""
    books = Books(postgres, tmp_path)
    ann = books.roles[0]
    books.ledger(ann).spend(asked("a"))

    def spend(said: dict[str, float], so_far: dict[str, float], count: int) -> Entry:
        told = {"spends": count, "half_ranges": so_far}
        return books.next(facts=FACTS | {"parameters": {"half_ranges": said}, "so_far": told})

    books.insert(ann, spend({"x": 1.5, "y": 1e-5}, {"x": 1.5, "y": 1e-5}, 2))
    refused(books, ann, spend({"x": 2.5}, {"x": 1.5, "y": 1e-5}, 3))
    refused(books, ann, spend({"x": 2.5}, {"x": 2.5, "y": 1e-5}, 3))
    refused(books, ann, spend({"x": 1.5}, {"x": 1.5}, 3))
    refused(books, ann, spend({}, {}, 3))
    refused(books, ann, spend({"z": 1.0}, {"x": 1.5, "y": 1e-5}, 3))
    refused(books, ann, spend({"x": 1.5}, {"x": 1.5, "y": 1e-5}, 4))
    books.insert(ann, spend({"z": 1.0}, {"x": 1.5, "y": 1e-5, "z": 1.0}, 3))
    with pytest.raises(LedgerError, match="half-ranges, and those of x were others"):
        books.ledger(ann).spend(
            replace(asked("b"), parameters={"half_ranges": {"x": 1.0, "z": 1.0}})
        )
    books.ledger(ann).spend(replace(asked("b"), parameters={"half_ranges": {"x": 1.5}}))
    (status,) = books.keeper.status()
    assert status.releases == 4


def test_the_statement_in_the_docs_finds_lines_whose_hash_is_false(
    postgres: Server, tmp_path: Path
) -> None:
    books = Books(postgres, tmp_path)
    page = Path(__file__).parents[2] / "docs" / "how-to" / "postgres-ledger.md"
    text = page.read_text(encoding="utf-8").partition("```sql\n")[2].partition("```")[0]
    lines = f'"{books.name}".lines'
    said = text.replace("dplinear.lines", lines)
    assert postgres.sql(said) == []
    change = "UPDATE {} SET cost = cost + 1".replace("{}", lines)
    postgres.sql(f"ALTER TABLE {lines} DISABLE TRIGGER never_changed", change)
    assert postgres.sql(said) == [(1,), (2,)]
