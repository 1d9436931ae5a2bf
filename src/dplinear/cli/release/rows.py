"""`dplinear release rows`."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import release


def rows(  # noqa: PLR0913 - every argument of the gate is a flag
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("the .parquet, .arrow or .csv file to write")
    ] = None,
    mechanism: Annotated[
        str | None,
        flags.option(
            "--mechanism",
            text="additive_noise, or projection (the default where --k is given)",
            **flags.words("additive_noise", "projection"),
        ),
    ] = None,
    k: Annotated[int | None, flags.option("--k", text="projection: numbers for each row")] = None,
    schema: flags.SchemaFile = None,
    column: flags.Column = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    bits: flags.Bits = None,
    neighbours: Annotated[
        str | None,
        flags.option(
            "--neighbours",
            text="element (the default), row_l1 or row_l2",
            panel=flags.GUARANTEE,
            **flags.words("element", "row_l1", "row_l2"),
        ),
    ] = None,
    calibration: flags.Calibration = None,
    target: Annotated[
        str | None,
        flags.option(
            "--target", text="additive_noise: the column that is not protected", panel=flags.SPECIAL
        ),
    ] = None,
    y_public: Annotated[
        bool | None,
        flags.option(
            "--y-public",
            text="additive_noise: the target is public",
            panel=flags.SPECIAL,
        ),
    ] = None,
    projection: Annotated[
        str | None,
        flags.option(
            "--projection",
            text="projection: gaussian (the default), rademacher, ...",
            panel=flags.SPECIAL,
        ),
    ] = None,
    noise: Annotated[
        str | None,
        flags.option(
            "--noise",
            text="projection: auto (the default), gaussian or laplace",
            panel=flags.SPECIAL,
        ),
    ] = None,
    change: Annotated[
        float | None,
        flags.option(
            "--change",
            text="projection: how much neighbours differ, in half ranges",
            panel=flags.SPECIAL,
        ),
    ] = None,
    label: Annotated[
        str | None,
        flags.option(
            "--label", text="projection: a column that is released beside", panel=flags.SPECIAL
        ),
    ] = None,
    label_share: Annotated[
        float | None,
        flags.option(
            "--label-share",
            text="projection: the part of the budget for it (0.2)",
            panel=flags.SPECIAL,
        ),
    ] = None,
    public_projection: Annotated[
        bool | None,
        flags.option(
            "--public-projection",
            text="projection: publish the matrix",
            panel=flags.SPECIAL,
        ),
    ] = None,
    ledger: flags.Ledger = None,
    dataset: flags.Dataset = None,
    request: flags.RequestName = None,
    dry_run: flags.DryRun = False,
    threads: flags.Threads = None,
    progress: flags.Progress = None,
    config: flags.Config = None,
    json_: flags.Json = False,
) -> int:
    """Release rows: one noisy row for each, in order, for any algorithm."""
    return release("rows", locals())
