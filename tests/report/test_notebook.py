"""How things show themselves in notebooks: escaped, and in the reader's own colours."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import dplinear as dpl
from dplinear.analyst import notebook
from dplinear.planner.plan import plan
from dplinear.privacy.guarantees import ZCDP, ApproxDP

from .samples import HOSTILE, KINDS, certificate, sample, table

pytestmark = pytest.mark.heavy
_EMPTY = {"br", "hr", "img", "input", "meta", "link"}


class Balanced(HTMLParser):
    """Raises where tags are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onload", "onerror"}
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(shown: str) -> None:
    """Check that what is shown is whole, harmless, and sets no colour of text or ground."""
    seen = Balanced(shown).seen
    assert {"script", "img"}.isdisjoint(seen)
    for style in re.findall(r'style="([^"]*)"', shown):
        colours = dict(rule.split(":", 1) for rule in style.split(";") if rule)
        assert colours.get("color", "inherit") == "inherit"
        assert "background-color" not in colours
        assert not re.search(r"#[0-9a-f]{3}", colours.get("background", ""))


@pytest.mark.parametrize("kind", KINDS)
def test_every_release_shows_itself(kind: str) -> None:
    shown = sample(kind)._repr_html_()
    check(shown)
    assert "<table" in shown
    assert "<strong>" in shown
    told = sample(kind).certificate
    assert told.request in shown
    assert all(html.escape(note) in shown for note in told.notes)


def test_fits_plans_and_budgets_show_themselves(tmp_path: Path) -> None:
    moments = sample("moments")
    for each in (moments.regress("charges", ["age"]), moments.regress(["charges", "bmi"], ["age"])):
        check(each._repr_html_())
    made = plan(4_000, 3, epsilon=1.0, delta=1e-6, condition=100.0, tails="normal")
    check(made._repr_html_())
    assert made.recommended.call in made._repr_html_().replace("&quot;", '"')
    ledger = dpl.open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("plain", ApproxDP(2.0, 1e-5))
    ledger.declare(HOSTILE, ZCDP(0.5))
    facts: dict[str, Any] = {"ledger": ledger, "dataset": HOSTILE, "request": HOSTILE}
    renamed = table().rename_columns([HOSTILE, "bmi", "smoker", "charges"])
    schema = dpl.Schema({HOSTILE: (0, 100), "bmi": (10, 60), "smoker": [HOSTILE, "yes"]})
    hostile = dpl.release_moments(renamed, schema, guarantee=ZCDP(0.125), **facts)
    for each in (hostile, hostile.regress(HOSTILE, ["bmi"]), hostile.mean(), hostile.correlation()):
        check(each._repr_html_())
    plain, spent = ledger.status()
    for each in (plain, spent):
        check(each._repr_html_())
    assert "25% spent" in spent._repr_html_()
    assert "0% spent" in plain._repr_html_()


def test_warnings_and_long_tables_are_whole() -> None:
    check(notebook.warning(HOSTILE))
    check(notebook.card(HOSTILE, notebook.lines([HOSTILE]), notebook.bar(2.0, HOSTILE)))
    check(notebook.pairs([(HOSTILE, HOSTILE)], HOSTILE))
    long = notebook.table([HOSTILE, "b"], [[HOSTILE, "1"]] * 105, strong=0)
    check(long)
    assert "5 more rows" in long
    check(replace(sample("bounds"), certificate=certificate(notes=(HOSTILE,)))._repr_html_())
