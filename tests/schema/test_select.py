"""The part of a schema that a few of its features are made from."""

import json
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from dplinear.arguments import ArgumentTypeError
from dplinear.schema import Schema
from refusals import refused

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "low": 0, "high": 100, "missing": 7, "missing_indicator": True},
    "bmi": (Fraction(31, 3), 60),
    "smoker": ["no", "yes"],
    "employed": "boolean",
    "visit": {"type": "date", "low": "2020-01-01", "high": "2030-01-01"},
    "ward": {"type": "category", "levels": [1, 2, 3], "other": 1, "drop_first": False},
}
DERIVED = ["age*smoker", "bmi^2", "age>=65", "smoker*ward", "age*bmi^3"]
NAMES = Schema(COLUMNS, derived=DERIVED).names[1:]


def declared_anew(schema: Schema, columns: set[str], derived: list[str], **options: Any) -> Schema:
    """Return what the schema's own file says of some columns, with other options."""
    content = json.loads(json.dumps(schema.to_dict()))
    content["columns"] = {n: what for n, what in content["columns"].items() if n in columns}
    return Schema.from_dict(content | {"derived": derived} | options)


@settings(deadline=None)
@given(
    chosen=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4),
    norm=st.sampled_from([None, Fraction(1, 3), 0.7, 1.5, 2.0]),
    whole=st.booleans(),
    intercept=st.sampled_from([None, True, False]),
    clip=st.booleans(),
)
def test_a_part_is_what_would_be_declared_for_it(
    chosen: list[str], norm: Any, whole: bool, intercept: bool | None, clip: bool
) -> None:
    schema = Schema(COLUMNS, derived=DERIVED, intercept=whole, row_norm=norm)
    features = [schema.features[schema.names.index(name)] for name in chosen]
    columns = {factor.column for feature in features for factor in feature.factors}
    terms = [text for text in DERIVED if text in {feature.term.label for feature in features}]
    kept = whole if intercept is None else intercept
    options = {"intercept": kept, "row_norm": norm if clip else None}
    part = schema.select(chosen, intercept=intercept, clip=clip)
    expected = declared_anew(schema, columns, terms, **options)
    assert part == expected
    assert part.to_dict() == expected.to_dict()
    assert part.features == expected.features
    assert (part.row_norm, part.norm_squared) == (expected.row_norm, expected.norm_squared)
    assert list(part.declared.items()) == list(expected.declared.items())
    if kept == whole:
        maps = {f.name: (f.factors, f.centre, f.half_width) for f in part.features}
        assert all(maps[f.name] == (f.factors, f.centre, f.half_width) for f in features)


def test_a_part_keeps_the_norm_that_rows_are_clipped_to() -> None:
    schema = Schema({"a": (0, 1), "b": (0, 1), "y": (0, 1)}, row_norm=1.25)
    assert schema.select(["a", "y"]).row_norm == schema.row_norm
    assert schema.select(["a", "y"], clip=False).row_norm is None
    assert schema.select(["y"], intercept=False).row_norm is None  # of norm 1 at the most


def test_levels_of_a_table_that_was_read_before_stay_as_they_are() -> None:
    content = {"columns": {"zip": {"type": "category", "levels": ["02139", "2139"]}, "y": [0, 1]}}
    schema = Schema.from_release(content)
    assert schema.select(["zip=2139"]).to_dict()["columns"] == {"zip": content["columns"]["zip"]}


def test_names_of_no_feature_and_what_is_no_truth_value_are_refused() -> None:
    schema = Schema(COLUMNS, derived=DERIVED)
    with pytest.raises(ValueError, match=r"'names' parameter of Schema\.select .*smoker'"):
        schema.select(["age", "smoker"])
    with refused("intercept", "Schema.select", kind=ArgumentTypeError):
        schema.select(["age"], intercept=1)  # type: ignore[arg-type]
    with refused("mapping", "Schema", "at least one column"):
        schema.select(["intercept"])
