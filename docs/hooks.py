"""Parts of pages that are made: mechanisms from the registry, and what checks each proof."""

import posixpath
import re
from pathlib import Path
from typing import Any

from dplinear.cli.mechanisms import lines_of
from dplinear.registry import catalogue

MARK = "<!-- mechanisms -->"
NAME = re.compile(r"^\| `(\w+)`")
PARTS = {
    "Requires": "Requires",
    "Promises": "Guarantees",
    "Departs from the paper": "Differs from the paper",
}
PART = re.compile(r"(<p>|\n)(Requires|Promises|Departs from the paper): ")
THEOREMS = "<!-- theorems -->"
MAP = Path(__file__).parent / "theory-map.md"
ROW = re.compile(r"^\| (?P<theorem>.+?) \| \[.+?\]\((?P<page>[^)#]+)[^)]*\) \| (?P<rest>`.+)$")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the registry, and what checks the proofs of a page, where it has their marks."""
    if MARK in markdown:
        markdown = markdown.replace(MARK, reference())
    if THEOREMS in markdown:
        markdown = markdown.replace(THEOREMS, checks(page.file.src_uri))
    return markdown


def on_page_content(content: str, **_: Any) -> str:
    """Set the parts of docstrings, which begin with a word and a colon, as paragraphs."""
    return PART.sub(
        lambda found: (
            ("" if found[1] == "<p>" else "</p>") + f"\n<p><strong>{PARTS[found[2]]}:</strong> "
        ),
        content,
    )


def checks(page: str) -> str:
    """Return the rows of the map of theorems that are proved on a page, which must have one."""
    found = map(ROW.match, MAP.read_text(encoding="utf-8").splitlines())
    rows = [each for each in found if each and posixpath.normpath(each["page"]) == page]
    if not rows:
        raise LookupError(f"{MAP.name} names no theorem of {page}")
    lines = [f"| {each['theorem']} | {each['rest']}" for each in rows]
    return "\n".join(["| what is proved | function | test |", "|---|---|---|", *lines])


def reference() -> str:
    """Return a table of all mechanisms, each linked to its page."""
    lines = lines_of(catalogue())
    return "\n".join(
        [*lines[:2], *(NAME.sub(r"| [`\1`](mechanisms/\1.md)", each) for each in lines[2:])]
    )
