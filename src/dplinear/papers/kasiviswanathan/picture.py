"""The contest as figures: a line of panels for each loss, a figure for each kind of guarantee."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dplinear.papers import figures
from dplinear.papers.kasiviswanathan.contest import Contestant
from dplinear.papers.kasiviswanathan.study import Cell, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {
    "noisy_gradient": "#0b4fc4",
    "frank_wolfe": "#000000",
    "mirror_descent": "#e0479e",
    "whitened": "#0a8a5f",
    "objective_perturbation": "#c46a0b",
    "output_perturbation": "#7a5cc4",
    "exponential": "#888888",
}
_TITLES = ("rows n", "features d", "ε", "dimensions m")
_CEILING = 3.0
_FLOOR = 0.004


def draw(study: Study, *, pure: bool) -> "Figure":
    """Return the figure: rows as they are solid, projected ones dashed, by the best m of each."""
    losses = study.plan.losses
    figure = figures.blank(13, 1.2 + 3 * len(losses))
    axes = figure.subplots(len(losses), len(_TITLES), sharey="row", squeeze=False)
    for loss, line in zip(losses, axes, strict=True):
        lists = sweeps(study, loss, pure=pure)
        for title, cells, panel in zip(_TITLES, (*lists, []), line, strict=True):
            if cells:
                _sizes(panel, study, cells, _TITLES.index(title))
            else:
                _dimensions(panel, study, middle(study, loss, pure=pure))
            panel.axhline(1.0, color="#999999", linewidth=0.8, zorder=0)
            panel.set_yscale("log")
            panel.set_ylim(_FLOOR, _CEILING)
            panel.minorticks_off()
            panel.grid(visible=True, which="major", color="#e4e4e4", linewidth=0.6)
        line[0].set_ylabel(f"{loss}\nexcess risk / that of θ = 0")
    for title, panel in zip(_TITLES, axes[-1], strict=True):
        panel.set_xlabel(title)
    _legend(figure, axes)
    return figure


def middle(study: Study, loss: str, *, pure: bool) -> Cell:
    """Return the cell of the first table with the ε that others share."""
    rows, features = study.plan.base
    return Cell(loss, rows, features, study.plan.usual, pure)


def sweeps(study: Study, loss: str, *, pure: bool) -> tuple[list[Cell], ...]:
    """Return the cells along each size: rows, features and ε."""
    here = middle(study, loss, pure=pure)
    cells = [cell for cell in study.plan.cells() if (cell.loss, cell.pure) == (loss, pure)]
    usual = [cell for cell in cells if cell.epsilon == here.epsilon]
    by_rows = [cell for cell in usual if cell.features == here.features]
    by_features = [cell for cell in usual if cell.rows == here.rows]
    table = (here.rows, here.features)
    by_epsilon = [cell for cell in cells if (cell.rows, cell.features) == table]
    return (
        sorted(by_rows, key=lambda cell: cell.rows),
        sorted(by_features, key=lambda cell: cell.features),
        sorted(by_epsilon, key=lambda cell: cell.epsilon),
    )


def curves(study: Study, cells: Sequence[Cell]) -> Iterator[tuple[str, bool, list[float]]]:
    """Yield a curve for each learner, on rows as they are and projected: the best m of each.

    Only contestants of all cells count: a best of other numbers of dimensions is no comparison.
    """
    everywhere = set.intersection(*(set(study.field(cell)) for cell in cells))
    for name in _COLOURS:
        for projected in (False, True):
            own = [
                who
                for who in everywhere
                if who.learner == name and (who.dimension > 0) is projected
            ]
            if own:
                yield (
                    name,
                    projected,
                    [min(study.relative(cell, who) for who in own) for cell in cells],
                )


def _sizes(panel: "Axes", study: Study, cells: Sequence[Cell], index: int) -> None:
    sizes = [(cell.rows, cell.features, cell.epsilon)[index] for cell in cells]
    for name, projected, values in curves(study, cells):
        panel.plot(sizes, values, **_style(name, projected=projected))
    panel.set_xscale("log")
    panel.set_xticks(sizes, [f"{size:g}" for size in sizes])


def _dimensions(panel: "Axes", study: Study, cell: Cell) -> None:
    field = study.field(cell)
    for name, colour in _COLOURS.items():
        own = sorted(who for who in field if who.learner == name and who.dimension)
        if not own:
            continue
        values = [study.relative(cell, who) for who in own]
        panel.plot([who.dimension for who in own], values, **_style(name, projected=True))
        if Contestant(name) in field:
            level = study.relative(cell, Contestant(name))
            panel.axhline(level, color=colour, linewidth=0.9)
    panel.set_xscale("log")


def _style(name: str, *, projected: bool) -> dict[str, Any]:
    return {
        "color": _COLOURS[name],
        "marker": "o" if projected else "s",
        "markersize": 4.5,
        "markerfacecolor": "white" if projected else _COLOURS[name],
        "linestyle": (0, (4, 2)) if projected else "-",
        "linewidth": 1.3,
        "label": f"{name.replace('_', ' ')}{', projected' if projected else ''}",
    }


def _legend(figure: "Figure", axes: Any) -> None:
    named: dict[str, Any] = {}
    for panel in axes.ravel():
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(
        list(named.values()),
        list(named),
        loc="outside lower center",
        ncols=4,
        fontsize=10,
        frameon=False,
    )
