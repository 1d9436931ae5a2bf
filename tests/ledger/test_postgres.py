"""A ledger on a server: whatever goes wrong, it fails closed, and says so in a sentence."""

import os
import socket
import sys
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dplinear.cli.main import main
from dplinear.ledger import BudgetExceededError, LedgerError, Request, open_ledger
from dplinear.ledger.sqlite import anchor
from dplinear.privacy import ZCDP, Neighbours
from postgres_lines import insert
from postgres_server import PASSWORD, Server, until
from spenders import context, spend_through

psycopg = pytest.importorskip("psycopg")
postgres_module = pytest.importorskip("dplinear.ledger.postgres.ledger")
words = pytest.importorskip("dplinear.ledger.postgres.words")
session_module = pytest.importorskip("dplinear.ledger.postgres.session")
PostgresLedger = postgres_module.PostgresLedger
Session = session_module.Session

pytestmark = pytest.mark.engine
PER = 10**11
SAME = "ledger_same"
_INSERT = (  # a line after the last one, at no cost
    "INSERT INTO {{}} SELECT {}, time, kind, dataset, '{}', digest, 0, 0, 0, 0, facts, {}, hash "
    "FROM {{}} WHERE sequence = 5"
)


def asked(name: str, rho: float = 0.1) -> Request:
    return Request(name, "table", ZCDP(rho), Neighbours.ADD_REMOVE, "test", {})


@pytest.fixture
def name() -> str:
    return f"ledger_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def url(postgres: Server, name: str, tmp_path: Path) -> str:
    """A ledger with a budget of 1, of which 0.2 is spent."""
    return _made(postgres.url(name, anchor=tmp_path / "side.anchor"))


