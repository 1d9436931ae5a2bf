"""Runs a page as its reader would: block by block, in one folder, in one interpreter.

The noise of a block is fixed by the block's own text, so that its output is the same each time and
does not change when blocks are added above it. It takes the place of the system's entropy, not of
`simulation.door`, whose releases say on every summary that they are simulated: readers do not see
that. No release that is made here leaves the tests.
"""

import contextlib
import hashlib
import io
import os
import re
import shlex
import subprocess
import threading
import traceback
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from pyarrow import parquet

from dplinear.__main__ import main
from dplinear.demo import visits
from dplinear.noise import entropy

from .blocks import Block, Step, read, steps

# Commands of others, which need a network or change the reader's machine.
NOT_RUN = ("pip", "make", "git", "python")
SLOW = re.compile("# .*minutes")  # such commands have tests of their own
PLAIN = ("ls", "cat", "head", "mkdir")
SCREEN = {"COLUMNS": "80", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC"}
HOME = "/home/you"  # what the temporary folder is called in outputs


def furnish(folder: Path) -> None:
    """Put the tables that pages speak of into a folder."""
    for name, table in _tables().items():
        parquet.write_table(table, folder / name)


@cache
def _tables() -> dict[str, pa.Table]:
    whole = visits()
    half = len(whole) // 2
    stays = pa.table({"patient": pa.array(range(3_000)), "age": whole["age"][:3_000]})
    return {
        "visits.parquet": whole,
        "visits-1.parquet": whole[:half],
        "visits-2.parquet": whole[half:],
        "stays.parquet": stays,
    }


def run(page: str, folder: Path) -> list[tuple[Step, str]]:
    """Run a page in a folder; return what each of its steps printed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, SCREEN),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        for step in steps(read(page)):
            if step.code.title:
                Path(step.code.title).write_text(step.code.text, encoding="utf-8")
            else:
                output = _run(step.code, page, names).replace(str(folder), HOME)
                printed.append((step, output))
    return printed


def _run(block: Block, page: str, names: dict[str, Any]) -> str:
    screen = io.StringIO()
    with (
        fixed_noise(block.text),
        contextlib.redirect_stdout(screen),
        contextlib.redirect_stderr(screen),
    ):
        if block.language == "python":
            _python(block, page, names)
        else:
            _shell(block, page, screen)
    return screen.getvalue()


def _python(block: Block, page: str, names: dict[str, Any]) -> None:
    """Run Python; `# raises Kind` says that the block ends with such an error, whose end is shown.

    Tracebacks point at the page's own lines.
    """
    expected = re.search(r"# raises (\w+)", block.text)
    code = compile("\n" * block.line + block.text, page, "exec")
    try:
        exec(code, names)
    except Exception as error:
        if expected is None or type(error).__name__ != expected[1]:
            raise
        print("".join(traceback.format_exception_only(error)))  # noqa: T201 - as Python does
        return
    assert expected is None, f"{page}: nothing was raised by:\n{block.text}"


def _shell(block: Block, page: str, screen: io.StringIO) -> None:
    """Run commands; `# exit code N` says how a line ends that does not end well."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words or words[0] in NOT_RUN or SLOW.search(line):
            continue
        told = re.search(r"# .*\bexit code (\d+)", line)
        code = _command(words)
        said = f"{page}: exit code {code} of: {line}\n{screen.getvalue()}"
        assert code == (int(told[1]) if told else 0), said


def _command(words: list[str]) -> int:
    name, *rest = words
    if name == "dplinear":
        return main(rest)
    if name == "cd":
        os.chdir(rest[0])
        return 0
    assert name in PLAIN, f"{name} is not a command that pages may use"
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, end="")  # noqa: T201 - as a terminal does
    return done.returncode


@contextlib.contextmanager
def fixed_noise(text: str) -> Iterator[None]:
    key = hashlib.sha256(text.encode()).digest()
    own = threading.local()

    def stream() -> tuple[entropy.Keystream, tuple[int, int]]:
        if not hasattr(own, "stream"):
            own.stream = entropy.Keystream(key, refreshed=False)
        return own.stream, entropy._process.token()

    with mock.patch.object(entropy, "_own_stream", stream):
        yield
