"""`dplinear release`: which kind of release is in which file."""

import typer

from dplinear.cli.release.bounds import bounds
from dplinear.cli.release.covariance import covariance
from dplinear.cli.release.levels import levels
from dplinear.cli.release.mean import mean
from dplinear.cli.release.model import model
from dplinear.cli.release.moments import moments
from dplinear.cli.release.rows import rows
from dplinear.cli.release.rows_per_unit import rows_per_unit
from dplinear.cli.release.scores import scores
from dplinear.cli.release.sketch import sketch

app = typer.Typer(
    help="Make a private release: charge the budget, read the table, write a file to publish.",
    epilog="Each flag has the name of its Python argument. Try --dry-run first: it costs nothing.",
)
for command in (
    moments,
    sketch,
    rows,
    model,
    scores,
    mean,
    covariance,
    bounds,
    levels,
    rows_per_unit,
):
    app.command()(command)