@pytest.fixture(scope="session")
def same(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same, for all tests that are to leave it as it is."""
    return _made(postgres.url(SAME, anchor=tmp_path_factory.mktemp("same") / "side.anchor"))


def _made(address: str) -> str:
    ledger = PostgresLedger.create(address)
    ledger.declare("table", ZCDP(1.0))
    for turn in range(2):
        ledger.spend(asked(f"request {turn}"))
    ledger.keep("request 0", b"release " * 100)
    return address


def spent(url: str) -> int:
    (status,) = PostgresLedger(url).status()
    return int(status.spent.main)


def refused(url: str, match: str, timeout: float = 60.0) -> None:
    """Opening the ledger is refused; and so is every use of one that was open before."""
    with pytest.raises(LedgerError, match=match):
        PostgresLedger(url, timeout=timeout)
    ledger = PostgresLedger.__new__(PostgresLedger)
    ledger._address, ledger.timeout = postgres_module.Address.parse(url), timeout
    uses: list[Callable[[Any], object]] = [
        lambda ledger: ledger.spend(asked("another")),
        lambda ledger: ledger.verify(),
    ]
    for use in uses:
        with pytest.raises(LedgerError, match=match):
            use(ledger)


# What a server must say of itself


@pytest.mark.parametrize(
    ("name_", "value"),
    [
        ("synchronous_commit", "off"),
        ("synchronous_commit", "local"),
        ("zero_damaged_pages", "on"),
        ("session_replication_role", "replica"),
    ],
)
def test_unsafe_settings_of_a_session_are_refused(same: str, name_: str, value: str) -> None:
    refused(f"{same}&options=-c%20{name_}%3D{value}", f"PostgreSQL's {name_} is {value}, which is")
    assert spent(same) == 2 * PER


def test_unsafe_settings_of_the_server_are_refused(postgres: Server, same: str) -> None:
    for setting in ("fsync", "full_page_writes"):
        with postgres.set(setting, "off"):
            refused(same, f"PostgreSQL's {setting} is off, which is not safe")
            with pytest.raises(LedgerError, match="which is not safe"):
                PostgresLedger.create(postgres.url("another"))
    assert spent(same) == 2 * PER


def test_a_copy_that_follows_another_server_is_refused(
    same: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Session.ask

    def follows(self: Any, text: str, *values: object) -> Any:
        text = text.replace("pg_is_in_recovery()", "NOT pg_is_in_recovery()")
        return ask(self, text, *values)

    monkeypatch.setattr(Session, "ask", follows)
    refused(same, "is a copy that follows another one")


# Only ever added to


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {} SET cost = 0",
        "DELETE FROM {} WHERE sequence = 99",
        "TRUNCATE {}",
        "INSERT INTO {} SELECT * FROM {} ON CONFLICT (sequence) DO UPDATE SET cost = 0",
        _INSERT.format(6, "x", "previous"),
        _INSERT.format(7, "x", "hash"),
        _INSERT.format(6, "request 0", "hash"),
    ],
)
def test_lines_are_only_ever_added(postgres: Server, same: str, change: str) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="only ever added to"):
        postgres.sql(change.replace("{}", f'"{SAME}".lines'))
    assert PostgresLedger(same).verify() == 5


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE {} DISABLE TRIGGER never_changed",
        "ALTER TABLE {} ENABLE TRIGGER only_added",
        "DROP TRIGGER only_added ON {}",
        "ALTER TABLE {} SET UNLOGGED",
        "CREATE RULE away AS ON INSERT TO {} DO INSTEAD NOTHING",
        "ALTER TABLE {} ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE {} ADD COLUMN more text",
        "ALTER TABLE {} DROP CONSTRAINT lines_pkey",
    ],
)
def test_tables_that_are_not_as_they_were_made_are_refused(
    postgres: Server, url: str, name: str, change: str
) -> None:
    postgres.sql(change.replace("{}", f'"{name}".lines'))
    with pytest.raises(LedgerError, match="that guard them, are not as they were made"):
        PostgresLedger(url)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {} SET facts = replace(facts, '1.0', '9.0') WHERE sequence = 2",
        "UPDATE {} SET cost = 1 WHERE sequence = 4",
        "UPDATE {} SET spent = 1 WHERE sequence = 4",
        "DELETE FROM {} WHERE sequence = 4",
        "UPDATE {} SET output = 'other' WHERE sequence = 5",
    ],
)
def test_lines_that_were_changed_all_the_same_are_found(
    postgres: Server, url: str, name: str, change: str
) -> None:
    table = f'"{name}".lines'
    postgres.sql(
        f"ALTER TABLE {table} DISABLE TRIGGER never_changed",
        change.replace("{}", table),
        f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER never_changed",
    )
    with pytest.raises(LedgerError, match="The ledger is damaged"):
        PostgresLedger(url).verify()


def test_an_index_that_misses_lines_is_found(same: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, counts = Session.ask, iter([[(5, 1, 5)], [(4, 1, 4)]])

    def differs(self: Any, text: str, *values: object) -> Any:
        return next(counts) if "count(*)" in text else ask(self, text, *values)

    monkeypatch.setattr(Session, "ask", differs)
    with pytest.raises(LedgerError, match="an index does not find the lines"):
        PostgresLedger(same).verify()


# The side file


def test_a_restored_backup_is_refused(
    postgres: Server, url: str, name: str, tmp_path: Path
) -> None:
    older, newest = postgres.dump(name), None
    PostgresLedger(url).spend(asked("later"))
    newest = postgres.dump(name)
    postgres.restore(name, older)
    refused(url, "older copy of the ledger, or another one: it ends with line 5, and line 6")
    postgres.restore(name, newest)
    assert spent(url) == 3 * PER
    PostgresLedger(url).spend(asked("after"))
    (tmp_path / "side.anchor").unlink()
    with pytest.raises(LedgerError, match=r"There is no side file 'side.anchor'"):
        PostgresLedger(url)


def test_without_a_name_the_side_file_is_what_this_user_has_seen(
    postgres: Server, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "one"))
    url = postgres.url(name)
    PostgresLedger.create(url).declare("table", ZCDP(1.0))
    (mine,) = (tmp_path / "one" / "dplinear").iterdir()
    older = postgres.dump(name)
    PostgresLedger(url).spend(asked("a"))
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    PostgresLedger(url).spend(asked("b"))  # somebody else sees it for the first time
    other = tmp_path / ".local" / "state" / "dplinear" / mine.name
    assert mine.read_bytes() != other.read_bytes()
    postgres.restore(name, older)
    refused(url, "older copy of the ledger")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "one"))
    refused(url, "older copy of the ledger")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "three"))
    assert spent(url) == 0  # nobody here has seen more of it
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    refused(url, r"(?s)side file of the ledger .* cannot be used.*\?anchor=")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", _nowhere)
    refused(url, "no folder for a side file")


def _nowhere() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_side_files_of_other_ledgers_and_on_network_disks_are_refused(
    postgres: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = tmp_path / "side.anchor"
    content = side.read_bytes()
    side.write_bytes(anchor.Mark("another", 1, "x").record() * 2)
    refused(url, "belongs to another ledger")
    side.write_bytes(content)
    with pytest.raises(LedgerError, match=r"There is a file 'side.anchor' already"):
        PostgresLedger.create(postgres.url("another", anchor=side))
    monkeypatch.setattr("dplinear.ledger.sqlite.mounts.file_system", lambda _: "nfs4")
    refused(url, "on a file system of kind nfs4")


def test_a_line_that_is_silent_for_too_long_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "_GRACE", 0.0)
    one, other = socket.socketpair()
    session = Session.__new__(Session)
    session._line, session._timeout = one, 0.001
    session._timer().join()
    assert other.recv(1) == b""
    one.close()
    session._cut()  # nor does it mind if the line is gone
    other.close()


def test_two_who_begin_a_side_file_at_once_share_it(tmp_path: Path) -> None:
    side = tmp_path / "a" / "side.anchor"
    for sequence in (4, 3):
        postgres_module._begin_side_file(side, anchor.Mark("a", sequence, "b"))
    with anchor.hold_lock(side, 1.0) as opened:
        assert opened.latest() == anchor.Mark("a", 4, "b")
    assert [file.name for file in side.parent.iterdir()] == ["side.anchor"]


# Connections that break


def test_a_connection_that_is_lost_before_the_commit_writes_nothing(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(postgres_module.PostgresLines, "append", _cut(postgres))
        with pytest.raises(LedgerError, match=r"(?s)was lost.*nothing was written"):
            PostgresLedger(url).spend(asked("another"))
    assert spent(url) == 2 * PER


def _cut(server: Server) -> Callable[..., None]:
    def append(lines: Any, *_: object) -> None:
        ((number,),) = lines._session.ask("SELECT pg_backend_pid()")
        server.sql(f"SELECT pg_terminate_backend({number})")
        lines._session.ask("SELECT 1")

    return append


def test_what_a_server_remarks_on_changes_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Session.ask

    def chatty(self: Any, text: str, *values: object) -> Any:
        ask(self, "DO $$ BEGIN RAISE NOTICE 'good morning'; END $$")
        return ask(self, text, *values)

    ledger = PostgresLedger(url)
    monkeypatch.setattr(Session, "ask", chatty)
    ledger.spend(asked("another"))
    assert spent(url) == 3 * PER


def test_a_server_that_cannot_be_reached_is_told(postgres: Server) -> None:
    url = postgres.url().replace(f"port={postgres.port}", "port=1")
    with pytest.raises(LedgerError, match=r"no way to the ledger .*: it cannot be reached"):
        PostgresLedger(url)
    with pytest.raises(LedgerError, match="there is no such database or role"):
        PostgresLedger(postgres.url().replace("///postgres", "///nobody's"))


# Others at the same time


def test_a_locked_ledger_is_refused_after_a_while(postgres: Server, url: str, name: str) -> None:
    with psycopg.connect(postgres.url()) as other:
        other.execute(f'LOCK TABLE "{name}".lines IN ACCESS EXCLUSIVE MODE')
        refused(url, "is locked by another process", timeout=0.05)
        other.rollback()
        number = f"{session_module.KEY} + '\"{name}\".lines'::regclass::oid::bigint"
        other.execute(f"SELECT pg_advisory_xact_lock({number})")
        ledger = PostgresLedger(url, timeout=0.05)
        with pytest.raises(LedgerError, match="is locked by another process"):
            ledger.spend(asked("another"))
        assert ledger.verify() == 5  # readers need no lock
    assert spent(url) == 2 * PER


def test_a_reader_delays_no_writer_and_sees_one_moment(url: str) -> None:
    ledger = PostgresLedger(url, timeout=0.5)
    with ledger.reading() as lines:
        before = lines.newest().sequence
        ledger.spend(asked("meanwhile"))  # which a lock of the reader's would make fail
        ledger.keep("meanwhile", b"a release")
        assert [line.sequence for line, _ in lines.walk()] == list(range(1, before + 1))
    assert ledger.verify() == before + 2


def test_whoever_writes_without_asking_for_the_lock_stops_the_spend(
    postgres: Server, url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = postgres_module.PostgresLines.append

    def meanwhile(lines: Any, line: Any, output: bytes | None = None) -> None:
        rogue = replace(line, request="rogue")
        insert(postgres.url(), name, replace(rogue, hash=rogue.expected_hash()))
        append(lines, line, output)

    monkeypatch.setattr(postgres_module.PostgresLines, "append", meanwhile)
    with pytest.raises(LedgerError, match="written to by somebody else meanwhile"):
        PostgresLedger(url).spend(asked("another"))
    monkeypatch.undo()
    assert PostgresLedger(url).spend(asked("another")) is None
    assert PostgresLedger(url).verify() == 7


@pytest.mark.parametrize("kills", [1, pytest.param(100, marks=pytest.mark.long)])
def test_a_server_that_is_killed_has_lost_no_spend_that_was_returned(
    postgres: Server, url: str, tmp_path: Path, kills: int
) -> None:
    processing, told = context(), tmp_path / "returned"
    told.touch()
    workers = [
        processing.Process(target=spend_through, args=(url, name, told)) for name in range(3)
    ]
    for worker in workers:
        worker.start()
    try:
        for _ in range(kills):
            size = told.stat().st_size
            until(lambda size=size: told.stat().st_size > size)  # type: ignore[misc]
            postgres.kill()
            postgres.start()
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    returned = set(told.read_text(encoding="utf-8").splitlines())
    ledger = PostgresLedger(url)
    paid = {line.request for line in ledger.history() if line.kind == "spend"}
    sys.stdout.write(
        f"{kills} kills of the server: {len(paid)} spends recorded, {len(returned)} returned, "
        f"{len(returned - paid)} of them not recorded\n"
    )
    assert returned <= paid
    assert len(returned) >= kills
    assert ledger.verify() == len(ledger.history())


# Rights, room and damage


def test_the_right_to_read_and_to_add_is_enough_and_needed(
    postgres: Server, url: str, name: str
) -> None:
    role = f"role_{name}"
    postgres.sql(
        f"CREATE ROLE {role} LOGIN",
        f'GRANT USAGE ON SCHEMA "{name}" TO {role}',
        f'GRANT SELECT ON "{name}".lines TO {role}',
    )
    theirs = url.replace("user=keeper", f"user={role}")
    assert spent(theirs) == 2 * PER
    with pytest.raises(LedgerError, match="may not be used by this role"):
        PostgresLedger(theirs).spend(asked("another"))
    postgres.sql(f'GRANT INSERT ON "{name}".lines TO {role}')
    assert PostgresLedger(theirs).spend(asked("another")) is None


def test_a_read_only_ledger_spends_nothing(same: str) -> None:
    only = f"{same}&options=-c%20default_transaction_read_only%3Don"
    with pytest.raises(LedgerError, match="cannot be written: it is read-only"):
        PostgresLedger(only).spend(asked("another"))
    assert spent(only) == 2 * PER


def test_a_full_disk_is_told(postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's process may write files of 17 MB, which its log just fits in."""
    append, most = postgres_module.PostgresLines.append, 17 * 2**20 + 100

    def limited(lines: Any, line: Any, output: bytes | None = None) -> None:
        ((number,),) = lines._session.ask("SELECT pg_backend_pid()")
        postgres.limit(number, most)
        append(lines, line, output)

    with monkeypatch.context() as patch:
        patch.setattr(postgres_module.PostgresLines, "append", limited)
        with pytest.raises(LedgerError, match="cannot be written: the server's disk is full"):
            PostgresLedger(url).keep("request 1", os.urandom(20 * 2**20))
    PostgresLedger(url).keep("request 1", b"a release")
    assert PostgresLedger(url).verify() == 6


def test_damaged_pages_are_refused(postgres: Server, url: str, name: str, tmp_path: Path) -> None:
    other = postgres.url(f"{name}_b", anchor=tmp_path / "other.anchor")
    PostgresLedger.create(other).declare("table", ZCDP(1.0))
    PostgresLedger(other).spend(asked("request 0"))
    pieces = [f'"{name}".lines', f'"{name}_b".lines_pkey']
    files = [
        postgres.data / postgres.sql(f"SELECT pg_relation_filepath('{piece}')")[0][0]
        for piece in pieces
    ]
    postgres.stop()
    before = [file.read_bytes() for file in files]
    for file, content in zip(files, before, strict=True):
        last = len(content) - 100  # where lines and keys are, on the last page
        file.write_bytes(content[:last] + bytes(byte ^ 1 for byte in content[last:]))
    postgres.start()
    refused(url, "The ledger is damaged: PostgreSQL says 'invalid page")
    with pytest.raises(LedgerError, match="The ledger is damaged: PostgreSQL says"):
        PostgresLedger(other)
    postgres.stop()
    for file, content in zip(files, before, strict=True):
        file.write_bytes(content)
    postgres.start()
    assert spent(url) == 2 * PER


# Names, and the password that is never shown


def test_ledgers_are_made_once_and_opened_where_they_are(
    postgres: Server, url: str, name: str, tmp_path: Path
) -> None:
    with pytest.raises(LedgerError, match=r"is a ledger .* in the database 'postgres' already"):
        open_ledger(postgres.url(name), create=True)
    with pytest.raises(LedgerError, match="There is no ledger 'none' in the database 'postgres'"):
        open_ledger(postgres.url("none", anchor=tmp_path / "side.anchor"))
    assert repr(open_ledger(url)) == f"PostgresLedger('{name}' in the database 'postgres')"
    other = postgres.url(f"{name}_cli", anchor=tmp_path / "cli.anchor")
    for dataset in ("visits", "cells"):
        assert main(["ledger", "create", other, dataset, "--rho", "0.5"]) == 0
    assert main(["ledger", "verify", other]) == 0


def test_other_encodings_are_refused(postgres: Server, name: str) -> None:
    postgres.sql(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(LedgerError, match="PostgreSQL's server_encoding is LATIN1"):
        PostgresLedger.create(postgres.url().replace("///postgres", f"///{name}"))


def test_passwords_are_never_shown(
    postgres: Server, url: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host = f"127.0.0.1:{postgres.port}"
    query = f"ledger={name}&anchor={tmp_path}/side.anchor"
    right = f"postgresql://keeper:{PASSWORD}@{host}/postgres?{query}"
    assert PASSWORD not in repr(open_ledger(right)) + str(open_ledger(right))
    assert PASSWORD not in repr(open_ledger(right).__dict__)
    assert spent(url) == 2 * PER
    dry = ["release", "moments", str(_table(tmp_path)), "--column", "x 0 1", "--rho", "0.1"]
    dry += ["--ledger", right, "--dataset", "table", "--dry-run"]
    for words in (dry, [*dry, "--json"]):
        assert main(words) == 0
        said = capsys.readouterr()
        assert PASSWORD not in said.out + said.err
        assert "postgresql://" in said.out
    for wrong in (
        f"postgresql://keeper:{PASSWORD}x@{host}/postgres?{query}",
        f"postgresql://keeper:{PASSWORD}@127.0.0.1:1/postgres?{query}",
        f"postgresql://keeper:{PASSWORD}@{host}/nowhere?{query}",
        f"postgresql://keeper:a@{PASSWORD}@{host}/postgres?{query}",
        f"postgresql://keeper:a/{PASSWORD}@{host}/postgres?{query}",
        f"postgresql://keeper:a?{PASSWORD}@{host}/postgres?{query}",
        f"postgresql://keeper:a#{PASSWORD}@{host}/postgres?{query}",
        f"postgresql://keeper:a%{PASSWORD}@{host}/postgres?{query}",
        f"postgresql://keeper@{host}/postgres?password={PASSWORD}&{query}&nonsense=1",
        f"postgresql://keeper@{host}/postgres?{PASSWORD}",
        f"postgresql://keeper:{PASSWORD}@{host}/postgres?ledger=A",
        f"postgresql://keeper:{PASSWORD}@{host}/postgres?anchor=",
        f"mysql://keeper:{PASSWORD}@{host}/postgres",
    ):
        with pytest.raises((LedgerError, ValueError)) as error:
            open_ledger(wrong)
        assert PASSWORD not in str(error.value) + repr(error.value)
        assert PASSWORD not in str(error.value.__context__)
        assert main(["ledger", "show", wrong]) == 4
        assert main(["ledger", "show", "budget.db", wrong]) == 2
        said = capsys.readouterr()
        assert PASSWORD not in said.out + said.err
        assert said.err


def _table(folder: Path) -> Path:
    file = folder / "rows.csv"
    file.write_text("x\n0.5\n", encoding="utf-8")
    return file


def test_without_the_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dplinear.ledger.postgres.ledger")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"(?s)needs psycopg.*dplinear\[postgres\]"):
        open_ledger("postgresql://nobody@nowhere/nothing")


@pytest.mark.parametrize(
    ("code", "match"),
    [
        ("55P03", "locked"),
        ("57014", "in time"),
        ("53100", "full"),
        ("53300", "full"),
        ("25006", "read-only"),
        ("42501", "role"),
        ("23505", "somebody else"),
        ("XX001", "damaged"),
        ("XX002", "damaged"),
        ("XX000", "cannot be used"),
        ("08006", "lost"),
        ("57P01", "lost"),
        ("42P01", "cannot be used"),
    ],
)
def test_what_the_server_says_becomes_a_sentence(code: str, match: str) -> None:
    address = postgres_module.Address.parse("postgresql://a:word@b/c")
    with pytest.raises(LedgerError, match=match) as error, words.explain_errors(address):
        raise psycopg.errors.lookup(code)
    assert "word" not in str(error.value)


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ("fe_sendauth: no password supplied", "another password"),
        ("no pg_hba.conf entry for host", "lets nobody in"),
        ("connection timeout expired", "in time"),
        ("the database system is starting up", "starting up"),
        ("sorry, too many clients already", "too many"),
        ("could not translate host name", "cannot be reached"),
    ],
)
def test_why_there_is_no_way_to_a_server(said: str, match: str) -> None:
    address = postgres_module.Address.parse("postgresql://a:word@b/c")
    assert match in str(words.unreachable_error(address, OSError(said)))


def test_a_budget_is_exceeded_on_a_server_too(same: str) -> None:
    with pytest.raises(BudgetExceededError):
        PostgresLedger(same).spend(asked("too much", 0.9))
