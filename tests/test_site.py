"""What the pages promise: names that exist, pages that are reached. tests/pages runs their code."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dplinear
from docs_hooks import DOCS, hook
from dplinear.papers.reproduce import ALL, PAPERS

ROOT = Path(__file__).parent.parent
THEORY = DOCS / "theory"
SOURCE = ROOT / "src/dplinear"
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


def test_tests_that_pages_name_exist() -> None:
    for page in [DOCS / "errata.md", *THEORY.iterdir()]:
        for path, name in TESTS.findall(page.read_text(encoding="utf-8")):
            assert (ROOT / path).is_file(), path
            assert not name or name in functions_in(path), name


def test_every_page_of_the_theory_has_a_theorem_on_the_map() -> None:
    proved = set(
        re.findall(r"\]\(theory/([\w-]+\.md)", (DOCS / "theory-map.md").read_text("utf-8"))
    )
    for page in THEORY.iterdir():
        text = page.read_text(encoding="utf-8")
        assert page.name == "index.md" or {"## Code and tests", hook("hooks").THEOREMS} <= set(
            text.splitlines()
        ), page
    assert proved | {"index.md"} == {page.name for page in THEORY.iterdir()}


def test_files_that_the_theory_names_exist() -> None:
    for page in THEORY.iterdir():
        for path in re.findall(r"`((?:[a-z_]+/)+\w+\.py)`", page.read_text(encoding="utf-8")):
            assert (SOURCE / path).is_file() or (ROOT / path).is_file(), (page.name, path)


def test_pages_that_docstrings_name_exist() -> None:
    for path in SOURCE.rglob("*.py"):
        for page in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8")):
            assert (ROOT / page).is_file(), (path, page)


@pytest.mark.heavy
def test_every_formula_becomes_mathml() -> None:
    formulas = hook("formulas")
    count = 0
    for page in THEORY.iterdir():
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for shown, in_line in re.findall(r"\$\$([^$]+)\$\$|\$([^$]+)\$", text):
            page_of = formulas.displayed(shown) if shown else formulas.inline(in_line)
            assert "<math" in page_of
            count += 1
        assert "$" not in re.sub(r"\$\$[^$]+\$\$|\$[^$]+\$", "", text), page
    assert count > 1000


@pytest.mark.heavy
def test_a_formula_is_set_as_it_is_read() -> None:
    formulas = hook("formulas")
    source = r'<p><span class="arithmatex">\(‖u‖ &lt; \ln x ≤ ½·\sqrt{k}\)</span></p>'
    made = formulas.on_page_content(source)
    assert re.sub(r"<[^>]+>", "", made) == "‖u‖&lt;lnx≤½·k"
    assert made.count('form="prefix"') == made.count('form="postfix"') == 1
    assert "<mi>ln</mi><mspace" in made
    assert "<msqrt>" in made
    negative = formulas.inline("[−1, x − (−y)]")
    assert negative.count('<mo form="prefix">−</mo>') == 2
    assert negative.count("<mo>−</mo>") == 1
    long = formulas.inline("a = b + c + d + e + f + g + h ≤ i + j + k + l + m + n")
    assert long.count("<wbr>") == 2  # before = and ≤
    with pytest.raises(ValueError, match="unknown"):
        formulas.inline(r"\unknown{x}")


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
