"""`dplinear release rows-per-unit`: how many rows of a unit should count, found privately."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def rows_per_unit(
    data: flags.Data = None,
    *,
    output: Annotated[str | None, flags.output("the file to write, such as units.json")] = None,
    unit: flags.Unit = None,
    columns: Annotated[
        int | None, flags.option("--columns", text="of the release that is planned (5)")
    ] = None,
    planned: Annotated[
        str | None,
        flags.option("--planned", text="its ε and δ (1,1e-6)", metavar="EPSILON,DELTA"),
    ] = None,
    learn: Annotated[
        str | None,
        flags.option(
            "--learn",
            text="what it is for: regression (the default), moments, mean, covariance, pca",
            **flags.words("regression", "moments", "mean", "covariance", "pca"),
        ),
    ] = None,
    correlation: Annotated[
        float | None, flags.option("--correlation", text="of two rows of a person (default: any)")
    ] = None,
    candidates: Annotated[
        str | None, flags.option("--candidates", text="numbers of rows, such as 1,2,4")
    ] = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
) -> None:
    """Release how many rows of a person should count: a noisy histogram, at a price."""
