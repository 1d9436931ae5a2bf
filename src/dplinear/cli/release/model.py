"""`dplinear release model`: one private linear or logistic model."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def model(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("the file to write, such as charges.model.json")
    ] = None,
    target: Annotated[str | None, flags.option("--target", text="what is explained")] = None,
    features: flags.Features = None,
    loss: Annotated[
        str | None,
        flags.option(
            "--loss",
            text="squared (the default), huber or logistic",
            **flags.words("squared", "huber", "logistic"),
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        flags.option(
            "--mechanism",
            text="whitened_descent (the default), adassp, coinpress or auto",
            **flags.words("whitened_descent", "adassp", "coinpress", "auto"),
        ),
    ] = None,
    intercept: Annotated[
        bool | None,
        flags.option("--intercept/--no-intercept", text="whether the model has one (yes)"),
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
    errors: Annotated[
        str | None,
        flags.special(
            "--errors",
            text="whitened_descent with a unit: bound (the default) or clustered",
            **flags.words("bound", "clustered"),
        ),
    ] = None,
    shares: Annotated[
        str | None,
        flags.special("--shares", text="adassp: the parts of its budget, such as 0.1,0.6,0.3"),
    ] = None,
    steps: Annotated[int | None, flags.special("--steps", text="coinpress: rounds (10)")] = None,
    radius: Annotated[
        str | None, flags.special("--radius", text="coinpress: how far it looks")
    ] = None,
    structure: Annotated[
        str | None,
        flags.special(
            "--structure",
            text="coinpress: general (the default), covariance or mean",
            **flags.words("general", "covariance", "mean"),
        ),
    ] = None,
) -> None:
    """Release one model: all of the budget for one regression."""
