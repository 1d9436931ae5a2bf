"""`dplinear release sketch`: a random projection of the table."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def sketch(
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
    base: Annotated[
        int | None,
        flags.special("--base", text="mi_projection: the n of the rules for rows (1000)"),
    ] = None,
    target: Annotated[
        str | None,
        flags.special("--target", text="mi_projection: the column that is not protected"),
    ] = None,
    y_public: Annotated[
        bool | None, flags.special("--y-public", text="mi_projection: the target is public")
    ] = None,
    lower_bound: Annotated[
        float | None,
        flags.special("--lower-bound", text="mi_projection: a public bound on residuals"),
    ] = None,
    least_eigenvalue_bits: Annotated[
        float | None,
        flags.special("--least-eigenvalue-bits", text="mi_projection: bits that find such a bound"),
    ] = None,
    least_eigenvalue_share: Annotated[
        float | None,
        flags.special(
            "--least-eigenvalue-share", text="sketch: the part of ε for the least eigenvalue"
        ),
    ] = None,
    adjust: Annotated[
        str | None, flags.special("--adjust", text="with it: ridge (the default) or rows")
    ] = None,
    ridge: Annotated[
        float | None, flags.special("--ridge", text="sketch: what is added at the least")
    ] = None,
    most_rows: flags.MostRows = None,
) -> None:
    """Release a sketch: a few rows that stand for the whole table."""
