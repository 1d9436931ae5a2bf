"""The parts that pages are made of: tables, pictures with their tables, and grids of numbers."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dplinear.analyst.regression.formulas import CONSTANT
from dplinear.analyst.regression.inference import Intervals
from dplinear.analyst.regression.summary import cells
from dplinear.analyst.results import NamedMatrix
from dplinear.report.forest import Forest, Line, forests
from dplinear.report.words import format_value, minus
from dplinear.schema import INTERCEPT, Schema

MOST_COLUMNS = 14
_SHADES = 5


@dataclass(frozen=True)
class Table:
    """A table: the first cell of each row names it; `left` are the other columns of words."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Grid:
    """A square of correlations: each cell is what is written, and a shade from −5 to 5."""

    caption: str
    names: tuple[str, ...]
    rows: tuple[tuple[tuple[str, int], ...], ...]
    left_out: int


@dataclass(frozen=True)
class Panel:
    """A part of what a release says."""

    title: str
    text: str = ""
    pictures: tuple[Forest, ...] = ()
    table: Table | None = None
    grid: Grid | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Content:
    """What a page says of a release: its name, its size, its columns, its panels.

    `rows` is what is known of the number of rows, `swamped` why there are no intervals, where.
    """

    title: str
    lede: str
    size: str
    rows: float | None
    columns: Table | None
    panels: tuple[Panel, ...]
    swamped: tuple[str, ...] = ()


def coefficients(
    title: str, target: str, found: Intervals, schema: Schema, notes: Sequence[str] = ()
) -> Panel:
    """Return the panel of a fitted model.

    The picture multiplies each coefficient by the public width of its feature, so that all stand
    on one axis, in the target's own units; the table has them as they are.
    """
    widths = {each.name: float(each.high - each.low) for each in schema.features}
    lines = []
    for index, name in enumerate(found.names):
        width = widths.get(name, 1.0)
        if name in {INTERCEPT, CONSTANT} or not width:
            continue
        low, high = float(found.low[index]) * width, float(found.high[index]) * width
        known = math.isfinite(low) and math.isfinite(high)
        value = float(found.estimates[index]) * width
        lines.append(Line(name, value, low if known else None, high if known else None))
    percent = f"{100 * found.level:g}%"
    axis = f"change of {target} as the feature goes from its lower to its upper bound"
    with_ends = any(line.low is not None for line in lines)
    beside = f", with {percent} intervals" if with_ends else ""
    heads, rows = cells(found)
    table = Table(
        f"Coefficients of {target}, in the columns’ own units",
        tuple(heads),
        tuple((name, *map(minus, rest)) for name, *rest in rows),
        note=_MEANING if with_ends else "",
    )
    pictures = forests(lines, f"Effects on {target}{beside}", axis)
    return Panel(
        title, "" if found.swamped is None else found.swamped, pictures, table, None, tuple(notes)
    )


def correlations(found: NamedMatrix) -> Grid:
    """Return a square of correlations, the first columns of many."""
    names = found.names[:MOST_COLUMNS]
    rows = tuple(
        tuple(_shade(float(value)) for value in line[: len(names)])
        for line in found.values[: len(names)]
    )
    return Grid("Correlations, as released", names, rows, len(found.names) - len(names))


def _shade(value: float) -> tuple[str, int]:
    if not math.isfinite(value):
        return "–", 0
    return minus(f"{round(value, 2) + 0.0:.2f}"), round(_SHADES * max(-1.0, min(1.0, value)))


def pairs(facts: Iterable[tuple[str, object]], caption: str, heads: tuple[str, str]) -> Table:
    """Return a table of names and values."""
    rows = tuple((name, format_value(value)) for name, value in facts)
    return Table(caption, heads, rows, left=(1,))


_MEANING = (
    "Std. error: of rows and noise together. Due to privacy: the part of its square that is noise. "
    "Clear: whether the interval excludes 0."
)
