"""Plants a bug in a copy of the sources, and runs the test that must see it.

`python tests/planted/runner.py` runs them all and prints a table; with names, only those.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from planted.bugs import BUGS, Bug  # noqa: E402 - found however this file is run

_ONE_FAILED = 1  # pytest's exit code where tests ran and at least one of them failed
_TIMEOUT = 600.0
HEADER = ("bug", "what is wrong", "in", "seen by")


def occurrences(bug: Bug) -> int:
    """Return how often the snippet stands in its file."""
    return (ROOT / "src" / "dplinear" / bug.file).read_text(encoding="utf-8").count(bug.good)


@contextmanager
def planted(bug: Bug | None) -> Iterator[Path]:
    """Yield a copy of the sources, with the bug in it."""
    with tempfile.TemporaryDirectory(prefix="dplinear-planted-") as folder:
        copy = Path(folder) / "src"
        # With the compiled files, which are still good for all but one source.
        shutil.copytree(ROOT / "src", copy)
        if bug is not None:
            file = copy / "dplinear" / bug.file
            text = file.read_text(encoding="utf-8")
            if text.count(bug.good) != 1:
                raise ValueError(f"The snippet of {bug.name} stands {text.count(bug.good)} times.")
            file.write_text(text.replace(bug.good, bug.bad), encoding="utf-8")
            for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
                compiled.unlink()
        yield copy


def run(bug: Bug | None, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run tests on the sources with a bug, or without any."""
    with planted(bug) as sources:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
        for inherited in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
            environment.pop(inherited, None)
        return subprocess.run(
            [*command, *tests],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )


def caught(bug: Bug) -> bool:
    """Return whether the named test fails because of the bug: fails, not breaks off."""
    done = run(bug, [bug.test])
    return done.returncode == _ONE_FAILED and " failed" in done.stdout


def markdown() -> Iterator[str]:
    """Yield the table of the bugs."""
    yield "| " + " | ".join(HEADER) + " |"
    yield "|" + "---|" * len(HEADER)
    for bug in BUGS:
        yield f"| {bug.name} | {bug.wrong} | `{bug.file}` | `{bug.test.removeprefix('tests/')}` |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bugs that are named, or all; return 1 if one of them is not seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="BUG")
    parser.add_argument("--markdown", action="store_true", help="print the list, run nothing")
    chosen = parser.parse_args(arguments)
    if chosen.markdown:
        sys.stdout.write("\n".join(markdown()) + "\n")
        return 0
    missed = 0
    for bug in BUGS:
        if chosen.names and bug.name not in chosen.names:
            continue
        seen = caught(bug)
        missed += not seen
        sys.stdout.write(f"{'seen' if seen else 'MISSED':7} {bug.name}\n")
        sys.stdout.flush()
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
