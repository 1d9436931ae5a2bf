"""`dplinear release moments`."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import release


def moments(  # noqa: PLR0913 - every argument of the gate is a flag
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
    expected_rows: Annotated[
        int | None,
        flags.option("--expected-rows", text="with auto: a public guess of their number"),
    ] = None,
    schema: flags.SchemaFile = None,
    column: flags.Column = None,
    derived: flags.Derived = None,
    row_norm: flags.RowNorm = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    neighbours: flags.Rows2 = None,
    calibration: flags.Calibration = None,
    rows: Annotated[
        int | None, flags.option("--rows", text="sketch: its rows", panel=flags.SPECIAL)
    ] = None,
    degrees: Annotated[
        int | None,
        flags.option("--degrees", text="inverse_wishart: degrees of freedom", panel=flags.SPECIAL),
    ] = None,
    least_eigenvalue_share: Annotated[
        float | None,
        flags.option(
            "--least-eigenvalue-share",
            text="sketch, inverse_wishart: the part of ε for the least eigenvalue",
            panel=flags.SPECIAL,
        ),
    ] = None,
    adjust: Annotated[
        str | None,
        flags.option(
            "--adjust", text="with it: ridge (the default), rows or degrees", panel=flags.SPECIAL
        ),
    ] = None,
    ridge: Annotated[
        float | None,
        flags.option(
            "--ridge",
            text="sketch, inverse_wishart: what is added at the least",
            panel=flags.SPECIAL,
        ),
    ] = None,
    most_rows: Annotated[
        int | None,
        flags.option("--most-rows", text="sketch: rows at the most", panel=flags.SPECIAL),
    ] = None,
    most_degrees: Annotated[
        int | None,
        flags.option(
            "--most-degrees",
            text="inverse_wishart, additive_wishart: degrees at the most",
            panel=flags.SPECIAL,
        ),
    ] = None,
    scale: Annotated[
        float | None,
        flags.option(
            "--scale", text="additive_wishart: the scale of the noise", panel=flags.SPECIAL
        ),
    ] = None,
    ledger: flags.Ledger = None,
    dataset: flags.Dataset = None,
    request: flags.RequestName = None,
    dry_run: flags.DryRun = False,
    threads: flags.Threads = None,
    engine: flags.Engine = None,
    progress: flags.Progress = None,
    config: flags.Config = None,
    json_: flags.Json = False,
    overwrite: flags.Overwrite = False,
) -> int:
    """Release second moments: every regression on them is then free."""
    return release("moments", locals())
