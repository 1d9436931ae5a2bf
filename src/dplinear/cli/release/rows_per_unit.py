"""`dplinear release rows-per-unit`: how many rows of a unit should count, found privately."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def rows_per_unit(
    data: flags.Data = None,
    *,
    output: Annotated[str | None, flags.output("The file to write, such as units.json.")] = None,
    unit: flags.Unit = None,
    columns: Annotated[
        int | None,
        flags.option("--columns", text="How many features the planned release has (default: 5)."),
    ] = None,
    planned: Annotated[
        str | None,
        flags.option(
            "--planned",
            text="The ε and δ of the planned release (default: 1,1e-6).",
            metavar="EPSILON,DELTA",
        ),
    ] = None,
    learn: Annotated[
        str | None,
        flags.option(
            "--learn",
            text="What the planned release is for: regression (default), moments, mean, "
            "covariance or pca.",
            **flags.words("regression", "moments", "mean", "covariance", "pca"),
        ),
    ] = None,
    correlation: Annotated[
        float | None,
        flags.option(
            "--correlation", text="The correlation of two rows of one unit (default: any)."
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        flags.option("--candidates", text="The numbers of rows to choose among, such as 1,2,4."),
    ] = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
) -> None:
    """Find how many rows of a unit, such as a person, should count. This spends budget."""
