"""`dplinear release sketch`: a random projection of the table."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def sketch(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("The file to write, such as visits.sketch.json.")
    ] = None,
    mechanism: Annotated[
        str | None,
        flags.option(
            "--mechanism",
            text="sketch (default) protects rows, mi_projection protects cells; or auto.",
            **flags.words("sketch", "mi_projection", "auto"),
        ),
    ] = None,
    rows: Annotated[
        str | None,
        flags.option(
            "--rows",
            text="The number of rows of the sketch. For mi_projection also logarithmic, "
            "linear or full.",
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
            text="add_remove (default) or replace; for mi_projection: element.",
            panel=flags.GUARANTEE,
            **flags.words("add_remove", "replace", "element"),
        ),
    ] = None,
    base: Annotated[
        int | None,
        flags.special(
            "--base", text="For mi_projection: the n in the rules for --rows (default: 1000)."
        ),
    ] = None,
    target: Annotated[
        str | None,
        flags.special("--target", text="For mi_projection: the column that is not protected."),
    ] = None,
    y_public: Annotated[
        bool | None, flags.special("--y-public", text="For mi_projection: the target is public.")
    ] = None,
    lower_bound: Annotated[
        float | None,
        flags.special(
            "--lower-bound", text="For mi_projection: a public lower bound on the residuals."
        ),
    ] = None,
    least_eigenvalue_bits: Annotated[
        float | None,
        flags.special(
            "--least-eigenvalue-bits",
            text="For mi_projection: the bits to spend on finding such a bound.",
        ),
    ] = None,
    least_eigenvalue_share: Annotated[
        float | None,
        flags.special(
            "--least-eigenvalue-share",
            text="For sketch: the share of ε that finds the least eigenvalue.",
        ),
    ] = None,
    adjust: Annotated[
        str | None,
        flags.special(
            "--adjust",
            text="With --least-eigenvalue-share: lower the ridge (default), or take more rows.",
        ),
    ] = None,
    ridge: Annotated[
        float | None, flags.special("--ridge", text="For sketch: the least ridge to add.")
    ] = None,
    most_rows: flags.MostRows = None,
) -> None:
    """Release a sketch: a few random mixtures of rows, for regressions."""
