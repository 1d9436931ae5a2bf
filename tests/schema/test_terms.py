"""What features belong to, for columns that are named like derived terms and like features."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings

from dplinear.analyst.regression.model import read_model
from dplinear.analyst.regression.names import indices_of
from dplinear.curator.gates.one_model import most_squared
from dplinear.curator.sources.ordered import open_rows
from dplinear.curator.windows import check_plain
from dplinear.exact.grid import shape_of
from dplinear.mechanisms.cells.cell_moves import Bounded
from dplinear.mechanisms.cells.table_cells import cells_of
from dplinear.mechanisms.rows.row_changes import changes_of
from dplinear.noise import simulation
from dplinear.privacy import Neighbours
from dplinear.schema import Schema
from dplinear.schema.columns import Numeric
from refusals import refused

NUMBER: Any = (0, 2)
CATEGORY: Any = ["a", "b"]
FLAGGED: Any = {"type": "number", "low": 0, "high": 2, "missing": 0, "missing_indicator": True}
ODD = ("x*c", "x^2", "x>=1", "intercept", "c=a", "c=b", "c=other", "x:missing", "x*c=b", "x * c")
DECLARATIONS = (NUMBER, CATEGORY, FLAGGED, "boolean", {"type": "integer", "low": -1, "high": 3})
TERMS = ("x*c", "x^2", "x>=1", "x * c", "c*x", "c*d", "x^2*c")
NUMBERS = [-1e300, 0.0, 0.4, 1.0, 2.0, 1e300, float("nan"), None]
WORDS = ["a", "b", "elsewhere", None]

# The two levels of defence: names that would mean two things are refused; and were they not, no
# decision is made by a name. So every property is also tried without the first.
PERMISSIVE = "dplinear.schema.assembly.check_labels"


@pytest.fixture(params=[True, False], ids=["names checked", "names unchecked"])
def _names(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(PERMISSIVE, lambda *_: None, raising=False)


def declared(data: st.DataObject) -> Schema:
    """Draw a schema with columns of odd names, or give up on one that is refused."""
    columns = {
        "x": data.draw(st.sampled_from([NUMBER, FLAGGED])),
        "c": CATEGORY,
        "d": {"type": "category", "levels": ["a", "b"], "drop_first": False, "other": "a"},
    }
    columns |= data.draw(
        st.dictionaries(st.sampled_from(ODD), st.sampled_from(DECLARATIONS), max_size=4)
    )
    derived = data.draw(st.lists(st.sampled_from(TERMS), unique=True, max_size=3))
    try:
        return Schema(columns, derived=derived, intercept=data.draw(st.booleans()))
    except ValueError:
        assume(condition=False)
        raise


def cells(schema: Schema, count: int, seed: int) -> dict[str, list[Any]]:
    """Return odd cells for every column."""
    random, found = simulation.generator(seed), {}
    for name, what in schema.declared.items():
        values: list[Any] = NUMBERS if isinstance(what, Numeric) else WORDS
        found[name] = [values[random.integers(len(values))] for _ in range(count)]
    return found


def read(schema: Schema, table: dict[str, list[Any]]) -> np.ndarray:
    held = pa.table({name: pa.array(column) for name, column in table.items()})
    with open_rows(held, schema, "tests", threads=1).through(np.copy) as blocks:
        return np.concatenate(list(blocks), axis=1).astype(np.int64)


PROPERTY = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)


@pytest.mark.usefixtures("_names")
@PROPERTY
@given(data=st.data())
def test_no_features_add_more_to_a_norm_than_is_said(data: st.DataObject) -> None:
    """Of any choice of features, on the integers; all of them, for the grid itself."""
    schema = declared(data)
    rows = read(schema, cells(schema, 60, 1))
    unit = int(rows.max()) ** 2  # of a level, or of the constant
    assume(schema.has_intercept)
    every = list(range(schema.dimension))
    chosen = data.draw(st.lists(st.sampled_from(every), unique=True, min_size=1))
    for some in (every, chosen):
        longest = int((rows[some] ** 2).sum(axis=0).max())
        assert longest <= most_squared(schema, some) * unit
    assert most_squared(schema, every) == schema.norm_squared


@pytest.mark.usefixtures("_names")
@PROPERTY
@given(data=st.data())
def test_one_cell_moves_its_own_features_alone_or_the_schema_is_refused(
    data: st.DataObject,
) -> None:
    schema = declared(data)
    if schema.to_dict()["derived"]:
        with refused("schema", "tests", "derived"):
            cells_of(schema, "tests")
        return
    found = {cell.column: cell for cell in cells_of(schema, "tests")}
    base = cells(schema, 1, 5)
    for name, what in schema.declared.items():
        values: list[Any] = NUMBERS if isinstance(what, Numeric) else WORDS
        table = {key: column * len(values) for key, column in base.items()} | {name: values}
        rows = read(schema, table)
        moving = set(np.flatnonzero(np.ptp(rows, axis=1)).tolist())
        assert moving <= set(found[name].indices)


@pytest.mark.usefixtures("_names")
@PROPERTY
@given(data=st.data())
def test_any_row_for_any_other_is_within_what_is_declared(data: st.DataObject) -> None:
    schema = declared(data)
    rows = read(schema, cells(schema, 40, 2))
    indices = tuple(i for i, feature in enumerate(schema.features) if feature.factors)
    shape = shape_of(schema)
    found = changes_of(schema, shape, Neighbours.ROW_L2, Bounded(), indices, "tests")
    own = rows[list(indices)]
    moves = own[:, :, None] - own[:, None, :]
    assert int((moves**2).sum(axis=0).max()) <= found.l2**2
    assert int(np.abs(moves).sum(axis=0).max()) <= found.l1
    if found.row_square is not None:
        assert int((own**2).sum(axis=0).max()) <= found.row_square


@pytest.mark.usefixtures("_names")
@PROPERTY
@given(data=st.data())
def test_a_model_of_a_few_features_reads_those_and_no_others(data: st.DataObject) -> None:
    schema = declared(data)
    indices = list(range(int(schema.has_intercept), schema.dimension))
    chosen = data.draw(st.lists(st.sampled_from(indices), unique=True, min_size=1, max_size=3))
    names = [schema.names[index] for index in chosen]
    part = schema.select(names)
    for index, name in zip(chosen, names, strict=True):
        mine, whole = part.features[part.names.index(name)], schema.features[index]
        assert (mine.factors, mine.centre, mine.half_width) == (
            whole.factors,
            whole.centre,
            whole.half_width,
        )
    needed = {f.column for index in chosen for f in schema.features[index].factors}
    assert set(part.columns) == needed


@PROPERTY
@given(data=st.data())
def test_a_name_means_one_thing(data: st.DataObject) -> None:
    """A column's name is all its features; a term's likewise; a feature's is that feature."""
    schema = declared(data)
    for name in schema.columns:
        made = [i for i, f in enumerate(schema.features) if _own(f, name)]
        if made:
            assert set(indices_of(schema, name, "features", "tests")) <= set(made)
    for index, text in enumerate(schema.to_dict()["derived"]):
        for place in indices_of(schema, text, "features", "tests"):
            term: Any = schema.features[place].term
            assert (term.index, term.text) == (index, text)
    for place in range(int(schema.has_intercept), schema.dimension):
        assert indices_of(schema, schema.names[place], "features", "tests") == [place]


