"""One door to every figure and table of the five papers: what they claim, and what comes out.

`reproduce("sheffet", "figure1", output="figures")` draws one; `reproduce("all")` all of them, with
a page that says for each claim what was measured and what is left of it. The same code is behind
`python -m dplinear.papers.sheffet` and its sisters, which print more of the numbers.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from dplinear import arguments
from dplinear.papers.exhibits import Exhibit, Paper, Result, Run
from dplinear.version import __version__

ALL = "all"


# Titles are kept here, so that listing them opens none of the experiments.
PAPERS: Mapping[str, Paper] = {
    "sheffet": Paper(
        "Sheffet 2015, Private approximations of the 2nd-moment matrix",
        {
            "figure1": "Six ways to a private regression",
            "components": "Principal components without privacy (§6)",
        },
    ),
    "kasiviswanathan": Paper(
        "Kasiviswanathan and Jin 2016, Efficient private empirical risk minimization",
        {
            "approximate": "Who wins under (ε, δ)",
            "pure": "Who wins under pure ε",
            "table1": "Bounds on the excess risk",
        },
    ),
    "showkatbakhsh": Paper(
        "Showkatbakhsh, Karakus and Diggavi 2018, Privacy-utility trade-off of linear regression",
        {
            "figure1": "Relative error against the number of rows",
            "figure2": "Relative error against ε",
            "figure3": "Test error on handwritten digits",
        },
    ),
    "dhaliwal": Paper(
        "Dhaliwal et al. 2019, Utility preserving secure private data release",
        {
            "figure1": "Two clusters in three dimensions",
            "figure2": "The clusters, released in two dimensions",
            "figure3": "Errors of recovered distances",
            "figure4": "Noise against k",
            "table1": "Accuracy of two clusters",
        },
    ),
    "ediger": Paper(
        "Ediger 2021, CoinPress extension: linear regression",
        {
            "figure1": "Lemma 3.1: z = x·y and the circle around it",
            "figure2": "Few dimensions (ρ = 0.5)",
            "figure3": "Many dimensions (ρ = 0.5)",
            "figure4": "Effects of privacy (n = 1000)",
            "figure5": "Error functions (d = 5, ρ = 0.5)",
            "figure6": "Two features highly correlated (ρ = 0.5)",
            "figure7": "A multiple of the identity (ρ = 0.5)",
            "figure8": "Effects of privacy, correlated features (n = 1000)",
            "figure9": "Means of 2 (ρ = 0.5)",
            "figure10": "Means of 10 (ρ = 0.5)",
            "figure11": "Effects of privacy, means of 2 (n = 1000)",
            "figure12": "Beyond the paper (d = 10, ρ = 0.5)",
        },
    ),
}


def reproduce(
    paper: str,
    figure: str | None = None,
    *,
    output: str | Path = ".",
    quick: bool = False,
    seed: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
    page: Callable[[Sequence[Result]], str] | None = None,
) -> list[Result]:
    """Make one figure or table, all of a paper, or all of all papers, and judge the claims.

    Requires: a name in `PAPERS`, or "all"; `figure` one of that paper's names ("figure1", or just
    "1"), None for all. `quick` takes small tables and a few repetitions, so verdicts may differ.
    `progress(what, done, total)` is called as steps end; `page` makes another summary of results
    than `dplinear.report` does. Promises: files in the folder `output`, made where it is missing;
    without `figure`, also summary.html and summary.json, whose names begin with the paper's where
    it is one paper.
    """
    from dplinear.report import summary_page

    names, chosen = _choose_figures(paper, figure)
    seed = arguments.integer(seed, "seed", "reproduce", low=0, high=2**32)
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    for name in names:
        run = Run(folder, quick, seed) if progress is None else Run(folder, quick, seed, progress)
        results += _results(name, chosen, run)
    if chosen is None:
        stem = "summary" if paper == ALL else f"{paper}-summary"
        made = summary_page(results, papers=PAPERS) if page is None else page(results)
        (folder / f"{stem}.html").write_text(made, encoding="utf-8")
        facts = {
            "dplinear": __version__,
            "quick": quick,
            "seed": seed,
            "results": [result.facts() for result in results],
        }
        shown = json.dumps(facts, ensure_ascii=False, indent=1)
        (folder / f"{stem}.json").write_text(f"{shown}\n", encoding="utf-8")
    return results


def exhibits(paper: str) -> Mapping[str, Exhibit]:
    """Return what makes the figures and tables of a paper, by name."""
    found: Mapping[str, Exhibit] = import_module(f"dplinear.papers.{paper}.findings").EXHIBITS
    return found


def _results(paper: str, figure: str | None, run: Run) -> Iterator[Result]:
    own = exhibits(paper)
    for name in own if figure is None else (figure,):
        outcome = own[name](run)
        for finding in outcome.findings:
            yield Result(paper, name, *finding, tuple(outcome.files))


def _choose_figures(paper: str, figure: str | None) -> tuple[list[str], str | None]:
    arguments.choice(paper, "paper", "reproduce", [*PAPERS, ALL])
    if paper == ALL:
        if figure is not None:
            raise arguments.rejection(
                "figure", "reproduce", "left out for all papers", figure, "name the paper, too."
            )
        return list(PAPERS), None
    if figure is None:
        return [paper], None
    plain = str(figure).lower().replace(" ", "")
    name = f"figure{plain}" if plain.isdigit() else plain
    arguments.choice(name, "figure", "reproduce", list(PAPERS[paper].figures))
    return [paper], name
