"""Where pages go: one HTML file, never over another unless that is asked for."""

import os
from pathlib import Path

from dplinear.cli.errors import Code, CommandError


def target_path(output: str | os.PathLike[str] | None, usual: Path, *, overwrite: bool) -> Path:
    """Return the path of a page to write, or raise while nothing has been computed."""
    target = usual if output is None else Path(output)
    if target.suffix not in {".html", ".htm"}:
        raise CommandError(f"A page is an .html file, and '{target.name}' is none.")
    if not target.parent.is_dir():
        told = f"The folder '{target.parent}' of --output does not exist."
        raise CommandError(told, "make it first.", Code.FILE)
    if os.path.lexists(target) and not overwrite:
        told = f"The page '{target.name}' is there already."
        raise CommandError(told, "choose another --output, or say --overwrite.", Code.FILE)
    return target


def check_asked(output: str | None, *, html: bool) -> None:
    """Raise where a flag says where a page is to go, and none is asked for."""
    if output is not None and not html:
        raise CommandError("--output is for a page, and none is asked for.", "add --html.")


def write(target: Path, page: str) -> None:
    """Write a page, whole or not at all."""
    from dplinear.analyst.releases import files

    files.place(page.encode(), target, overwrite=True)
