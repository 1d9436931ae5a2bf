"""Figure 1, drawn as in the paper: a panel for each number of redundant features."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.papers import figures
from dplinear.papers.sheffet.design import REDUNDANT
from dplinear.papers.sheffet.study import Study
from dplinear.papers.sheffet.techniques import CALIBRATIONS, TECHNIQUES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The paper's colours and markers, in its order; blue dark and magenta light, to tell them apart by
# brightness too.
_COLOURS = ("#000000", "#0b4fc4", "#e0479e") * 2
_MARKERS = ("s",) * 3 + ("o",) * 3
_CEILING = 20.0
_DASHES = (0, (4, 2))


def draw(study: Study) -> "Figure":
    """Return the figure: medians, exact calibration solid, the paper's dashed."""
    figure = figures.blank(12, 8.4)
    axes = figure.subplots(2, 3, sharex=True, sharey="row")
    for redundant, panel in zip(REDUNDANT, axes.ravel(), strict=True):
        _panel(panel, study, redundant)
    for panel in axes[-1]:
        panel.set_xlabel("rows n")
    for panel in axes[:, 0]:
        panel.set_ylabel("|β̃ − β| / |β|,  median")
        panel.set_ylim(panel.get_ylim()[0], _CEILING)
    _legend(figure, axes[0, 0])
    return figure


def _panel(panel: "Axes", study: Study, redundant: int) -> None:
    rows = 2.0 ** np.array(study.exponents)
    for calibration in reversed(CALIBRATIONS):  # so that solid lines lie on top
        for panel_axes, technique in enumerate(TECHNIQUES):
            curve = study.median(calibration, technique, redundant)
            panel.plot(rows, curve, **_style(calibration, panel_axes))
    panel.axhline(1.0, color="#999999", linewidth=0.8, zorder=0)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xticks(2.0 ** np.array([n for n in study.exponents if n % 3 == 0]))
    panel.grid(visible=True, which="major", color="#e4e4e4", linewidth=0.6)
    panel.set_title(f"m = {redundant}", fontsize=12, fontweight="bold")


def _style(calibration: str, panel_axes: int) -> dict[str, Any]:
    colour = _COLOURS[panel_axes]
    solid = calibration == "exact"
    return {
        "color": colour,
        "marker": _MARKERS[panel_axes],
        "markersize": 5.5 if solid else 4.5,
        # Hollow circles show squares that they coincide with.
        "markerfacecolor": "white" if _MARKERS[panel_axes] == "o" or not solid else colour,
        "linestyle": "-" if solid else _DASHES,
        "linewidth": 1.6 if solid else 1.0,
        "alpha": 1.0 if solid else 0.6,
    }


def _legend(figure: "Figure", panel: "Axes") -> None:
    lines = panel.get_lines()
    solid = lines[len(TECHNIQUES) : 2 * len(TECHNIQUES)]
    names = [technique.name for technique in TECHNIQUES]
    # Columns fill downwards: squares above circles of their colour, then the two kinds of line.
    order = [0, 3, 1, 4, 2, 5]
    kinds = [
        panel.plot([], [], color="#666666", linewidth=width, linestyle=style)[0]
        for style, width in (("-", 1.6), (_DASHES, 1.0))
    ]
    handles = [*(solid[panel_axes] for panel_axes in order), *kinds]
    labels = [
        *(names[panel_axes] for panel_axes in order),
        "exact calibration",
        "the paper's constants",
    ]
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=11, frameon=False)
