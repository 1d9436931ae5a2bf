"""One door to all figures: its names, its verdicts, its files and its page."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from dplinear.noise import simulation
from dplinear.papers import exhibits
from dplinear.papers.dhaliwal import findings as clusters
from dplinear.papers.dhaliwal.design import Blobs, blobs
from dplinear.papers.ediger import findings as coinpress
from dplinear.papers.ediger.study import FIGURES, NAMES, Study
from dplinear.papers.exhibits import FAILS, HOLDS, IN_PART, OPEN, PAPERS_NOISE
from dplinear.papers.reproduce import PAPERS, reproduce
from dplinear.papers.reproduce import exhibits as exhibits_of
from dplinear.papers.showkatbakhsh.findings import verdict
from dplinear.papers.showkatbakhsh.schemes import PAPER, PUBLIC, SOUND
from dplinear.papers.showkatbakhsh.study import Score


@pytest.mark.parametrize("paper", PAPERS)
def test_every_title_has_its_exhibit(paper: str) -> None:
    assert list(PAPERS[paper].figures) == list(exhibits_of(paper))


def test_titles_of_figures_are_those_of_the_study() -> None:
    titles = PAPERS["ediger"].figures
    for number, figure in FIGURES.items():
        assert titles[f"figure{number}"] == figure.title


def test_one_table_is_made_and_judged(tmp_path: Path) -> None:
    (result,) = reproduce("sheffet", "components", output=tmp_path / "new")
    assert (result.paper, result.figure, result.verdict) == ("sheffet", "components", HOLDS)
    assert "0.022 at m = 0, 1.07 to 4.19 at m ≥ 1" in result.measured
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["sheffet-components.csv"]
    assert result.facts()["files"] == ["sheffet-components.csv"]


@pytest.mark.heavy
def test_a_paper_has_a_summary_of_its_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"components": exhibits_of("sheffet")["components"]}
    monkeypatch.setattr("dplinear.papers.sheffet.findings.EXHIBITS", own)
    (result,) = reproduce("sheffet", output=tmp_path)
    names = {"sheffet-components.csv", "sheffet-summary.html", "sheffet-summary.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    text = (tmp_path / "sheffet-summary.html").read_text(encoding="utf-8")
    assert "Sheffet 2015, Private approximations" in text
    assert result.verdict in text
    facts = json.loads((tmp_path / "sheffet-summary.json").read_text(encoding="utf-8"))
    assert facts["results"] == [result.facts()]


@pytest.mark.heavy
def test_a_number_names_a_figure_and_steps_are_told(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (result,) = reproduce("ediger", "1", output=tmp_path)
    assert result.verdict == "holds with a correction"
    assert result.files[0].read_bytes().startswith(b"\x89PNG")
    told: list[tuple[str, int, int]] = []
    found = reproduce(
        "dhaliwal",
        "Figure 3",
        output=tmp_path,
        quick=True,
        progress=lambda *step: told.append(step),
    )
    assert [each.figure for each in found] == ["figure3"] * 2
    assert [step[1:] for step in told] == [(0, 2), (1, 2), (2, 2)]
    assert all(path.is_file() for each in found for path in each.files)


@pytest.mark.parametrize(
    ("paper", "figure", "sentence"),
    [
        ("shefet", None, "The 'paper' parameter of reproduce must be one of 'sheffet', "),
        ("sheffet", "2", "The 'figure' parameter of reproduce must be one of 'figure1', 'comp"),
        ("all", "figure1", "The 'figure' parameter of reproduce must be left out for all papers"),
    ],
)
def test_wrong_names_are_refused(
    paper: str, figure: str | None, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        reproduce(paper, figure, output=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (((9, 1, 0), (9, 1, 0), (9, 1, 0)), HOLDS),
        (((9, 1, 0), (0, 0, 10), (0, 10, 0)), PAPERS_NOISE),
        (((9, 1, 0), (0, 0, 10), (8, 2, 0)), "holds under the paper's own noise, and where y is"),
        (((0, 10, 0), (0, 10, 0), (0, 10, 0)), OPEN),
        (((0, 0, 10), (0, 0, 10), (0, 1, 9)), FAILS),
        (((2, 8, 0), (0, 5, 5), (0, 9, 1)), IN_PART),
    ],
)
def test_verdicts_follow_scores(scores: tuple[tuple[int, int, int], ...], expected: str) -> None:
    three = dict(zip((PAPER, SOUND, PUBLIC), (Score(*each) for each in scores), strict=True))
    assert verdict(three).startswith(expected)


@pytest.mark.parametrize(
    ("loss", "expected"), [(0.01, HOLDS), (0.2, IN_PART), (9.0, FAILS)], ids=str
)
def test_estimates_are_accurate_below_a_twentieth_of_what_features_explain(
    loss: float, expected: str
) -> None:
    """A loss of 0.2 is a tenth of what two features explain, and a fiftieth of ten."""
    figure = FIGURES[2]
    losses = {panel: np.full((len(NAMES), len(panel.points), 2), loss) for panel in figure.panels}
    assert coinpress._sizes(figure, Study(losses)).verdict == expected


def test_separation_and_stretch_are_those_of_known_clusters() -> None:
    """Two clusters of 100,000 rows, 4 apart: each figure within 2%, 6 of its standard errors."""
    table = blobs(100_000, 2, simulation.generator(1))
    assert clusters.separation(table) == pytest.approx(4, rel=0.02)
    assert clusters.stretch(table) == pytest.approx(1, rel=0.02)
    long = Blobs(table.rows * [1, 3], table.labels)
    assert clusters.separation(long) == pytest.approx(4, rel=0.02)  # no linear map changes it
    assert clusters.stretch(long) == pytest.approx(3, rel=0.02)


def test_shares_and_spans() -> None:
    assert [exhibits.by_share(share) for share in (0.95, 0.5, 0.05)] == [HOLDS, IN_PART, FAILS]
    assert exhibits.span([0.5, 2.0, 1.0]) == "0.5 to 2"
    assert exhibits.span([1.0001, 1.0002]) == "1"


@pytest.mark.long
def test_all_papers_in_small(tmp_path: Path) -> None:
    results = reproduce("all", output=tmp_path, quick=True)
    assert {(each.paper, each.figure) for each in results} == {
        (name, figure) for name, paper in PAPERS.items() for figure in paper.figures
    }
    assert all(path.is_file() for each in results for path in each.files)
    facts = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert [each["claim"] for each in facts["results"]] == [each.claim for each in results]
    assert "Sheffet 2015, Private approximations" in (tmp_path / "summary.html").read_text(
        encoding="utf-8"
    )
    assert len(results) > sum(len(paper.figures) for paper in PAPERS.values())
