"""The one error sentence: parameter, rule, what came; a hint on a line of its own."""

import copy
import math
import pickle
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from dplinear import arguments
from dplinear.arguments import ArgumentError, ArgumentTypeError, rejection, wrong_type
from dplinear.ledger.spent import note_spent, spent_note
from refusals import refused


@pytest.mark.parametrize("value", [1, 1.5, Fraction(1, 3), np.float32(0.5), np.int64(2)])
def test_real_accepts_real_numbers(value: Any) -> None:
    assert arguments.real(value, "x", "f") == float(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_real_rejects_what_is_not_finite(value: Any) -> None:
    with refused("x", "f", "a finite number"):
        arguments.real(value, "x", "f")


@pytest.mark.parametrize("value", ["1", None, True, 1j, [1.0], np.array([1.0]), Decimal(1)])
def test_real_rejects_other_types(value: Any) -> None:
    with refused("x", "f", "a finite number", ArgumentTypeError):
        arguments.real(value, "x", "f")


def test_the_sentence_names_the_interval_and_the_hint() -> None:
    with pytest.raises(ValueError, match="delta") as caught:
        arguments.real(
            2, "delta", "release", low=0, high=1, open_low=True, open_high=True, hint="h"
        )
    expected = "The 'delta' parameter of release must be in (0, 1). Got 2.\n\nHint: h"
    assert str(caught.value) == expected


def test_long_values_are_shortened_to_one_line() -> None:
    with pytest.raises(ValueError, match="one of") as caught:
        arguments.choice("a\nb" * 100, "kind", "f", ["x"])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 140


@pytest.mark.parametrize("value", [1.0, "1", None, True, np.float64(2)])
def test_integer_rejects_other_types(value: Any) -> None:
    with pytest.raises(TypeError, match=r"an integer of at least 1"):
        arguments.integer(value, "x", "f", low=1)


def test_integer_keeps_its_bounds() -> None:
    assert arguments.integer(np.int32(3), "x", "f", low=1, high=3) == 3
    with pytest.raises(ValueError, match=r"an integer in \[1, 3\]. Got 4."):
        arguments.integer(4, "x", "f", low=1, high=3)


def test_rational_is_exact() -> None:
    assert arguments.rational(0.1, "x", "f") == Fraction(0.1)
    assert arguments.rational(Fraction(1, 3), "x", "f") == Fraction(1, 3)
    for bad in (0, -1, Fraction(-1, 3), math.nan):
        with pytest.raises(ValueError, match="a finite number above 0"):
            arguments.rational(bad, "x", "f")


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://me:hush@host",
        "Postgres:/me:hush@host",
        b"postgresql:/hush",
        ["x://hush"],
        "://hush",
    ],
)
def test_of_a_url_only_its_kind_is_told(value: Any) -> None:
    assert "hush" not in arguments.describe(value)
    assert "://…" in arguments.describe(value)


@pytest.mark.parametrize(
    "value",
    [
        "host=h password=hush",
        "PASSWORD = hush",
        "user=hush dbname=hush",
        ["host=h password=hush"],
        "host/base?password=hush",
        "host/base?sslmode=require&password=hush",
        b"base?a=b&sslpassword=hush",
    ],
)
def test_of_libpqs_pairs_nothing_is_told(value: Any) -> None:
    assert arguments.describe(value) in {"…", "'…'"}


@pytest.mark.parametrize("text", ["a" * 100_000, "postgres/" + "a:" * 100_000])
def test_a_long_text_is_looked_at_once(text: str) -> None:
    began = time.monotonic()
    assert len(arguments.describe(text)) < 200
    assert time.monotonic() - began < 10  # from each of its letters anew, it took minutes


def test_a_path_is_no_url_because_of_a_word_in_it() -> None:
    for path in ("/data/postgres:old/budget.db", "budget.db", "C:/data/budget.db"):
        assert arguments.describe(path) == repr(path)
    for word in ("postgresql/budget.db", "host=web", "data/host=web/user=me/rows.parquet"):
        assert arguments.describe(word) == repr(word)


def test_an_error_is_its_parts_and_the_sentence_is_made_of_them() -> None:
    error = rejection("delta", "release_moments", "in (0, 1)", 2, "write 1e-6.")
    assert type(error) is dpl.ArgumentError
    assert (error.parameter, error.where, error.rule) == ("delta", "release_moments", "in (0, 1)")
    assert (error.got, error.hint, error.options) == ("2", "write 1e-6.", ())
    assert error.sentence == "The 'delta' parameter of release_moments must be in (0, 1). Got 2."
    assert str(error) == f"{error.sentence}\n\nHint: write 1e-6."
    assert repr(error) == (
        "ArgumentError('delta', 'release_moments', 'in (0, 1)', '2', 'write 1e-6.')"
    )
    assert str(rejection("x", "f", "true", 2)) == "The 'x' parameter of f must be true. Got 2."


def test_a_wrong_type_is_an_error_of_either_kind() -> None:
    error = wrong_type("x", "f", "a number", "one")
    assert type(error) is ArgumentTypeError
    assert isinstance(error, ValueError)
    assert isinstance(error, TypeError)
    assert error.got == "'one' (str)"
    assert not isinstance(rejection("x", "f", "a number", "one"), TypeError)


