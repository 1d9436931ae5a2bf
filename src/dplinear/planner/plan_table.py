"""The errors of every mechanism over ε, rows and columns, as plain values for a page."""

from typing import Any

from dplinear.arguments import choice
from dplinear.planner.facts import Facts, read_facts
from dplinear.planner.plan import QUESTIONS
from dplinear.planner.regressions import Regression

PAGE_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
PAGE_ROWS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
PAGE_COLUMNS = (2, 5, 20, 100)


def plan_table(
    learn: str = Regression.name, *, delta: float = 1e-6, condition: float = 100.0
) -> dict[str, Any]:
    """Return the errors of every mechanism over ε, rows and columns, as plain values for a page.

    Promises: `errors[mechanism][i][j][k]` is at `epsilon[i]`, `rows[j]` and `columns[k]`, and
    `floor[j][k]` the error without privacy; add_remove neighbours, normal tails, all else as
    `plan` has it.
    """
    question = QUESTIONS[choice(learn, "learn", "plan_table", QUESTIONS)]

    def facts(epsilon: float, rows: int, columns: int) -> Facts:
        return read_facts(
            rows,
            columns,
            epsilon=epsilon,
            delta=delta,
            neighbours=question.relations[0],
            allowed=question.relations,
            target=question.target,
            condition=condition,
            tails="normal",
        )

    whole = [[[facts(e, n, d) for d in PAGE_COLUMNS] for n in PAGE_ROWS] for e in PAGE_EPSILONS]
    ways = [way for way in question.ways if question.refusal(way, whole[0][0][0]) is None]
    return {
        "learn": question.name,
        "measure": question.measure,
        "delta": delta,
        "condition": condition,
        "trivial": question.trivial,
        "epsilon": list(PAGE_EPSILONS),
        "rows": list(PAGE_ROWS),
        "columns": list(PAGE_COLUMNS),
        "floor": [[_short(question.floor(one)) for one in row] for row in whole[0]],
        "errors": {
            way: [
                [[_short(question.predict(way, one).error) for one in row] for row in part]
                for part in whole
            ]
            for way in ways
        },
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")
