"""`dplinear release covariance`: a private covariance matrix of columns."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def covariance(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("the file to write, such as visits.covariance.json")
    ] = None,
    mechanism: Annotated[
        str | None,
        flags.option(
            "--mechanism",
            text="coinpress_covariance (the default), or centred_covariance for bounds that fit",
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
    steps: Annotated[int | None, flags.special("--steps", text="rounds (5)")] = None,
    scale: flags.Deviations = None,
    centred: Annotated[
        bool | None, flags.special("--centred", text="all columns have a mean of 0")
    ] = None,
    metric: Annotated[
        str | None,
        flags.special(
            "--metric",
            text="centred_covariance: bounds (the default) or euclidean: how rows are long",
            **flags.words("bounds", "euclidean"),
        ),
    ] = None,
) -> None:
    """Release the covariance of all columns: by CoinPress, or around a released centre."""
