"""Figures 1 to 4, as in the paper, with this library's releases beside the paper's."""

from typing import TYPE_CHECKING

import numpy as np

from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.papers import figures
from dplinear.papers.dhaliwal.design import SETTINGS, Blobs, blobs
from dplinear.papers.dhaliwal.recovery import Recovery
from dplinear.papers.dhaliwal.techniques import AFTER, PAPER_CELLS, PAPER_ROWS, Draws

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#d95f02", "#1f5fa8")
_LINES = {PAPER_CELLS: ("#000000", "--"), PAPER_ROWS: ("#888888", "--"), AFTER: ("#0b4fc4", "-")}
_SHOWN = 400
_REACH = 60.0


def draw_rows(seed: int) -> "Figure":
    """Return Figures 1 and 2: rows in three dimensions, and released in two."""
    generator = simulation.generator(seed)
    dimension, k = SETTINGS[0]
    table = blobs(_SHOWN, dimension, generator)
    draws = Draws.of(_SHOWN, dimension, k, generator)
    figure = figures.blank(12, 3.4)
    solid = figure.add_subplot(1, 4, 1, projection="3d")
    for label, colour in enumerate(_COLOURS):
        one = table.rows[table.labels == label]
        solid.scatter(one[:, 0], one[:, 1], one[:, 2], s=5, color=colour, alpha=0.7, linewidths=0)
    solid.set_title("the rows, d = 3", fontsize=10)
    releases = [draws.release(table.rows, way)[0] for way in (PAPER_CELLS, PAPER_ROWS, AFTER)]
    reach = 1.05 * max(float(np.abs(rows).max()) for rows in releases)
    titles = (
        "paper, one cell (δ = 1.10)",
        "paper, one row (δ = 1)",
        "here: ε = 4, one cell or row",
    )
    for index, (rows, title) in enumerate(zip(releases, titles, strict=True)):
        panel = figure.add_subplot(1, 4, index + 2)
        _scatter(panel, Blobs(rows, table.labels), reach)
        panel.set_title(title, fontsize=10)
    return figure


def _scatter(panel: "Axes", table: Blobs, reach: float) -> None:
    for label, colour in enumerate(_COLOURS):
        one = table.rows[table.labels == label]
        panel.scatter(one[:, 0], one[:, 1], s=6, color=colour, alpha=0.6, linewidths=0)
    panel.set_xlim(-reach, reach)
    panel.set_ylim(-reach, reach)
    panel.set_aspect("equal")


def draw_noise(
    recoveries: dict[str, Recovery], sizes: tuple[int, ...], curves: dict[str, Floats]
) -> "Figure":
    """Return Figures 3 and 4: errors of recovered distances, and deviations against k."""
    figure = figures.blank(11, 3.8)
    left, right = figure.subplots(1, 2)
    bins = np.linspace(-_REACH, _REACH, 121)
    for technique, (colour, style) in _LINES.items():
        errors = recoveries[technique.name].errors.ravel()
        share, _ = np.histogram(errors, bins)
        middle = (bins[1:] + bins[:-1]) / 2
        density = share / errors.size / (bins[1] - bins[0])
        left.plot(middle, density, color=colour, linestyle=style, label=technique.name)
        curve = curves[technique.name]
        right.plot(sizes, curve, color=colour, linestyle=style, label=technique.name)
    left.axvline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
    left.set_xlabel("recovered − true squared distance,  d = 3, k = 2")
    left.set_ylabel("density")
    left.set_yscale("log")
    right.set_xticks(sizes)
    right.set_xlabel("k,  with d = 5k")
    right.set_ylabel("√(1 + noise variance)")
    for panel in (left, right):
        panel.legend(frameon=False, fontsize=9)
        panel.grid(visible=True, color="#e4e4e4", linewidth=0.6)
    return figure
