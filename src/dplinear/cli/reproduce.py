"""`dplinear reproduce`: every figure and table of the five papers, with claim and verdict."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dplinear.cli import flags
from dplinear.cli.output import console, facts, say, short_path, table, tell


def _names() -> list[str]:
    from dplinear.papers.reproduce import PAPERS

    return [*PAPERS, "all"]


def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(
            help="One of the five papers, or all.",
            metavar="PAPER",
            show_default=False,
            autocompletion=_names,
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Argument(
            help="A figure or table, such as figure1.", metavar="FIGURE", show_default=False
        ),
    ] = None,
    *,
    output: Annotated[
        str | None,
        flags.output("The folder for pictures, numbers and pages (default: reproduced)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use small tables. Verdicts may differ.")
    ] = False,
    seed: Annotated[
        int | None, flags.option("--seed", text="The seed of the simulations (default: 1).")
    ] = None,
    json_: flags.Json = False,
) -> None:
    """Reproduce a paper's figures and check its claims. Without a name, list what there is."""
    from dplinear.papers.reproduce import PAPERS
    from dplinear.papers.reproduce import reproduce as made
    from dplinear.report import summary_page

    if paper is None:
        _list(PAPERS, json=json_)
        return
    folder = Path("reproduced" if output is None else output)
    more = {} if seed is None else {"seed": seed}
    page = partial(summary_page, papers=PAPERS)
    with _bar() as progress:
        results = made(
            paper, figure, output=folder, quick=quick, progress=progress, page=page, **more
        )
    if json_:
        tell([result.facts() for result in results])
        return
    for result in results:
        lines = [("claim", result.claim), ("measured", result.measured)]
        say(facts([*lines, ("verdict", result.verdict)], f"{result.paper} {result.figure}"), "")
    if figure is None:
        stem = "summary" if paper == "all" else f"{paper}-summary"
        say(facts([("page", short_path(folder / f"{stem}.html"))]))
    else:
        files = [path for result in results[:1] for path in result.files]
        say(facts([("file", short_path(path)) for path in files]))


def _list(papers: Any, *, json: bool) -> None:
    if json:
        tell({name: dict(paper.figures) for name, paper in papers.items()})
        return
    for name, paper in papers.items():
        say(table((name, paper.title), list(paper.figures.items()), left=2), "")


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show how far an experiment has come, on stderr: a bar on terminals, elsewhere lines."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    shown = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as bar:
        task, begun = bar.add_task("", total=None), set[str]()

        def progress(what: str, done: int, total: int) -> None:
            if not shown.is_terminal and what not in begun:
                shown.print(f"{what} ...")
            begun.add(what)
            bar.update(task, description=what, completed=done, total=total)

        yield progress
