"""How long it takes before anything happens: importing the library, and asking for help.

    python benchmarks/startup.py

Each figure is the median over fresh interpreters that take turns with one that does nothing and one
that imports NumPy. Exits with 1 if `import dplinear` takes more than 0.3 s, or `dplinear --help`
more than 1 s.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

NOTHING, NUMPY = "python -c pass", "python -c 'import numpy'"
IMPORT, HELP = "python -c 'import dplinear'", "dplinear --help"
COMMANDS = {
    NOTHING: ["-c", "pass"],
    NUMPY: ["-c", "import numpy"],
    IMPORT: ["-c", "import dplinear"],
    HELP: ["-m", "dplinear", "--help"],
}
LIMITS = {IMPORT: 0.3, HELP: 1.0}  # seconds


def measured(repeats: int) -> dict[str, float]:
    """Return the median time of each command, taking turns; the first one is not counted."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(repeats + 1):
        for name, words in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, capture_output=True)  # noqa: S603 - our own
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: median(found) for name, found in times.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    times = measured(parser.parse_args(arguments).repeats)
    for name, seconds in times.items():
        limit = f", limit {LIMITS[name]} s" if name in LIMITS else ""
        print(f"{name:28} {seconds:6.3f} s, {seconds / times[NUMPY]:4.2f} of NumPy's{limit}")
    return int(any(times[name] > limit for name, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())
