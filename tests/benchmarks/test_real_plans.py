"""The harness that holds plans against real tables: halves, verdicts and what is left out."""

import json

import numpy as np
import pytest

from benchmarks import real_plans
from benchmarks.designs import seeded
from benchmarks.real_plans import KEPT, LOOKED, LOOKED_FILE, MECHANISMS, SHAPES, Cell
from benchmarks.real_populations import RealPopulation
from dplinear.planner.forecast import FLOOR
from dplinear.planner.real_like import TARGETS


def made_up(copies: int = 1) -> RealPopulation:
    generator = seeded("made up", copies)
    rows = generator.uniform(-1, 1, (2_000, 4))
    if copies == 2:
        rows[:, 3] = rows[:, 2] + 0.01 * generator.uniform(-1, 1, 2_000)
        rows = np.clip(rows, -1, 1)
    target = np.clip(0.4 * rows[:, 0] + 0.2 * generator.standard_normal(2_000), -1, 1)
    return RealPopulation("food", "regression", ("a", "b", "c", "d"), rows, target)


def came(value: float) -> real_plans.Risks:
    cell = Cell("food", 8_000, 1.0)
    return {cell: {name: [value] for name in (*MECHANISMS, FLOOR)}}


def test_halves_share_no_table_and_each_has_a_shape() -> None:
    assert not set(LOOKED) & set(KEPT)
    assert set(SHAPES) == {*LOOKED, *KEPT}
    assert set(SHAPES.values()) <= set(TARGETS)
    lines = [json.loads(line) for line in LOOKED_FILE.read_text(encoding="utf-8").splitlines()]
    assert {line["name"] for line in lines} == set(LOOKED)


def test_a_verdict_is_the_ratio_to_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_plans, "load", lambda _: made_up())
    real_plans.explained.cache_clear()
    try:
        (found,) = real_plans.verdicts(came(0.01), KEPT, told=True)
        name = found.picked
        assert found.ratio(name) == pytest.approx(0.01 / found.predicted[name])
        assert found.regret == 1
        near = real_plans.verdicts(came(1.9 * found.predicted[name]), KEPT, told=True)[0]
        far = real_plans.verdicts(came(2.1 * found.predicted[name]), KEPT, told=True)[0]
        assert near.within(name)
        assert not far.within(name)
        assert real_plans.flat_models([found], came(1.0)) == (1, 1)
        monkeypatch.setattr(real_plans, "load", lambda _: made_up(2))
        assert real_plans.verdicts(came(0.01), KEPT, told=True) == []
    finally:
        real_plans.explained.cache_clear()
