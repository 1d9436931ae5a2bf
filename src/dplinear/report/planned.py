"""The page of a plan: what a budget will buy, and what another one would."""

from dplinear.arguments import wrong_type
from dplinear.planner.commands import as_commands
from dplinear.planner.facts import amount_of
from dplinear.planner.plan import Plan
from dplinear.report.expected import expected_panel
from dplinear.report.grid import error_grid, plain
from dplinear.report.pages import page
from dplinear.report.words import guarantee_label, significant


def plan_page(plan: Plan) -> str:
    """Return one self-contained, interactive HTML page about a plan.

    Requires: what `dpl.plan` returned.
    Promises: the page needs no network and may use none; its sliders start at the plan's own
    budget, rows and columns; whatever the plan says is escaped; equal plans give equal pages.
    """
    if not isinstance(plan, Plan):
        raise wrong_type("plan", "plan_page", "what dplinear.plan returned", plan)
    given = plan.given
    data = plain(error_grid(plan), plan)
    sliders = [
        {
            "name": f"Budget ({data['unit']})",
            "id": "amount",
            "most": len(data["stops"][0]) - 1,
            "start": data["start"][0],
            "shown": f"{data['unit']} = {significant(amount_of(given.guarantee), 2)}",
        },
        {
            "name": "Rows (n)",
            "id": "rows",
            "most": len(data["stops"][1]) - 1,
            "start": data["start"][1],
            "shown": f"n = {given.rows:,}",
        },
        {
            "name": "Features (d)",
            "id": "columns",
            "most": len(data["stops"][2]) - 1,
            "start": data["start"][2],
            "shown": f"d = {given.columns:,}",
        },
    ]
    return page(
        "plan.html",
        scripts=("plan.js",),
        plan=plan,
        commands=() if plan.beyond else as_commands(plan.recommended.call),
        guarantee=guarantee_label(plan.guarantee),
        rows=f"{given.rows:,}",
        columns=f"{given.columns:,}",
        expected=expected_panel(plan),
        sliders=sliders,
        data=data,
    )
