"""`dplinear audit`: a table, Markdown, JSON, a picture, and an exit code that tells."""

import json
from pathlib import Path

import pytest

from dplinear.audit.printing import HEADER
from dplinear.cli.main import main
from dplinear.privacy import calibrate

FEW = ["--trials", "2000", "--seed", "1"]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> "Printed":
    return Printed(capsys)


class Printed:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str]:
        code = main(["audit", *words])
        return code, self._capsys.readouterr().out


def test_one_mechanism_is_printed(printed: Printed) -> None:
    code, text = printed("laplace", "--epsilon", "1", *FEW)
    assert code == 0
    for word in ("laplace", "add_remove", "ε = 1", "2,000", "holds", "Simulated noise."):
        assert word in text
    assert max(map(len, text.splitlines())) <= 80


def test_markdown_has_a_line_for_each_audit(printed: Printed) -> None:
    _, text = printed("projection", "--markdown", *FEW)
    lines = text.splitlines()
    assert len(lines) == 2 + 3 * 3
    assert all(line.count("|") == len(HEADER) + 1 for line in lines)
    _, again = printed("projection", "--markdown", *FEW)
    assert again == text


def test_the_promise_can_be_chosen(printed: Printed) -> None:
    _, text = printed(
        *("projection_gaussian", "--epsilon", "2", "--delta", "0.01", "--neighbours", "row_l2"),
        *FEW,
    )
    assert "ε = 2, δ = 0.01" in text
    assert "row_l2" in text
    assert "μ ≥" in text


def test_a_broken_promise_ends_with_a_code_of_its_own(
    printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = calibrate.laplace
    monkeypatch.setattr(calibrate, "laplace", lambda *given: honest(*given) / 2)
    code, text = printed("laplace", "--epsilon", "3", "--json", *FEW)
    assert code == 6
    assert [audit["broken"] for audit in json.loads(text)] == [True]


def test_the_last_audit_is_drawn(printed: Printed, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("laplace", "output_perturbation"):
        path = tmp_path / "new" / f"{name}.png"
        printed(name, "--epsilon", "1", "--trials", "100", "--seed", "1", "--plot", str(path))
        assert path.read_bytes().startswith(b"\x89PNG")
