"""`dplinear release sketch`."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import release


def sketch(  # noqa: PLR0913 - every argument of the gate is a flag
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("the file to write, such as visits.sketch.json")
    ] = None,
    mechanism: Annotated[
        str | None,
        flags.option(
            "--mechanism",
            text="sketch (the default) hides rows, mi_projection cells; or auto",
            **flags.words("sketch", "mi_projection", "auto"),
        ),
    ] = None,
    rows: Annotated[
        str | None,
        flags.option(
            "--rows",
            text="of the sketch; mi_projection: or logarithmic, linear, full",
            **flags.words("logarithmic", "linear", "full"),
        ),
    ] = None,
    schema: flags.SchemaFile = None,
    column: flags.Column = None,
    derived: flags.Derived = None,
    row_norm: flags.RowNorm = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    bits: flags.Bits = None,
    neighbours: Annotated[
        str | None,
        flags.option(
            "--neighbours",
            text="add_remove (the default), replace; element for mi_projection",
            panel=flags.GUARANTEE,
            **flags.words("add_remove", "replace", "element"),
        ),
    ] = None,
    calibration: flags.Calibration = None,
    base: Annotated[
        int | None,
        flags.option(
            "--base", text="mi_projection: the n of the rules for rows (1000)", panel=flags.SPECIAL
        ),
    ] = None,
    target: Annotated[
        str | None,
        flags.option(
            "--target", text="mi_projection: the column that is not protected", panel=flags.SPECIAL
        ),
    ] = None,
    y_public: Annotated[
        bool | None,
        flags.option(
            "--y-public",
            text="mi_projection: the target is public",
            panel=flags.SPECIAL,
        ),
    ] = None,
    lower_bound: Annotated[
        float | None,
        flags.option(
            "--lower-bound", text="mi_projection: a public bound on residuals", panel=flags.SPECIAL
        ),
    ] = None,
    least_eigenvalue_bits: Annotated[
        float | None,
        flags.option(
            "--least-eigenvalue-bits",
            text="mi_projection: bits that find such a bound",
            panel=flags.SPECIAL,
        ),
    ] = None,
    least_eigenvalue_share: Annotated[
        float | None,
        flags.option(
            "--least-eigenvalue-share",
            text="sketch: the part of ε for the least eigenvalue",
            panel=flags.SPECIAL,
        ),
    ] = None,
    adjust: Annotated[
        str | None,
        flags.option("--adjust", text="with it: ridge (the default) or rows", panel=flags.SPECIAL),
    ] = None,
    ridge: Annotated[
        float | None,
        flags.option("--ridge", text="sketch: what is added at the least", panel=flags.SPECIAL),
    ] = None,
    most_rows: Annotated[
        int | None,
        flags.option("--most-rows", text="sketch: rows at the most", panel=flags.SPECIAL),
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
    """Release a sketch: a few rows that stand for the whole table."""
    return release("sketch", locals())
