"""`dplinear release covariance`: a private covariance matrix of columns."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def covariance(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("The file to write, such as visits.covariance.json.")
    ] = None,
    mechanism: Annotated[
        str | None,
        flags.option(
            "--mechanism",
            text="coinpress_covariance (default), or centred_covariance if the bounds are close.",
            **flags.words("coinpress_covariance", "centred_covariance"),
        ),
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
        int | None, flags.special("--steps", text="How many rounds CoinPress takes (default: 5).")
    ] = None,
    scale: flags.Deviations = None,
    centred: Annotated[
        bool | None, flags.special("--centred", text="The mean of every column is known to be 0.")
    ] = None,
    metric: Annotated[
        str | None,
        flags.special(
            "--metric",
            text="For centred_covariance: measure the length of rows by the bounds (default)"
            " or by euclidean distance.",
            **flags.words("bounds", "euclidean"),
        ),
    ] = None,
) -> None:
    """Release the covariance matrix of the columns."""
