"""Labels beside projected rows: what is released, what it costs, and how often it is true."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from dplinear.mechanisms.rows.projection import PreparedProjection
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, ApproxDP, PureDP
from dplinear.schema import Schema
from refusals import refused

from .projected import MIXED, integer_rows, numbers, prepared

PURE = PureDP(2.0)
ROW = {"age": 40.0, "income": 10.0, "member": True, "town": "b", "job": "z"}


def released(made: Any, table: dict[str, list[Any]], column: str, schema: Schema = MIXED) -> Any:
    rows = integer_rows(schema, table)
    return made.release(rows, simulation.entropy(5)).column(column)


def label_facts(made: PreparedProjection) -> Mapping[str, Any]:
    """Return what the analyst is told of the label."""
    assert made.noise_model.label is not None
    return made.noise_model.label


def repeated(count: int, **changed: Any) -> dict[str, list[Any]]:
    return {name: [value] * count for name, value in (ROW | changed).items()}


@pytest.mark.parametrize(
    ("column", "value", "shown", "levels"),
    [
        ("town", "a", "a", 5),
        ("town", "c", "c", 5),
        ("town", "elsewhere", "other", 5),
        ("job", "y", "y", 3),
        ("job", "elsewhere", "z", 3),
        ("member", True, True, 2),
        ("member", False, False, 2),
    ],
)
def test_levels_are_told_as_often_as_epsilon_allows(
    column: str, value: Any, shown: Any, levels: int
) -> None:
    """Counts are binomial: within 5 standard deviations, a false-alarm rate of 1e-6."""
    made = prepared(MIXED, guarantee=PURE, k=2, label=column)
    answers = released(made, repeated(8000, **{column: value}), column).to_pylist()
    chance = math.exp(2.0) / (math.exp(2.0) + levels - 1)
    hits = sum(answer == shown for answer in answers)
    assert abs(hits - 8000 * chance) < 5 * math.sqrt(8000 * chance * (1 - chance))
    assert len(set(answers)) == levels
    assert label_facts(made)["truth"] == pytest.approx(chance, rel=1e-12)


def test_a_number_is_released_in_its_own_units() -> None:
    made = prepared(MIXED, guarantee=PURE, k=2, label="age")
    drawn = released(made, repeated(8000), "age").to_numpy()
    assert label_facts(made)["scale"] == pytest.approx(100 / 2, rel=1e-6)
    assert abs(drawn.mean() - 40.0) < 5.5 * drawn.std() / math.sqrt(8000)
    assert np.abs(drawn - 40.0).mean() == pytest.approx(50.0, rel=0.06)
    small = prepared(MIXED, guarantee=PURE, k=2, label="age", change=0.1, missing_public=True)
    assert label_facts(small)["scale"] == pytest.approx(0.1 * 50 / 2, rel=1e-3)


def test_a_released_number_is_a_function_of_whole_steps() -> None:
    """Noise that is no whole number of steps would leave its mark in the last bits."""
    made = prepared(MIXED, guarantee=PURE, k=2, label="age")
    drawn = released(made, repeated(200), "age").to_numpy()
    label: Any = made._label
    step, centre = float(label.feature.half_width / label.cells), float(label.feature.centre)
    whole = np.rint((drawn - centre) / step)
    assert (drawn == whole * step + centre).all()


def test_one_cell_is_the_label_or_in_a_row_so_each_may_spend_everything() -> None:
    made = prepared(MIXED, guarantee=PURE, k=2, label="town")
    assert label_facts(made)["epsilon"] == 2.0
    assert made.account.holds == PURE
    assert made.account.profile is not None
    assert made.account.profile.delta(2.0) == 0
    assert made.account.profile.delta(1.9) > 0


@pytest.mark.parametrize("relation", ["row_l1", "row_l2"])
def test_a_row_has_a_label_so_both_add_up(relation: str) -> None:
    schema = numbers(4)
    options: dict[str, Any] = {"k": 2, "neighbours": relation, "change": 0.5, "noise": "laplace"}
    alone = prepared(Schema({f"x{i}": (-1, 1) for i in range(3)}), guarantee=PureDP(1.5), **options)
    made = prepared(schema, guarantee=PURE, label="x3", label_share=0.25, **options)
    assert label_facts(made)["epsilon"] == 0.5
    assert made.noise_model.dimension == 3
    # The same matrix, and three quarters of ε.
    assert made.noise_model.scale == pytest.approx(alone.noise_model.scale, rel=1e-4)
    profile = made.account.profile
    assert profile is not None
    assert profile.delta(2.0) == 0
    assert profile.epsilon(0.0) <= 2.0
    assert profile.delta(1.9) > 0


@pytest.mark.parametrize("relation", ["element", "row_l2"])
@pytest.mark.parametrize("guarantee", [ApproxDP(2.0, 1e-6), ZCDP(0.5)])
def test_other_guarantees_are_shared_out_too(relation: str, guarantee: Any) -> None:
    made = prepared(MIXED, guarantee=guarantee, k=2, label="town", neighbours=relation)
    assert made.account.holds == guarantee
    profile = made.account.profile
    assert profile is not None
    spent = label_facts(made)["epsilon"]
    if isinstance(guarantee, ApproxDP):
        assert profile.delta(2.0) <= 1e-6
        assert spent == (2.0 if relation == "element" else 0.4)
    else:
        rho = guarantee.rho if relation == "element" else 0.2 * guarantee.rho
        assert spent * math.tanh(spent / 2) == pytest.approx(rho, rel=1e-9)
        assert spent * math.tanh(spent / 2) <= rho


def test_rows_do_not_show_the_label() -> None:
    """With the label's features left out, rows of different labels have equal products."""
    made = prepared(MIXED, guarantee=PURE, k=2, label="town", noise="laplace")
    one, other = (integer_rows(MIXED, repeated(1, town=town)) for town in ("a", "c"))
    first, second = (
        made.release(rows, simulation.entropy(3)).column("z1").to_pylist() for rows in (one, other)
    )
    assert first == second


@pytest.mark.parametrize(
    ("schema", "label"),
    [
        (MIXED, "income"),
        (MIXED, "nobody"),
        (Schema(x=(0, 1), y=(0, 1), derived=["x*y"]), "y"),
        (Schema(y=(0, 1)), "y"),
        (Schema(x=(0, 1), z1=(0, 1)), "z1"),
        (numbers(3, row_norm=1.0), "x1"),
    ],
)
def test_labels_that_cannot_stand_by_themselves_are_refused(schema: Schema, label: str) -> None:
    with pytest.raises(ValueError, match=r"label|schema"):
        prepared(schema, guarantee=PURE, k=2, label=label, neighbours="row_l2")


def test_a_label_that_would_say_nothing_is_refused_before_anything_is_spent() -> None:
    with refused("label", "ProjectedRows"):
        prepared(MIXED, guarantee=PureDP(1e-12), k=2, label="age")


def test_numbers_as_levels_need_one_for_unseen_numbers() -> None:
    def label(**more: Any) -> Any:
        levels = {"type": "category", "levels": [1, 2, 3], **more}
        schema = Schema({"x": (-1, 1), "c": levels})
        return prepared(schema, guarantee=PureDP(1.0), k=2, label="c")

    with pytest.raises(ValueError, match=r"'label'[\s\S]*other"):
        label()
    assert label(other=3).output.names[-1] == "c"
