"""`dplinear join`: moments of several tables, added up; it is free."""

from typing import Annotated

import typer

from dplinear.cli import flags
from dplinear.cli.output import certificate_facts, facts, say, short_path, tell


def join(
    releases: Annotated[
        list[str] | None,
        typer.Argument(
            help="The files of released moments.", show_default=False, metavar="RELEASES..."
        ),
    ] = None,
    *,
    disjoint: Annotated[
        bool | None,
        flags.option(
            "--disjoint/--no-disjoint",
            text="Whether no row (or unit, where one was declared) is in two of the tables. "
            "Required.",
        ),
    ] = None,
    output: Annotated[str | None, flags.option("--output", text="The file to write.")] = None,
    overwrite: flags.Overwrite = False,
    config: flags.Config = None,
    json_: flags.Json = False,
) -> None:
    """Add up the moments of several tables, such as sites or months. This costs no budget."""
    given = dict(locals())  # before anything else is
    import dplinear
    from dplinear.cli.loading import load, words
    from dplinear.cli.settings import merge_settings, require

    said = merge_settings(given)
    hint = "files that `dplinear release moments` wrote, first."
    paths = require(said, "releases", "The command names no releases.", hint)
    stated = "say --disjoint if no row, and no unit, is in two of the tables; or --no-disjoint."
    apart = said.get("disjoint")
    if apart is None:
        require(said, "disjoint", "The command does not say whether tables share anybody.", stated)
    target = require(said, "output", "The command names no file to write.", "--output joined.json")
    loaded = [load({"release": path}, ("moments", "groups")) for path in paths]
    joined = dplinear.join(loaded, disjoint=apart is True)
    joined.save(target, overwrite=bool(said.get("overwrite")))
    if json_:
        tell({"output": short_path(str(target)), "certificate": joined.certificate.to_dict()})
        return
    lines = [*certificate_facts(joined.certificate), ("written to", short_path(str(target)))]
    say(words(joined), "", facts(lines))
