"""What is tried, and by which tests."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from mutation.live import ROOT

# Mutants are dealt into so many parts by a hash; of a room these parts were tried.
PARTS = 24
TRIED: dict[str, Collection[int]] = {
    "privacy": (1, 2, 9, 10),
    "gram": range(1, PARTS + 1),
    "noise": (1, 9, 10),
    "ledger": [part for part in range(1, PARTS + 1) if part != 15],  # which is held out
    "postgres": (1, 2, 3),
}
# These parts were tried when the tests stood; what survived then is counted as missed for good. For
# a score of newer tests others must be held out, and these belong to those above.
HELD_OUT = {"privacy": (15, 16), "noise": (15, 16), "ledger": (15,)}

# A room's share of mutants that tests must notice, the files it has, and the tests of its own.
ROOMS = {
    "privacy": (0.9, "src/dplinear/privacy/**/*.py", ("tests/privacy",)),
    "gram": (0.9, "src/dplinear/exact/gram.py", ("tests/exact/test_gram.py",)),
    "noise": (0.8, "src/dplinear/noise/*.py", ("tests/noise",)),
    "ledger": (
        0.8,
        "src/dplinear/ledger/**/*.py",
        ("tests/ledger", "tests/contracts/test_ledgers.py"),
    ),
    # One server serves all of its mutants.
    "postgres": (
        0.8,
        "src/dplinear/ledger/postgres/*.py",
        (
            "tests/ledger/test_postgres.py",
            "tests/ledger/test_postgres_commit.py",
            "tests/ledger/test_postgres_trigger.py",
            "tests/ledger/test_postgres_upgrade.py",
        ),
    ),
}

# Tests that wait for servers, locks or many processes are not asked.
_SLOW = "killed or processes or threads or locked or faults"
QUICK = f"not (postgres or server or {_SLOW})"
# Nor, of those with a server, tests that stop it or fill its disk.
_SERVED = f"not ({_SLOW} or damaged_pages or full_disk or settings_of_the_server or standby)"


def select(room: str) -> str:
    """Return which of a room's tests are asked, in pytest's words."""
    return _SERVED if room == "postgres" else QUICK


def files(room: str) -> list[str]:
    """Return the files of a room, in order; those that need a server have a room of their own."""
    found = sorted(ROOT.glob(ROOMS[room][1]))
    served = room == "postgres"
    return [
        str(path.relative_to(ROOT)) for path in found if (path.parent.name == "postgres") is served
    ]


@contextmanager
def service(room: str) -> Iterator[None]:
    """Start what the tests of a room need, once for all of its mutants."""
    if room != "postgres":
        yield
        return
    from postgres_server import Server

    Server.shared = Server()
    try:
        yield
    finally:
        Server.shared.remove()
        Server.shared = None


def tests(room: str) -> list[str]:
    """Return where the tests of a room are."""
    return list(ROOMS[room][2])
