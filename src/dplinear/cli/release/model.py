"""`dplinear release model`: one private linear or logistic model."""

from typing import Annotated

from dplinear.cli import flags
from dplinear.cli.release import command


@command()
def model(
    data: flags.Data = None,
    *,
    output: Annotated[
        str | None, flags.output("The file to write, such as charges.model.json.")
    ] = None,
    target: Annotated[
        str | None, flags.option("--target", text="The column that the model explains.")
    ] = None,
    features: flags.Features = None,
    loss: Annotated[
        str | None,
        flags.option(
            "--loss",
            text="squared (default), huber or logistic.",
            **flags.words("squared", "huber", "logistic"),
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        flags.option(
            "--mechanism",
            text="whitened_descent (default), adassp, coinpress or auto.",
            **flags.words("whitened_descent", "adassp", "coinpress", "auto"),
        ),
    ] = None,
    intercept: Annotated[
        bool | None,
        flags.option(
            "--intercept/--no-intercept", text="Give the model an intercept (default: yes)."
        ),
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
            text="For whitened_descent with --unit: standard errors as a bound (default) or "
            "clustered.",
            **flags.words("bound", "clustered"),
        ),
    ] = None,
    shares: Annotated[
        str | None,
        flags.special(
            "--shares", text="For adassp: how the budget is divided, such as 0.1,0.6,0.3."
        ),
    ] = None,
    steps: Annotated[
        int | None,
        flags.special("--steps", text="For coinpress: the number of rounds (default: 10)."),
    ] = None,
    radius: Annotated[
        str | None,
        flags.special(
            "--radius",
            text="For coinpress: how residuals are clipped: planned (default), gaussian or "
            "subexponential.",
        ),
    ] = None,
    structure: Annotated[
        str | None,
        flags.special(
            "--structure",
            text="For coinpress: what is known of the features: general (default), "
            "covariance, mean or identity.",
            **flags.words("general", "covariance", "mean"),
        ),
    ] = None,
) -> None:
    """Release one model. The whole budget goes to this one regression."""
