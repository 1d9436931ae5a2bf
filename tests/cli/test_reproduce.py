"""`dplinear reproduce`: what there is, and one of it."""

import json
from pathlib import Path

import pytest

from dplinear.cli.main import main
from dplinear.papers.reproduce import PAPERS

pytestmark = pytest.mark.heavy


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    shown = capsys.readouterr().out
    for name, paper in PAPERS.items():
        assert name in shown
        assert set(paper.figures) <= set(shown.split())
    assert main(["reproduce", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == list(PAPERS)


def test_a_figure_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    words = ["reproduce", "dhaliwal", "figure4", "--quick", "--output", str(tmp_path)]
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == "Dhaliwal et al., Figures 3 and 4 ...\n"  # as there is no terminal
    found = json.loads(said.out)
    assert all(result["figure"] == "figure4" for result in found)
    assert (tmp_path / found[0]["files"][0]).is_file()
    assert main(["reproduce", "dhaliwal", "figure9"]) == 2
    assert main(["reproduce", "dhaliwel"]) == 2
    assert "did you mean 'dhaliwal'?" in capsys.readouterr().err
