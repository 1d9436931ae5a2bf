"""Fits diffprivlib's LinearRegression on request: run by the interpreter that has it installed.

Reads a line of JSON for each request (files of rows and target, ε, seed, file to write) and answers
with a line: "done", or what went wrong.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np


def main() -> None:
    """Answer requests until there are no more."""
    warnings.simplefilter("ignore")
    from diffprivlib.models import (  # type: ignore[import-not-found]
        LinearRegression,
    )

    print("ready", flush=True)
    for text in sys.stdin:
        asked = json.loads(text)
        rows, target = np.load(asked["rows"]), np.load(asked["target"])
        model = LinearRegression(
            epsilon=asked["epsilon"],
            bounds_X=(-1.0, 1.0),
            bounds_y=(-1.0, 1.0),
            random_state=asked["seed"],
        )
        try:
            model.fit(rows, target)
            found = np.concatenate([np.ravel(model.intercept_), np.ravel(model.coef_)])
            with Path(asked["result"]).open("wb") as file:
                np.save(file, found)
            print("done", flush=True)
        except Exception as error:  # noqa: BLE001 - whatever it was, the benchmark goes on
            print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
