"""What fuzzing found, one by one: each refused, or read, as it should have been."""

import enum
import gzip
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear
from dplinear import arguments
from dplinear.arguments import ArgumentTypeError
from dplinear.convex.compression.matrix_map import MatrixMap
from dplinear.convex.sets import L2Ball
from dplinear.curator import SourceError, second_moments
from dplinear.ledger import tally
from dplinear.privacy import ZCDP
from dplinear.privacy.profiles import Gaussian
from dplinear.schema import Schema
from refusals import refused
from services import library

from .tables import objects
from .values import Faceless, Mute, RaisingReal, Rude, RudeBytes, RudeCount, RudeText

ROWS = np.column_stack([np.linspace(-1, 1, 30), np.linspace(0, 1, 30)])
SCHEMA = Schema(a=(-1, 1), b=(0, 1))
ASKED: dict[str, Any] = {"guarantee": ZCDP(0.5)}
LEARNING: dict[str, Any] = {
    "row_norm": 2,
    "constraint": 1.0,
    "target_bounds": (0, 1),
    "mechanism": "noisy_gradient",
    "steps": 2,
    "projection": None,
    **ASKED,
}
GATES: dict[str, Callable[..., Any]] = {
    "release_moments": dplinear.release_moments,
    "release_sketch": dplinear.release_sketch,
    "release_rows": dplinear.release_rows,
    "release_mean": dplinear.release_mean,
    "release_covariance": dplinear.release_covariance,
}


def _structured() -> Any:
    return np.zeros(3, [("a", "f8", (2,)), ("b", "f8")])


def _any(value: object) -> Any:
    """Return what a type checker would refuse."""
    return value


class _Numbers(enum.IntEnum):
    ONE = 1


