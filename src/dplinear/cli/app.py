"""The command-line application: which command is in which file."""

from typing import Annotated

import typer

from dplinear.cli import ledger
from dplinear.cli.audit import audit
from dplinear.cli.demo import demo
from dplinear.cli.distances import distances
from dplinear.cli.errors import MEANINGS
from dplinear.cli.join import join
from dplinear.cli.mechanisms import mechanisms
from dplinear.cli.pca import pca
from dplinear.cli.plan import plan
from dplinear.cli.regress import regress
from dplinear.cli.release.app import app as release_app
from dplinear.cli.report import report
from dplinear.cli.reproduce import reproduce

HOLDER = "For the holder of the table"
ANYONE = "For anyone who has a release"
OTHERS = "To learn and to check"

# One paragraph, as typer's releases do not agree on where its lines end.
_EPILOG = f"Exit codes: {'; '.join(f'{code:d} {said}' for code, said in MEANINGS.items())}."

app = typer.Typer(
    epilog=_EPILOG,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
)


def _version(*, wanted: bool) -> None:
    if wanted:
        from dplinear.version import __version__

        typer.echo(f"dplinear {__version__}")
        raise typer.Exit


@app.callback()
def main(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            is_eager=True,
            callback=lambda wanted: _version(wanted=wanted),
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help="Show tracebacks of errors. They may quote rows of the table."
        ),
    ] = False,
) -> None:
    """Publish linear models of a sensitive table under differential privacy.

    Start with `dplinear demo`. Each flag has the name of its Python argument.
    """


app.command(rich_help_panel=HOLDER)(plan)
app.add_typer(release_app, name="release", rich_help_panel=HOLDER)
app.add_typer(ledger.app, name="ledger", rich_help_panel=HOLDER)
app.command(rich_help_panel=ANYONE)(regress)
app.command(rich_help_panel=ANYONE)(join)
app.command(rich_help_panel=ANYONE)(pca)
app.command(rich_help_panel=ANYONE)(distances)
app.command(rich_help_panel=ANYONE)(report)
app.command(rich_help_panel=OTHERS)(mechanisms)
app.command(rich_help_panel=OTHERS)(audit)
app.command(rich_help_panel=OTHERS)(reproduce)
app.command(rich_help_panel=OTHERS)(demo)
