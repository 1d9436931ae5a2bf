"""The figures: a column of panels for each calibration, a row for each response."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.papers import figures
from dplinear.papers.showkatbakhsh.schemes import CALIBRATIONS, SCHEMES
from dplinear.papers.showkatbakhsh.study import DIGITS, Study
from dplinear.papers.showkatbakhsh.tables import RESPONSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Apart in hue and in brightness.
_COLOURS = ("#111111", "#c8102e", "#e8930c", "#1f6fd0")
_MARKERS = ("s", "o", "^", "D")
_GREY = "#8a8a8a"
_DIGITS = (1, 1.1, 1.2, 1.3, 1.4, 1.5, 2, 3, 4, 5, 6, 7, 8)
_TICKS = tuple(digit * 10.0**power for power in (-2, -1, 0, 1, 2) for digit in _DIGITS)
_APART = 0.06  # of the axis: the least distance of two ticks


def draw(study: Study, *, position: str, error: str, reference: str, logarithmic: bool) -> "Figure":
    """Return a figure: means over trials, and bands of two standard errors to each side.

    `position` and `error` name the axes, `reference` the grey curve; `logarithmic` is for places.
    Errors of the first place may be beyond the upper end, so that all others can be told apart.
    """
    rows = len(study.responses)
    figure = figures.blank(12.5, 1.2 + 3.6 * rows)
    axes = figure.subplots(rows, len(CALIBRATIONS), sharex=True, sharey="row", squeeze=False)
    for line, response in zip(axes, study.responses, strict=True):
        for panel, calibration in zip(line, CALIBRATIONS, strict=True):
            _panel(panel, study, response, calibration, reference)
        _vertical(line[0], *_ends(study, response))
        said = "" if response == DIGITS else f"{RESPONSES[response]}\n"
        line[0].set_ylabel(said + error, fontsize=11)
    for panel, said in zip(axes[0], CALIBRATIONS.values(), strict=True):
        panel.set_title(said, fontsize=12, fontweight="bold")
    for panel in axes[-1]:
        panel.set_xlabel(position, fontsize=11)
        if logarithmic:
            panel.set_xscale("log")
            panel.xaxis.set_major_formatter("{x:g}")
        else:
            every = max(1, len(study.positions) // 5)
            panel.set_xticks([1, *study.positions[every - 1 :: every]])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=11, frameon=False)
    return figure


def _panel(panel: "Axes", study: Study, response: str, calibration: str, reference: str) -> None:
    grey: dict[str, Any] = {"color": _GREY, "linestyle": (0, (5, 2)), "linewidth": 1.2}
    panel.plot(study.positions, study.reference[response].mean(axis=1), label=reference, **grey)
    for scheme, colour, marker in zip(SCHEMES, _COLOURS, _MARKERS, strict=True):
        errors = study.errors[response, calibration, scheme]
        mean = errors.mean(axis=1)
        two = 2 * errors.std(axis=1) / np.sqrt(max(errors.shape[1] - 1, 1))
        band: dict[str, Any] = {"color": colour, "alpha": 0.16, "linewidth": 0}
        panel.fill_between(study.positions, mean - two, mean + two, **band)
        panel.plot(
            study.positions,
            mean,
            color=colour,
            marker=marker,
            markersize=4.5,
            linewidth=1.5,
            label=scheme,
        )
    panel.grid(visible=True, which="major", color="#e4e4e4", linewidth=0.6)


def _ends(study: Study, response: str) -> tuple[float, float]:
    """Return the ends of the axis that show all curves of a response but for their first point."""
    curves = [errors.mean(axis=1) for (own, *_), errors in study.errors.items() if own == response]
    curves.append(study.reference[response].mean(axis=1))
    low = min(float(curve.min()) for curve in curves)
    high = max(float(curve[1:].max()) for curve in curves)
    margin = (high / low) ** 0.06
    return low / margin, high * margin


def _vertical(panel: "Axes", low: float, high: float) -> None:
    """Set a logarithmic scale with ticks that are plain numbers."""
    panel.set_yscale("log")
    panel.set_ylim(low, high)
    shown: list[float] = []
    for tick in _TICKS:
        if low <= tick <= high and (
            not shown or math.log(tick / shown[-1]) > _APART * math.log(high / low)
        ):
            shown.append(tick)
    panel.set_yticks(shown, [f"{tick:g}" for tick in shown])
    panel.set_yticks([], minor=True)
