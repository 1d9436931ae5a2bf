"""`dplinear release bounds`: bounds of columns, found privately."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def bounds(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("The schema file to write, such as visits.schema.json.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        flags.option(
            "--columns", text='The columns to find bounds for, such as "age,bmi".', metavar="NAMES"
        ),
    ] = None,
    within: Annotated[
        str | None,
        flags.option(
            "--within",
            text="An interval that surely holds all values, such as 0,1e6 (default: -1e9,1e9).",
        ),
    ] = None,
    public_types: Annotated[
        bool | None,
        flags.option(
            "--public-types",
            text="The column types were declared, not guessed from cells: refuse text and dates.",
        ),
    ] = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    neighbours: flags.Rows2 = None,
    unit: flags.Unit = None,
    rows_per_unit: flags.RowsPerUnit = None,
    weight: Annotated[
        str | None,
        flags.option(
            "--weight", text='A column of survey weights with its bounds, such as "wght 0 20".'
        ),
    ] = None,
) -> None:
    """Find bounds for columns whose scale is unknown. This spends budget."""
