"""The figures: a panel for each population, the paper's algorithms and ours on the same axes."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.arrays import Floats
from dplinear.papers import figures
from dplinear.papers.ediger import lemma
from dplinear.papers.ediger.populations import Population
from dplinear.papers.ediger.study import ERRORS, NAMES, Figure, Panel, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_COLOURS = dict(zip(NAMES, ("#c4400b", "#e0a04a", "#0b4fc4", "#888888"), strict=True))
_MARKERS = dict(zip(NAMES, ("s", "s", "o", ""), strict=True))


def draw(figure: Figure, study: Study) -> "Drawing":
    """Return a figure: medians of the excess loss, quartiles as bands."""
    if figure.number == 5:
        return _errors(figure, study)
    drawing = figures.blank(3.6 * len(figure.panels) + 0.6, 3.9)
    axes = drawing.subplots(1, len(figure.panels), sharey=True, squeeze=False)[0]
    for panel, panel_axes in zip(figure.panels, axes, strict=True):
        for name in NAMES:
            _curve(panel_axes, panel, study.losses[panel][NAMES.index(name)], name)
        _finish_axes(panel_axes, panel)
        panel_axes.set_title(_population_title(panel.population, figure), fontsize=11)
    axes[0].set_ylabel("excess loss, median and quartiles")
    return _set_title(drawing, axes, figure.title)


def _errors(figure: Figure, study: Study) -> "Drawing":
    """Return Figure 5: several errors of the same lines, means as the paper draws them."""
    (panel,) = figure.panels
    drawing = figures.blank(3.2 * len(ERRORS) + 0.6, 3.9)
    axes = drawing.subplots(1, len(ERRORS), squeeze=False)[0]
    for (title, error), panel_axes in zip(ERRORS.items(), axes, strict=True):
        for name in NAMES:
            losses = study.losses[panel][NAMES.index(name)]
            curve = np.nanmean(error(losses), axis=-1)
            panel_axes.plot(panel.rows, curve, **_style(name))
        _finish_axes(panel_axes, panel)
        if "excess" not in title:
            panel_axes.set_yscale("linear")
        panel_axes.set_title(title, fontsize=11)
    axes[0].set_ylabel("mean over repetitions")
    return _set_title(drawing, axes, figure.title)


def _curve(panel_axes: "Axes", panel: Panel, losses: Floats, name: str) -> None:
    along = panel.rows if len(panel.rows) > 1 else panel.rhos
    low, middle, high = np.nanquantile(losses, [0.25, 0.5, 0.75], axis=-1)
    panel_axes.plot(along, middle, **_style(name))
    panel_axes.fill_between(along, low, high, color=_COLOURS[name], alpha=0.15, linewidth=0)


def _finish_axes(panel_axes: "Axes", panel: Panel) -> None:
    panel_axes.set_yscale("log")
    if len(panel.rows) == 1:
        panel_axes.set_xscale("log")
        panel_axes.set_xlabel("ρ")
    else:
        if panel.rows[-1] > 4000:
            panel_axes.set_xscale("log")
        panel_axes.set_xlabel("rows n")
    panel_axes.grid(visible=True, which="major", color="#e4e4e4", linewidth=0.6)


def _population_title(population: Population, figure: Figure) -> str:
    described = {"identity": "Σ = I", "block": "Σ with [[6, 2], [2, 1]]", "multiple": "Σ = 10·I"}
    mean = f", μ = {population.mean:g}" if population.mean else ""
    name = f"{described[population.covariance]}{mean}"
    return name if figure.number == 12 else f"d = {population.size}"


def _style(name: str) -> dict[str, Any]:
    return {
        "color": _COLOURS[name],
        "marker": _MARKERS[name],
        "markersize": 4.5,
        "linewidth": 1.5,
        "linestyle": "-" if _MARKERS[name] else (0, (4, 2)),
        "label": name,
    }


def _set_title(drawing: "Drawing", axes: Any, title: str) -> "Drawing":
    drawing.suptitle(title, fontsize=12, fontweight="bold")
    handles, labels = axes[0].get_legend_handles_labels()
    columns = len(labels) if len(axes) > 2 else 2
    drawing.legend(
        handles, labels, loc="outside lower center", ncols=columns, fontsize=9.5, frameon=False
    )
    return drawing


def draw_lemma(seed: int) -> "Drawing":
    """Return Figure 1: z in the plane, its covariance, and the circle that dominates it."""
    found = lemma.cloud(seed)
    drawing = figures.blank(5.4, 5.2)
    panel_axes = drawing.subplots()
    panel_axes.scatter(
        found.points[:, 0], found.points[:, 1], s=4, color="#bbbbbb", linewidth=0, label="z = x·y"
    )
    centre = found.coefficients
    angles = np.linspace(0, 2 * math.pi, 200)
    circle = np.stack((np.cos(angles), np.sin(angles)))
    values, vectors = np.linalg.eigh(lemma.covariance(centre))
    ellipse = vectors @ (np.sqrt(values)[:, None] * circle)
    within = math.sqrt(float(centre @ centre) + 1) * circle
    around = math.sqrt(lemma.bound(centre)) * circle
    for line, colour, name in (
        (within, "#0a8a5f", "(‖β‖² + 1)·I"),
        (ellipse, "#0b4fc4", "Cov z = ββᵀ + (‖β‖² + 1)·I"),
        (around, "#c4400b", "(2‖β‖² + 1)·I"),
    ):
        across, up = line + centre[:, None]
        panel_axes.plot(across, up, color=colour, linewidth=1.6, label=name)
    reach = 2.6 * math.sqrt(lemma.bound(centre))
    panel_axes.set_xlim(centre[0] - reach, centre[0] + reach)
    panel_axes.set_ylim(centre[1] - reach, centre[1] + reach)
    panel_axes.set_aspect("equal")
    panel_axes.set_title("Lemma 3.1: one standard deviation around E z = β", fontsize=11)
    panel_axes.legend(fontsize=9, loc="upper right")
    return drawing
