"""Inputs of the gates that take a table and a schema."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dplinear
from dplinear.curator import second_moments
from dplinear.descent.settings import Settings
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, PureDP
from dplinear.registry import MOMENTS
from dplinear.schema import Schema

from .cases import GUARANTEES, Case, mutated, schema_of, tabled
from .dice import Dice, Maker
from .strange import strange
from .values import odd, real, whole, word


class Book:
    """A ledger that lets everything pass."""

    def spend(self, request: Any) -> None:
        _ = request


def _guarantee(dice: Dice) -> Any:
    if dice.chance(0.3):
        return odd(dice)
    return dice.make(
        (
            lambda: ZCDP(0.5),
            lambda: GDP(1.0),
            lambda: PureDP(1.0),
            lambda: ApproxDP(1.0, 1e-6),
            lambda: MIDP(0.5),
            lambda: ZCDP(dice.pick((5e-324, 1e-9, 1e9, 1e300))),
            lambda: PureDP(dice.pick((1e-300, 1e-9, 1e9, 1e300))),
            lambda: ApproxDP(
                dice.pick((0.0, 1e-300, 1e-6, 1e3, 1e300)),
                dice.pick((0.0, 5e-324, 1e-100, 0.5, 1 - 2**-53)),
            ),
        )
    )


def _ledger(dice: Dice) -> Any:
    return Book() if dice.chance(0.5) else odd(dice)


COMMON: dict[str, Maker] = {
    "epsilon": real,
    "delta": lambda dice: dice.pick((1e-6, 1e-300, 0.5, 0, 1)) if dice.chance(0.5) else odd(dice),
    "guarantee": _guarantee,
    "neighbours": lambda dice: word(dice, "add_remove", "replace", "element", "row_l1", "row_l2"),
    "ledger": _ledger,
    "dataset": lambda dice: word(dice, "people", "a" * 201),
    "request": lambda dice: word(dice, "first", "é"),
}
READING: dict[str, Maker] = {
    "threads": lambda dice: dice.pick((1, 2)) if dice.chance(0.4) else odd(dice),
    "engine": word,
    "progress": lambda dice: dice.pick((True, False)) if dice.chance(0.3) else odd(dice),
}
_RIDGE: dict[str, Maker] = {
    "rows": whole,
    "least_eigenvalue_share": real,
    "adjust": lambda dice: word(dice, "ridge", "rows"),
    "ridge": real,
    "most_rows": whole,
    "degrees": whole,
    "most_degrees": whole,
    "scale": real,
}
# What users make themselves, and hand to a gate.
MADE_BY_USERS = ("Projection", "RowMap")


def _schema(dice: Dice) -> Any:
    return odd(dice)


def _budget(dice: Dice) -> dict[str, Any]:
    """Return what is asked for; cheap to calibrate more often than not."""
    if dice.chance(0.9):
        return {"guarantee": ZCDP(0.5)}
    return {"epsilon": 1.0, "delta": 1e-6}


def _table_case(
    dice: Dice,
    gate: Callable[..., Any],
    schema: Any,
    arguments: Mapping[str, Any],
    names: Sequence[str],
    *,
    replace: bool = False,
) -> Case:
    """Return the case of a gate that takes a table first, then what `arguments` say."""
    said = arguments.get("neighbours")
    replacing = replace or (isinstance(said, str) and said != "add_remove")
    where = (gate.__name__, "Schema", "open_ledger", *GUARANTEES, *names)
    columns = schema.columns if isinstance(schema, Schema) else ("a", "b")
    if dice.chance(0.25):
        seed = dice.below(2**40)
        return Case(where, lambda folder: gate(strange(Dice(seed), folder), **arguments))
    table = tabled(dice, columns, replace=replacing)
    return Case(
        where,
        lambda folder: gate(table.held(folder), **arguments),
        lambda folder: gate(table.other_held(folder), **arguments),
        shown=f"{gate.__name__}({table.container}, {table.table.flavours})",
    )


def moments(dice: Dice) -> Case:
    schema = schema_of(dice)
    mechanism = dice.pick(("analyze_gauss",) * 20 + tuple(MOMENTS))
    budget = _budget(dice) if mechanism == "analyze_gauss" else {"epsilon": 1.0, "delta": 1e-6}
    base = {"schema": schema, "mechanism": mechanism, "threads": 1, **budget}
    own = {"mechanism": lambda dice: word(dice, *MOMENTS), "schema": _schema}
    arguments = mutated(dice, base, COMMON | READING | _RIDGE | own)
    return _table_case(dice, dplinear.release_moments, schema, arguments, MADE_BY_USERS)


def sketch(dice: Dice) -> Case:
    schema = schema_of(dice)
    base: dict[str, Any] = {"schema": schema, "threads": 1}
    if dice.chance(0.85):
        base |= {"mechanism": "mi_projection", "bits": 0.5}
    else:
        base |= {"epsilon": 1.0, "delta": 1e-6}
    own: dict[str, Maker] = {
        "mechanism": lambda dice: word(dice, "sketch", "mi_projection"),
        "bits": real,
        "base": whole,
        "target": lambda dice: word(dice, "a", "b", "a=b"),
        "y_public": odd,
        "lower_bound": real,
        "least_eigenvalue_bits": real,
        "schema": _schema,
        "release": odd,
        "rows": lambda dice: (
            word(dice, "linear", "logarithmic", "full") if dice.chance(0.5) else whole(dice)
        ),
    }
    arguments = mutated(dice, base, COMMON | READING | _RIDGE | own)
    replace = base.get("mechanism") == "mi_projection"
    return _table_case(
        dice, dplinear.release_sketch, schema, arguments, MADE_BY_USERS, replace=replace
    )


_OUTPUTS = (
    "out.arrow",
    "out.parquet",
    "out.csv",
    "out.txt",
    "none/out.csv",
    "",
    "out",
    "a\x00.csv",
)


def rows(dice: Dice) -> Case:
    schema = schema_of(dice)
    base: dict[str, Any] = {"schema": schema, "threads": 1, "bits": 0.5}
    if dice.chance(0.3):
        base |= {
            "bits": None,
            "epsilon": 1.0,
            "delta": dice.pick((None, 1e-6)),
            "k": dice.pick((1, 2, 3)),
        }
    own: dict[str, Maker] = {
        "mechanism": lambda dice: word(dice, "auto", "additive_noise", "projection"),
        "bits": real,
        "k": whole,
        "target": lambda dice: word(dice, "a", "b"),
        "y_public": odd,
        "label": lambda dice: word(dice, "a", "b"),
        "projection": lambda dice: word(dice, "gaussian", "rademacher", "orthonormal"),
        "noise": lambda dice: word(dice, "auto", "gaussian", "laplace"),
        "change": real,
        "missing_public": odd,
        "label_share": real,
        "public_projection": odd,
        "keep_projection": odd,
        "drawn": odd,
        "schema": _schema,
        "output": odd,
    }
    arguments = mutated(dice, base, COMMON | READING | own)
    gate: Callable[..., Any] = dplinear.release_rows
    name = dice.pick(_OUTPUTS) if "output" not in arguments and dice.chance(0.3) else None
    case = _table_case(dice, gate, schema, arguments, MADE_BY_USERS, replace=True)
    if name is None or case.neighbour is None:
        return case
    return Case(
        case.names,
        lambda folder: _written(folder, name, case.call, arguments),
        lambda folder: _written(folder, name, case.neighbour or case.call, arguments),
    )


def _written(
    folder: Path, name: str, call: Callable[[Path], Any], arguments: dict[str, Any]
) -> Any:
    """Release rows to a file of a folder, whose size must be a public fact."""
    arguments["output"] = folder / name if name else name
    release = call(folder)
    left = sorted(file.name for file in folder.iterdir() if not file.name.startswith("table"))
    if any(file.startswith(".") for file in left):
        raise AssertionError(f"leaves {left} beside the output")
    if name.endswith((".arrow", ".parquet")):
        release.sizes = (folder / name).stat().st_size
    return release


def model(dice: Dice) -> Case:
    schema = schema_of(dice)
    base: dict[str, Any] = {
        "schema": schema,
        "target": dice.pick(schema.names),
        "threads": 1,
        **_budget(dice),
    }
    base["mechanism"] = dice.pick(("adassp",) * 10 + ("whitened_descent", "coinpress"))
    if dice.chance(0.06):
        base |= {"mechanism": None, "loss": dice.pick(("huber", "logistic"))}
    own: dict[str, Maker] = {
        "loss": lambda dice: word(dice, "squared", "huber", "logistic"),
        "mechanism": lambda dice: word(
            dice, "adassp", "whitened_descent", "coinpress", "logistic_descent"
        ),
        "target": lambda dice: word(dice, "a", "b", "intercept", "a^2", "a=b"),
        "features": lambda dice: (
            dice.pick(("a", ["a"], ["a", "a"], ["a", "b"], [], "b + a", ["intercept"]))
            if dice.chance(0.6)
            else odd(dice)
        ),
        "intercept": odd,
        "shares": lambda dice: (
            dice.pick(((0.1, 0.2, 0.7), (0, 0, 1), (1, 1, 1), (0.5, 0.5)))
            if dice.chance(0.5)
            else odd(dice)
        ),
        "settings": lambda dice: Settings() if dice.chance(0.3) else odd(dice),
        "steps": whole,
        "radius": odd,
        "structure": lambda dice: word(dice, "general"),
        "unit": real,
        "schema": _schema,
    }
    arguments = mutated(dice, base, COMMON | READING | own)
    return _table_case(dice, dplinear.release_model, schema, arguments, MADE_BY_USERS)


def _coinpress(dice: Dice, gate: Callable[..., Any]) -> Case:
    schema = schema_of(dice, plain=dice.chance(0.85))
    base = {"schema": schema, "threads": 1, "steps": dice.pick((1, 2)), **_budget(dice)}
    scales = (1.0, [1.0], [1.0, 1.0], [0.0], [1e300], "x")
    own: dict[str, Maker] = {
        "steps": whole,
        "schema": _schema,
        "centred": odd,
        "scale": lambda dice: dice.pick(scales) if dice.chance(0.6) else odd(dice),
    }
    arguments = mutated(dice, base, COMMON | READING | own)
    return _table_case(dice, gate, schema, arguments, MADE_BY_USERS)


def mean(dice: Dice) -> Case:
    return _coinpress(dice, dplinear.release_mean)


def covariance(dice: Dice) -> Case:
    return _coinpress(dice, dplinear.release_covariance)


def bounds(dice: Dice) -> Case:
    schema = schema_of(dice, plain=True)
    base: dict[str, Any] = {"columns": list(schema.columns), "threads": 1}
    base |= {"rho": 0.5} if dice.chance(0.7) else _budget(dice)
    withins = (
        (-1, 1),
        (0, 1e9),
        (1e300, 1e301),
        (5, 6),
        (-1e-200, 1e-200),
        (1, 0),
        {"a": (0, 1)},
        {"z": (0, 1)},
        "boolean",
        {"a": "boolean"},
        {"type": "integer", "low": 0, "high": 9},
    )
    own: dict[str, Maker] = {
        "columns": lambda dice: (
            dice.pick((["a"], ["a", "a"], [], "a", ["z"], [1], [None], ("a", "b")))
            if dice.chance(0.6)
            else odd(dice)
        ),
        "rho": real,
        "within": lambda dice: dice.pick(withins) if dice.chance(0.6) else odd(dice),
    }
    arguments = mutated(dice, base, COMMON | READING | own)
    return _table_case(dice, dplinear.suggest_bounds, schema, arguments, MADE_BY_USERS)


def rows_per_unit(dice: Dice) -> Case:
    schema = schema_of(dice, plain=True)
    base: dict[str, Any] = {"unit": dice.pick(tuple(schema.columns)), "threads": 1}
    base |= {"rho": 0.5} if dice.chance(0.3) else {"epsilon": 0.5}
    lists: tuple[Any, ...] = ([1, 2, 4], (1_000, 1), [], [0], [1, 1], ["a"], [1_001], "1,2", [1.0])
    planned = (dplinear.ApproxDP(1.0, 1e-6), dplinear.ZCDP(0.1), dplinear.PureDP(1.0), 1.0, None)
    own: dict[str, Maker] = {
        "unit": lambda dice: dice.pick(("a", "b", "z", "", 1)) if dice.chance(0.6) else odd(dice),
        "columns": lambda dice: dice.pick((1, 0, 30, schema)) if dice.chance(0.6) else odd(dice),
        "rho": real,
        "candidates": lambda dice: dice.pick(lists) if dice.chance(0.6) else odd(dice),
        "planned": lambda dice: dice.pick(planned) if dice.chance(0.7) else odd(dice),
        "learn": lambda dice: word(dice, "regression", "moments", "mean", "distances"),
        "correlation": real,
    }
    makers = {name: make for name, make in COMMON.items() if name != "neighbours"} | READING | own
    arguments = mutated(dice, base, makers)
    gate = dplinear.suggest_rows_per_unit
    return _table_case(dice, gate, schema, arguments, MADE_BY_USERS)


def levels(dice: Dice) -> Case:
    schema = schema_of(dice, plain=True)
    base: dict[str, Any] = {"columns": list(schema.columns), "threads": 1} | _budget(dice)
    own: dict[str, Maker] = {
        "columns": lambda dice: (
            dice.pick((["a"], ["a", "a"], [], "a", ["z"], [1], [None], ("a", "b"), ["a", "a=b"]))
            if dice.chance(0.6)
            else odd(dice)
        ),
        "most_levels": lambda dice: dice.pick((1, 0, 9000, "2")) if dice.chance(0.6) else odd(dice),
    }
    arguments = mutated(dice, base, COMMON | READING | own)
    return _table_case(dice, dplinear.suggest_levels, schema, arguments, MADE_BY_USERS)


def sources(dice: Dice) -> Case:
    """Return a case of the pass alone, over every kind of table."""
    schema = schema_of(dice)
    arguments = mutated(dice, {"schema": schema, "threads": 1}, READING | {"schema": _schema})
    case = _table_case(dice, second_moments, schema, arguments, ())
    return Case(case.names, case.call, case.neighbour, releases=False)
