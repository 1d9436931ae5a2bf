"""The blocks of a page that users would run, each with the output that the page shows below it."""

import re
import textwrap
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = ("python", "sh")
OUTPUT = ("text", "output")
# Pages whose code is installed as a package, in tests of their own.
BY_ITSELF = {"docs/how-to/add-a-mechanism.md": "tests/test_add_a_mechanism.py"}
# And those that need a server, which their tests start.
WITH_SERVICES = {"docs/how-to/postgres-ledger.md", "docs/how-to/spark.md"}

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)(?P<more>.*)\n", re.MULTILINE)
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """A fenced block: what is between `start` and `end` of the page, without its indentation."""

    language: str
    title: str  # the name of the file that it holds, or nothing
    text: str
    line: int
    start: int
    end: int
    indent: str


@dataclass(frozen=True)
class Step:
    """What a page does at one point: a file to write, or code to run, and its output if shown."""

    code: Block
    shown: Block | None


def all_pages() -> list[str]:
    """Return every page, by its path from the root."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


def pages() -> list[str]:
    """Return every page that has something to run."""
    return [page for page in all_pages() if any(not step.code.title for step in steps(read(page)))]


def read(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def steps(text: str) -> list[Step]:
    """Return what a page writes and runs, in order."""
    blocks = all_blocks(text)
    return [
        Step(one, after if after is not None and _shows_output(text, one, after) else None)
        for one, after in zip_longest(blocks, blocks[1:])
        if one.title or one.language in RUN
    ]


def _shows_output(text: str, code: Block, after: Block) -> bool:
    between = text[code.end : after.start].splitlines()[1:-1]  # without the two fences
    return after.language in OUTPUT and not any(line.strip() for line in between)


def all_blocks(text: str) -> list[Block]:
    """Return every fenced block of a page."""
    found, position = [], 0
    while opening := _FENCE.search(text, position):
        closing = re.compile(rf"^{opening['indent']}``` *$", re.MULTILINE).search(
            text, opening.end()
        )
        assert closing, f"a block is not closed: {opening[0]}"
        inside = text[opening.end() : closing.start()]
        title = _TITLE.search(opening["more"])
        found.append(
            Block(
                opening["language"],
                title[1] if title else "",
                textwrap.dedent(inside),
                text.count("\n", 0, opening.end()),
                opening.end(),
                closing.start(),
                opening["indent"],
            )
        )
        position = closing.end()
    return found
