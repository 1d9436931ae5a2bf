"""Rivals that need old packages: an environment of their own, and a process that fits on request.

The environment is made on demand in the benchmarks' cache. A worker is a script of this folder that
reads a line of JSON for each request (files of rows and target, a file to write, and what else the
rival asks for) and answers with a line: "ready" at first, then "done", or what went wrong.
"""

import atexit
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.cache import folder
from benchmarks.rivals.common import Array


class MissingError(RuntimeError):
    """The rival cannot be installed here."""


@dataclass(frozen=True)
class Environment:
    """A package with what it needs beside it, and the script that fits with it."""

    name: str
    packages: tuple[str, ...]
    script: str

    def interpreter(self) -> Path:
        """Return the interpreter that has the package; make its environment where it is missing."""
        home = folder(self.name)
        python = home / "environment/bin/python"
        if (home / "whole").exists() and python.exists():
            return python
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            shutil.rmtree(home / "environment", ignore_errors=True)
            for command in (
                [sys.executable, "-m", "venv", str(home / "environment")],
                [*pip, *self.packages],
            ):
                subprocess.run(command, check=True, capture_output=True, timeout=900)  # noqa: S603
        except (OSError, subprocess.SubprocessError) as error:
            raise MissingError(
                f"{self.name} cannot be installed here ({type(error).__name__})"
            ) from None
        (home / "whole").touch()
        return python


class Worker:
    """A process that fits models until this one ends."""

    def __init__(self, environment: Environment) -> None:
        self._name = environment.name
        self._folder = Path(tempfile.mkdtemp(prefix=f"dplinear-{self._name}-"))
        script = Path(__file__).with_name(environment.script)
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            [str(environment.interpreter()), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        atexit.register(self.close)
        if self._answer() != "ready":
            raise MissingError(f"{self._name} is installed but cannot be imported")

    def _answer(self) -> str:
        if self._process.stdout is None:
            return ""
        return self._process.stdout.readline().strip()

    def fit(self, rows: Array, target: Array, **asked: float) -> Array:
        """Return the intercept and the coefficients."""
        names = {part: self._folder / f"{part}.npy" for part in ("rows", "target", "result")}
        np.save(names["rows"], rows)
        np.save(names["target"], target)
        if self._process.stdin is None:
            raise MissingError(f"{self._name}'s process cannot be written to")
        request = {part: str(path) for part, path in names.items()} | asked
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if answer != "done":
            raise MissingError(f"{self._name} says: {answer or 'nothing, it has ended'}")
        return np.asarray(np.load(names["result"]), np.float64)

    def close(self) -> None:
        """End the process and remove its files."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
