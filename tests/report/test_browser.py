"""Pages as people meet them: opened from disk in a real browser, without a network."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import dplinear as dpl
from dplinear.audit import audit
from dplinear.planner.plan import QUESTIONS, plan
from dplinear.privacy.guarantees import ZCDP, ApproxDP
from dplinear.report import grid as grids
from dplinear.report import plan_page, release_page, summary_page
from dplinear.report.grid import ErrorGrid, error_grid, plain
from services import library

from .browsers import Watched, chromium, opened
from .samples import BUDGET, HOSTILE, SCHEMA, sample, table
from .test_plan import ASSUMED, Outcome

pytestmark = pytest.mark.heavy
NAMES = ("release", "plan", "summary")
WHITE = "rgb(255, 255, 255)"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


class Shelf(NamedTuple):
    """A browser, pages that are open in it, and what the plan's page should say."""

    browser: Any
    pages: dict[str, Watched]
    grid: ErrorGrid
    data: dict[str, Any]


def full_release_page(folder: Path) -> str:
    """Return a page with every section, and hostile names in it."""
    ledger = dpl.open_ledger(folder / "budget.db", create=True)
    ledger.declare(HOSTILE, ZCDP(1.0))
    facts: dict[str, Any] = {"ledger": ledger, "dataset": HOSTILE, "request": HOSTILE}
    moments = dpl.release_moments(table(), SCHEMA, **BUDGET, **facts)
    return release_page(
        moments,
        ledger=ledger,
        audit=audit("analyze_gauss", ApproxDP(1.0, 1e-6), trials=500),
        plan=plan(4_000, 3, epsilon=1.0, delta=1e-6, **ASSUMED),
        fits=[moments.regress("charges", ["age", "bmi", "smoker"])],
    )


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grids, "AMOUNTS", (0.1, 1.0, 8.0))
        patch.setattr(grids, "ROWS", (1_000, 30_000, 1_000_000))
        patch.setattr(grids, "COLUMNS", (2, 50))
        # Another order, and a wider tie, so that the usual one is not always the best as well.
        question = QUESTIONS["regression"]
        patch.setattr(type(question), "ways", question.ways[::-1])
        patch.setattr(question, "alike", 1.5)
        made = plan(40_000, 7, epsilon=0.7, delta=1e-6, **ASSUMED)
        grid = error_grid(made)
        pages = {
            "release": full_release_page(folder),
            "plan": plan_page(made),
            "summary": summary_page([Outcome("p", "figure1", HOSTILE, HOSTILE, "holds")]),
            "model": release_page(sample("model")),
        }
    with chromium() as browser, ExitStack() as stack:
        watched = {}
        for name, text in pages.items():
            (folder / f"{name}.html").write_text(text, encoding="utf-8")
            watched[name] = stack.enter_context(opened(browser, folder / f"{name}.html"))
        yield Shelf(browser, watched, grid, plain(grid, made))


def visit(shelf: Shelf, name: str, scheme: str = "light", width: int = 1000) -> Any:
    """Return a page as it is on a screen of this width, in light or dark."""
    page = shelf.pages[name].page
    page.emulate_media(media="screen", color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate(_SETTLED)
    return page


# The page hears of its new width in the next frame, and has drawn anew in the one after.
_SETTLED = "new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_opens_from_disk_asks_for_nothing_and_nothing_goes_wrong(
    shelf: Shelf, name: str
) -> None:
    page = visit(shelf, name)
    for part in page.query_selector_all("summary"):
        part.click()
    before = page.evaluate(BACKGROUND)
    page.get_by_role("button", name="Dark page").click()
    assert page.evaluate(BACKGROUND) != before
    page.get_by_role("button", name="Light page").press("Enter")
    assert page.evaluate(BACKGROUND) == before
    assert page.locator("main").inner_text()
    watched = shelf.pages[name]
    asked = [url for url in watched.requests if not url.startswith("data:")]
    assert asked == [page.url]
    assert page.url.startswith("file:")
    assert watched.troubles == []


