"""What the passage and the gates promise of themselves: one spend, typed options, few crossings."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import dplinear
from benchmarks.crossings import trace
from dplinear.coinpress.centred import CentredCovariance
from dplinear.coinpress.methods import CoinPressCovariance, CoinPressMean
from dplinear.curator.gates import options
from dplinear.exact.shape import Shape
from dplinear.mechanisms import AnalyzeGauss, GaussianSketch, MIProjection
from dplinear.mechanisms.contract import option_names
from dplinear.mechanisms.moments.analyze_gauss import PreparedGauss
from dplinear.registry import CONSTRAINED, MODELS, MOMENTS, ROWS

CURATOR = Path(dplinear.__file__).parent / "curator"
OPTIONS: dict[Any, list[Any]] = {
    options.MomentsOptions: [*MOMENTS.values()],
    options.SketchOptions: [GaussianSketch, MIProjection],
    options.ModelOptions: [kind for kinds in MODELS.values() for kind in kinds.values()],
    options.RowsOptions: [*ROWS.values()],
    options.MeanOptions: [CoinPressMean],
    options.CovarianceOptions: [CoinPressCovariance, CentredCovariance],
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


class _Unproved(AnalyzeGauss):
    """Noise for which nothing is proved."""

    name: ClassVar[str] = "unproved"

    def prepare(self, shape: Shape) -> PreparedGauss:
        """Calibrate, and promise nothing."""
        made = super().prepare(shape)
        account = replace(made.account, holds=None)
        return replace(made, account=account)


def test_no_release_without_a_guarantee_goes_through_the_front_door(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is refused before anything is spent or read; papers have gates of their own."""
    monkeypatch.setitem(MOMENTS._others, _Unproved.name, _Unproved)
    table, asked = np.zeros((3, 2)), {"epsilon": 1.0, "delta": 1e-6, "mechanism": "unproved"}
    rule = "'mechanism' parameter of release_moments must be one that proves a guarantee"
    with dplinear.tally() as spent, pytest.raises(ValueError, match=rule):
        dplinear.release_moments(table, {"a": (0, 1), "b": (0, 1)}, **asked)  # type: ignore[call-overload]
    assert len(spent) == 0
