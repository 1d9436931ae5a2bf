"""`dplinear release mean`: private means of columns."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def mean(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("The file to write, such as visits.mean.json.")
    ] = None,
    schema: flags.SchemaFile = None,
    column: flags.Column = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    neighbours: flags.Rows2 = None,
    unit: flags.Unit = None,
    rows_per_unit: flags.RowsPerUnit = None,
    by: flags.By = None,
    steps: Annotated[
        int | None, flags.special("--steps", text="How many rounds CoinPress takes (default: 2).")
    ] = None,
    scale: flags.Deviations = None,
) -> None:
    """Release the mean of each column. The bounds may be far too wide."""
