"""Long runs in pieces: with `--resume`, a case that passed on the same files is not run again.

`make test-long` takes hours. Where it is interrupted, it goes on where it left off; where a file of
the library or of its tests has changed, all of it starts anew. What passed is in `.passed/`, with
the seconds that each case took.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".passed"
# What decides whether a case passes, apart from the machine.
_DECIDES = ("src", "tests", "benchmarks", "docs", "requirements", "pyproject.toml", "README.md")


def digest(root: Path = ROOT) -> str:
    """Return a short name of all files that decide whether a case passes."""
    found: set[Path] = set()
    for name in _DECIDES:
        found |= {root / name, *(root / name).rglob("*")}
    parts = hashlib.sha256()
    for file in sorted(file for file in found if file.is_file()):
        if "__pycache__" not in file.parts:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            parts.update(f"{file.relative_to(root).as_posix()}\0{content}\n".encode())
    return parts.hexdigest()[:16]


def passed(record: Path) -> set[str]:
    """Return the names of the cases that a record says have passed."""
    lines = record.read_text(encoding="utf-8").splitlines() if record.is_file() else []
    return {name for _, tab, name in (line.partition("\t") for line in lines) if tab}


class Resume:
    """Leaves out what has passed, and writes down what passes, in the file `record`."""

    def __init__(self, record: Path, before: Iterable[str]) -> None:
        self.record, self.before = record, set(before)

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what has passed."""
        done = [item for item in items if item.nodeid in self.before]
        items[:] = [item for item in items if item.nodeid not in self.before]
        config.hook.pytest_deselected(items=done)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write down what has passed; a case that was skipped has not."""
        if report.when == "call" and report.passed:
            self.record.parent.mkdir(exist_ok=True)
            with self.record.open("a", encoding="utf-8") as file:
                file.write(f"{report.duration:.1f}\t{report.nodeid}\n")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Have every worker leave out the same cases, whenever it starts."""
        node.workerinput["passed"] = sorted(self.before)


class Worker:
    """Leaves out, in a worker of pytest-xdist, what its controller says has passed."""

    def __init__(self, before: Iterable[str]) -> None:
        self.before = frozenset(before)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what has passed."""
        items[:] = [item for item in items if item.nodeid not in self.before]


def install(config: pytest.Config) -> None:
    """Register what `--resume` asks for, in the process that has the record and in its workers."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Worker(config.workerinput.get("passed", ())))
    elif config.getoption("resume"):
        record = FOLDER / f"{digest()}.txt"
        config.pluginmanager.register(Resume(record, passed(record)))
