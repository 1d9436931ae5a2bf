"""Ledgers that an earlier version made: their owner opens them, and nobody else spends before."""

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from dplinear.ledger import LedgerError, Request
from dplinear.privacy import ZCDP, Neighbours
from postgres_server import Server

pytest.importorskip("psycopg")
upgrade_module = pytest.importorskip("dplinear.ledger.postgres.upgrade")
PostgresLedger = pytest.importorskip("dplinear.ledger.postgres.ledger").PostgresLedger

pytestmark = pytest.mark.engine
# The trigger's function as it was: it checked neither hashes nor who writes.
FORMER = """
BEGIN
 IF NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM {lines})
  OR NEW.previous <> coalesce(
   (SELECT hash FROM {lines} ORDER BY sequence DESC LIMIT 1), repeat('0', 64))
  OR (NEW.request <> '' AND EXISTS (
   SELECT 1 FROM {lines} WHERE request = NEW.request AND kind = NEW.kind))
  OR NEW.cost < 0 OR NEW.cost_delta < 0
  OR (NEW.kind = 'budget' AND EXISTS (SELECT 1 {same} 'budget'))
  OR (NEW.kind = 'spend' AND NOT EXISTS (
   SELECT 1 {same} 'budget' AND NEW.spent <= cost AND NEW.spent_delta <= cost_delta))
  OR (NEW.kind = 'spend' AND (NEW.spent - NEW.cost, NEW.spent_delta - NEW.cost_delta) <> (
   coalesce((SELECT spent {same} 'spend' ORDER BY sequence DESC LIMIT 1), 0),
   coalesce((SELECT spent_delta {same} 'spend' ORDER BY sequence DESC LIMIT 1), 0)))
 THEN RAISE EXCEPTION 'a ledger is only ever added to';
 END IF;
 RETURN NEW;
END
"""


def asked(name: str) -> Request:
    return Request(name, "table", ZCDP(0.1), Neighbours.ADD_REMOVE, "test", {})


@pytest.fixture
def name() -> str:
    return f"ledger_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def role(postgres: Server, name: str) -> str:
    postgres.sql(f"CREATE ROLE {name} LOGIN")
    return name


@pytest.fixture
def former(postgres: Server, name: str, role: str, tmp_path: Path) -> str:
    """A ledger with the tables of an earlier version, in which the role has spent twice."""
    url = postgres.url(name, anchor=tmp_path / "side.anchor")
    PostgresLedger.create(url).declare("table", ZCDP(1.0))
    lines = f'"{name}".lines'
    postgres.sql(
        f'GRANT USAGE ON SCHEMA "{name}" TO {role}', f"GRANT SELECT, INSERT ON {lines} TO {role}"
    )
    ledger = PostgresLedger(url.replace("user=keeper", f"user={role}"))
    for request in ("kept", "open"):
        ledger.spend(asked(request))
    ledger.keep("kept", b"a release")
    set_back(postgres, name)
    return url


def set_back(server: Server, name: str, body: str = FORMER) -> None:
    lines = f'"{name}".lines'
    said = body.replace("{lines}", lines)
    said = said.replace("{same}", f"FROM {lines} WHERE dataset = NEW.dataset AND kind =")
    server.sql(
        f"ALTER TABLE {lines} DROP COLUMN role",
        f'CREATE OR REPLACE FUNCTION "{name}".follows() RETURNS trigger LANGUAGE plpgsql '
        f"SET search_path = pg_catalog, pg_temp AS $body${said}$body$",
    )


def test_only_the_owner_brings_a_ledger_up_to_date(former: str, role: str) -> None:
    theirs = former.replace("user=keeper", f"user={role}")
    with pytest.raises(LedgerError, match=r"(?s)by an earlier version.*owner has to open it"):
        PostgresLedger(theirs)
    assert PostgresLedger(former).verify() == 5
    assert PostgresLedger(former).verify() == 5  # which is so for good
    ledger = PostgresLedger(theirs)
    assert ledger.spend(asked("kept")) == b"a release"
    assert ledger.spend(asked("new")) is None
    ledger.keep("new", b"a release")
    with pytest.raises(LedgerError, match="by another role"):  # nobody knows that it was this one
        ledger.keep("open", b"a release")
    PostgresLedger(former).keep("open", b"a release")
    assert ledger.verify() == 8


def test_a_ledger_that_was_opened_before_tells_as_well(
    postgres: Server, former: str, name: str
) -> None:
    ledger = PostgresLedger(former)
    set_back(postgres, name)
    with pytest.raises(LedgerError, match="by an earlier version"):
        ledger.spend(asked("another"))


@pytest.mark.parametrize(
    "change",
    [
        (
            "CREATE OR REPLACE FUNCTION {name}.follows() RETURNS trigger LANGUAGE plpgsql "
            "SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NEW; END'"
        ),
        "ALTER FUNCTION {name}.follows() SECURITY DEFINER",
        "ALTER TABLE {name}.lines ENABLE TRIGGER only_added",
        "ALTER TABLE {name}.lines DISABLE TRIGGER never_changed",
        "DROP TRIGGER never_changed ON {name}.lines",
        "DROP INDEX {name}.by_request",
        "ALTER TABLE {name}.lines ADD COLUMN more text",
    ],
)
def test_former_tables_that_somebody_changed_are_refused(
    postgres: Server, former: str, name: str, change: str
) -> None:
    postgres.sql(change.replace("{name}", f'"{name}"'))
    with pytest.raises(LedgerError, match="are not as they were made"):
        PostgresLedger(former)


def test_spends_that_do_not_tell_of_those_before_them_are_counted(
    postgres: Server, former: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions wrote neither how many spends there were nor the half-ranges in them."""
    ledger = PostgresLedger(former)
    set_back(postgres, name)
    with monkeypatch.context() as patch:
        # As those versions did: what they wrote, with the tables that they had.
        patch.setattr("dplinear.ledger.ledger.SO_FAR", "of_today")
        patch.setattr("dplinear.ledger.postgres.session.is_former", lambda *_: False)
        patch.setattr("dplinear.ledger.postgres.session.expected_tables", lambda *_: Anything())
        for request, half in (("first", 1.5), ("second", 1.5)):
            ledger.spend(replace(asked(request), parameters={"half_ranges": {"x": half}}))
    ledger = PostgresLedger(former)
    with pytest.raises(LedgerError, match="half-ranges, and those of x were others"):
        ledger.spend(replace(asked("third"), parameters={"half_ranges": {"x": 2.5}}))
    ledger.spend(replace(asked("third"), parameters={"half_ranges": {"y": 2.5}}))
    (told,) = ledger.history()[-1:]
    assert told.content()["so_far"] == {"spends": 5, "half_ranges": {"x": 1.5, "y": 2.5}}
    ledger.spend(asked("fourth"))
    assert ledger.verify() == 9


class Anything:
    """What is equal to whatever it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # as nobody asks for it


def test_tables_are_brought_up_to_date_as_a_whole_or_not_at_all(
    former: str, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        half = upgrade_module.upgrade
        patch.setattr(
            "dplinear.ledger.postgres.ledger.upgrade", lambda name: [*half(name)[:2], "SELECT 1/0"]
        )
        with pytest.raises(LedgerError, match="division by zero"):
            PostgresLedger(former)
    with pytest.raises(LedgerError, match="by an earlier version"):
        PostgresLedger(former.replace("user=keeper", f"user={role}"))
    assert PostgresLedger(former).verify() == 5
