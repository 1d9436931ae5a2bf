"""The command line: a table, Markdown, a picture, and an exit code that tells."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from dplinear.audit.__main__ import HEADER, main
from dplinear.privacy import calibrate

FEW = ["--trials", "2000", "--seed", "1"]


def printed(*arguments: str) -> tuple[int, str]:
    file = io.StringIO()
    code = main(arguments, Console(file=file, width=160))
    return code, file.getvalue()


def test_one_mechanism_is_printed() -> None:
    code, text = printed("laplace", "--epsilon", "1", *FEW)
    assert code == 0
    for word in ("laplace", "add_remove", "ε = 1", "2,000", "holds", "Simulated noise."):
        assert word in text


def test_markdown_has_a_line_for_each_audit() -> None:
    _, text = printed("projection", "--markdown", *FEW)
    lines = text.splitlines()
    assert len(lines) == 2 + 3 * 3
    assert all(line.count("|") == len(HEADER) + 1 for line in lines)
    _, again = printed("projection", "--markdown", *FEW)
    assert again == text


def test_the_promise_can_be_chosen() -> None:
    _, text = printed(
        "projection_gaussian", "--epsilon", "2", "--delta", "0.01", "--neighbours", "row_l2", *FEW
    )
    assert "ε = 2, δ = 0.01" in text
    assert "row_l2" in text
    assert "μ" in text


def test_a_broken_promise_ends_with_a_code_of_1(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = calibrate.laplace
    monkeypatch.setattr(calibrate, "laplace", lambda *given: honest(*given) / 2)
    code, text = printed("laplace", "--epsilon", "3", *FEW)
    assert code == 1
    assert "broken" in text


def test_the_last_audit_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("laplace", "output_perturbation"):
        path = tmp_path / "new" / f"{name}.png"
        printed(name, "--epsilon", "1", "--trials", "100", "--seed", "1", "--plot", str(path))
        assert path.read_bytes().startswith(b"\x89PNG")


def test_unknown_mechanisms_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        printed("magic")
    assert "MECHANISM" in capsys.readouterr().err
