"""One small release of every kind, made once."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import dplinear as dpl
from dplinear.analyst.releases.certificate import Certificate
from dplinear.noise import simulation
from dplinear.privacy.guarantees import ZCDP

ROWS = 4_000
SCHEMA = dpl.Schema(
    {"age": (0, 100), "bmi": (10, 60), "smoker": ["no", "yes"], "charges": (0, 60_000)}
)
NUMBERS = dpl.Schema({"age": (0, 100), "bmi": (10, 60), "charges": (0, 60_000)})
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
HOSTILE = "<script>alert('x')</script>\"&<img src=x onerror=alert(1)>"


@cache
def table() -> pa.Table:
    """Return an invented table."""
    generator = simulation.generator(7)
    age = generator.uniform(18, 90, ROWS)
    bmi = np.clip(generator.normal(27, 5, ROWS), 12, 55)
    smoker = generator.integers(0, 2, ROWS)
    noise = generator.normal(0, 4_000, ROWS)
    charges = np.clip(250 * age + 300 * (bmi - 20) + 12_000 * smoker + noise, 0, 60_000)
    words = pa.array(np.array(["no", "yes"])[smoker])
    return pa.table({"age": age, "bmi": bmi, "smoker": words, "charges": charges})


def numbers() -> pa.Table:
    return table().drop(["smoker"])


def _linear() -> Any:
    generator = simulation.generator(3)
    X = generator.uniform(-1, 1, (400, 12))
    facts: dict[str, Any] = {"row_norm": 2.0, "constraint": 2.0, "target_bounds": (-1.0, 1.0)}
    return dpl.release_model(X, target=np.clip(X[:, 0], -1, 1), **facts, **BUDGET)


def _scores() -> Any:
    model = dpl.release_model(table(), SCHEMA, "charges", ["age", "smoker"], **BUDGET)
    return dpl.release_scores(model, table(), **BUDGET)


KINDS: dict[str, Callable[[], Any]] = {
    "moments": lambda: dpl.release_moments(table(), SCHEMA, **BUDGET),
    "sketch": lambda: dpl.release_sketch(table(), SCHEMA, **BUDGET),
    "model": lambda: dpl.release_model(table(), SCHEMA, "charges", ["age", "smoker"], **BUDGET),
    "linear": _linear,
    "scores": _scores,
    "mean": lambda: dpl.release_mean(numbers(), NUMBERS, guarantee=ZCDP(0.1)),
    "covariance": lambda: dpl.release_covariance(numbers(), NUMBERS, **BUDGET),
    "rows": lambda: dpl.release_rows(numbers().slice(0, 50), NUMBERS, bits=0.5),
    "projected": lambda: dpl.release_rows(numbers().slice(0, 50), NUMBERS, k=2, **BUDGET),
    "groups": lambda: dpl.release_moments(table(), SCHEMA, by="smoker", **BUDGET),
    "bounds": lambda: dpl.suggest_bounds(numbers(), ["age", "bmi"], **BUDGET),
    "rows_per_unit": lambda: dpl.suggest_rows_per_unit(table(), unit="smoker", **BUDGET),
    "levels": lambda: dpl.suggest_levels(table(), ["smoker", "bmi"], **BUDGET),
}


@cache
def sample(kind: str) -> Any:
    """Return a release of a kind, the same one each time."""
    return KINDS[kind]()


def certificate(**changes: Any) -> Certificate:
    """Return a certificate like that of the moments, with changes."""
    held: Certificate = sample("moments").certificate
    return replace(held, **changes)
