"""What ARCHITECTURE.md promises a stranger: a true list of files, and answers in one step."""

import ast
import re
from pathlib import Path

import pytest

import architecture
from architecture import PACKAGE, PAGE, ROOT

TEXT = PAGE.read_text(encoding="utf-8")
# What a stranger looks for first: the file that ARCHITECTURE.md must name, and what is in it.
ANSWERS = {
    "the clamping of a cell": ("exact/grid.py", "round_to_grid"),
    "the sensitivity of a gradient": ("exact/row_sums.py", "RowSum.sensitivity_squared"),
    "where the budget is written": ("ledger/ledger.py", "BudgetLedger.spend"),
    "how a CSV file is read": ("curator/sources/delimited.py", "delimited_task"),
    "Sheffet's Theorem 3.1": ("papers/constants.py", "sketch"),
    "the interval of a coefficient": ("analyst/regression/inference.py", "delta_method"),
}
ROW = re.compile(r"^\| ([^|]+) \| `([^`|]+)` \| `([\w.]+)` \|$", re.MULTILINE)
QUESTIONS = {question: (path, name) for question, path, name in ROW.findall(TEXT)}
NAMED = re.compile(r"`([\w./-]*(?:/|\.py|\.md|\.toml))`")
LINKED = re.compile(r"\]\(([^)#]+)\)")


def names_in(path: Path) -> set[str]:
    """Return the functions and classes of a module, and the methods as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
            inner = node.body if isinstance(node, ast.ClassDef) else []
            found |= {f"{node.name}.{each.name}" for each in inner if hasattr(each, "name")}
    return found


def test_the_list_of_files_is_that_of_the_files() -> None:
    assert architecture.renewed(TEXT) == TEXT, "run: python tests/architecture.py --write"


def test_the_first_line_of_every_module_says_what_it_has() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    faults = {path: architecture.faults(architecture.first_line(path)) for path in paths}
    assert {path: found for path, found in faults.items() if found} == {}


def test_every_path_that_is_named_exists() -> None:
    named = NAMED.findall(TEXT)
    assert len(named) > 400
    missing = [each for each in named if not ((PACKAGE / each).exists() or (ROOT / each).exists())]
    assert missing == []
    assert [each for each in LINKED.findall(TEXT) if not (ROOT / each).is_file()] == []


@pytest.mark.parametrize("question", ANSWERS)
def test_a_stranger_finds_the_file_in_one_step(question: str) -> None:
    assert QUESTIONS[question] == ANSWERS[question]


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_looked_for_is_in_the_file_that_is_named(question: str) -> None:
    path, name = QUESTIONS[question]
    assert name in names_in(PACKAGE / path)


def test_there_are_answers_to_what_newcomers_ask() -> None:
    assert len(QUESTIONS) >= 16


def test_every_room_is_in_the_table_in_the_order_of_the_layers() -> None:
    table = TEXT.partition("## Rooms")[2].partition("\n## ")[0]
    first = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    shown = re.findall(r"`([\w.]+?)(?:/|\.py)`", "\n".join(first))
    assert [*shown, "__main__"] == architecture.rooms()


@pytest.mark.parametrize("name", ["kept", "_told", "held_to", "_opened_all", "unneeded"])
def test_bare_participles_are_seen(name: str) -> None:
    assert architecture.is_bare_participle(name)


@pytest.mark.parametrize("name", ["keep", "kept_share", "_seed", "need", "bound", "check_asked"])
def test_verbs_and_nouns_are_no_bare_participles(name: str) -> None:
    assert not architecture.is_bare_participle(name)


@pytest.mark.parametrize("line", ["", "Words", "no end", "word.", f"{'long ' * 30}."])
def test_a_line_that_says_nothing_is_refused(line: str) -> None:
    assert architecture.faults(line)