# What is called, and what its error says.
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "an array for delta": (
        lambda: dplinear.release_moments(ROWS, SCHEMA, epsilon=1.0, delta=_any(np.zeros(2))),
        "'delta' parameter of release_moments",
    ),
    "a method that cannot be hashed": (
        lambda: dplinear.release_model(ROWS, SCHEMA, "b", mechanism=_any({}), **ASKED),
        "'mechanism' parameter of release_model",
    ),
    "a projection to nothing": (
        lambda: dplinear.release_rows(ROWS, SCHEMA, mechanism="projection", epsilon=1.0),
        "'k' parameter of release_rows",
    ),
    "an output of no name": (
        lambda: dplinear.release_rows(ROWS, SCHEMA, bits=0.5, output="a\0.csv"),
        "'output' parameter of release_rows",
    ),
    "columns of several numbers": (
        lambda: dplinear.release_moments(_structured(), SCHEMA, **ASKED),
        "column 'a' holds single values",
    ),
    "more privacy than floats have": (
        lambda: dplinear.release_mean(ROWS, SCHEMA, epsilon=1.0, delta=5e-324),
        "a δ, if any, of at least 1e-290",
    ),
    "less privacy than floats have": (
        lambda: dplinear.release_moments(ROWS, SCHEMA, epsilon=1e300, delta=0.5),
        "an amount from 1e-100 to 1e\\+20",
    ),
    "a set too large": (
        lambda: dplinear.release_model(ROWS, target=ROWS[:, 1], **LEARNING | {"constraint": 1e300}),
        "'constraint' parameter of release_model must be a set of a diameter",
    ),
    "a class that makes no set": (
        lambda: dplinear.release_model(ROWS, target=ROWS[:, 1], **LEARNING | {"constraint": len}),
        "'constraint' parameter of release_model must be a set in 2",
    ),
    "a flag that is none": (
        lambda: dplinear.release_model(
            ROWS, target=ROWS[:, 1], **LEARNING, momentum=_any(np.zeros((2, 2)))
        ),
        "'momentum' parameter of release_model",
    ),
    "a clip of the inner rules": (
        lambda: dplinear.release_model(ROWS, target=ROWS[:, 1], **LEARNING, clip=100.0),
        "'clip' parameter of release_model",
    ),
    "a matrix of numbers beyond floats": (
        lambda: dplinear.release_model(
            ROWS,
            target=ROWS[:, 1],
            projected=True,
            **LEARNING | {"projection": np.full((2, 3), np.longdouble("1e4000"))},
        ),
        "'projection' parameter of release_model must be a matrix of finite numbers",
    ),
    "a δ that floats cannot share out": (
        lambda: dplinear.suggest_levels(ROWS, ["a"], epsilon=1.0, delta=1e-300),
        "'guarantee' parameter of suggest_levels must be of an amount",
    ),
    "a kind of number as a table": (
        lambda: dplinear.PrivateRidge(
            bounds=(0, 1), target_bounds=(0, 1), epsilon=1.0, delta=1e-6
        ).fit(_Numbers.ONE, [1.0]),
        "'X' parameter of PrivateRidge",
    ),
    "a guarantee that normal noise cannot keep": (
        lambda: dplinear.PrivatePCA(bounds=(0, 1), epsilon=1.0, delta=None).fit(ROWS),
        "'delta' parameter of PrivatePCA must be above 0",
    ),
    "an option of an inner class": (
        lambda: dplinear.PrivateProjection(bounds=(0, 1), noise=_any(3)).fit(ROWS),
        "'noise' parameter of PrivateProjection",
    ),
    "a matrix of numbers too large": (lambda: MatrixMap([[1e308]]), "of numbers up to 1e\\+100"),
    "names that are lists": (
        lambda: dplinear.suggest_bounds(ROWS, [_any(["a"]), "b"], rho=1.0),
        "'columns' parameter of suggest_bounds",
    ),
    "a matrix of integers too long": (lambda: MatrixMap([[10**400]]), "'matrix' parameter"),
    "bounds beyond floats": (
        lambda: Schema(a=(-1e150, 1e150), derived=["a^16"]),
        "derived bounds \\(0, inf\\)",
    ),
    "an exponent of many digits": (
        lambda: Schema(a=(0, 1), derived=["a^" + "9" * 5000]),
        "'derived' parameter of Schema",
    ),
    "a declaration that raises": (lambda: Schema(a=_any(Rude())), "'a' parameter of Schema"),
    "a bound that raises": (lambda: Schema(a=(0, RaisingReal())), "'a' parameter of Schema"),
    "a number that raises": (lambda: ZCDP(RaisingReal()), "'rho' parameter of ZCDP"),  # type: ignore[arg-type]
    "a span of time": (
        lambda: arguments.integer(np.timedelta64(1, "s"), "steps", "here", low=1),
        "'steps' parameter of here",
    ),
    "a number of many digits": (
        lambda: arguments.choice(10**5000, "loss", "here", ("a",)),
        "Got a int that cannot be shown",
    ),
    "an object that is not shown": (
        lambda: arguments.positive(Mute(), "loss", "here"),
        "Got a Mute that cannot be shown",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused_in_our_words_before_anything_is_spent(name: str) -> None:
    call, sentence = REFUSED[name]
    with tally() as spent, pytest.raises((ValueError, TypeError), match=sentence):
        call()
    assert not spent.requests


@pytest.mark.parametrize("name", ["deep.json", "deep.toml"])
def test_schema_files_that_are_too_deep_are_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    start = '{"columns": ' if name.endswith(".json") else "columns = "
    file.write_text(start + "[" * 100_000, encoding="utf-8")
    with refused("path", "Schema.from_file", "a well-formed"):
        Schema.from_file(file)


@pytest.mark.parametrize("gate", GATES)
def test_errors_about_a_table_name_the_gate_that_was_called(gate: str) -> None:
    asked = {"bits": 0.5} if gate == "release_rows" else {"epsilon": 1.0, "delta": 1e-6}
    for data in (ROWS[:, :1], pa.table({"a": [1.0]}), "none.csv", 3):
        with pytest.raises((ValueError, TypeError), match=f"'data' parameter of {gate} must be"):
            GATES[gate](data, SCHEMA, **asked)


def test_a_damaged_archive_is_a_source_that_breaks_off(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(b"a,b\n" + b"1,2\n" * 50))
    content[10] = 0xFF  # a kind of block that there is not
    file = tmp_path / "table.csv.gz"
    file.write_bytes(content)
    with pytest.raises(SourceError, match="Reading"):
        second_moments(file, SCHEMA)


def test_a_line_longer_than_a_block_is_a_row_like_any_other(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    lines = [b"0.5,0.25"] * 600_000 + [b"1"]
    file.write_bytes(b"\n".join([b"a,b", *lines, b"x" * 2**23 + b",1", b"1,1,1", b"1,1"]))
    halves: list[float | None] = [0.5] * 600_000
    quarters: list[float | None] = [0.25] * 600_000
    table = {"a": [*halves, None, None, None, 1.0], "b": [*quarters, None, 1.0, None, 1.0]}
    found, expected = second_moments(file, SCHEMA), second_moments(pa.table(table), SCHEMA)
    assert found.count == expected.count == 600_004
    assert (found.integers == expected.integers).all()


def test_a_sketch_of_numbers_whose_squares_are_no_floats_is_refused(tmp_path: Path) -> None:
    sketch = dplinear.release_sketch(ROWS, SCHEMA, epsilon=1.0, delta=1e-6)
    far = replace(sketch, values=sketch.values * 1e200)
    with pytest.raises(ValueError, match="'values' parameter of a release of sketch"):
        far.save(tmp_path / "far.json")  # which loads what it would write


@pytest.mark.engine
def test_polars_and_pandas_objects_that_are_no_tables_are_refused() -> None:
    polars, pandas = library("polars"), library("pandas")
    frame = pandas.DataFrame({"a": [1.0], "b": [1.0]})
    for data in (polars.Series("a", [1.0]), frame["a"].index):
        with refused("data", "second_moments", kind=ArgumentTypeError):
            second_moments(data, SCHEMA)
    plan = polars.LazyFrame({"a": [1.0], "b": [1.0]}).with_columns(a=polars.col("none"))
    with pytest.raises(SourceError, match="Reading the stream failed"):
        second_moments(plan, SCHEMA)


CELLS = (Faceless, Rude, lambda: RudeText("1"), lambda: RudeBytes(b"1"), lambda: RudeCount(1))
DECLARED = ((0, 2), "boolean", ["1", "2"], {"type": "category", "levels": [1, 2]})


@pytest.mark.parametrize("declared", DECLARED, ids=str)
def test_cells_that_raise_whatever_is_asked_are_read_like_others(declared: Any) -> None:
    schema = Schema(a=declared)
    for make in CELLS:
        assert second_moments(objects([1.0, make()], (2, 1)), schema).count == 2


def test_estimators_take_lists_of_such_cells() -> None:
    public: dict[str, Any] = {
        "bounds": (-1, 1),
        "target_bounds": (0, 1),
        "epsilon": None,
        "delta": None,
    }
    for make in CELLS:
        model = dplinear.PrivateRidge(**public, guarantee=ZCDP(1e6))
        cells = [[0.1, make()], [0.5, 1.0], [0.3, 0.2]] * 20
        assert model.fit(cells, [make(), 1.0, 0.5] * 20).coef_.shape == (2,)


def test_integers_of_numpy_are_exact_bounds() -> None:
    column = Schema(a=(np.int64(-(2**62)), np.int64(2**62))).declared["a"]
    assert isinstance(column.low, Fraction)  # type: ignore[union-attr]
    assert type(column.low.numerator) is int  # type: ignore[union-attr]


def test_numbers_of_any_class_are_kept_as_floats_and_saved() -> None:
    for norm in (2, Fraction(2), np.float32(2)):
        release = dplinear.release_model(ROWS, target=ROWS[:, 1], **LEARNING | {"row_norm": norm})
        assert type(release.units.row_norm) is float
    asked: dict[str, Any] = {"mechanism": "mi_projection", "bits": 0.5}
    sketch = dplinear.release_sketch(ROWS, SCHEMA, **asked, lower_bound=_any(Fraction(1, 2)))
    assert sketch.certificate.parameters["lower_bound"] == 0.5


def test_a_bar_ends_alike_for_a_table_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for rows in (ROWS, ROWS[:1], ROWS[:0]):
        second_moments(rows, SCHEMA, progress=True)
        dplinear.release_model(rows, target=rows[:, 1], **LEARNING, progress=True)
        shown.append(capsys.readouterr().err)
    assert shown[0] == shown[1] == shown[2]


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_a_profile_that_is_no_number_proves_nothing() -> None:
    assert Gaussian(1e300).delta(1e300) == 1.0


@pytest.mark.parametrize("before", [0, 3], ids=str)
def test_a_broken_line_that_is_no_text_is_a_row_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], before: int
) -> None:
    file = tmp_path / "table.csv"
    schema = Schema(a=["é", "x"], b=(0, 1))
    found = []
    for line in (b"1,1,1", b"\xff,\xfe,\xff", b"\xff", b"1"):
        sound = ["é,1".encode()] * before
        file.write_bytes(b"\n".join([b"a,b", *sound, line, b"x,0.5"]))
        found.append(second_moments(file, schema).integers.tolist())
    assert found[0] == found[1] == found[2] == found[3]
    assert capfd.readouterr() == ("", "")


def test_errors_name_what_was_called_and_an_argument_of_its_own() -> None:
    inner: dict[str, Any] = LEARNING | {"target": ROWS[:, 1]}
    ball = inner | {"mechanism": "mirror_descent", "constraint": L2Ball(2)}
    with refused("constraint", "release_model", "extreme points"):
        dplinear.release_model(ROWS, **ball)
    with refused("change", "release_rows", kind=arguments.ArgumentTypeError):
        dplinear.release_rows(ROWS, SCHEMA, k=1, neighbours="row_l1", **ASKED)
    projection = dplinear.PrivateProjection(bounds=(-1, 1), row_norm=1.0, epsilon=1.0)
    with refused("row_norm", "PrivateProjection"):
        projection.fit(ROWS)
    machine = dplinear.PrivateSVM(classes=(0, 1), mechanism="whitened", row_norm=2, **ASKED)
    with refused("mechanism", "PrivateSVM"):
        machine.set_params(epsilon=None, delta=None).fit(ROWS, ROWS[:, 1] > 0)
