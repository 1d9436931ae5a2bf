"""What the pages promise: names that exist, pages that are reached, code that runs."""

import ast
import re
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import dplinear
from dplinear.cli.main import main
from dplinear.demo import visits
from dplinear.papers.reproduce import ALL, PAPERS
from services import library

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TESTS = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
RUN_HERE = (
    "release-format.md",
    "schema.md",
    "tutorial.md",
    "explanation/exact-profiles.md",
    "how-to/choosing-epsilon.md",
    "how-to/next-month.md",
    "how-to/parquet.md",
    "how-to/publishing.md",
    "how-to/reports.md",
    "how-to/unknown-bounds.md",
    "reference/experiments.md",
    "reference/mechanisms.md",
)
WITH_SERVICES = ("how-to/postgres-ledger.md", "how-to/spark.md")
# By tests/test_house.py, tests/estimators/test_conventions.py and tests/test_add_a_mechanism.py.
ELSEWHERE = (
    "audit.md",
    "estimators.md",
    "how-to/add-a-mechanism.md",
    "ledger.md",
    "planning.md",
    "projected-rows.md",
    "releases.md",
)
FUNCTIONS = re.compile(r"\| `(dplinear\.[\w.]+)` \|")


def resolved(path: str) -> Any:
    """Return what a dotted path names, from the longest module on it."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(path)


@cache
def functions_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.heavy
def test_every_theorem_has_a_function_and_a_test_that_exist() -> None:
    text = (DOCS / "theory-map.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ") and "`tests/" in line]
    assert len(lines) > 40
    for line in lines:
        (function,) = FUNCTIONS.findall(line)
        assert resolved(function), line
        ((path, name),) = TESTS.findall(line)
        assert name in functions_in(path), line


@pytest.mark.parametrize("page", ["errata.md", "theory.md"])
def test_tests_that_pages_name_exist(page: str) -> None:
    for path, name in TESTS.findall((DOCS / page).read_text(encoding="utf-8")):
        assert (ROOT / path).is_file(), path
        assert not name or name in functions_in(path), name


def test_figures_that_pages_name_can_be_made() -> None:
    named = set()
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        named.update(re.findall(r"dplinear reproduce (\w+)(?: (\w+))?", text))
    assert len(named) > 5
    for paper, figure in named:
        assert paper == ALL or paper in PAPERS, paper
        assert not figure or figure in PAPERS[paper].figures, figure


@pytest.mark.heavy
def test_every_public_name_is_in_the_reference() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").iterdir())
    shown = set(re.findall(r"^::: (\S+)$", pages, re.MULTILINE))
    for name in set(dplinear.__all__) - {"__version__"}:
        paths = [path for path in shown if path.endswith(f".{name}")]
        assert any(resolved(path) is getattr(dplinear, name) for path in paths), name


def test_no_page_is_left_out_and_none_fetches_anything() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        assert f"{page.relative_to(DOCS)}\n" in text, page
    listed = re.findall(r"[\w/-]+\.md$", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert "font: false" in text
    assert not re.search(r"https?://", text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The table that all pages speak of, in the current folder."""
    table = visits(4_000)
    for name in ("visits.parquet", "visits-1.parquet"):
        parquet.write_table(table, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(page: str) -> dict[str, Any]:
    """Run the code of a page, block by block, and return the names it made."""
    names: dict[str, Any] = {}
    for block in CODE.findall((DOCS / page).read_text(encoding="utf-8")):
        exec(block, names)
    return names


def test_every_cell_of_the_comparison_has_a_source() -> None:
    text = (DOCS / "comparison.md").read_text(encoding="utf-8")
    sources = set(re.findall(r"^\[\^(\w+)\]: ", text, re.MULTILINE))
    lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(lines) > 8
    cited: set[str] = set()
    for line in lines:
        for cell in line.strip("| ").split(" | ")[1:]:
            marks = re.findall(r"\[\^(\w+)\]", cell)
            assert marks, cell
            cited.update(marks)
    assert cited == sources


def test_every_page_with_code_is_run() -> None:
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    with_code = {page for page in pages if CODE.search((DOCS / page).read_text(encoding="utf-8"))}
    assert with_code == {*RUN_HERE, *WITH_SERVICES, *ELSEWHERE}


@pytest.mark.heavy
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", RUN_HERE)
def test_the_code_of_a_page_runs(page: str) -> None:
    assert run(page)


@pytest.mark.heavy
@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_commands_end_as_their_page_says(
    page: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    (settings,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (folder / "release.toml").write_text(settings, encoding="utf-8")
    lines = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines()
    assert len(lines) >= 5
    for line in lines:
        told = re.search(r"# exit code (\d)$", line)
        words = shlex.split(line, comments=True)
        assert words.pop(0) == "dplinear"
        assert main(words) == (int(told[1]) if told else 0), line
    assert "Linear model of charges" in capsys.readouterr().out


@pytest.mark.heavy
def test_the_audits_that_a_page_speaks_of_are_run(folder: Path) -> None:
    text = (DOCS / "audit.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("dplinear audit ")]
    assert lines[2:] == ["dplinear audit all"]  # of which the others are a part
    for line in lines[:2]:
        assert main([*shlex.split(line)[1:], "--trials", "200"]) == 0, line
    assert (folder / "audit.png").is_file()


@pytest.mark.heavy
def test_the_pages_that_a_page_speaks_of_are_made(folder: Path) -> None:
    run("how-to/reports.md")
    text = (DOCS / "how-to/reports.md").read_text(encoding="utf-8")
    lines = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines()
    assert len(lines) == 5
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0, line
    heads = re.findall(r"^\| ([A-Z][\w ]+) \|", text, re.MULTILINE)
    assert len(heads) == 7
    for name in ("visits.html", "full.html"):
        page = (folder / name).read_text(encoding="utf-8")
        found = set(re.findall(r"<h2[^>]*>([^<:]+)", page))
        # A release that a ledger counts, with exact noise, has nothing to warn of.
        missing = [head for head in heads if not any(each.startswith(head) for each in found)]
        assert missing == ["Before you rely on it"], name
    for name in ("visits.moments.html", "plan.html", "sliders.html"):
        assert "<script>" in (folder / name).read_text(encoding="utf-8")


@pytest.mark.engine
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.usefixtures("folder", "spark")
def test_the_code_for_spark_runs() -> None:
    names = run("how-to/spark.md")
    assert names["moments"].certificate.holds


@pytest.mark.engine
@pytest.mark.usefixtures("folder")
def test_the_code_for_a_ledger_on_a_server_runs(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    library("psycopg")
    server = request.getfixturevalue("postgres")
    monkeypatch.setenv("DPLINEAR_LEDGER", server.url("of_the_page"))
    names = run("how-to/postgres-ledger.md")
    (status,) = names["ledger"].status()
    assert "spent in 1" in str(status)
