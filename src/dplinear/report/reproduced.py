"""The page of `reproduce`: what papers claim, what was measured, and what is left of the claims."""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from dplinear.report.pages import page

_TYPES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg"}
_LARGEST = 8 * 2**20


class Outcome(Protocol):
    """One claim about a figure or a table of a paper, and what came of it."""

    @property
    def paper(self) -> str: ...  # noqa: D102 - as `experiments` has them
    @property
    def figure(self) -> str: ...  # noqa: D102
    @property
    def claim(self) -> str: ...  # noqa: D102
    @property
    def measured(self) -> str: ...  # noqa: D102
    @property
    def verdict(self) -> str: ...  # noqa: D102
    @property
    def files(self) -> Sequence[Path]: ...  # noqa: D102


@dataclass(frozen=True)
class Claim:
    """A claim with its verdict; `tone` is "good", "bad" or "mixed"."""

    claim: str
    measured: str
    verdict: str
    tone: str


@dataclass(frozen=True)
class Exhibit:
    """A figure or a table: its claims, and its pictures as data URIs with a text for each."""

    title: str
    claims: tuple[Claim, ...]
    pictures: tuple[tuple[str, str], ...]
    files: tuple[str, ...]


@dataclass(frozen=True)
class Paper:
    """A paper and all its exhibits."""

    id: str
    title: str
    exhibits: tuple[Exhibit, ...]


def summary_page(results: Sequence[Outcome], *, papers: Mapping[str, Any] | None = None) -> str:
    """Return one self-contained HTML page about reproduced figures and tables.

    Requires: results with `paper`, `figure`, `claim`, `measured`, `verdict` and `files`, those of
    one paper and of one figure next to each other; `papers` may say their `title` and that of
    each of their `figures`, by name. PNG, JPEG and SVG files of up to 8 MB are read.
    Promises: pictures are inside the page, which needs no network and may use none; files are
    named without their folders.
    """
    shown: set[Path] = set()
    known = papers or {}
    made = []
    for index, (name, lines) in enumerate(groupby(results, lambda line: line.paper), start=1):
        titles = getattr(known.get(name), "figures", {})
        exhibits = tuple(
            _exhibit(list(own), titles.get(figure, ""), shown)
            for figure, own in groupby(lines, lambda line: line.figure)
        )
        made.append(Paper(f"paper-{index}", getattr(known.get(name), "title", name), exhibits))
    counts = Counter(_tone(line.verdict) for line in results)
    return page("summary.html", papers=made, counts=counts, total=len(results))


def _exhibit(lines: Sequence[Outcome], title: str, shown: set[Path]) -> Exhibit:
    first = lines[0]
    name = figure_name(first.figure)
    heading = f"{name}. {title}" if title else name
    fresh = [path for path in first.files if path not in shown and _small_picture(path)]
    shown.update(fresh)
    pictures = tuple((_inside(path), f"{heading}: {lines[0].measured}") for path in fresh)
    claims = tuple(
        Claim(line.claim, line.measured, line.verdict, _tone(line.verdict)) for line in lines
    )
    return Exhibit(heading, claims, pictures, tuple(path.name for path in first.files))


def _tone(verdict: str) -> str:
    plain = verdict.strip().lower()
    if plain == "holds":
        return "good"
    return "bad" if plain.startswith("does not hold") else "mixed"


def _small_picture(path: Path) -> bool:
    return path.suffix in _TYPES and path.stat().st_size <= _LARGEST


def _inside(path: Path) -> str:
    inside = base64.b64encode(path.read_bytes()).decode()
    return f"data:{_TYPES[path.suffix]};base64,{inside}"


def figure_name(figure: str) -> str:
    """Return a figure's name as it is printed: "Figure 1" for "figure1"."""
    for word in ("figure", "table"):
        if figure.startswith(word) and figure != word:
            return f"{word.capitalize()} {figure.removeprefix(word)}"
    return figure.capitalize()
