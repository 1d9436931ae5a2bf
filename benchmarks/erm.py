"""One private model of many sparse features: seconds and peak memory of whole fits.

    python benchmarks/erm.py

Text-like rows: 100 features of 100,000 in each of 100,000 rows, the k-th feature about 1/k as
popular as the first; ‖x‖ = 1, |y| ≤ 1, the truth on 20 frequent features. Every case runs in a
process of its own, so that its peak memory, the table included, is its own. Exits with 1 if
any fit, compressed or not, takes more than 60 seconds or 2 GB.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from dplinear.convex.compression.projections import Projection
from dplinear.curator import release_model
from dplinear.curator.examples import Rules, read_examples
from dplinear.noise import simulation

ROWS, FEATURES, FILLED, TRUE = 100_000, 100_000, 100, 20
SECONDS, GIGABYTES = 60.0, 2.0
ASKED: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "row_norm": 1.0, "constraint": 1.0}


def table(rows: int, features: int) -> tuple[Any, Any]:
    """Return text-like rows and a label for each."""
    random = simulation.generator(1)
    places = (features ** random.random((rows, FILLED))).astype(np.int32) - 1
    while True:
        places.sort(axis=1)
        twice = np.zeros(places.shape, bool)
        np.equal(places[:, 1:], places[:, :-1], out=twice[:, 1:])
        if not twice.any():
            break
        places[twice] = random.integers(features, size=int(twice.sum()))
    starts = np.arange(0, rows * FILLED + 1, FILLED)
    values = np.full(rows * FILLED, FILLED**-0.5)
    X = sparse.csr_array((values, places.ravel(), starts), shape=(rows, features))
    theta = np.zeros(features)
    theta[:TRUE] = random.choice([-1.0, 1.0], TRUE) / TRUE
    signal = X @ theta
    noise = random.normal(0.0, 0.1, rows)
    return X, np.clip(signal / signal.std() * 0.3 + noise, -1.0, 1.0)


def _read(X: Any, y: Any, target: int | None) -> None:
    image = None if target is None else Projection("gaussian", target, X.shape[1], 1)
    rules = Rules(features=X.shape[1], row_norm=1.0, target_bounds=(-1, 1), projection=image)
    read_examples(X, y, rules, progress=True)


def _fit(X: Any, y: Any, **options: Any) -> None:
    labels: dict[str, Any] = {"target_bounds": (-1.0, 1.0)}
    if options.get("loss") in {"logistic", "hinge"}:
        y, labels = (y > 0).astype(int), {"classes": (0, 1)}
    release_model(
        X, target=y, expected_rows=float(len(y)), progress=True, **ASKED, **labels, **options
    )


CASES: dict[str, Callable[[Any, Any], None]] = {
    "reading alone": lambda X, y: _read(X, y, None),
    "reading and projecting to 200": lambda X, y: _read(X, y, 200),
    "squared loss, auto": _fit,
    "logistic loss, auto": lambda X, y: _fit(X, y, loss="logistic"),
    "noisy gradient in 200 dimensions": lambda X, y: _fit(
        X, y, learner="noisy_gradient", projection="gaussian", dimension=200
    ),
    "Frank-Wolfe in 200 dimensions": lambda X, y: _fit(
        X, y, learner="frank_wolfe", projection="gaussian", dimension=200
    ),
    "Frank-Wolfe on all features": lambda X, y: _fit(X, y, learner="frank_wolfe", projection=None),
}
JUDGED = [name for name in CASES if not name.startswith("reading")]


def measured(name: str, rows: int, features: int) -> dict[str, float]:
    """Return the seconds of one case in this process, those its threads were busy, and its peak."""
    X, y = table(rows, features)
    start, busy = time.perf_counter(), time.process_time()
    CASES[name](X, y)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    return {"seconds": seconds, "busy": busy, "gigabytes": peak * unit / 1e9}


def main() -> int:
    """Print the table; return 1 if a threshold is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES, help="run one case in this process")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--features", type=int, default=FEATURES)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measured(given.case, given.rows, given.features)))
        return 0
    sizes = f"{given.rows:,} rows, {given.features:,} features, {FILLED} filled"
    print(f"{sizes:<46} seconds    busy      GB")
    met = True
    for name in CASES:
        command = [sys.executable, __file__, "--case", name]
        command += ["--rows", str(given.rows), "--features", str(given.features)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - our own
        found = json.loads(done.stdout)
        figures = f"{found['seconds']:7.1f} {found['busy']:7.1f} {found['gigabytes']:7.2f}"
        print(f"{name:<46} {figures}", flush=True)
        if name in JUDGED:
            met = met and found["seconds"] < SECONDS and found["gigabytes"] < GIGABYTES
    verdict = "met" if met else "MISSED"
    print(f"every fit within {SECONDS:g} seconds and {GIGABYTES:g} GB: {verdict}")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