def test_were_markup_to_slip_in_it_could_neither_run_nor_fetch(
    shelf: Shelf, tmp_path: Path
) -> None:
    whole = summary_page([])
    slipped = (
        "<script>document.title = 'taken'</script><img src='https://example.org/x.png'>"
        "<svg onload=\"document.title = 'taken'\"></svg><style>h1 {display: none}</style></main>"
    )
    file = tmp_path / "slipped.html"
    file.write_text(whole.replace("</main>", slipped), encoding="utf-8")
    with opened(shelf.browser, file) as watched:
        assert "reproduced" in watched.page.title()
        assert watched.page.locator("h1").is_visible()
    assert len(watched.troubles) >= 4
    assert all("Content Security Policy" in each for each in watched.troubles)


@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_no_serious_problem_in_light_or_dark(shelf: Shelf, name: str) -> None:
    axe = library("axe_playwright_python.sync_playwright").Axe()
    visit(shelf, name).evaluate(_UNFOLD)
    # Between the two, colours are all that changes.
    runs = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}
    for scheme, options in runs.items():
        page = visit(shelf, name, scheme)
        found = axe.run(page, options=options | {"resultTypes": ["violations"]}).response
        assert len(found["passes"]) >= (15 if scheme == "light" else 1)
        grave = [
            (each["id"], [node["html"][:120] for node in each["nodes"]])
            for each in found["violations"]
            if each["impact"] in {"serious", "critical"}
        ]
        assert grave == []


_UNFOLD = "for (const part of document.querySelectorAll('details')) part.open = true"


@pytest.mark.parametrize("name", [*NAMES, "model"])
def test_sections_follow_each_other_and_nothing_sticks_out(shelf: Shelf, name: str) -> None:
    for width in (360, 800, 1280):
        page = visit(shelf, name, width=width)
        wide, high = page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
        )
        assert wide <= width
        boxes = page.evaluate(_BOXES)
        assert len(boxes) >= 3
        for left, right, top, bottom in boxes:
            assert 0 <= left < right <= width
            assert bottom - top > 60
        for one, other in pairwise(boxes):
            assert one[3] <= other[2] + 0.5
        assert boxes[-1][3] <= high
        assert all(size >= 11 for size in page.evaluate(_TEXT_SIZES))
        assert width == 360 or not page.evaluate(_CUT_TABLES)


_BOXES = """
[...document.querySelectorAll("header, section, footer")].map((part) => {
  const box = part.getBoundingClientRect();
  return [box.left, box.right, box.top + scrollY, box.bottom + scrollY];
})
"""
# Tables whose last columns are to be seen by scrolling only.
_CUT_TABLES = """
[...document.querySelectorAll(".scroll")].filter(
  (box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.getAttribute("aria-label"))
"""
# Of letters in pictures that are shown, in pixels of the screen.
_TEXT_SIZES = """
[...document.querySelectorAll("svg text")].filter((text) => text.getClientRects().length).map(
  (text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)
"""


@pytest.mark.parametrize("name", NAMES)
def test_on_paper_everything_is_dark_on_white(shelf: Shelf, name: str) -> None:
    page = visit(shelf, name, "dark")
    assert page.evaluate(BACKGROUND) != WHITE
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(BACKGROUND) == WHITE
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert sum(map(int, ink[4:-1].split(","))) < 150
    assert not page.locator(".theme").is_visible()
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = false")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every((part) => part.open)")
    page.evaluate("delete document.documentElement.dataset.theme")


def shown_errors(page: Any) -> dict[str, float]:
    rows = page.evaluate(
        "[...document.querySelectorAll('#ranking tbody tr')]"
        ".map((row) => [row.dataset.name, Number(row.dataset.error)])"
    )
    return dict(rows)


