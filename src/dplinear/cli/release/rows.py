"""`dplinear release rows`: one private row for each of the table's."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command(without={"engine", "overwrite"})
def rows(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("the .parquet, .arrow or .csv file to write")
    ] = None,
    mechanism: Annotated[
        str | None,
        flags.option(
            "--mechanism",
            text="additive_noise, projection (the default where --k is given) or auto",
            **flags.words("additive_noise", "projection", "auto"),
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
    target: Annotated[
        str | None,
        flags.special("--target", text="additive_noise: the column that is not protected"),
    ] = None,
    y_public: Annotated[
        bool | None, flags.special("--y-public", text="additive_noise: the target is public")
    ] = None,
    projection: Annotated[
        str | None,
        flags.special(
            "--projection",
            text="projection: gaussian (the default), rademacher or orthonormal",
            **flags.words("gaussian", "rademacher", "orthonormal"),
        ),
    ] = None,
    noise: Annotated[
        str | None,
        flags.special(
            "--noise",
            text="projection: auto (the default), laplace, quantile, gaussian or perturbed",
            **flags.words("auto", "laplace", "quantile", "gaussian", "perturbed"),
        ),
    ] = None,
    change: Annotated[
        float | None,
        flags.special("--change", text="projection: how much neighbours differ, in half ranges"),
    ] = None,
    missing_public: Annotated[
        bool | None,
        flags.special(
            "--missing-public", text="projection: with --change, which cells are missing is public"
        ),
    ] = None,
    label: Annotated[
        str | None, flags.special("--label", text="projection: a column that is released beside")
    ] = None,
    label_share: Annotated[
        float | None,
        flags.special("--label-share", text="projection: the part of the budget for it (0.2)"),
    ] = None,
    public_projection: Annotated[
        bool | None, flags.special("--public-projection", text="projection: publish the matrix")
    ] = None,
) -> None:
    """Release rows: one noisy row for each, in order, for any algorithm."""
