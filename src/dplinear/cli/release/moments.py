"""`dplinear release moments`: private second moments, for any regression."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def moments(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("the file to write, such as visits.moments.json")
    ] = None,
    mechanism: Annotated[
        str | None,
        flags.option(
            "--mechanism",
            text="analyze_gauss (the default), additive_wishart, sketch, inverse_wishart or auto",
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
    rows: Annotated[int | None, flags.special("--rows", text="sketch: its rows")] = None,
    degrees: Annotated[
        int | None, flags.special("--degrees", text="inverse_wishart: degrees of freedom")
    ] = None,
    least_eigenvalue_share: Annotated[
        float | None,
        flags.special(
            "--least-eigenvalue-share",
            text="sketch, inverse_wishart: the part of ε for the least eigenvalue",
        ),
    ] = None,
    adjust: Annotated[
        str | None, flags.special("--adjust", text="with it: ridge (the default), rows or degrees")
    ] = None,
    ridge: Annotated[
        float | None,
        flags.special("--ridge", text="sketch, inverse_wishart: what is added at the least"),
    ] = None,
    most_rows: flags.MostRows = None,
    most_degrees: Annotated[
        int | None,
        flags.special(
            "--most-degrees", text="inverse_wishart, additive_wishart: degrees at the most"
        ),
    ] = None,
    scale: Annotated[
        float | None, flags.special("--scale", text="additive_wishart: the scale of the noise")
    ] = None,
) -> None:
    """Release second moments: every regression on them is then free."""
