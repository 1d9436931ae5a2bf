"""The page of a plan: its grid is the planner's, and its numbers are between the grid's."""

import base64
import json
import math
import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dplinear.arguments import ArgumentTypeError
from dplinear.planner.plan import QUESTIONS, plan
from dplinear.privacy.guarantees import ZCDP
from dplinear.report import grid as grids
from dplinear.report import plan_page, release_page, summary_page
from dplinear.report.grid import error_grid, plain, stops
from refusals import refused

from .samples import HOSTILE, sample
from .test_release import Outline, words

pytestmark = pytest.mark.heavy
ASSUMED: dict[str, Any] = {"condition": 100.0, "tails": "normal"}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "AMOUNTS", (0.1, 1.0, 8.0))
    monkeypatch.setattr(grids, "ROWS", (1_000, 100_000, 1_000_000))
    monkeypatch.setattr(grids, "COLUMNS", (2, 50))
    monkeypatch.setattr(grids, "FEW_AMOUNTS", (0.1,))
    monkeypatch.setattr(grids, "FEW_ROWS", (1_000,))
    monkeypatch.setattr(grids, "FEW_COLUMNS", (2,))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("guarantee", [None, ZCDP(0.02)], ids=str)
def test_the_grid_has_the_planners_own_numbers_at_its_nodes(guarantee: Any) -> None:
    asked = {"epsilon": 0.7, "delta": 1e-6} if guarantee is None else {"guarantee": guarantee}
    made = plan(40_000, 7, **asked, **ASSUMED)
    grid = error_grid(made)
    own = (grid.amounts[1] if guarantee is None else 0.02, 40_000, 7)
    for line in made.lines:
        assert grid.error(line.mechanism, *own) == pytest.approx(line.error, rel=1e-5)
    assert grid.least(*own) == pytest.approx(made.floor, rel=1e-5)
    assert grid.best(*own) == made.recommended.mechanism
    for place in product(*grid.axes):
        facts = grids._move_facts(made.given, *place)
        for name in grid.errors:
            truth = QUESTIONS[made.learn].predict(name, facts).error
            assert grid.error(name, *place) == pytest.approx(truth, rel=1e-5)
    assert grid.unit == ("ε" if guarantee is None else "ρ")


def test_between_the_nodes_errors_are_close_to_the_planners() -> None:
    # What the page says of other sizes is a guide: half of the places are within a few per cent.
    made = plan(100_000, 10, epsilon=1.0, delta=1e-6, **ASSUMED)
    grid, question = error_grid(made), QUESTIONS[made.learn]
    off = sorted(
        abs(math.log(grid.error(name, *place) / question.predict(name, facts).error))
        for place in product((0.09, 0.25, 1.7, 5.0), (5_500, 55_000, 550_000), (3, 12, 60))
        for facts in [grids._move_facts(made.given, *place)]
        for name in grid.errors
    )
    assert off[len(off) // 2] < math.log(1.1)
    assert off[int(0.95 * len(off))] < math.log(1.5)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("learn", [name for name in QUESTIONS if name != "regression"])
def test_whatever_is_to_be_learnt_has_a_page(learn: str) -> None:
    asked: dict[str, Any] = (
        {"bits": 0.5} if learn == "distances" else {"epsilon": 0.7, "delta": 1e-6}
    )
    made = plan(40_000, 7, learn=learn, **asked, **ASSUMED)
    grid = error_grid(made)
    own = (next(iter(asked.values())), 40_000, 7)
    assert grid.best(*own) == made.recommended.mechanism
    assert grid.least(*own) == pytest.approx(made.floor, rel=1e-5)
    assert made.measure in words(plan_page(made))
    assert made.reason in words(release_page(sample("moments"), plan=made))


@pytest.mark.usefixtures("small")
def test_beyond_its_ends_the_grid_stays_at_them() -> None:
    grid = error_grid(plan(100_000, 50, epsilon=1.0, delta=1e-6, **ASSUMED))
    name = next(iter(grid.errors))
    assert grid.error(name, 1e9, 1e9, 1e9) == grid.error(name, 8.0, 1e6, 50)
    assert grid.error(name, 1e-9, 1, 1) == grid.error(name, 0.1, 1_000, 2)


def test_sliders_go_through_round_numbers_and_the_plans_own() -> None:
    found = stops((300.0, 1e6), 12_345.0, whole=True)
    assert list(found) == sorted(set(found))
    assert (found[0], found[-1]) == (300.0, 1e6)
    assert 12_345.0 in found
    assert all(value == round(value) for value in found)
    assert 50 <= len(found) <= 63


@pytest.mark.usefixtures("small")
def test_the_page_holds_the_grid_and_starts_at_the_plan() -> None:
    made = plan(40_000, 7, epsilon=0.7, delta=1e-6, **ASSUMED)
    page = plan_page(made)
    assert page == plan_page(made)
    inside = re.search(r'<script type="application/json" id="grid">(.*?)</script>', page)
    assert inside
    data = json.loads(inside[1])
    assert data == json.loads(json.dumps(plain(error_grid(made), made)))
    at = [data["stops"][axis][data["start"][axis]] for axis in range(3)]
    assert at == [0.7, 40_000, 7]
    assert Outline(page).sections == ["planned", "explore", "call"]
    assert made.recommended.mechanism in words(page)
    assert "unsafe" not in page


def test_a_release_page_shows_the_plan_and_what_was_used() -> None:
    made = plan(4_000, 3, epsilon=1.0, delta=1e-6, **ASSUMED)
    page = words(release_page(sample("moments"), plan=made))
    assert made.reason in page
    assert "analyze_gauss, which was used" in page
    for wrong in ("a plan", made.lines):
        with refused("plan", "release_page", kind=ArgumentTypeError):
            release_page(sample("moments"), plan=wrong)  # type: ignore[arg-type]
        with refused("plan", "plan_page", kind=ArgumentTypeError):
            plan_page(wrong)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Outcome:
    paper: str
    figure: str
    claim: str
    measured: str
    verdict: str
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Titles:
    title: str
    figures: dict[str, str]


def test_a_summary_holds_its_pictures_and_escapes_its_words(tmp_path: Path) -> None:
    picture = tmp_path / "figure.png"
    picture.write_bytes(b"\x89PNG not really")
    results = [
        Outcome("one", "figure1", HOSTILE, "0.5", "holds", (picture, tmp_path / "figure.csv")),
        Outcome("one", "figure1", "second", "0.7", "does not hold", (picture,)),
        Outcome("two", "table2", "third", HOSTILE, "holds in part"),
    ]
    papers = {"one": Titles("Paper One", {"figure1": "A curve"})}
    page = summary_page(results, papers=papers)
    outline = Outline(page)
    assert outline.count("img") == 1
    inside = base64.b64encode(picture.read_bytes()).decode()
    assert f'src="data:image/png;base64,{inside}"' in page
    assert outline.count("script") == 1
    assert "Figure 1. A curve" in words(page)
    assert "Paper One" in words(page)
    assert "Table 2" in words(page)
    assert str(tmp_path) not in page
    assert [f["class"] for t, f in outline.tags if t == "dl"][1:] == [
        "claim good", "claim bad", "claim mixed"
    ]  # fmt: skip
    assert page == summary_page(results, papers=papers)
    assert "0" in words(summary_page([]))
