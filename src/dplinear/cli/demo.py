"""`dplinear demo`: plan, release, ask and report on a made-up table."""

from pathlib import Path
from typing import Annotated

from dplinear.cli import flags


def demo(
    *,
    output: Annotated[
        Path | None, flags.output("A new or empty folder for all files (default: a temporary one).")
    ] = None,
) -> None:
    """Plan, release, regress and report on a made-up table, in seconds."""
    from tempfile import mkdtemp

    from dplinear.cli.errors import Code, CommandError
    from dplinear.demo import tour

    folder = Path(mkdtemp(prefix="dplinear-demo-")) if output is None else output
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise CommandError(f"The folder '{folder.name}' is not empty.", "", Code.FILE)
    tour(folder)
