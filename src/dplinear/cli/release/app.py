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
    help="Release a private table: read it once, spend its budget, write a file to publish.",
    epilog="Every flag has the name of its Python argument. --dry-run tells plan and price first.",
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
