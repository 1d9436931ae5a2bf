"""A PostgreSQL server of the tests' own, from the installed binaries, in a folder of its own."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from services import lacking, library

PASSWORD = "Passw0rd-never-shown"  # noqa: S105 - of a server that lives for seconds
_TRIES, _PAUSE = 600, 0.1


def binaries() -> Path:
    """Return the folder of the server's programs, or say loudly what is not tested without it."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name)
    folders += [] if found is None else [Path(found).resolve().parent]
    if not folders:
        lacking("the PostgreSQL server", "Run make services.")
    return folders[-1]


class Server:
    """One server: `start` waits until it answers, and `kill` is SIGKILL to all of it.

    `shared` is one for all tests of processes that were forked from this one.
    """

    shared: "Server | None" = None

    def __init__(self) -> None:
        self.driver = library("psycopg")
        self._binaries = binaries()
        self.folder = Path(tempfile.mkdtemp(prefix="dplinear-pg-"))
        self.data, self.port = self.folder / "data", _free_port()
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:  # the server refuses to be run by root
            person = pwd.getpwnam("postgres")
            os.chown(self.folder, person.pw_uid, person.pw_gid)
            ids = {"user": person.pw_uid, "group": person.pw_gid}
            self._as = {**ids, "extra_groups": [], "cwd": self.folder}
        secret = self.folder / "secret"
        secret.write_text(PASSWORD, encoding="utf-8")
        secret.chmod(0o644)
        self._run(
            "initdb", "-D", self.data, "-U", "keeper", "-k", "-E", "UTF8", "--locale=C", "-N",
            "--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={secret}",
        )  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _run(self, program: str, *arguments: object) -> bytes:
        command = [str(self._binaries / program), *map(str, arguments)]
        done: subprocess.CompletedProcess[bytes] = subprocess.run(
            command, capture_output=True, check=False, timeout=120, **self._as
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def start(self, **settings: str) -> None:
        """Start the server with further settings, and wait until it answers."""
        given = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "max_connections": "80",
            "shared_buffers": "16MB",
            "log_min_messages": "fatal",
        } | settings
        options = [word for name, value in given.items() for word in ("-c", f"{name}={value}")]
        # So that no server outlives tests that were killed.
        along = ["setpriv", "--pdeathsig", "QUIT"] if shutil.which("setpriv") else []
        command = [*along, str(self._binaries / "postgres"), "-D", str(self.data), *options]
        for _ in range(_TRIES):
            if self._process is None or self._process.poll() is not None:
                # A server that was killed leaves its memory behind until its last child is gone.
                self._process = subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._as
                )
            try:
                self.sql("SELECT 1")
            except self.driver.OperationalError:
                time.sleep(_PAUSE)
            else:
                return
        raise AssertionError("the server does not start")

    @property
    def running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process

    def url(self, ledger: str | None = None, **query: object) -> str:
        """Return the address of a ledger, by the server's socket."""
        named = {} if ledger is None else {"ledger": ledger}
        said = {"host": self.folder, "port": self.port, "user": "keeper", **named, **query}
        text = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in said.items())
        return f"postgresql:///postgres?{text}"

    def sql(self, *statements: str) -> list[Any]:
        """Run statements as the keeper of the server; return the last one's rows."""
        with self.driver.connect(self.url(), autocommit=True, connect_timeout=10) as line:
            for statement in statements:
                cursor = line.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def set(self, setting: str, value: str) -> Iterator[None]:
        """Change a setting of the whole server, for a while."""
        before = self.sql(f"SHOW {setting}")
        self.sql(f"ALTER SYSTEM SET {setting} = '{value}'", "SELECT pg_reload_conf()")
        try:
            until(lambda: self.sql(f"SHOW {setting}") == [(value,)])
            yield
        finally:
            self.sql(f"ALTER SYSTEM RESET {setting}", "SELECT pg_reload_conf()")
            until(lambda: self.sql(f"SHOW {setting}") == before)

    def limit(self, process: int, size: int) -> None:
        """Let one of the server's processes write no file of more than so many bytes."""
        command = ["prlimit", f"--pid={process}", f"--fsize={size}"]
        subprocess.run(command, check=True, timeout=60, **self._as)

    def dump(self, name: str) -> Path:
        """Back a ledger up."""
        file = self.folder / f"{name}.{uuid.uuid4().hex}.sql"
        self._run("pg_dump", "-n", name, "-f", file, *self._local)
        return file

    def restore(self, name: str, backup: Path) -> None:
        """Bring a backup back, in the place of what is there."""
        self.sql(f'DROP SCHEMA "{name}" CASCADE')
        self._run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", backup, *self._local)

    @property
    def _local(self) -> tuple[object, ...]:
        return ("-h", self.folder, "-p", self.port, "-U", "keeper", "-d", "postgres")

    def stop(self) -> None:
        """Stop the server by its id, and wait for it."""
        self.running.send_signal(signal.SIGINT)
        self.running.wait(timeout=60)

    def kill(self) -> None:
        """Kill the server, and those of its children that are known by then."""
        children = Path(f"/proc/{self.running.pid}/task/{self.running.pid}/children")
        known = children.read_text(encoding="ascii").split() if children.exists() else []
        self.running.kill()
        self.running.wait(timeout=60)
        for child in known:
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                continue

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        if self.running.poll() is None:
            self.running.send_signal(signal.SIGQUIT)  # at once: nobody will miss the data
            self.running.wait(timeout=60)
        shutil.rmtree(self.folder)


def until(happened: Callable[[], bool]) -> None:
    """Wait for something that happens."""
    for _ in range(_TRIES):
        if happened():
            return
        time.sleep(_PAUSE / 2)
    raise AssertionError("it does not happen")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
