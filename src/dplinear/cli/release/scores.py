"""`dplinear release scores`: how well a released model predicts rows that it has not seen."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def scores(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("the file to write, such as charges.scores.json")
    ] = None,
    model: Annotated[
        str | None, flags.option("--model", text="the released model, such as charges.model.json")
    ] = None,
    scores: Annotated[
        list[str] | None,
        flags.option(
            "--scores", text='some of them, such as "r2,rmse" (default: all)', metavar="NAMES"
        ),
    ] = None,
    schema: flags.SchemaFile = None,
    column: flags.Column = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    neighbours: flags.Rows2 = None,
    unit: flags.Unit = None,
    rows_per_unit: flags.RowsPerUnit = None,
) -> None:
    """Release how well a model predicts rows that it has not seen, with intervals."""
