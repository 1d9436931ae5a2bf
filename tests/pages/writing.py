"""Comparing the outputs that a page shows with the real ones, and writing them anew."""

import difflib
import textwrap
from pathlib import Path

from .blocks import ROOT, Block, Step, read
from .outputs import folded, same
from .runner import run

Printed = list[tuple[Step, str]]


def lines_of(text: str) -> list[str]:
    """Return the lines of an output, without what nobody sees at their ends and around them."""
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return lines


def differences(page: str, printed: Printed) -> str:
    """Return how the outputs on a page differ from the real ones, or nothing."""
    told: list[str] = []
    for step, output in printed:
        if step.shown is not None:
            shown, real = lines_of(step.shown.text), lines_of(output)
            if not same(shown, real):
                name = f"{page}:{step.shown.line}"
                told += difflib.unified_diff(shown, real, name, "real output", lineterm="", n=1)
    return "\n".join(told)


def write(page: str, folder: Path) -> bool:
    """Run a page and write its outputs where they differ; return whether any did."""
    old = text = read(page)
    for step, output in reversed(run(page, folder)):
        if step.shown is not None:
            shown, real = lines_of(step.shown.text), lines_of(output)
            if not same(shown, real):
                text = _replaced(text, step.shown, folded(real, shown))
    (ROOT / page).write_text(text, encoding="utf-8")
    return text != old


def _replaced(text: str, block: Block, lines: list[str]) -> str:
    inside = textwrap.indent("".join(f"{line}\n" for line in lines), block.indent)
    return text[: block.start] + inside + text[block.end :]