def test_a_choice_tells_its_options() -> None:
    with refused("kind", "f", "one of 'mean', 'rows'") as caught:
        arguments.choice("row", "kind", "f", {"mean": 1, "rows": 2})
    assert caught.value.options == ("mean", "rows")


class Secret:
    """What a caller gave: it cannot be pickled, and is not to be held."""

    def __reduce__(self) -> str:
        raise AssertionError

    def __str__(self) -> str:
        return "postgresql://me:hush@host"


@pytest.mark.parametrize("make", [rejection, wrong_type])
def test_what_came_is_held_as_a_veiled_text_only(make: Callable[..., ArgumentError]) -> None:
    for value in (Secret(), str(Secret()), "host=h password=hush"):
        error = make("path", "open_ledger", "a path", value)
        assert type(error.got) is str
        assert b"hush" not in pickle.dumps(error)
        assert "hush" not in repr(vars(error)) + repr(error) + str(error)


def _pickled(error: ArgumentError) -> Any:
    return pickle.loads(pickle.dumps(error))


@pytest.mark.parametrize("again", [_pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", [ArgumentError, ArgumentTypeError])
def test_errors_travel_with_their_parts_and_notes(
    again: Callable[[ArgumentError], Any], kind: type[ArgumentError]
) -> None:
    error = kind("kind", "f", "one of 'a', 'b'", "'c'", "say a.", options=["a", "b"])
    note_spent(error, "monday")
    back = again(error)
    assert type(back) is kind
    assert vars(back) == vars(error)
    assert (str(back), repr(back)) == (str(error), repr(error))
    assert spent_note(back) == "The request 'monday' is spent, and stays spent."


@pytest.mark.parametrize("kind", [ArgumentError, ArgumentTypeError])
def test_an_error_can_be_told_of_the_function_that_was_called(kind: type[ArgumentError]) -> None:
    error = kind("kind", "inner", "one of 'a'", "' parameter of inner must be '", "h", options="a")
    error.add_note("noted")
    named = error.rename("outer")
    assert type(named) is kind
    assert vars(named) == vars(error) | {"where": "outer"}
    assert str(named) == str(error).replace("of inner", "of outer", 1)
    assert (error.where, named.args[1]) == ("inner", "outer")
    named.add_note("later")
    assert error.__notes__ == ["noted"]


NAMES = ("age", "charges", "smoker", "hospital_id", "add_remove", "bmi")


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("agee", "age"),
        ("AGE", "age"),
        ("chagres", "charges"),
        ("hospital", "hospital_id"),
        ("add", "add_remove"),
        ("remove", "add_remove"),
        ("bmj", "bmi"),
    ],
)
def test_a_mistyped_name_is_near_to_the_one_that_was_meant(word: str, name: str) -> None:
    assert arguments.nearest(word, NAMES) == [name]
    assert repr(name) in arguments.meant(word, NAMES)


@pytest.mark.parametrize("word", ["zebra", "nosuch", "c", "", "ages of all", "schema"])
def test_a_word_that_is_near_to_no_name_has_no_suggestion(word: str) -> None:
    assert arguments.nearest(word, NAMES) == []
    assert arguments.meant(word, NAMES) == ""


def test_a_long_list_is_folded() -> None:
    assert arguments.listed("abc") == "a, b, c"
    assert arguments.listed(range(9), 8) == "0, 1, 2, 3, 4, 5, 6, 7, 8"  # not "and 1 more"
    assert arguments.listed(range(2000), 3) == "0, 1, 2 and 1,997 more"


def test_an_epsilon_that_needs_a_delta_asks_for_one() -> None:
    table, schema = np.zeros((5, 1)), {"a": (0, 1)}
    for delta in (None, 0):
        with refused("delta", "release_moments", "above 0") as caught:
            dpl.release_moments(table, schema, epsilon=1.0, delta=delta)
        assert "delta=1e-6" in caught.value.hint
    with refused("guarantee", "release_moments") as caught:  # of which the δ is a part
        dpl.release_moments(table, schema, guarantee=dpl.PureDP(1.0))
    assert "delta=1e-6" in caught.value.hint


def test_an_option_of_another_mechanism_is_named_itself() -> None:
    table, schema = np.zeros((5, 1)), {"a": (0, 1)}
    release: Any = dpl.release_moments
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    with refused("degrees", "release_moments", "'analyze_gauss'"):
        release(table, schema, degrees=4, **given)
    with refused("degres", "release_moments") as caught:
        release(table, schema, mechanism="inverse_wishart", degres=4, **given)
    assert "'degrees'" in caught.value.hint


def test_a_missing_column_is_named_with_its_table_and_the_nearest_name(tmp_path: Path) -> None:
    file = tmp_path / "visits.csv"
    file.write_text("Age,bmi\n1,2\n")
    with refused("data", "release_moments", "every column") as caught:
        dpl.release_moments(file, {"age": (0, 1), "ward": ["a"]}, epsilon=1.0, delta=1e-6)
    assert caught.value.got == "'visits.csv', which lacks 'age', 'ward'"
    assert "'Age' for 'age'" in caught.value.hint
    assert "ward" not in caught.value.hint


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    moments = dpl.release_moments(np.zeros((5, 1)), {"a": (0, 1)}, epsilon=1.0, delta=1e-6)
    with pytest.raises(dpl.ReleaseError, match="nowhere"):
        moments.save(tmp_path / "nowhere" / "x.json")