def agree(shelf: Shelf, page: Any) -> tuple[float, ...]:
    """Check that the page says what Python predicts at the sliders' places; return these."""
    places = [int(page.locator(f"#{each}").input_value()) for each in ("amount", "rows", "columns")]
    at = tuple(shelf.data["stops"][axis][place] for axis, place in enumerate(places))
    told = shown_errors(page)
    for name in shelf.grid.errors:
        assert told[name] == pytest.approx(shelf.grid.error(name, *at), rel=1e-9)
    assert list(told) == sorted(told, key=told.__getitem__)
    best = shelf.grid.best(*at)
    assert f"{best} (recommended)" in page.locator("#ranking .chosen").inner_text()
    said = page.locator("#said").inner_text()
    assert best in said
    assert f"n = {at[1]:,.0f}, d = {at[2]:.0f}" in said
    assert page.locator("#rows-out").inner_text() == f"n = {at[1]:,.0f}"
    assert page.locator("#rows").get_attribute("aria-valuetext") == f"n = {at[1]:,.0f}"
    return at


def drawn(page: Any) -> list[str]:
    paths: list[str] = page.evaluate(
        "[...document.querySelectorAll('#chart .curve')].map((path) => path.getAttribute('d'))"
    )
    return paths


def test_sliders_change_curves_and_numbers_as_python_predicts(shelf: Shelf) -> None:
    page = visit(shelf, "plan")
    page.emulate_media(reduced_motion="reduce")
    assert agree(shelf, page) == (0.7, 40_000, 7)
    start = drawn(page)
    assert len(start) == len(shelf.grid.errors)
    page.locator("#rows").focus()
    for key in ("ArrowRight", "ArrowRight", "PageUp"):
        page.keyboard.press(key)
    by_keys = agree(shelf, page)
    assert by_keys[1] > 40_000
    assert drawn(page) != start
    box = page.locator("#amount").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    by_mouse = agree(shelf, page)
    assert by_mouse[0] > 2
    assert by_mouse[1] == by_keys[1]
    page.locator("#columns").press("End")
    assert agree(shelf, page)[2] == 50
    page.get_by_role("radio", name="rows").check()
    assert page.locator("#chart-title").inner_text() == "Error against rows"
    assert len(drawn(page)) == len(start)
    page.get_by_role("radio", name="budget").check()
    page.get_by_role("button", name="Back to the plan").click()
    assert agree(shelf, page) == (0.7, 40_000, 7)
    assert drawn(page) == start
    assert shelf.pages["plan"].troubles == []


def test_the_page_recommends_what_python_does_wherever_the_sliders_stand(shelf: Shelf) -> None:
    page = visit(shelf, "plan")
    told = page.evaluate(_EVERYWHERE)
    page.get_by_role("button", name="Back to the plan").click()
    usual = 0
    for places, best in told:
        at = [shelf.data["stops"][axis][place] for axis, place in enumerate(places)]
        assert best == shelf.grid.best(*at)
        least = min(shelf.grid.errors, key=lambda name: shelf.grid.error(name, *at))
        usual += best != least
    assert len(told) > 100
    assert usual > 0  # somewhere the usual one is as good, and is taken


_EVERYWHERE = """
(() => {
  const inputs = ["amount", "rows", "columns"].map((id) => document.getElementById(id));
  const steps = inputs.map((input) => [0, 0.2, 0.4, 0.6, 0.8, 1].map(
    (share) => Math.round(share * Number(input.max))));
  const told = [];
  for (const a of steps[0]) for (const b of steps[1]) for (const c of steps[2]) {
    inputs.forEach((input, axis) => { input.value = [a, b, c][axis]; });
    inputs[0].dispatchEvent(new Event("input"));
    told.push([[a, b, c], document.querySelector("#ranking .chosen").dataset.name]);
  }
  return told;
})()
"""


def test_everything_on_the_plans_page_is_reached_by_tab_and_told(shelf: Shelf) -> None:
    page = visit(shelf, "plan")
    page.locator("#explore h2").click()
    reached = []
    for _ in range(6):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.name"))
    assert reached[:5] == ["amount", "rows", "columns", "across", "again"]
    assert page.locator("#said").get_attribute("aria-live") == "polite"
    assert page.locator("output").count() == 3
