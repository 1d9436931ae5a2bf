"""Trying mutants: tests are collected once; each mutant lives and dies in a fork of that process.

A live mutant replaces the code of a function that tests call; one of a module's constants, class
bodies or of code that runs on import is imported into a process that has not seen the library.
"""

import ast
import functools
import gc
import hashlib
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from mutation import aside, rooms
from mutation.live import ROOT, Importer, swap
from mutation.operators import Mutant, mutants
from mutation.outcomes import STORE, so_far

# The oldest dependencies have no rival libraries beside them.
RIVALS = "" if find_spec("dp_accounting") else " and not accounting and not oracle and not engine"
MARKS = "not long" + RIVALS
_MEMORY = 6 << 30  # bytes that a mutant may ask for, as some ask for ever more
QUIET = [
    *("-q", "-s", "-m", MARKS, "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # we import hypothesis before pytest does
]


@dataclass(frozen=True)
class Coverage:
    """Which tests run which lines, and how long each takes."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[int]]]  # file, test ("" for imports), lines
    hashes: dict[str, str]  # of the files, when they were measured

    @classmethod
    def read(cls, room: str) -> "Coverage":
        """Read what `measure` wrote for a room; end if it is of other sources than there are."""
        if said := outdated(room, rooms.files(room)):
            sys.exit(said)
        sys.stderr.write(outdated(room, _tests(room)))  # tests it does not know are not asked
        return cls(**json.loads((STORE / f"coverage-{room}.json").read_text()))

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that run a mutant's lines, the fastest first."""
        span = set(range(mutant.first, mutant.last + 1))
        found = [
            test
            for test, lines in self.lines.get(mutant.file, {}).items()
            if test and (not mutant.unit or not span.isdisjoint(lines))
        ]
        if not mutant.unit:  # a constant's own test may call nothing
            found += [test for test in self.seconds if f"/test_{Path(mutant.file).stem}.py" in test]
        return self.in_turn(dict.fromkeys(found))

    def in_turn(self, tests: Iterable[str]) -> list[str]:
        """Return tests, the fastest first; the second case of a test counts as twice as slow."""
        turns: dict[str, int] = {}
        cost: dict[str, float] = {}
        for test in sorted(tests, key=lambda test: self.seconds[test]):
            name = test.partition("[")[0]
            turns[name] = turns.get(name, 0) + 1
            cost[test] = turns[name] * (self.seconds[test] + 0.005)
        return sorted(cost, key=lambda test: cost[test])

    def on_import(self, mutant: Mutant) -> bool:
        """Tell whether a mutant's lines run on import."""
        span = set(range(mutant.first, mutant.last + 1))
        return not span.isdisjoint(self.lines.get(mutant.file, {}).get("", ()))


def hash_of(name: str) -> str:
    """Return a hash of a file below the root."""
    return hashlib.sha256((ROOT / name).read_bytes()).hexdigest()[:16]


def _tests(room: str) -> list[str]:
    """Return the files with a room's tests."""
    found = (path for place in rooms.tests(room) for path in _files_of(ROOT / place))
    return [str(path.relative_to(ROOT)) for path in found]


def _files_of(place: Path) -> list[Path]:
    return sorted(place.glob("**/test_*.py")) if place.is_dir() else [place]


def _forget() -> None:
    """Empty the library's caches, so that each test is seen to run all that it needs."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dplinear"):
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


def outdated(room: str, names: Sequence[str] | None = None) -> str:
    """Return a sentence if files have changed since a room was measured, or nobody has; or ""."""
    store = STORE / f"coverage-{room}.json"
    again = f"Run: python -m mutation measure --room {room}\n"
    if not store.exists():
        return f"Nobody has measured which tests run which lines of {room}. {again}"
    hashes = json.loads(store.read_text()).get("hashes", {})
    asked = [*rooms.files(room), *_tests(room)] if names is None else names
    changed = [name for name in asked if hashes.get(name) != hash_of(name)]
    if not changed:
        return ""
    named = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
    return f"{store.name} is older than {named}. {again}"


def _calm_hypothesis() -> None:
    """Draw the same examples for each mutant, keep none, and do not shrink."""
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile(
        "mutation", database=None, phases=phases, derandomize=True, deadline=None
    )
    hypothesis.settings.load_profile("mutation")


class Measure:
    """A plugin that notes each test's lines and time."""

    def __init__(self, room: str, *, more: bool) -> None:
        import coverage

        self.room, self.more = room, more
        self.coverage = coverage.Coverage(
            data_file=None, source=[str(ROOT / "src/dplinear")], config_file=False
        )
        self.seconds: dict[str, float] = {}
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        _forget()
        began = time.process_time()
        made = yield
        self.seconds[item.nodeid] = time.process_time() - began
        self.coverage.switch_context("")
        return made

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        lines: dict[str, dict[str, list[int]]] = {}
        for path in data.measured_files():
            name = str(Path(path).relative_to(ROOT))
            for line, contexts in data.contexts_by_lineno(path).items():
                for test in contexts:
                    lines.setdefault(name, {}).setdefault(test, []).append(line)
        STORE.mkdir(parents=True, exist_ok=True)
        store = STORE / f"coverage-{self.room}.json"
        named = {test.partition("::")[0] for test in self.seconds}
        hashes = {name: hash_of(name) for name in [*rooms.files(self.room), *sorted(named)]}
        if self.more and store.exists():
            before = json.loads(store.read_text())
            hashes = before.get("hashes", {}) | {name: hashes[name] for name in named}

            def others(tests: dict[str, Any]) -> dict[str, Any]:
                return {k: v for k, v in tests.items() if k.partition("::")[0] not in named}

            self.seconds = others(before["seconds"]) | self.seconds
            for name, tests in before["lines"].items():
                lines[name] = others(tests) | lines.get(name, {})
        known = {"seconds": self.seconds, "lines": lines, "hashes": hashes}
        store.write_text(json.dumps(known))


def measure(room: str, paths: Sequence[str], *, more: bool) -> None:
    """Run tests once, to learn which lines each of them runs; `more` of them than are known."""
    _calm_hypothesis()
    code = pytest.main([*QUIET, *paths], plugins=[Measure(room, more=more)])
    if code:
        sys.exit(f"The tests fail without any mutant: {code!r}.")


@dataclass
class Work:
    """What to try, in which order, and where the outcomes go."""

    files: Sequence[str]
    coverage: Coverage
    shard: tuple[int, int]
    patience: float  # seconds of tests for one mutant, at most
    again: bool  # whether to try survivors once more
    only: set[str]
    deadline: float
    done: dict[str, dict[str, Any]] = field(default_factory=so_far)
    killers: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for entry in self.done.values():
            self._learn(entry)

    def _learn(self, entry: dict[str, Any]) -> None:
        if entry["outcome"] == "killed" and "test" in entry:
            place = entry["file"], entry["unit"]
            self.killers.setdefault(place, Counter())[entry["test"]] += 1

    def open(self, *, live: bool) -> Iterator[tuple[Mutant, ast.Module, list[str]]]:
        """Yield the mutants still to be tried, live ones or those made on import, with tests."""
        for file in self.files:
            tree = ast.parse((ROOT / file).read_text())
            for mutant in mutants(file, tree):
                if time.time() > self.deadline:
                    return
                before = self.done.get(mutant.key)
                if before and not (self.again and before["outcome"] == "survived"):
                    continue
                if int(mutant.key, 16) % self.shard[1] != self.shard[0] - 1:
                    continue
                if self.only and mutant.key not in self.only:
                    continue
                if aside.by_rule(mutant.file, mutant.unit, mutant.first, mutant.last):
                    continue
                tests = self.coverage.tests(mutant)
                fresh = not mutant.unit or (not tests and self.coverage.on_import(mutant))
                if live is fresh:
                    continue
                if fresh:
                    tests = tests or self.coverage.in_turn(self.coverage.seconds)
                yield mutant, tree, self._affordable(self._likeliest(mutant, tests))

    def _likeliest(self, mutant: Mutant, tests: list[str]) -> list[str]:
        """Return tests with those first that have killed others of the same function."""
        killers = self.killers.get((mutant.file, mutant.unit), Counter())
        return sorted(tests, key=lambda test: -killers[test])

    def _affordable(self, tests: list[str]) -> list[str]:
        total, kept = 0.0, list[str]()
        for test in tests:
            total += self.coverage.seconds[test] + 0.005
            if total > self.patience and kept:
                break
            kept.append(test)
        return kept

    def note(self, mutant: Mutant, outcome: str, test: str, tried: int, seconds: float) -> None:
        """Append an outcome to the store."""
        entry = {
            "key": mutant.key,
            "file": mutant.file,
            "unit": mutant.unit,
            "line": mutant.first,
            "operator": mutant.operator,
            "change": mutant.change,
            "outcome": outcome,
            "test": test,
            "tried": tried,
            "seconds": round(seconds, 2),
        }
        STORE.mkdir(parents=True, exist_ok=True)
        with (STORE / f"outcomes-{self.shard[0]}-{self.shard[1]}.jsonl").open("a") as out:
            out.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self._learn(entry)


def in_a_fork(body: Callable[[], str], cpu: int, wall: float) -> tuple[str, str]:
    """Run the body in a child: its word, the failing test or "", or how the child died."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setpgid(0, 0)
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            os.write(writing, body().encode())
            os._exit(0)
        except BaseException as error:
            os.write(writing, f"!{type(error).__name__}".encode())
        finally:
            os._exit(1)
    os.close(writing)
    until = time.monotonic() + wall
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
            break
        time.sleep(0.002)
    with os.fdopen(reading) as words:
        said = words.read() if not os.WIFSIGNALED(ended[1]) else ""
    if os.WIFSIGNALED(ended[1]):
        late = {signal.SIGKILL, signal.SIGXCPU}
        return ("timeout" if os.WTERMSIG(ended[1]) in late else "killed"), "signal"
    if said.startswith("?"):
        return "invalid", said
    return ("killed" if said else "survived"), said


class Live:
    """A plugin that, instead of running the collected tests, tries live mutants on them."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()  # else every child would copy what its collector touches
        for mutant, tree, tests in self.work.open(live=True):
            chosen = [items[test] for test in tests if test in items]
            expected = sum(self.work.coverage.seconds[item.nodeid] for item in chosen)

            def body(mutant: Mutant = mutant, tree: ast.Module = tree, chosen: Any = chosen) -> str:
                _forget()
                try:
                    swap(mutant, tree)
                except Exception as error:
                    return f"?{error}"
                for item, following in zip(chosen, [*chosen[1:], None], strict=False):
                    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                    if self.failed:
                        return str(item.nodeid)
                return ""

            began = time.monotonic()
            outcome, test = in_a_fork(body, int(5 + 2 * expected), 60 + 20 * expected)
            self.work.note(mutant, outcome, test, len(chosen), time.monotonic() - began)
        return True


def try_live(work: Work, paths: Sequence[str]) -> None:
    """Try the mutants that need no new import."""
    _calm_hypothesis()
    pytest.main([*QUIET, *paths], plugins=[Live(work)])


class First:
    """A plugin that remembers the first test that fails."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid


def try_fresh(work: Work) -> None:
    """Try the mutants that only a new import of the library shows."""
    _calm_hypothesis()
    for name in ("mpmath", "numpy.testing", "pyarrow.csv", "scipy.optimize", "scipy.stats"):
        importlib.import_module(name)  # here, so that no child has to

    assert "dplinear" not in sys.modules
    for mutant, tree, tests in work.open(live=False):
        expected = sum(work.coverage.seconds[test] for test in tests)

        def body(mutant: Mutant = mutant, tree: ast.Module = tree, tests: Any = tests) -> str:
            sys.meta_path.insert(0, Importer(mutant, tree))
            first = First()
            code = pytest.main([*QUIET, "-x", *tests], plugins=[first])
            return "" if code == 0 else first.test or f"!{code!r}"

        began = time.monotonic()
        outcome, test = in_a_fork(body, int(20 + 2 * expected), 90 + 20 * expected)
        work.note(mutant, outcome, test, len(tests), time.monotonic() - began)
