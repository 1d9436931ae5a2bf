"""`dplinear plan`: what Python's plan says, the command to run next, and a page."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import dplinear as dpl
from dplinear.cli.errors import as_flags
from dplinear.cli.main import main
from dplinear.planner.commands import as_command, as_commands
from dplinear.planner.plan import QUESTIONS
from dplinear.privacy.guarantees import ZCDP
from dplinear.report import grid

pytestmark = pytest.mark.heavy

FACTS = ["--expected-rows", "20000", "--columns", "8", "--epsilon", "1", "--delta", "1e-6"]


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["plan", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_plan_is_the_planners(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, *FACTS, "--tails", "normal", "--error", "0.05")
    expected = dpl.plan(20_000, 8, epsilon=1.0, delta=1e-6, tails="normal")
    assert found.pop("for_error") == {
        "error": 0.05,
        "budget": expected.budget_for(0.05),
        "rows": expected.rows_for(0.05),
    }
    assert found == json.loads(json.dumps(expected.facts()))
    assert main(["plan", *FACTS, "--error", "1e-9"]) == 0
    shown = capsys.readouterr().out
    assert "out of reach" in shown
    assert max(map(len, shown.splitlines())) <= 80
    for line in expected.lines:
        assert line.mechanism in shown


def test_a_file_for_a_release_serves_a_plan_and_the_command_that_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "release.toml"
    file.write_text(
        'data = "visits.parquet"\noutput = "visits.json"\nledger = "budget.db"\nrho = 0.1\n'
        "[columns]\nage = [0, 100]\ncharges = [0, 60_000]\n"
    )
    found = told(capsys, "--config", str(file), "--expected-rows", "1e4", "--learn", "moments")
    assert found["guarantee"] == "ρ = 0.1"
    assert found["rows"] == 10_000
    assert found["dimension"] == 3
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    assert (
        main(["plan", "--config", str(file), "--expected-rows", "1e4", "--learn", "moments"]) == 0
    )
    following = "dplinear release moments DATA --config release.toml --rho 0.1"
    assert following in capsys.readouterr().out


def test_a_file_for_a_release_says_how_many_rows_are_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the name that the gates have for it; `rows` are those of a sketch."""
    file = tmp_path / "release.toml"
    file.write_text(
        "rho = 0.1\nexpected_rows = 9_000\nrows = 20\n[columns]\nage = [0, 100]\ncost = [0, 1]\n"
    )
    assert told(capsys, "--config", str(file), "--learn", "moments")["rows"] == 9_000


def test_of_a_mechanism_that_is_left_out_the_hint_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    words = ["--expected-rows", "20000", "--columns", "8", "--rho", "0.1", "--learn", "moments"]
    expected = dpl.plan(20_000, 8, guarantee=ZCDP(0.1), learn="moments")
    assert expected.refused
    assert main(["plan", *words]) == 0
    shown = capsys.readouterr().out
    for name, why in expected.refused:
        assert why.hint
        assert f"{name}: {as_flags(why.hint).rstrip('.')}" in shown
        assert why.sentence not in shown
        assert expected.facts()["refused"][name] == f"{why.sentence} Hint: {why.hint}"
    assert "Hint:" not in shown


def test_a_page_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dplinear.report.plan_page", lambda plan: f"<!doctype html>{plan.learn}")
    words = ["plan", *FACTS, "--learn", "moments", "--html"]
    assert main(words) == 0
    assert "page  plan.html" in capsys.readouterr().out
    assert (tmp_path / "plan.html").read_text(encoding="utf-8") == "<!doctype html>moments"
    assert main(words) == 5
    assert main([*words, "--overwrite"]) == 0
    assert main([*words, "--output", "plan.pdf"]) == 2


def test_bits_are_told_in_other_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--bits", "0.5", "--rows", "200"]) == 0
    shown = capsys.readouterr().out
    for words in ("sketch of 200 rows", "no theorem", "μ = 2", "δ = 0.6827", "(ε, 1e-06)-DP"):
        assert words in shown
    assert told(capsys, "--bits", "0.5")[2]["additive"] == "μ = 2"


