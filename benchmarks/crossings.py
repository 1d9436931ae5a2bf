"""How often one call of `release_model` crosses a border between rooms, and through how many files.

A call counts where the function that calls and the one that is called live in different rooms of
`src/dplinear`. Nothing is timed. Run: python -m benchmarks.crossings
"""

import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import dplinear as dpl
from dplinear.noise import simulation

HOUSE = str(Path(dpl.__file__).parent) + "/"


class Crossings:
    """Counts calls between rooms, and the files that they pass through."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Count one event of the profiler."""
        if event != "call" or frame.f_back is None:
            return
        callee, caller = frame.f_code.co_filename, frame.f_back.f_code.co_filename
        if not (callee.startswith(HOUSE) and caller.startswith(HOUSE)):
            return
        self.files.add(callee)
        rooms = (_room(caller), _room(callee))
        if rooms[0] != rooms[1]:
            self.pairs[rooms] += 1


def _room(path: str) -> str:
    return path.removeprefix(HOUSE).partition("/")[0]


def trace() -> Crossings:
    """Return what one release of a small table crosses, once everything is imported."""
    generator = simulation.generator(0)
    table = generator.uniform(-1, 1, (500, 4))
    schema = dpl.Schema(dict.fromkeys(("a", "b", "c", "y"), (-1, 1)))

    def release() -> None:
        with simulation.door(1):
            dpl.release_model(table, schema, "y", epsilon=1.0, delta=1e-6, threads=1)

    release()
    seen = Crossings()
    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        release()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen


def main() -> None:
    """Print the count, and the borders that are crossed most."""
    seen = trace()
    print(f"{seen.pairs.total()} crossings through {len(seen.files)} files")
    for (caller, callee), count in seen.pairs.most_common(15):
        print(f"{count:6}  {caller} -> {callee}")


if __name__ == "__main__":
    main()
