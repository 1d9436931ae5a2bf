"""What experiments share: a bar on a terminal, and a CSV file."""

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


def watcher(console: Console, description: str) -> Callable[[Sequence[Item]], Iterable[Item]]:
    """Return a wrapper for a loop that shows a bar, on a terminal only."""

    def watch(items: Sequence[Item]) -> Iterable[Item]:
        return track(items, description, console=console, disable=not console.is_terminal)

    return watch


def write_csv(path: Path, header: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """Write a table; the folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(lines)