def _own(feature: Any, column: str) -> bool:
    return getattr(feature.term, "column", None) == column


@pytest.mark.parametrize(
    ("columns", "derived"),
    [
        ({"x": NUMBER, "c": CATEGORY, "x*c": NUMBER}, ["x*c"]),
        ({"x": NUMBER, "c": CATEGORY, "x*c": ["p", "q"]}, ["x*c"]),
        ({"x": NUMBER, "x^2": CATEGORY}, ["x^2"]),
        ({"x": NUMBER, "x>=1": ["p", "q"]}, ["x>=1"]),
        ({"x": NUMBER, "intercept": CATEGORY}, []),
        ({"c": CATEGORY, "c=b": ["p", "q"]}, []),
        ({"x": FLAGGED, "x:missing": CATEGORY}, []),
    ],
)
def test_a_name_for_two_things_is_refused(columns: dict[str, Any], derived: list[str]) -> None:
    with refused("mapping", "Schema"):
        Schema(columns, derived=derived)


@pytest.mark.parametrize(
    ("columns", "derived", "options"),
    [
        ({"x": NUMBER, "c": CATEGORY, "x*d": NUMBER}, ["x*c"], {}),
        ({"x": NUMBER, "x>=2": NUMBER}, ["x>=1"], {}),
        ({"intercept": CATEGORY, "x": NUMBER}, [], {"intercept": False}),
        ({"c": CATEGORY, "c=a": NUMBER}, [], {}),  # the first level has no feature
    ],
)
def test_names_that_only_look_odd_are_allowed(
    columns: dict[str, Any], derived: list[str], options: dict[str, Any]
) -> None:
    assert Schema(columns, derived=derived, **options).columns == tuple(columns)


def test_a_target_leaves_out_its_own_term_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PERMISSIVE, lambda *_: None)
    schema = Schema({"x": NUMBER, "c": CATEGORY, "x*c": NUMBER}, derived=["x*c"])
    model = read_model(schema, "x*c", None)
    left = {schema.names[place] for place in model.features}
    assert left == {"x", "c=b", "c=other", "x*c=b", "x*c=other"}


def test_windows_are_for_declared_columns_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dplinear.schema.assembly.check_names", lambda *_: None)
    monkeypatch.setattr(PERMISSIVE, lambda *_: None)
    schema = Schema({"x": NUMBER, "x^2": NUMBER}, derived=["x^2"])
    with refused("schema", "tests"):
        check_plain(schema, "tests")
