"""Seeded releases of every kind, whose numbers no change of the house may change.

`python tests/contracts/seeded.py --digests` prints a digest of every bit: two checkouts on one
machine must agree wherever a mechanism did not change. `--write` keeps the numbers themselves,
which other machines come to as well, but for the last places of their linear algebra.
"""

import argparse
import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dplinear as dpl
from dplinear.noise import simulation
from dplinear.privacy import ZCDP

NUMBERS = Path(__file__).with_name("seeded.json")
PRIVACY: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
ROWS = 600
SHOWN = 24  # numbers kept of each release


def table() -> Any:
    generator = simulation.generator(20)
    age, bmi = generator.uniform(20, 80, ROWS), generator.uniform(15, 45, ROWS)
    smoker = generator.integers(0, 2, ROWS)
    cost = 200 * age + 300 * bmi + 9_000 * smoker + generator.normal(0, 1_500, ROWS)
    return np.column_stack([age, bmi, smoker, cost])


def schema(*derived: str) -> dpl.Schema:
    columns = {"age": (0, 100), "bmi": (10, 60), "smoker": (0, 1), "cost": (0, 60_000)}
    return dpl.Schema(columns, derived=list(derived))


def wide() -> tuple[Any, Any, Any]:
    generator = simulation.generator(21)
    X = generator.normal(0, 1, (ROWS, 30)) / np.sqrt(30)
    return X, np.clip(X @ np.linspace(-1, 1, 30), -1, 1), (X[:, 0] > 0).astype(int)


def moments(**options: Any) -> Callable[[], Any]:
    return lambda: dpl.release_moments(table(), schema("age^2"), **(PRIVACY | options)).values


def sketch(**options: Any) -> Callable[[], Any]:
    return lambda: dpl.release_sketch(table(), schema(), **options).values


def model(target: str, **options: Any) -> Callable[[], Any]:
    def release() -> Any:
        found = dpl.release_model(table(), schema("age^2"), target, **(PRIVACY | options))
        return np.append(found.coefficients.values, found.intercept)

    return release


def rows(**options: Any) -> Callable[[], Any]:
    def release() -> Any:
        found = dpl.release_rows(table(), schema(), **options).to_arrow()
        return np.column_stack([column.to_numpy() for column in found.columns])

    return release


def constrained(learner: str, **options: Any) -> Callable[[], Any]:
    def release() -> Any:
        X, y, _ = wide()
        given = {"row_norm": 1.5, "constraint": 1.0, "target_bounds": (-1, 1), "projection": None}
        found = dpl.release_model(
            X, target=y, mechanism=learner, seed=5, **(PRIVACY | given | options)
        )
        return found.source.dense

    return release


def classified(loss: str, learner: str, **options: Any) -> Callable[[], Any]:
    def release() -> Any:
        X, _, labels = wide()
        given = {"row_norm": 1.5, "constraint": 1.0, "classes": (0, 1), "projection": None}
        asked = PRIVACY | given | options
        return dpl.release_model(
            X, target=labels, loss=loss, mechanism=learner, seed=5, **asked
        ).source.dense

    return release


def projected() -> Any:
    X, y, _ = wide()
    X = np.round(X * 2**20) / 2**20  # so that products are exact, whoever multiplies
    matrix = np.sign(simulation.generator(22).normal(0, 1, (16, 30))) / 4
    given = {"row_norm": 1.5, "constraint": 1.0, "target_bounds": (-1, 1)}
    return dpl.release_model(
        X @ matrix.T, target=y, projected=True, projection=matrix, **(PRIVACY | given)
    ).source.dense


def mean() -> Any:
    found = dpl.release_mean(table(), dpl.Schema(dict(schema_columns())), guarantee=ZCDP(0.5))
    return found.mean.values


def covariance() -> Any:
    found = dpl.release_covariance(table(), dpl.Schema(dict(schema_columns())), guarantee=ZCDP(2))
    return found.covariance.values


