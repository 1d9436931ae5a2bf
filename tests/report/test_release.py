"""The page of a release: complete, escaped, self-contained, the same each time."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import dplinear as dpl
from dplinear.arguments import ArgumentTypeError
from dplinear.audit import audit
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, PureDP
from dplinear.report import release_page
from dplinear.report.curve import TOP
from refusals import refused

from .samples import HOSTILE, KINDS, NUMBERS, SCHEMA, certificate, numbers, sample, table

pytestmark = pytest.mark.heavy


class Outline(HTMLParser):
    """What a browser would see: tags in order, text, ids, and scripts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    @property
    def sections(self) -> list[str]:
        return [str(facts.get("id")) for name, facts in self.tags if name == "section"]


def words(page: str) -> str:
    return " ".join(" ".join(Outline(page).text).split())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_has_a_page_without_a_link_to_elsewhere(kind: str) -> None:
    page = release_page(sample(kind))
    outline = Outline(page)
    assert outline.sections[-1] == "certificate"
    assert {"promise", "says"} <= set(outline.sections)
    for _, facts in outline.tags:
        for name in ("href", "src", "action", "srcset", "data", "poster"):
            target = facts.get(name) or "#"
            assert target.startswith(("#", "data:"))
        assert not any(name.startswith("on") or name == "style" for name in facts)
    assert "//" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert page == release_page(sample(kind))
    assert sample(kind).certificate.request in page


def test_the_policy_admits_the_pages_own_style_and_script_alone() -> None:
    page = release_page(sample("moments"))
    policy = next(f["content"] for _, f in Outline(page).tags if "http-equiv" in f) or ""
    assert policy.startswith("default-src 'none'")
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        assert len(inside) == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_hostile_names_stay_words(tmp_path: Path) -> None:
    schema = dpl.Schema({HOSTILE: (0, 100), "bmi": (10, 60), "level": [HOSTILE, "b"]})
    renamed = table().rename_columns([HOSTILE, "bmi", "level", "charges"]).drop(["charges"])
    ledger = dpl.open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare(HOSTILE, ZCDP(1.0))
    facts: dict[str, Any] = {"ledger": ledger, "dataset": HOSTILE, "request": HOSTILE}
    moments = dpl.release_moments(renamed, schema, epsilon=1.0, delta=1e-6, **facts)
    fits = [moments.regress(HOSTILE, ["bmi"]), moments.regress(["bmi"], [HOSTILE])]
    page = release_page(moments, ledger=ledger, fits=fits)
    plain = release_page(sample("moments"))
    assert HOSTILE not in page
    assert Outline(page).count("script") == Outline(plain).count("script") == 1
    assert Outline(page).count("img") == 0
    assert HOSTILE in "".join(Outline(page).text)
    assert str(tmp_path) not in page
    bounds = replace(sample("bounds"), certificate=certificate(notes=(HOSTILE,)))
    assert HOSTILE not in release_page(bounds)


def test_the_ledgers_lines_of_this_dataset_alone_are_shown(tmp_path: Path) -> None:
    ledger = dpl.open_ledger(tmp_path / "budget.db", create=True)
    for name in ("visits", "secret-study"):
        ledger.declare(name, ZCDP(0.5))
    facts: dict[str, Any] = {"guarantee": ZCDP(0.125), "ledger": ledger}
    one = dpl.release_moments(table(), SCHEMA, **facts, dataset="visits", request="one")
    two = dpl.release_moments(table(), SCHEMA, **facts, dataset="visits", request="two")
    dpl.release_moments(table(), SCHEMA, **facts, dataset="secret-study", request="elsewhere")
    page = words(release_page(two, ledger=tmp_path / "budget.db"))
    assert "The budget of visits" in page
    assert "50% of the budget is spent" in page
    assert "Spent, in 2 requests: ρ = 0.25. Left: ρ = 0.25." in page
    assert "spent, this one" in page
    assert f"they would promise together: {ledger.figures('visits').figures[0]}" in page
    assert "secret-study" not in page
    assert "elsewhere" not in page
    assert "Not charged to a privacy budget" not in page
    assert "Not in this ledger" not in page
    stranger = replace(one, certificate=certificate(dataset="visits", notes=()))
    assert "Not in this ledger" in words(release_page(stranger, ledger=ledger))
    with refused("dataset", "release_page"):
        release_page(sample("moments"), ledger=ledger)
    with refused("dataset", "release_page"):
        release_page(sample("moments"), ledger=ledger, dataset="nowhere")
    with refused("ledger", "release_page", kind=ArgumentTypeError):
        release_page(sample("moments"), ledger=3, dataset="visits")


def test_wrong_arguments_are_told() -> None:
    with refused("release", "release_page", kind=ArgumentTypeError):
        release_page(sample("moments").certificate)
    with refused("fits", "release_page", kind=ArgumentTypeError):
        release_page(sample("moments"), fits=["charges"])


