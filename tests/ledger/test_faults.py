"""Every call by which a ledger in a file reads, writes and syncs is cut short, one at a time."""

import sys

import pytest

from ledger import faults
from spenders import context

# Every so many calls at `make test`, beginning with the first; each of them at `make test-long`.
STRIDES = [pytest.param(17, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)]


@pytest.mark.parametrize("every", STRIDES)
@pytest.mark.parametrize("kind", faults.KINDS)
@pytest.mark.parametrize("work", ["use", "make"])
def test_what_was_acknowledged_is_there_whatever_fails_and_the_ledger_is_of_use(
    work: str, kind: str, every: int
) -> None:
    processing = context()
    counts = processing.Queue()
    working = processing.Process(target=faults.run, args=(work, kind, every, counts))
    working.start()
    found = counts.get(timeout=600)
    working.join()
    if found is None:
        pytest.skip("this Python's SQLite cannot be reached from outside")
    assert not isinstance(found, str), found
    calls, answers = found
    sys.stdout.write(f"{work}: {kind} at every {every} of {calls} calls: {answers}\n")
    assert calls > 40
    assert sum(answers.values()) > 0
