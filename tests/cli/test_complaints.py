"""What is told of an error: of ours its sentence and hint, of any other nothing."""

from pathlib import Path

import pytest

from dplinear.analyst.releases.outputs import UnplacedError
from dplinear.arguments import ArgumentError, choice, rejection, wrong_type
from dplinear.cli.errors import Code, Complaint, complaint_of


def test_an_argument_is_told_by_its_parts() -> None:
    hint = "write\nrho=0.1, or seeded=True."
    told = complaint_of(rejection("rho", "release_moments", "in\n(0, 1)", 2, hint))
    sentence = "The 'rho' parameter of release_moments must be in (0, 1). Got 2."
    assert told == Complaint(Code.USAGE, sentence, "write --rho 0.1, or --seeded.")
    with pytest.raises(ArgumentError) as caught:
        choice("moment", "learn", "plan", ["rows", "moments"])
    told = complaint_of(caught.value)
    assert told is not None
    assert told.hint == "did you mean 'moments'?"


def test_an_argument_is_called_what_the_command_line_calls_it() -> None:
    named = {"rows_per_unit": "--rows-per-unit", "data": "DATA"}
    told = complaint_of(rejection("rows_per_unit", "release_mean", "in [1, 9]", 0), named)
    assert told == Complaint(Code.USAGE, "--rows-per-unit must be in [1, 9]. Got 0.")
    told = complaint_of(wrong_type("data", "release_mean", "given", None), named)
    assert told == Complaint(Code.FILE, "DATA must be given.")


@pytest.mark.parametrize(
    ("parameter", "where", "code"),
    [
        ("path", "open_ledger", Code.LEDGER),
        ("data", "release_mean", Code.FILE),
        ("rho", "f", Code.USAGE),
    ],
)
def test_the_code_of_an_argument_is_that_of_its_parameter(
    parameter: str, where: str, code: Code
) -> None:
    for error in (rejection(parameter, where, "x", 1), wrong_type(parameter, where, "x", 1)):
        told = complaint_of(error)
        assert told is not None
        assert told.code == code


def test_errors_of_others_that_sound_like_ours_are_withheld() -> None:
    words = "The 'alpha' parameter of Ridge must be a float. Got 'Alice is 42'."
    for error in (ValueError(words), TypeError(words)):
        assert complaint_of(error) is None


def test_a_release_under_another_name_is_told_with_its_hint() -> None:
    told = complaint_of(UnplacedError(Path("a/out.json"), Path("a/.out.tmp"), "it is taken"))
    assert told is not None
    assert told.code == Code.FILE
    assert told.sentence.endswith("it is in '.out.tmp', in the same folder.")
    assert told.hint == "give that file another name; nothing of it is lost."
