"""Names between commas on a command line, where a name may hold commas itself."""

import pytest

from dplinear.cli.columns import read_schema
from dplinear.cli.settings import split_names


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("age, bmi,,", ["age", "bmi"]),
        ("bins(age, 30, 50),spline(bmi, [20, 30])*smoker", None),
        ("age[30, 50),age[50, 100]", None),
        ("a(b,c", ["a(b", "c"]),
        ("a)b,(c,d", ["a)b", "(c", "d"]),
    ],
)
def test_commas_within_brackets_are_part_of_a_name(given: str, names: list[str] | None) -> None:
    whole = {"bins": ["bins(age, 30, 50)", "spline(bmi, [20, 30])*smoker"]}
    want = names or whole.get(given[:4]) or ["age[30, 50)", "age[50, 100]"]
    assert split_names(given) == want
    assert split_names([given, "z"]) == [*want, "z"]


def test_terms_with_commas_come_in_one_flag() -> None:
    said = {"column": ["age 0 100"], "derived": ["bins(age, 30, 50),log1p(age)"]}
    schema = read_schema(said)
    assert schema.names[2:] == ("age[30, 50)", "age[50, 100]", "log1p(age)")
