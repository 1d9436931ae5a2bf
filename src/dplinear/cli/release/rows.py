"""`dplinear release rows`: one private row for each of the table's."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command(without={"engine", "overwrite"})
def rows(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("The .parquet, .arrow or .csv file to write.")
    ] = None,
    mechanism: Annotated[
        str | None,
        flags.option(
            "--mechanism",
            text="additive_noise, projection (the default with --k) or auto.",
            **flags.words("additive_noise", "projection", "auto"),
        ),
    ] = None,
    k: Annotated[
        int | None,
        flags.option("--k", text="For projection: how many numbers each released row has."),
    ] = None,
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
            text="Which change of a table is hidden: element, one cell (default); row_l1 or "
            "row_l2, one row.",
            panel=flags.GUARANTEE,
            **flags.words("element", "row_l1", "row_l2"),
        ),
    ] = None,
    target: Annotated[
        str | None,
        flags.special("--target", text="For additive_noise: the column that is not protected."),
    ] = None,
    y_public: Annotated[
        bool | None, flags.special("--y-public", text="For additive_noise: the target is public.")
    ] = None,
    projection: Annotated[
        str | None,
        flags.special(
            "--projection",
            text="For projection: gaussian (default), rademacher or orthonormal.",
            **flags.words("gaussian", "rademacher", "orthonormal"),
        ),
    ] = None,
    noise: Annotated[
        str | None,
        flags.special(
            "--noise",
            text="For projection: auto (default), laplace, quantile, gaussian or perturbed.",
            **flags.words("auto", "laplace", "quantile", "gaussian", "perturbed"),
        ),
    ] = None,
    change: Annotated[
        float | None,
        flags.special(
            "--change",
            text="For projection: how much neighbours differ, where half the width of a "
            "column's bounds is 1.",
        ),
    ] = None,
    missing_public: Annotated[
        bool | None,
        flags.special(
            "--missing-public",
            text="For projection with --change: which cells are missing is public.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        flags.special(
            "--label", text="For projection: a column to release beside the projected rows."
        ),
    ] = None,
    label_share: Annotated[
        float | None,
        flags.special(
            "--label-share",
            text="For projection: the share of the budget for the label (default: 0.2).",
        ),
    ] = None,
    public_projection: Annotated[
        bool | None,
        flags.special("--public-projection", text="For projection: publish the projection matrix."),
    ] = None,
) -> None:
    """Release a noisy row for each row of the table, for any algorithm."""
