"""`dplinear release moments`: private second moments, for any regression."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def moments(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("The file to write, such as visits.moments.json.")
    ] = None,
    mechanism: Annotated[
        str | None,
        flags.option(
            "--mechanism",
            text="analyze_gauss (default), additive_wishart, sketch, inverse_wishart or auto.",
            **flags.words("analyze_gauss", "additive_wishart", "sketch", "inverse_wishart", "auto"),
        ),
    ] = None,
    expected_rows: flags.ExpectedRows = None,
    schema: flags.SchemaFile = None,
    column: flags.Column = None,
    derived: flags.Derived = None,
    row_norm: flags.RowNorm = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    neighbours: flags.Rows2 = None,
    unit: flags.Unit = None,
    rows_per_unit: flags.RowsPerUnit = None,
    by: flags.By = None,
    rows: Annotated[
        int | None, flags.special("--rows", text="For sketch: the number of its rows.")
    ] = None,
    degrees: Annotated[
        int | None, flags.special("--degrees", text="For inverse_wishart: the degrees of freedom.")
    ] = None,
    least_eigenvalue_share: Annotated[
        float | None,
        flags.special(
            "--least-eigenvalue-share",
            text="For sketch and inverse_wishart: the share of ε that finds the least eigenvalue.",
        ),
    ] = None,
    adjust: Annotated[
        str | None,
        flags.special(
            "--adjust",
            text="With --least-eigenvalue-share: lower the ridge (default), or take more "
            "rows or degrees.",
        ),
    ] = None,
    ridge: Annotated[
        float | None,
        flags.special("--ridge", text="For sketch and inverse_wishart: the least ridge to add."),
    ] = None,
    most_rows: flags.MostRows = None,
    most_degrees: Annotated[
        int | None,
        flags.special(
            "--most-degrees",
            text="For inverse_wishart and additive_wishart: the largest number of degrees.",
        ),
    ] = None,
    scale: Annotated[
        float | None, flags.special("--scale", text="For additive_wishart: the scale of the noise.")
    ] = None,
) -> None:
    """Release second moments. Every regression on them is then post-processing, and free."""
