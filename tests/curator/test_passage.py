"""What the passage and the gates promise of themselves: one spend, typed options, few crossings."""

import ast
from pathlib import Path
from typing import Any

import dplinear
from benchmarks.crossings import trace
from dplinear.coinpress.methods import CoinPressCovariance, CoinPressMean
from dplinear.curator.gates import options
from dplinear.mechanisms import GaussianSketch, MIProjection
from dplinear.mechanisms.contract import option_names
from dplinear.registry import CONSTRAINED, MODELS, MOMENTS, ROWS

CURATOR = Path(dplinear.__file__).parent / "curator"
OPTIONS: dict[Any, list[Any]] = {
    options.MomentsOptions: [*MOMENTS.values()],
    options.SketchOptions: [GaussianSketch, MIProjection],
    options.ModelOptions: [kind for kinds in MODELS.values() for kind in kinds.values()],
    options.RowsOptions: [*ROWS.values()],
    options.MeanOptions: [CoinPressMean],
    options.CovarianceOptions: [CoinPressCovariance],
}


def test_budget_is_spent_in_one_place() -> None:
    """Whatever else calls a `spend` in the room that opens tables is a second door."""
    places = [
        (file.name, node.lineno)
        for file in CURATOR.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "spend"
    ]
    assert [name for name, _ in places] == ["passage.py"]


def test_options_have_types_and_are_those_of_the_mechanisms() -> None:
    for typed, kinds in OPTIONS.items():
        own: set[str] = set().union(*(option_names(kind) for kind in kinds))
        if typed is options.SketchOptions:
            own.discard("rows")  # an argument of the gate
        assert set(typed.__annotations__) - options.READING == own, typed
    learners = set().union(*(option_names(kind) for kind in CONSTRAINED.values()))
    assert set(options.LearnerOptions.__annotations__) - {"progress"} == learners


def test_a_release_crosses_few_borders_between_rooms() -> None:
    assert trace().pairs.total() <= 492
