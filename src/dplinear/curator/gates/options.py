"""Options by name: of reading a table, and of the mechanisms behind each gate.

The types are for editors and type checkers, which refuse a name that no mechanism has. What is
given is read by `own_options`: an option belongs to the mechanism that was chosen, to the reading,
or to nobody, and then it is refused.
"""

import numbers
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypedDict

from dplinear.arguments import listed, meant, rejection
from dplinear.descent.settings import Settings
from dplinear.mechanisms.contract import Mechanism, option_names
from dplinear.mechanisms.rows.kept_projection import EncryptedFile
from dplinear.mechanisms.rows.row_maps import RowMap
from dplinear.schema import Schema


class ReadingOptions(TypedDict, total=False):
    """How a table is read: by how many threads, which engine, with or without a progress bar."""

    threads: int | None
    engine: str | None
    progress: bool | None


class MomentsOptions(ReadingOptions, total=False):
    """Of the mechanisms that release second moments (docs/reference/releasing.md)."""

    scale: float | None
    degrees: int | None
    most_degrees: int | None
    rows: int | None
    most_rows: int | None
    least_eigenvalue_share: float | None
    adjust: str
    ridge: float


class SketchOptions(ReadingOptions, total=False):
    """Of the mechanisms that release sketches."""

    least_eigenvalue_share: float | None
    adjust: str
    ridge: float
    most_rows: int | None
    base: int
    target: str | None
    y_public: bool
    lower_bound: float | None
    least_eigenvalue_bits: float | None


class ModelOptions(ReadingOptions, total=False):
    """Of the mechanisms that release one model of a table's columns."""

    settings: Settings
    errors: str
    shares: tuple[float, float, float]
    steps: int | None
    radius: str | None
    structure: str


class LearnerOptions(TypedDict, total=False):
    """Of the mechanisms that release one model in a constraint set."""

    progress: bool | None
    steps: int | None
    rate: float
    slope: float | None
    momentum: bool
    constrained: bool | None
    stride: float | None
    cell: float | None
    average: bool
    regularisation: float | None
    tolerance: float
    ramp: float


class RowsOptions(ReadingOptions, total=False):
    """Of the mechanisms that release rows."""

    target: str | None
    y_public: bool
    k: int
    projection: str
    noise: str
    change: float | None
    missing_public: bool
    label: str | None
    label_share: float
    public_projection: bool
    keep_projection: EncryptedFile | None
    drawn: RowMap | None


class MeanOptions(ReadingOptions, total=False):
    """Of CoinPress, for means."""

    steps: int
    scale: float | Sequence[float] | None


class CovarianceOptions(MeanOptions, total=False):
    """Of CoinPress, for covariances, and of second moments around a centre."""

    centred: bool
    metric: str


READING = frozenset(ReadingOptions.__annotations__)


def own_options(
    method: type[Mechanism],
    options: Mapping[str, Any],
    where: str,
    others: Collection[str] = READING,
) -> dict[str, Any]:
    """Return the options that belong to the method; refuse those that belong to nobody."""
    names = set(option_names(method))
    for name in sorted(set(options) - names - set(others)):
        known = sorted(names.union(others))
        rule = f"left out: {method.name!r} has no such option"
        hint = meant(name, known) or f"its options are {listed(known, 12)}."
        raise rejection(name, where, rule, options[name], hint)
    return {name: plain_number(value) for name, value in options.items() if name in names}


def reading_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that belong to the reading."""
    return {name: value for name, value in options.items() if name in READING}


def for_units(methods: Mapping[str, type[Mechanism]], schema: Schema) -> tuple[str, ...]:
    """Return the names of methods that may be chosen: of weighted rows, those proved for them."""
    weighted = schema.is_weighted
    return tuple(name for name, kind in methods.items() if kind.for_units or not weighted)


def plain_number(value: Any) -> Any:
    """Return a number as Python's own, which certificates can hold; anything else as it is."""
    if type(value) in {int, float, bool} or not isinstance(value, numbers.Real):
        return value
    try:
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    except Exception:  # noqa: BLE001 - a class with its own ideas: the method will refuse it
        return value
