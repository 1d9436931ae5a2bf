"""Notebooks run, store what they print, and become pages with it."""

import base64
import importlib.util
import json
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dplinear as dpl

from .blocks import ROOT

pytest.importorskip("matplotlib")
from .notebooks import FOLDER, differences, notebooks, published, run, write

pytestmark = [pytest.mark.heavy, pytest.mark.engine]


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: str(path.stem))
def test_a_notebook_runs_and_stores_what_it_prints(path: Path, tmp_path: Path) -> None:
    told = differences(path, tmp_path)
    assert not told, f"{told}\n\nTo store the real output: python -m tests.pages --write {path}"


def test_the_analyst_has_the_release_that_the_steward_publishes(tmp_path: Path) -> None:
    run(FOLDER / "steward.ipynb", tmp_path)
    made = published(tmp_path)
    assert [path.name for path in made] == [path.name for path in sorted(FOLDER.glob("*.json"))]
    for path in made:
        ours, theirs = (dpl.load(one, kind="moments") for one in (path, FOLDER / path.name))
        assert np.array_equal(ours.values, theirs.values)
        assert ours.certificate == theirs.certificate


CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "source": ["# Title\n", "See [b](b.ipynb)."]},
    {"cell_type": "code", "source": ["print(21)\n", "41 + 1"], "outputs": []},
    {"cell_type": "code", "source": ["None;"], "outputs": []},
]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A notebook that has not been run."""
    path = tmp_path / "small.ipynb"
    path.write_text(json.dumps({"cells": CELLS}), encoding="utf-8")
    return path


def test_a_notebook_that_stores_something_else_is_told_from_its_real_outputs(small: Path) -> None:
    folder = small.parent / "run"
    folder.mkdir()
    assert "+42" in differences(small, folder)
    assert write(small, folder)
    assert differences(small, folder) == ""
    assert not write(small, folder)
    small.write_text(small.read_text(encoding="utf-8").replace('"42"', '"43"'), encoding="utf-8")
    assert "-43" in differences(small, folder)


def hook() -> ModuleType:
    """The converter, which mkdocs loads by its path."""
    found = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "notebook_pages.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_a_notebook_becomes_a_page_with_its_outputs() -> None:
    outputs: list[dict[str, Any]] = [
        {"output_type": "stream", "text": ["21\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["42"]}},
        {"output_type": "execute_result", "data": {"text/plain": ["x"], "text/html": ["<b>x</b>"]}},
        {"output_type": "display_data", "data": {"image/png": base64.b64encode(b"dots").decode()}},
    ]
    cells = [CELLS[0], CELLS[1] | {"outputs": outputs}]
    page, pictures = hook().rendered(
        json.dumps({"cells": cells}), PurePosixPath("notebooks/a.ipynb")
    )
    assert pictures == {"notebooks/a-1.png": b"dots"}
    order = [
        "# Title",
        '<a href="a.ipynb" download>',
        "```python\nprint(21)\n41 + 1\n```",
        "```text\n21\n```",
        "```text\n42\n```",
        '<div class="notebook-output">\n<b>x</b>\n</div>',
        "![What this code draws](a-1.png)",
    ]
    places = [page.index(each) for each in order]
    assert places == sorted(places)
    assert "[b](b.md)" in hook().on_page_markdown(page)
