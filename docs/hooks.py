"""Pages that are made of the code: the reference of mechanisms, from the registry."""

from typing import Any

from dplinear.cli.mechanisms import lines_of
from dplinear.registry import Facts, catalogue

MARK = "<!-- mechanisms -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the registry where a page has the mark."""
    return markdown.replace(MARK, reference()) if MARK in markdown else markdown


def reference() -> str:
    """Return a table of all mechanisms, and then each with its options."""
    found = catalogue()
    each = {one.path: one for one in found}  # a sketch is there twice
    return "\n\n".join(["\n".join(lines_of(found)), *map(_entry, each.values())])


def _entry(one: Facts) -> str:
    return f"::: {one.path}\n    options:\n      members: false"