def test_an_audit_is_shown_and_a_broken_promise_comes_first() -> None:
    result = audit("analyze_gauss", ApproxDP(1.0, 1e-6), trials=500)
    page = words(release_page(sample("moments"), audit=result))
    assert f"The audit: {result.verdict}" in page
    for kind, unit in (("epsilon", "ε"), ("mu", "μ"), ("bits", "bits")):
        other = replace(result, kind=kind)
        assert other.unit == unit
        page = words(release_page(sample("moments"), audit=other))
        assert f"{unit} that the runs prove" in page
        assert f"{unit} = {result.claimed:.3g}" in page
    below = replace(result, audited=0.9 * result.claimed, proved=0.8 * result.claimed)
    page = words(release_page(sample("moments"), audit=below))
    assert "An audit refutes the promise" not in page
    assert "stays below what is claimed" in page
    unlucky = replace(result, audited=1.1 * result.claimed, proved=0.9 * result.claimed)
    page = words(release_page(sample("moments"), audit=unlucky))
    assert "stays below" not in page
    assert "one of twenty audits" in page
    broken = replace(result, proved=9.0, audited=9.5)
    page = words(release_page(sample("moments"), audit=broken))
    assert "The audit: broken" in page
    assert page.index("An audit refutes the promise") < page.index(
        "Not charged to a privacy budget"
    )


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"simulated": True}, "Simulated: it protects nobody"),
        ({"holds": None}, "No guarantee is proved"),
        ({"holds": ApproxDP(2.0, 1e-6)}, "Not what was asked for"),
        ({"calibration": "paper"}, "Calibrated as in a paper"),
        ({"numerics": "idealised"}, "not one of this program"),
        ({}, "Not charged to a privacy budget"),
        ({"neighbours": "element"}, "Less than a whole row is protected"),
        ({"neighbours": "row_l2", "parameters": {"change": 0.5}}, "Less than a whole row"),
        ({"notes": ("rows are few",)}, "Rows are few"),
        ({"asked": PureDP(9.0), "holds": PureDP(9.0), "curve": ()}, "A weak promise"),
        ({"asked": ApproxDP(1.0, 0.01), "holds": ApproxDP(1.0, 0.01)}, "δ is large"),
    ],
    ids=str,
)
def test_every_warning_has_its_reason(changes: dict[str, Any], title: str) -> None:
    release = replace(sample("moments"), certificate=certificate(**changes))
    warned = words(release_page(release))
    assert title in warned
    calm = replace(sample("moments"), certificate=certificate(notes=()))
    assert "Before you rely on it" not in words(release_page(calm))


def test_a_page_does_not_promise_what_only_the_ideal_mechanism_keeps() -> None:
    """It says first whose guarantee it is, gravely, and never that it holds against anybody."""
    release = replace(sample("moments"), certificate=certificate(numerics="idealised", notes=()))
    page = words(release_page(release))
    calm = words(release_page(replace(release, certificate=certificate(notes=()))))
    assert "Of the ideal mechanism, not of this program" in page
    assert "against any computing power" not in page
    assert "against any computing power" in calm
    assert "ideal mechanism" not in calm


def test_noise_that_swamps_a_fit_is_a_warning() -> None:
    # Without an intercept the number of rows is not known, and there are never intervals.
    schema = dpl.Schema({"age": (0, 100), "bmi": (10, 60)}, intercept=False)
    release = dpl.release_moments(table(), schema, epsilon=0.5, delta=1e-6)
    fit = release.regress("bmi", ["age"], intercept=False)
    page = words(release_page(release, fits=[fit]))
    assert "Estimates without intervals" in page
    assert str(fit.intervals().swamped) in page


@pytest.mark.parametrize(
    "holds", [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1), GDP(0.5), MIDP(0.5), MIDP(2.0)], ids=str
)
def test_every_guarantee_is_told_in_words(holds: Any) -> None:
    release = replace(
        sample("moments"), certificate=certificate(asked=holds, holds=holds, curve=())
    )
    page = words(release_page(release))
    assert "could learn about one row" in page
    assert ("bits" if isinstance(holds, MIDP) else "changes the odds") in page


def test_rows_under_a_pure_promise_are_told_of_in_words_that_fit() -> None:
    rows = dpl.release_rows(numbers().slice(0, 50), NUMBERS, k=2, noise="perturbed", epsilon=1.0)
    page = release_page(rows)
    assert "with Laplace noise added beforehand." in page
    assert "The dashed line marks what this release was made to keep." in page
    assert 'class="ring"' not in page
    # Above the picture, where no curve goes.
    assert re.search(rf'<text class="mark-label" x="[\d.]+" y="{TOP - 10}"', page)


@pytest.mark.parametrize("kind", ["moments", "model", "mean", "covariance", "bounds"])
def test_a_page_names_the_unit_that_is_protected(kind: str) -> None:
    rows, made = words(release_page(sample(kind))), sample(kind)
    of_unit = replace(made.certificate, unit="patient", rows_per_unit=4)
    units = words(release_page(replace(made, certificate=of_unit)))
    assert "patient" not in rows
    assert "single rows; a person with several rows is protected less" in rows
    assert "all rows with one 'patient', counted as at most 4 rows" in units
    assert "several rows is protected less" not in units
    for page in (rows, units):
        assert "everyone" not in page.lower()
        assert "one person" not in page.lower()
    if kind != "bounds":
        assert re.search(r"about [\d,]+ rows", rows)
        assert re.search(r"about [\d,]+ units \(by 'patient'\)", units)
        assert not re.search(r"about [\d,]+ rows", units)


@pytest.mark.parametrize("kind", ["moments", "model", "mean", "covariance"])
def test_summaries_count_units_where_units_are_protected(kind: str) -> None:
    made = sample(kind)
    of_unit = replace(made, certificate=replace(made.certificate, unit="patient", rows_per_unit=4))
    shown = [of_unit.describe(), of_unit._repr_html_().replace("&#x27;", "'").replace("&#39;", "'")]
    if kind == "moments":
        fit = of_unit.regress(of_unit.names[-1])
        shown += [str(fit.summary()), repr(fit)]
    if kind == "model":
        shown.append(str(of_unit.summary()))
    for text in shown:
        assert "units (by 'patient')" in text
        assert not re.search(r"about [\d,]+ rows|rows: about", text)
