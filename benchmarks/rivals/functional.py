"""diffprivlib's LinearRegression as installed: the functional mechanism of a common library.

Zhang et al. 2012 (arXiv 1208.0219): Laplace noise on the coefficients of the squared loss. It is
pure ε-DP by its own account, which is not checked here, and its means divide by the true number of
rows, so its neighbours are replace: of all methods it alone is not held to add_remove.

It needs an old scikit-learn, so it lives in an environment of its own, made on demand in the
benchmarks' cache and called through a subprocess.
"""

import atexit
import json
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.cache import folder
from benchmarks.rivals.common import Array, Line
from dplinear.noise.simulation import Generator
from dplinear.privacy import ApproxDP, Guarantee

PACKAGES = ("diffprivlib==0.6.5", "scikit-learn<1.6", "numpy<2")


class MissingError(RuntimeError):
    """The rival cannot be installed here."""


def interpreter() -> Path:
    """Return the interpreter that has diffprivlib; make its environment where it is missing."""
    home = folder("diffprivlib")
    python = home / "environment/bin/python"
    if (home / "whole").exists() and python.exists():
        return python
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        shutil.rmtree(home / "environment", ignore_errors=True)
        for command in (
            [sys.executable, "-m", "venv", str(home / "environment")],
            [*pip, *PACKAGES],
        ):
            subprocess.run(command, check=True, capture_output=True, timeout=900)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingError(
            f"diffprivlib cannot be installed here ({type(error).__name__})"
        ) from None
    (home / "whole").touch()
    return python


class Worker:
    """A process that fits models until this one ends."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="dplinear-functional-"))
        script = Path(__file__).with_name("functional_worker.py")
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            [str(interpreter()), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        atexit.register(self.close)
        if self._answer() != "ready":
            raise MissingError("diffprivlib is installed but cannot be imported")

    def _answer(self) -> str:
        if self._process.stdout is None:
            return ""
        return self._process.stdout.readline().strip()

    def fit(self, rows: Array, target: Array, epsilon: float, seed: int) -> Array:
        """Return the intercept and the coefficients."""
        names = {part: self._folder / f"{part}.npy" for part in ("rows", "target", "result")}
        np.save(names["rows"], rows)
        np.save(names["target"], target)
        asked = {part: str(path) for part, path in names.items()}
        if self._process.stdin is None:
            raise MissingError("diffprivlib's process cannot be written to")
        self._process.stdin.write(json.dumps({**asked, "epsilon": epsilon, "seed": seed}) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if answer != "done":
            raise MissingError(f"diffprivlib says: {answer or 'nothing, it has ended'}")
        return np.asarray(np.load(names["result"]), np.float64)

    def close(self) -> None:
        """End the process and remove its files."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


@cache
def _worker() -> Worker:
    return Worker()


def fit(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return diffprivlib's line at ε; it does not use δ.

    Requires: an (ε, δ) guarantee; cells and targets in [-1, 1].
    Promises: what diffprivlib promises. Raises MissingError where it cannot be installed.
    """
    if not isinstance(guarantee, ApproxDP):
        raise TypeError("diffprivlib's regression takes ε.")
    found = _worker().fit(rows, target, guarantee.epsilon, int(generator.integers(2**31)))
    return Line(float(found[0]), found[1:])
