"""`dplinear release levels`: levels of categories that nobody can list, found privately."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def levels(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("The file to write, such as visits.levels.json.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        flags.option(
            "--columns",
            text='The columns to find levels for, such as "city,ward".',
            metavar="NAMES",
        ),
    ] = None,
    most_levels: Annotated[
        int | None,
        flags.option(
            "--most-levels", text="Keep at most this many levels of a column (default: 200)."
        ),
    ] = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    neighbours: flags.Rows2 = None,
    unit: flags.Unit = None,
    rows_per_unit: flags.RowsPerUnit = None,
) -> None:
    """Find the frequent levels of categories that cannot be listed. This spends budget."""
