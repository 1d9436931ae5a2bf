"""What is tried, and by which tests."""

from collections.abc import Collection

from mutation.live import ROOT

# Mutants are dealt into so many parts by a hash; of a room these parts were tried.
PARTS = 24
TRIED: dict[str, Collection[int]] = {
    "privacy": (1, 2, 9, 10),
    "gram": range(1, PARTS + 1),
    "noise": (1, 9, 10),
    "ledger": [part for part in range(1, PARTS + 1) if part != 15],  # which is held out
}
# These parts were tried when the tests stood; what survived then is counted as missed for good. For
# a score of newer tests others must be held out, and these belong to those above.
HELD_OUT = {"privacy": (15, 16), "noise": (15, 16), "ledger": (15,)}

# A room's share of mutants that tests must notice, the files it has, and the tests of its own.
ROOMS = {
    "privacy": (0.9, "src/dplinear/privacy/**/*.py", ("tests/privacy",)),
    "gram": (0.9, "src/dplinear/curator/gram.py", ("tests/curator/test_gram.py",)),
    "noise": (0.8, "src/dplinear/noise/*.py", ("tests/noise",)),
    "ledger": (
        0.8,
        "src/dplinear/ledger/*.py",
        ("tests/ledger", "tests/contracts/test_ledgers.py"),
    ),
}

# Tests that wait for servers, locks or many processes are not asked.
QUICK = "not (postgres or server or killed or processes or threads or locked or faults)"


def files(room: str) -> list[str]:
    """Return the files of a room, in order, but those that need a server for each mutant."""
    found = sorted(ROOT.glob(ROOMS[room][1]))
    return [str(path.relative_to(ROOT)) for path in found if not path.match("postgres*.py")]


def tests(room: str) -> list[str]:
    """Return where the tests of a room are."""
    return list(ROOMS[room][2])
