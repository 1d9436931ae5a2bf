"""How long a spend takes as a ledger grows, and what a reader costs those who write.

    python benchmarks/ledger.py

Ledgers in a file, half of whose lines are spends and half releases of `--bytes` each. Prints the
median time of a spend at each length and the exponent that is fitted to them, the time of `status`
and `verify`, and the median time of a spend while another process reads in a loop, over the one
without. Exits with 1 if the exponent is above 0.3, or that ratio above 2.
"""

import argparse
import math
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any

from dplinear.ledger import Request
from dplinear.ledger.ledger import BudgetLedger, Lines
from dplinear.ledger.sqlite.ledger import SqliteLedger
from dplinear.privacy import ZCDP, Neighbours

LENGTHS = (1_000, 10_000, 100_000)
EXPONENT, RATIO = 0.3, 2.0
READERS: dict[str, Callable[[BudgetLedger], object]] = {
    "status": BudgetLedger.status,
    "history": BudgetLedger.history,
    "verify": BudgetLedger.verify,
}


class Batch(BudgetLedger):
    """A ledger within one transaction of another, so that many lines are written in a moment."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def writing(self) -> AbstractContextManager[Lines]:
        """Return the lines."""
        return nullcontext(self._lines)

    def reading(self) -> AbstractContextManager[Lines]:
        """Return the lines."""
        return nullcontext(self._lines)


def asked(name: str) -> Request:
    """Return a small spend."""
    return Request(name, "table", ZCDP(1e-6), Neighbours.ADD_REMOVE, "benchmark", {"rows": 1000})


def grow(ledger: SqliteLedger, length: int, content: bytes) -> None:
    """Add lines until there are so many."""
    with ledger.writing() as lines:
        batch = Batch(lines)
        while (there := lines.newest().sequence) < length:
            batch.spend(asked(f"filler {there}"))
            batch.keep(f"filler {there}", content)


def timed(use: Callable[[Any], object], on: object) -> float:
    """Return how many seconds a call takes."""
    start = time.perf_counter()
    use(on)
    return time.perf_counter() - start


def spends(path: Path, name: str, count: int) -> list[float]:
    """Return how long each of so many spends takes, from opening the ledger on."""
    requests = [asked(f"{name}{turn}") for turn in range(count)]
    return [timed(lambda one: SqliteLedger(path).spend(one), request) for request in requests]


def _read(path: Path, name: str, ready: Any) -> None:
    ledger = SqliteLedger(path)
    while True:
        READERS[name](ledger)
        ready.set()


@contextmanager
def reader(path: Path, name: str) -> Iterator[None]:
    """Let another process read in a loop."""
    processing = multiprocessing.get_context("spawn")
    ready = processing.Event()
    working = processing.Process(target=_read, args=(path, name, ready), daemon=True)
    working.start()
    ready.wait()
    try:
        yield
    finally:
        working.kill()
        working.join()


def exponent(lengths: Sequence[int], times: Sequence[float]) -> float:
    """Return the slope of the logarithms, by least squares."""
    x, y = [math.log(one) for one in lengths], [math.log(one) for one in times]
    middle = sum(x) / len(x)
    return sum((one - middle) * value for one, value in zip(x, y, strict=True)) / sum(
        (one - middle) ** 2 for one in x
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--repeats", type=int, default=41)
    parser.add_argument("--bytes", type=int, default=2_000)
    chosen = parser.parse_args(arguments)
    content, medians, ratios = b"x" * chosen.bytes, [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.db"
        ledger = SqliteLedger.create(path)
        ledger.declare("table", ZCDP(1000.0))
        for length in chosen.lengths:
            grow(ledger, length, content)
            times = spends(path, f"{length} ", chosen.repeats)
            medians.append(median(times))
            told = ", ".join(f"{name} {timed(use, ledger):.3f} s" for name, use in READERS.items())
            print(f"{length:7} lines: a spend {1e3 * medians[-1]:6.1f} ms; {told}", flush=True)
        for name in READERS:
            alone = spends(path, f"before {name} ", chosen.repeats)
            with reader(path, name):
                beside = spends(path, f"beside {name} ", chosen.repeats)
            alone += spends(path, f"after {name} ", chosen.repeats)
            ratios.append(median(beside) / median(alone))
            print(
                f"beside a reader that loops over {name}: {1e3 * median(beside):6.1f} ms, "
                f"{ratios[-1]:.2f} of {1e3 * median(alone):.1f} ms; the longest {max(beside):.3f} s"
            )
    found = exponent(chosen.lengths, medians)
    met = found <= EXPONENT and max(ratios) <= RATIO
    print(f"exponent {found:.2f}, at most {EXPONENT}; ratio {max(ratios):.2f}, at most {RATIO}")
    print("met" if met else "MISSED")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
