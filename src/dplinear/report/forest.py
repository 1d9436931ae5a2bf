"""Pictures of numbers with their intervals: one line for each, on a common axis or on its own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dplinear.report.scales import Axis, Tick, decades, plain_label, spread

TOP, BOTTOM = 12.0, 30.0
_LONGEST = 26
MOST = 24


@dataclass(frozen=True)
class Line:
    """One number: `low` and `high` are the ends of its interval, None where there is none.

    `best` makes it stand out among all others.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    best: bool = False


@dataclass(frozen=True)
class Shape:
    """How much room a picture has. In a `narrow` one names stand above their lines."""

    width: float
    left: float
    right: float
    line: float
    narrow: bool


SHAPES = (
    Shape(680.0, 190.0, 24.0, 34.0, narrow=False),
    Shape(340.0, 12.0, 16.0, 50.0, narrow=True),
)


@dataclass(frozen=True)
class Placed:
    """One number where it is drawn; its tone says what stands out."""

    name: str
    full: str
    down: float
    value: float
    low: float | None
    high: float | None
    tone: str


@dataclass(frozen=True)
class Forest:
    """Places of everything in a picture of intervals, and what it shows in words."""

    width: float
    height: float
    left: float
    right: float
    bottom: float
    ticks: tuple[Tick, ...]
    zero: float | None
    lines: tuple[Placed, ...]
    title: str
    axis: str
    summary: str
    left_out: int
    narrow: bool


def forests(
    lines: Sequence[Line], title: str, axis_title: str, *, log: bool = False
) -> tuple[Forest, ...]:
    """Return the picture of these numbers on one axis, wide and narrow; none where none are.

    With `log` all of them are above 0, and the axis is logarithmic.
    """
    finite = [line for line in lines if math.isfinite(line.value)]
    if not finite:
        return ()
    return tuple(_forest(finite, title, axis_title, shape, log=log) for shape in SHAPES)


def _forest(
    lines: Sequence[Line], title: str, axis_title: str, shape: Shape, *, log: bool
) -> Forest:
    shown = lines[:MOST]
    ends = [end for line in shown for end in (line.value, line.low, line.high) if end is not None]
    low, high = decades(ends) if log else spread(ends, zero=True)
    axis = Axis(low, high, shape.left, shape.width - shape.right, logarithmic=log)
    chosen = any(line.best for line in shown)
    bottom = TOP + shape.line * len(shown)
    placed = tuple(
        Placed(
            name=shorten_name(line.name),
            full=line.name,
            down=TOP + shape.line * (index + (0.68 if shape.narrow else 0.5)),
            value=axis.position(line.value),
            low=None if line.low is None else axis.position(line.low),
            high=None if line.high is None else axis.position(line.high),
            tone=_tone(line, chosen=chosen),
        )
        for index, line in enumerate(shown)
    )
    return Forest(
        width=shape.width,
        height=bottom + BOTTOM,
        left=shape.left,
        right=shape.width - shape.right,
        bottom=bottom,
        ticks=axis.ticks(4 if shape.narrow else 6),
        zero=axis.position(0.0) if low <= 0 <= high else None,
        lines=placed,
        title=title,
        axis=axis_title,
        summary=_summary(shown),
        left_out=len(lines) - len(shown),
        narrow=shape.narrow,
    )


def shorten_name(name: str) -> str:
    """Return a name that fits beside the picture; the middle of a long one is left out."""
    keep = (_LONGEST - 1) // 2
    return name if len(name) <= _LONGEST else f"{name[:keep]}…{name[-keep:]}"


def _tone(line: Line, *, chosen: bool) -> str:
    """Return what stands out: the chosen line where there is one, else intervals without 0."""
    if chosen and line.low is not None:
        return "best" if line.best else "other"
    return "clear" if _clear(line) else "unclear"


def _clear(line: Line) -> bool:
    return line.low is not None and line.high is not None and (line.low > 0 or line.high < 0)


def _summary(lines: Sequence[Line]) -> str:
    with_ends = [line for line in lines if line.low is not None]
    if not with_ends:
        return f"{len(lines)} estimates without intervals; the table beneath has their values."
    clear = sum(map(_clear, with_ends))
    widest = max(with_ends, key=lambda line: abs(line.value))
    return (
        f"{len(lines)} estimates with intervals, of which {clear} exclude 0. The largest is "
        f"{widest.name}, at {plain_label(float(f'{widest.value:.3g}'))}. The table beneath has all "
        "values."
    )
