"""What commands print: for people by rich, for scripts as JSON, messages always on stderr."""

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dplinear.arguments import is_url, printable, redact

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from dplinear.analyst.releases.certificate import Certificate

_NARROW, _WIDE = 40, 100
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def console(*, stderr: bool = False) -> "Console":
    """Return a console; colours only where a terminal shows them and NO_COLOR is not set."""
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    made = Quiet(stderr=stderr, highlight=False, soft_wrap=False)
    if made.is_terminal:  # lines of a wide terminal are hard to follow
        made.width = max(_NARROW, min(made.width, _WIDE))
    return made


def say(*what: "RenderableType") -> None:
    """Print for people, on stdout."""
    shown = console()
    for each in what:
        # Text has its own line ends; a terminal that is narrower knows how to break them.
        shown.print(_harmless(each), markup=False, soft_wrap=isinstance(each, str))


def _harmless(what: "RenderableType") -> "RenderableType":
    """Return text without what a terminal would obey; tables are made of such text."""
    from rich.text import Text

    if isinstance(what, str):
        return printable(what)
    if isinstance(what, Text):
        what = what.copy()
        what.plain = printable(what.plain)
    return what


def caution(sentence: str, hint: str) -> None:
    """Print, on stderr, what went wrong beside what was asked for."""
    from rich.text import Text

    shown = console(stderr=True)
    shown.print(Text.assemble(("Warning: ", "bold yellow"), printable(sentence)))
    shown.print(Text.assemble(("Hint: ", "bold"), printable(hint)))


def certificate_facts(certificate: "Certificate") -> list[tuple[str, str]]:
    """Return the facts of a certificate, what it protects and its guarantee first."""
    return [*certificate.lines(), *(("note", each) for each in certificate.notes)]


def tell(content: Any) -> None:
    """Print JSON on stdout."""
    text = json.dumps(plain(content), ensure_ascii=False, indent=1, allow_nan=False)
    sys.stdout.write(_UNSEEN.sub(_escape, text) + "\n")


def _escape(found: re.Match[str]) -> str:
    """Return what JSON does not escape by itself, and a terminal would obey, as JSON spells it."""
    return f"\\u{ord(found[0]):04x}"


def plain(value: Any) -> Any:  # noqa: PLR0911 - one way for each type
    """Return a value as JSON; numbers that are none as null."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    return [plain(entry) for entry in value]


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    left: int = 1,
) -> "RenderableType":
    """Return a table of text that is no markup; all but the first `left` columns to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(
        title=Text(printable(title)) if title else None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    for index, head in enumerate(heads):
        made.add_column(
            Text(printable(head)), justify="left" if index < left else "right", overflow="fold"
        )
    for row in rows:
        made.add_row(*(Text(printable(cell)) for cell in row))
    return made


def facts(pairs: Iterable[tuple[str, str]], title: str = "") -> "RenderableType":
    """Return lines of a name and what is said of it."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, told in pairs:
        made.add_row(Text(printable(name)), Text(printable(told)))
    return Group(Text(printable(title), style="bold"), made) if title else made


def short_path(path: str | os.PathLike[str]) -> str:
    """Return a path as short as it is useful: below the current folder, without it.

    Of a URL, which may hold a password, only its kind.
    """
    if is_url(os.fspath(path)):
        return redact(os.fspath(path))
    file = Path(path)
    try:
        return str(file.relative_to(Path.cwd()))
    except ValueError:
        return str(file)
