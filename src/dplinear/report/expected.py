"""What a plan foresaw: the error of every mechanism, and that without any noise."""

from dataclasses import dataclass

from dplinear.planner.plan import UNIT_HEADS, Plan
from dplinear.report.forest import Forest, Line, forests
from dplinear.report.panels import Table
from dplinear.report.words import significant


@dataclass(frozen=True)
class Expected:
    """A plan as a page shows it."""

    reason: str
    measure: str
    pictures: tuple[Forest, ...]
    table: Table
    notes: tuple[str, ...]
    units: Table | None = None  # where people have several rows


def expected_panel(plan: Plan) -> Expected:
    """Return a plan's predictions, in words, as a picture and as a table."""
    best = None if plan.beyond else plan.recommended.mechanism
    lines = [
        Line(each.mechanism, each.error, each.low, each.high, best=each.mechanism == best)
        for each in plan.lines
    ]
    if plan.floor > 0:
        lines.append(Line("without privacy", plan.floor))
    rows = [
        (
            f"{each.mechanism} (recommended)" if each.mechanism == best else each.mechanism,
            significant(each.error, 2),
            significant(each.low, 2),
            significant(each.high, 2),
        )
        for each in plan.lines
    ]
    rows.append(("without privacy", significant(plan.floor, 2), "", ""))
    notes: dict[str, list[str]] = {}
    for each in plan.lines:
        if each.note:
            notes.setdefault(each.note, []).append(each.mechanism)
    return Expected(
        reason=plan.reason,
        measure=plan.measure,
        pictures=forests(
            lines, "Predicted error of each mechanism", "error, on a logarithmic axis", log=True
        ),
        table=Table(
            "Predicted errors; 90% of tables are between low and high",
            ("mechanism", "error", "low", "high"),
            tuple(rows),
        ),
        notes=tuple(f"{', '.join(names)}: {note}." for note, names in notes.items()),
        units=_unit_table(plan),
    )


def _unit_table(plan: Plan) -> Table | None:
    """Return what to expect of each number of rows per unit, if there are several."""
    if len(plan.by_rows_per_unit) < 2:
        return None
    return Table(plan.unit_advice, UNIT_HEADS, tuple(map(tuple, plan.unit_rows())))
