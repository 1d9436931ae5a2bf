from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from dplinear.analyst.regression.inference import Intervals
from dplinear.analyst.regression.summary import SummaryFacts, number, summary

NAMES = ("intercept", "age", "smoker=yes")


def intervals(names: tuple[str, ...] = NAMES, scale: float = 1.0) -> Intervals:
    count = len(names)
    estimates = scale * np.resize([-3_210.123, 256.789, 0.5], count)
    errors = scale * np.resize([410.7, 11.23, 2.0], count)
    return Intervals(
        names=names,
        estimates=estimates,
        standard_errors=errors,
        low=estimates - 1.96 * errors,
        high=estimates + 1.96 * errors,
        sampling=0.75 * errors**2,
        privacy=0.25 * errors**2,
        level=0.95,
        method="delta",
    )


def facts(found: Intervals | None = None) -> SummaryFacts:
    return SummaryFacts(
        target="charges",
        intervals=found or intervals(),
        guarantee="(1, 1e-06)-DP (add_remove neighbours)",
        rows=1_338.4,
        r_squared=0.7312,
    )


def refused() -> Intervals:
    nothing = np.full(3, np.nan)
    return Intervals(
        names=NAMES,
        estimates=np.array([-3_210.123, 256.789, 0.5]),
        standard_errors=nothing,
        low=nothing,
        high=nothing,
        sampling=nothing,
        privacy=nothing,
        level=0.95,
        method="delta",
        swamped="The privacy noise (about 12) is as large as what the table holds (about 3).",
    )


class Seen(HTMLParser):
    """Which tags a page has, whether they close, and the text between them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())


def page(content: SummaryFacts) -> Seen:
    seen = Seen()
    seen.feed(summary(content)._repr_html_())
    seen.close()
    assert seen.open == []
    return seen


def test_the_text_is_a_table_with_its_facts() -> None:
    lines = str(summary(facts())).splitlines()
    assert lines[0] == "Linear model of charges"
    assert lines[1].startswith("rows: about 1,338; R²: about 0.731; intervals: 95%, delta method")
    assert "guarantee: (1, 1e-06)-DP (add_remove neighbours)" in lines
    age = next(line for line in lines if line.startswith("age"))
    assert age.split() == ["age", "257", "11", "235", "279", "25%", "yes"]
    smoker = next(line for line in lines if line.startswith("smoker=yes"))
    assert smoker.split() == ["smoker=yes", "0.5", "2.0", "-3.4", "4.4", "25%", "no"]
    assert all(len(line) <= 100 for line in lines)


def test_columns_are_aligned() -> None:
    lines = str(summary(facts())).splitlines()
    table = [line for line in lines if line.startswith(("coefficient", *NAMES))]
    assert len({len(line) for line in table}) == 1


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e9, 1e15])
def test_the_text_keeps_its_width(scale: float) -> None:
    names = ("intercept", "a" * 80, "a name\nin two lines", "température>=37.5*" + "b" * 40)
    content = replace(facts(intervals(names, scale)), target="t" * 200, guarantee="ε " * 120)
    assert all(len(line) <= 100 for line in str(summary(content)).splitlines())


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (1.23456, 0.0123, "1.235"),
        (1.23456, 0.0996, "1.23"),
        (0.0996, 0.0996, "0.10"),
        (-0.0001, 0.5, "0.00"),
        (12_345.6, 789.0, "12,350"),
        (12_345.6, 9_970.0, "12,000"),
        (3.0, 1.0, "3.0"),
        (1.5e-9, 2.3e-10, "1.50e-09"),
        (4e15, 1e13, "4.000e+15"),
        (0.0, 1e-12, "0e+00"),
        (2.5, np.nan, "2.5"),
        (2.5, 0.0, "2.5"),
    ],
)
def test_numbers_have_two_digits_of_their_error(value: float, error: float, shown: str) -> None:
    assert number(value, error) == shown


def test_what_is_not_known_is_left_out() -> None:
    content = replace(facts(), rows=None, r_squared=None)
    text = str(summary(content))
    assert "rows:" not in text
    assert "R²" not in text
    assert "rows: 1,338;" in str(summary(replace(facts(), rows_public=True)))


def test_the_page_says_the_same_as_the_text() -> None:
    words = page(facts()).words
    for word in ("age", "257", "235", "279", "25%", "yes", "due to privacy", "clear?"):
        assert word in words
    assert "Linear model of charges" in words


def test_names_are_escaped() -> None:
    bad = '<script>alert("1")</script>&amp;'
    content = replace(facts(intervals((bad, bad, bad))), target=bad, guarantee=bad, notes=(bad,))
    seen = page(content)
    assert "script" not in seen.tags
    assert bad in seen.words
    assert bad in str(summary(content)).replace("\n", "")


def test_the_page_needs_nothing_from_elsewhere() -> None:
    for content in (facts(), facts(refused())):
        seen = page(content)
        table = {"table", "thead", "tbody", "tr", "th", "td"}
        assert seen.tags <= table | {"div", "p", "strong", "br", "small"}
        assert seen.attributes <= {"style", "scope", "role"}
        text = summary(content).html
        assert "url(" not in text
        assert ";color" not in text.replace(";color:inherit", "")  # dark or light, as around it


def test_a_refusal_is_said_and_no_error_is_printed() -> None:
    content = facts(refused())
    text, seen = str(summary(content)), page(content)
    assert "The privacy noise (about 12)" in text
    assert any("The privacy noise (about 12)" in word for word in seen.words)
    for shown in (text, " ".join(seen.words)):
        assert "nan" not in shown
        assert "std. error" not in shown
        assert "95%" not in shown
        assert "clear?" not in shown
    assert " 260\n" in text  # an estimate of which no digit is sure


def test_a_summary_prints_as_text() -> None:
    made = summary(facts())
    assert repr(made) == str(made) == made.text
    assert made._repr_html_() == made.html


def test_intervals_alone_print_as_the_table_of_a_summary() -> None:
    found = intervals()
    rules = [line for line in repr(found).splitlines() if set(line) == {"─"}]
    assert len(rules) == 3
    assert all(name in repr(found) for name in NAMES)
    assert found._repr_html_().count("<tr>") == len(NAMES) + 1
    refused = replace(found, swamped="The noise is <too> large.")
    assert repr(refused).startswith("The noise is <too> large.")
    assert "&lt;too&gt;" in refused._repr_html_()


def test_a_table_of_very_many_coefficients_is_folded() -> None:
    many = tuple(f"c{i}" for i in range(250))
    whole = summary(facts(intervals(many)))
    for text in (str(whole), repr(intervals(many))):
        assert "c99 " in text
        assert "c100 " not in text
        assert "150 more" in text
    assert whole.html.count("<tr>") == 101
    one_more = summary(facts(intervals(many[:101])))
    assert "c100 " in str(one_more)  # rather than a line that says so
