"""Runs of many inputs: counts, and what is wrong, with the seed of each that shows it."""

import os
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from .dice import seed_of
from .gates import one

_ROOM = 3 << 30  # bytes that a run may take beyond what it starts with
_ROOT = Path(__file__).parents[2]
_COLUMNS = ("inputs", "accepted", "refused", "pairs", "problems", "seconds")
HEADER = f"{'gate':20s}" + "".join(f"{name:>10s}" for name in _COLUMNS)


@dataclass
class Counts:
    """What came of the inputs of one gate. `pairs` are those tried on neighbouring tables too."""

    gate: str
    inputs: int = 0
    accepted: int = 0
    pairs: int = 0
    seconds: float = 0.0
    problems: dict[str, list[int]] = field(default_factory=dict)

    @property
    def wrong(self) -> int:
        return sum(map(len, self.problems.values()))

    def add(self, problem: str, seed: int) -> None:
        self.problems.setdefault(problem[:160].replace("\n", " "), []).append(seed)

    def __str__(self) -> str:
        refused = self.inputs - self.accepted
        numbers = (self.inputs, self.accepted, refused, self.pairs, self.wrong, round(self.seconds))
        lines = [f"{self.gate:20s}" + "".join(f"{number:10,d}" for number in numbers)]
        for problem, seeds in sorted(self.problems.items(), key=lambda each: -len(each[1])):
            again = f"python -m tests.fuzz '{self.gate}' --seed {seeds[0]}"
            lines.append(f"  {len(seeds)} x {problem}\n      {again}")
        return "\n".join(lines)


def counted(gate: str, inputs: int, run: int, note: Path | None = None) -> Counts:
    """Try inputs of a gate and count. `note` is a file that says which one is being tried."""
    counts = Counts(gate)
    began = time.perf_counter()
    with _limited(), (note or Path(os.devnull)).open("wb", buffering=0) as noted:
        for place in range(inputs):
            seed = seed_of(run, gate, place)
            noted.seek(0)
            noted.write(b"%20d" % seed)
            verdict = one(gate, seed)
            counts.inputs += 1
            counts.accepted += verdict.accepted
            counts.pairs += verdict.compared
            if verdict.problem is not None:
                counts.add(verdict.problem, seed)
    counts.seconds = time.perf_counter() - began
    return counts


@contextmanager
def _limited() -> Iterator[None]:
    """Turn memory without bound into an error that is seen."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def apart(gate: str, inputs: int, run: int) -> Counts:
    """Count in a process of its own, so that a crash of the interpreter is seen, too."""
    with TemporaryDirectory() as folder:
        note, result = Path(folder) / "note", Path(folder) / "result"
        command = [sys.executable, "-m", "tests.fuzz", gate, "--inputs", str(inputs)]
        command += ["--run", str(run), "--apart", folder]
        paths = [str(_ROOT / "src"), str(_ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, cwd=_ROOT, env=environment, check=False)
        if done.returncode == 0:
            found: Counts = pickle.loads(result.read_bytes())
            return found
        counts = Counts(gate)
        tried = int(note.read_bytes()) if note.exists() else 0
        counts.add(f"the interpreter ended with {done.returncode}", tried)
        return counts


def for_parent(gate: str, inputs: int, run: int, folder: Path) -> None:
    """Count, and leave the counts for the process that asked."""
    counts = counted(gate, inputs, run, folder / "note")
    (folder / "result").write_bytes(pickle.dumps(counts))
