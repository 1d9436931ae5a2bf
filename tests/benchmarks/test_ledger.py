"""The harness of the ledger's times: its exponent, its ledgers, and the verdict on given times."""

from contextlib import nullcontext
from itertools import chain, repeat
from pathlib import Path

import pytest

from benchmarks import ledger as bench
from dplinear.ledger.sqlite.ledger import SqliteLedger
from dplinear.privacy import ZCDP


def test_an_exponent_is_that_of_a_power() -> None:
    lengths = (1_000, 10_000, 100_000)
    assert bench.exponent(lengths, [7.0] * 3) == pytest.approx(0.0)
    assert bench.exponent(lengths, [3 * one**0.5 for one in lengths]) == pytest.approx(0.5)


def test_a_ledger_that_was_grown_is_one(tmp_path: Path) -> None:
    ledger = SqliteLedger.create(tmp_path / "budget.db")
    ledger.declare("table", ZCDP(1.0))
    bench.grow(ledger, 20, b"release")
    assert ledger.verify() == 20
    assert bench.timed(SqliteLedger.status, ledger) >= 0
    assert len(bench.spends(tmp_path / "budget.db", "some ", 3)) == 3


@pytest.mark.parametrize(
    ("times", "word"),
    [
        ([1.0], "met"),
        ([1.0, 9.0], "MISSED"),  # longer at more lines
        ([1.0, 1.0, *[1.0, 9.0, 1.0] * 3], "MISSED"),  # longer beside a reader
    ],
)
def test_what_takes_too_long_is_missed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    times: list[float],
    word: str,
) -> None:
    given = chain(times, repeat(times[-1]))
    monkeypatch.setattr(bench, "spends", lambda *_: [next(given)])
    monkeypatch.setattr(bench, "reader", lambda *_: nullcontext())
    code = bench.main(["--lengths", "10", "20", "--repeats", "1", "--bytes", "10"])
    assert (code, capsys.readouterr().out.splitlines()[-1]) == (int(word == "MISSED"), word)
