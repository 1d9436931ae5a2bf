"""What the pages promise: names that exist, pages that are reached. tests/pages runs their code."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dplinear
from dplinear.papers.reproduce import ALL, PAPERS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TESTS = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
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
