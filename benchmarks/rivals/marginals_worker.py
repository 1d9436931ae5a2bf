"""Fits DD-SSP on request: run by the interpreter that has dpmm installed.

Reads a line of JSON for each request (files of rows and target, ε, δ, seed, bins, file to write)
and answers with a line: "done", or what went wrong.
"""

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np


def moments(model: Any, names: list[str], bins: int) -> Any:
    """Return the second moments of (1, columns) by the model, each bin at its middle."""
    middles = (np.arange(bins) + 0.5) / bins * 2 - 1
    found = np.zeros((len(names) + 1, len(names) + 1))
    found[0, 0] = model.total
    for i, name in enumerate(names, start=1):
        counts = model.project((name,)).datavector()
        found[0, i] = found[i, 0] = counts @ middles
        found[i, i] = counts @ middles**2
        for j, other in enumerate(names[: i - 1], start=1):
            pair = model.project((other, name)).datavector(flatten=False)
            found[i, j] = found[j, i] = middles @ pair @ middles
    return found


def line(asked: dict[str, Any]) -> Any:
    """Return the intercept and the coefficients."""
    import pandas as pd
    from dpmm.models import aim  # type: ignore[import-not-found]
    from sklearn.utils import check_random_state

    draws, bins = check_random_state(asked["seed"]), asked["bins"]
    aim.gaussian_noise = lambda sigma, size=None: draws.normal(0.0, sigma, size)
    table = np.column_stack([np.load(asked["rows"]), np.load(asked["target"])])
    names = [str(column) for column in range(table.shape[1])]
    cells = np.minimum(((table + 1) / 2 * bins).astype(int), bins - 1)
    mechanism = aim.AIM(
        epsilon=asked["epsilon"],
        delta=asked["delta"],
        prng=draws,
        degree=2,
        domain=dict.fromkeys(names, bins),
        n_jobs=1,
    )
    mechanism.fit(pd.DataFrame(cells, columns=names))
    found = moments(mechanism.model, names, bins)
    gram = found[:-1, :-1] + 1e-12 * np.eye(len(names))
    return np.linalg.lstsq(gram, found[:-1, -1], rcond=None)[0]


def main() -> None:
    """Answer requests until there are no more."""
    warnings.simplefilter("ignore")
    importlib.import_module("dpmm.models.aim")
    print("ready", flush=True)
    for text in sys.stdin:
        asked = json.loads(text)
        try:
            with Path(asked["result"]).open("wb") as file:
                np.save(file, line(asked))
            print("done", flush=True)
        except Exception as error:  # noqa: BLE001 - whatever it was, the benchmark goes on
            print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
