"""Notebooks as their readers would run them: cell by cell, with the outputs that Jupyter shows.

A plain runner of code cells, without a kernel: what is printed, the value of a last expression as
text and HTML, and figures. The noise of a cell is fixed by its text, as on pages (runner.py).
Pictures are compared by their being there; what they show is printed or computed beside them.
"""

import ast
import base64
import contextlib
import difflib
import html
import io
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib as mpl
from matplotlib import pyplot as plt
from sklearn import config_context

from .blocks import ROOT
from .outputs import same
from .runner import HOME, SCREEN, fixed_noise

FOLDER = ROOT / "docs" / "notebooks"
Output = dict[str, Any]


def notebooks() -> list[Path]:
    """Return all notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def run(path: Path, folder: Path) -> dict[str, Any]:
    """Return a notebook as it is after all of its cells ran in a folder with its input files."""
    for release in FOLDER.glob("*.json"):
        shutil.copy(release, folder)
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, SCREEN),
        warnings.catch_warnings(),
        config_context(),  # what a notebook sets in scikit-learn ends with it
        mpl.rc_context({"backend": "Agg", "savefig.dpi": 110}),
    ):
        warnings.simplefilter("error")
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, cell in enumerate(cells, start=1):
            cell["execution_count"] = number
            source = "".join(cell["source"])
            with fixed_noise(source):
                cell["outputs"] = list(_outputs(source, path.name, number, names, folder))
    return notebook


def _outputs(
    source: str, page: str, number: int, names: dict[str, Any], folder: Path
) -> Iterator[Output]:
    tree = ast.parse(source, page)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    screen = io.StringIO()
    value = None
    with contextlib.redirect_stdout(screen):
        exec(compile(tree, page, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), page, "eval"), names)
    if told := screen.getvalue().replace(str(folder), HOME):
        yield {"output_type": "stream", "name": "stdout", "text": _lines(told)}
    if value is not None and not source.endswith(";"):
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        yield {
            "output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data
        }  # fmt: skip
    for figure in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(figure).savefig(picture, bbox_inches="tight", metadata={"Software": None})
        coded = base64.b64encode(picture.getvalue()).decode()
        yield {"output_type": "display_data", "metadata": {}, "data": {"image/png": coded}}
    plt.close("all")


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def differences(path: Path, folder: Path) -> str:
    """Return how the outputs that a notebook stores differ from the real ones, or nothing."""
    shown, real = json.loads(path.read_text(encoding="utf-8")), run(path, folder)
    told: list[str] = []
    for index, (before, after) in enumerate(zip(shown["cells"], real["cells"], strict=True)):
        old, new = _told(before), _told(after)
        if not same(old, new):
            told += difflib.unified_diff(
                old, new, f"{path.name}, cell {index}", "real output", lineterm="", n=1
            )
    return "\n".join(told)


def _told(cell: dict[str, Any]) -> list[str]:
    """Return what a cell's outputs say, in lines; of pictures only that they are there."""
    lines: list[str] = []
    for output in cell.get("outputs", []):
        data = output.get("data", {"text/plain": output.get("text", [])})
        for kind, content in sorted(data.items()):
            lines.append(f"[{kind}]")
            if kind == "text/html":
                lines += html.unescape(re.sub(r"<[^>]*>", "\n", "".join(content))).splitlines()
            elif kind == "text/plain":
                lines += "".join(content).splitlines()
    return [line.rstrip() for line in lines if line.strip()]


def write(path: Path, folder: Path) -> bool:
    """Run a notebook and store its outputs, and the releases that it publishes, if any differ."""
    if not differences(path, folder):
        return False
    shutil.rmtree(folder)
    folder.mkdir()
    notebook = run(path, folder)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for release in published(folder):
        shutil.copy(release, FOLDER)
    return True


def published(folder: Path) -> list[Path]:
    """Return the releases that a notebook has put into the folder `published`."""
    return sorted((folder / "published").glob("*.json"))
