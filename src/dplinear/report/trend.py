"""The picture of predicted errors against the budget, on logarithmic axes."""

from collections.abc import Sequence
from dataclasses import dataclass

from dplinear.planner.facts import amount_of
from dplinear.planner.plan import QUESTIONS, Plan, unit_of
from dplinear.report.panels import Table
from dplinear.report.scales import Axis, Tick, decades
from dplinear.report.words import significant

FACTORS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # times the plan's own budget
LEFT, RIGHT, TOP, BOTTOM = 58.0, 20.0, 20.0, 40.0
SIZES = ((680.0, 320.0, False), (340.0, 300.0, True))  # width, height, narrow


@dataclass(frozen=True)
class Trend:
    """Places of everything in the picture; `lines` are pairs of a name and a path."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[tuple[str, str], ...]
    floor: str | None
    mark: tuple[float, float]
    unit: str
    summary: str
    narrow: bool


@dataclass(frozen=True)
class Trends:
    """The picture, wide and narrow, and the table that says the same."""

    pictures: tuple[Trend, ...]
    table: Table


def trends(plan: Plan, released: str | None = None) -> Trends:
    """Return how the error falls as the budget grows, for the recommended and the used mechanism.

    Requires: a plan; `released`, the name of the mechanism that was used, shown if the plan has it.
    """
    given, question = plan.given, QUESTIONS[plan.learn]
    own = amount_of(given.guarantee)
    amounts = [float(f"{own * factor:.6g}") for factor in FACTORS]
    names = [plan.lines[0].mechanism]
    if released in {line.mechanism for line in plan.lines} and released not in names:
        names.append(str(released))
    facts = [given.under(amount) for amount in amounts]
    errors = {name: [question.predict(name, each).error for each in facts] for name in names}
    floors = [question.floor(each) for each in facts]
    unit = unit_of(given.guarantee)
    rows = tuple(
        (significant(amount, 2), *(significant(errors[name][at], 2) for name in names),
         significant(floors[at], 2))
        for at, amount in enumerate(amounts)
    )  # fmt: skip
    caption = f"Predicted error at other budgets ({unit}), all else as planned"
    table = Table(caption, (unit, *names, "without privacy"), rows)
    pictures = tuple(_trend(amounts, errors, floors, unit, *size) for size in SIZES)
    return Trends(pictures, table)


def _trend(  # noqa: PLR0917 - what is drawn, and how large
    amounts: list[float],
    errors: dict[str, list[float]],
    floors: list[float],
    unit: str,
    width: float,
    height: float,
    narrow: bool,  # noqa: FBT001 - as SIZES has them
) -> Trend:
    bare = floors if min(floors) > 0 else []
    everything = [value for line in errors.values() for value in line] + bare
    x = Axis(amounts[0], amounts[-1], LEFT, width - RIGHT, logarithmic=True)
    y = Axis(*decades(everything), height - BOTTOM, TOP, logarithmic=True)
    own = amounts[FACTORS.index(1.0)]
    first = next(iter(errors))
    here = errors[first][FACTORS.index(1.0)]
    return Trend(
        width,
        height,
        LEFT,
        width - RIGHT,
        TOP,
        height - BOTTOM,
        x.ticks(4 if narrow else 8),
        y.ticks(6),
        tuple((name, _path(x, y, amounts, line)) for name, line in errors.items()),
        _path(x, y, amounts, bare) if bare else None,
        (x.position(own), y.position(here)),
        unit,
        f"The predicted error of {first} falls from {significant(errors[first][0], 2)} at "
        f"{unit} = {significant(amounts[0], 2)} to {significant(errors[first][-1], 2)} at "
        f"{unit} = {significant(amounts[-1], 2)}. The table beneath has all values.",
        narrow,
    )


def _path(x: Axis, y: Axis, across: Sequence[float], up: Sequence[float]) -> str:
    points = zip(across, up, strict=True)
    return "M" + "L".join(f"{x.position(one)},{y.position(other)}" for one, other in points)
