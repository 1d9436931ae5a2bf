"""Large suites of which `make test` takes a part each day, another one every day.

The rest of them is `long` on that day, so that `make test-long` takes it. In eight days every case
has run, and `make test` stays under ten minutes.
"""

import datetime as dt
import zlib
from collections.abc import Iterable

import pytest

TODAY = dt.datetime.now(dt.UTC).date().toordinal()  # also the seed of samples that change daily

# Every so many days a case of these files has its turn.
DAYS = {
    "analyst/test_clusters.py": 3,
    "analyst/test_inflation.py": 5,
    "audit/test_audit.py": 5,
    "audit/test_precision.py": 8,
    "contracts/test_inferred_types.py": 5,
    "contracts/test_sources.py": 6,
    "curator/test_engine_words.py": 8,
    "curator/test_group_engines.py": 3,
    "curator/test_interrupted.py": 8,
    "curator/test_killed_workers.py": 3,
    "curator/test_unit_engines.py": 6,
    "exact/test_ball_draws.py": 4,
    "exact/test_roots.py": 6,
    "ledger/test_faults.py": 3,
    "ledger/test_postgres_faults.py": 3,
    "locality/test_locality.py": 8,
    "mechanisms/test_adassp.py": 3,
    "papers/test_kasiviswanathan.py": 3,
    "papers/test_sheffet.py": 3,
    "privacy/test_calibrate.py": 6,
    "test_add_a_mechanism.py": 3,
}


def rotate(items: Iterable[pytest.Item], today: int | None = None) -> None:
    """Mark the cases as `long` whose turn is on another day."""
    day = TODAY if today is None else today
    for item in items:
        file, _, case = item.nodeid.removeprefix("tests/").partition("::")
        if (zlib.crc32(case.encode()) + day) % DAYS.get(file, 1):
            item.add_marker(pytest.mark.long)
