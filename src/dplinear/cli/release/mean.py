"""`dplinear release mean`."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import release


def mean(  # noqa: PLR0913 - every argument of the gate is a flag
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("the file to write, such as visits.mean.json")
    ] = None,
    schema: flags.SchemaFile = None,
    column: flags.Column = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    neighbours: flags.Rows2 = None,
    steps: Annotated[
        int | None, flags.option("--steps", text="rounds (2)", panel=flags.SPECIAL)
    ] = None,
    scale: Annotated[
        str | None,
        flags.option(
            "--scale", text="public standard deviations, one or one a column", panel=flags.SPECIAL
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
    """Release the mean of every column; bounds may be far too wide."""
    return release("mean", locals())