def schema_columns() -> list[tuple[str, tuple[float, float]]]:
    return [("age", (0, 1000)), ("bmi", (0, 1000)), ("smoker", (0, 1)), ("cost", (0, 600_000))]


def bounds() -> Any:
    found = dpl.suggest_bounds(table(), ["age", "bmi", "smoker", "cost"], rho=1.0)
    columns = found.schema.to_dict()["columns"].values()
    return np.array([[float(Fraction(each[end])) for end in ("low", "high")] for each in columns])


def rows_per_unit() -> Any:
    found = dpl.suggest_rows_per_unit(table()[:, 2:3], unit="smoker", epsilon=1.0)
    return np.array([found.rows_per_unit, *found.counts])


def rows_per_unit_in_zcdp() -> Any:
    return np.array(dpl.suggest_rows_per_unit(table()[:, :1], unit="age", rho=0.1).counts)


KINDS: dict[str, Callable[[], Any]] = {
    "analyze_gauss": moments(),
    "analyze_gauss of replaced rows": moments(neighbours="replace"),
    "analyze_gauss in zCDP": moments(guarantee=ZCDP(0.1), epsilon=None, delta=None),
    "additive_wishart": moments(mechanism="additive_wishart"),
    "sketch of moments": moments(mechanism="sketch"),
    "sketch, least eigenvalue": moments(mechanism="sketch", least_eigenvalue_share=0.2),
    "inverse_wishart": moments(mechanism="inverse_wishart"),
    "sketch": sketch(**PRIVACY),
    "mi_projection": sketch(mechanism="mi_projection", bits=0.5),
    "whitened_descent": model("cost"),
    "whitened_descent of replaced rows": model("cost", neighbours="replace"),
    "adassp": model("cost", mechanism="adassp"),
    "coinpress": model("cost", mechanism="coinpress"),
    "huber_descent": model("cost", loss="huber"),
    "logistic_descent": model("smoker", loss="logistic"),
    "additive_noise": rows(bits=0.5),
    "projection, pure": rows(k=2, epsilon=1.0, neighbours="row_l1", change=0.5),
    "projection, approximate": rows(k=2, neighbours="row_l2", **PRIVACY),
    "noisy_gradient": constrained("noisy_gradient"),
    "noisy_gradient, projected": constrained("noisy_gradient", projection="gaussian", dimension=8),
    "whitened": constrained("whitened"),
    "mirror_descent": constrained("mirror_descent"),
    "frank_wolfe": constrained("frank_wolfe"),
    "frank_wolfe, pure": constrained("frank_wolfe", delta=None),
    "exponential": constrained("exponential", delta=None, epsilon=2.0),
    "objective_perturbation": classified("logistic", "objective_perturbation"),
    "output_perturbation": classified("logistic", "output_perturbation"),
    "hinge": classified("hinge", "noisy_gradient"),
    "projected rows given": projected,
    "mean": mean,
    "covariance": covariance,
    "bounds": bounds,
    "rows per unit": rows_per_unit,
    "rows per unit in zCDP": rows_per_unit_in_zcdp,
}


def released(kind: str) -> Any:
    """Return the numbers of one release, from its seed."""
    with simulation.door(7):
        return np.asarray(KINDS[kind](), dtype=float)


def sample(values: Any) -> list[float]:
    """Return the first numbers and, for the rest, their sum and their size."""
    flat = np.ravel(values)
    whole = [float(flat.sum()), float(np.linalg.norm(flat))]
    return [*flat[:SHOWN].tolist(), *whole]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--digests", action="store_true")
    asked = parser.parse_args()
    found = {kind: released(kind) for kind in KINDS}
    if asked.digests:
        for kind, values in found.items():
            print(f"{hashlib.sha256(values.tobytes()).hexdigest()[:16]}  {kind}")  # noqa: T201
    if asked.write:
        kept = {kind: sample(values) for kind, values in found.items()}
        NUMBERS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