@pytest.mark.parametrize("learn", ["regression", "moments", "mean", "covariance", "distances"])
@pytest.mark.parametrize("promise", ["--epsilon 1 --delta 1e-6", "--rho 0.1"])
def test_the_next_command_is_one(
    learn: str, promise: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(
        capsys, "--expected-rows", "9000", "--columns", "3", "--learn", learn, *promise.split()
    )
    call = as_command(found["lines"][0]["call"])
    told_of = {"DATA": [], "FILE": ["no.json"], "NAME": ["b"]}
    words = [part for word in call.split()[1:] for part in told_of.get(word, [word])]
    place = words.index("--schema")
    columns = ["--column", "a 0 1", "--column", "b 0 1", "--column", "c 0 1"]
    words[place : place + 2] = columns
    if learn == "distances":
        words[words.index("--output") + 1] = "no.parquet"
    assert main([*words, "--dry-run"]) == 0, call


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with a label, its schema, and a grid of few points for pages."""
    monkeypatch.chdir(tmp_path)
    rows = [{"a": i % 10 / 10, "b": i % 7 / 7, "c": i % 2} for i in range(300)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "visits.parquet")
    schema = {"columns": {name: [0, 1] for name in "abc"}}
    (tmp_path / "visits.json").write_text(json.dumps(schema))
    for name in ("AMOUNTS", "ROWS", "COLUMNS"):
        few = (1.0, 8.0) if name == "AMOUNTS" else (100, 1_000) if name == "ROWS" else (2, 5)
        monkeypatch.setattr(grid, name, few)
        monkeypatch.setattr(grid, f"FEW_{name}", few[:1])


def run(lines: list[str]) -> None:
    """Run the commands of a page, with one's own names for its words in capitals."""
    own = {"DATA": "visits.parquet", "SCHEMA.json": "visits.json", "NAME": "c"}
    for line in lines:
        words = [own.get(word, word) for word in line.split()]
        assert words[0] == "dplinear"
        assert main(words[1:]) == 0, line


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("learn", QUESTIONS)
def test_a_page_has_commands_that_work(
    learn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: Any = {"bits": 0.5} if learn == "distances" else {"epsilon": 2.0, "delta": 1e-6}
    made = dpl.plan(300, 3, learn=learn, **asked)
    page = dpl.report.plan_page(made)
    section = page[page.index('id="h-call"') :]
    call, commands = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", section, re.DOTALL)
    assert html.unescape(call) == made.recommended.call
    run(html.unescape(commands).splitlines())
    assert len(list(tmp_path.glob("RELEASE.*"))) == 1
    capsys.readouterr()


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("call", "after"),
    [
        ('release_moments(data, schema, guarantee=ZCDP(0.1), mechanism="analyze_gauss")', "report"),
        ("release_moments(data, schema, epsilon=1.0, delta=1e-6).regress(target)", "regress"),
        ("release_moments(data, schema, epsilon=1.0, delta=1e-6).pca(2)", "pca"),
        ("release_moments(data, schema, epsilon=1.0, delta=1e-6).mean()", "report"),
        ('release_mean(data, schema, guarantee=ZCDP(0.1), neighbours="replace")', "report"),
    ],
)
def test_what_is_done_with_a_release_is_a_command_too(
    call: str, after: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = list(as_commands(f"dpl.{call}"))
    assert lines[1].split()[1] == after
    run(lines)
    capsys.readouterr()


def test_the_next_command_repeats_nothing_of_the_file_of_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.chdir(tmp_path)
    text = (
        'epsilon = 1.0\ndelta = 1e-6\nunit = "patient"\n[columns]\nage = [0, 100]\nbmi = [10, 60]\n'
    )
    Path("r.toml").write_text(text, encoding="utf-8")
    words = ["plan", "--config", "r.toml", "--expected-rows", "20000", "--rows-each", "1,5"]
    assert main(words) == 0
    shown = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("next"))
    assert "--config r.toml" in shown
    assert not any(flag in shown for flag in ("--epsilon", "--delta", "--unit"))
    assert "--rows-per-unit" in shown  # which the plan chooses
    assert main([*words, "--epsilon", "2"]) == 0
    shown = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("next"))
    assert "--epsilon 2" in shown
