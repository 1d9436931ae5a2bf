"""The picture of an audit: what is seen on either table, and where the events are counted."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dplinear.arrays import Floats
from dplinear.audit.audit import AuditResult
from dplinear.audit.subjects.contract import Subject
from dplinear.noise.entropy import Entropy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MISSING = "Pictures need matplotlib.\n\nHint: pip install 'dplinear[plots]'."
_RUNS = 5_000
_COLOURS = ("#0b4fc4", "#c4400b")


def draw(subject: Subject, result: AuditResult, entropy: Entropy) -> "Figure":
    """Return histograms of the number that tells the tables apart, from fresh runs on each."""
    runs = min(_RUNS, result.trials)
    parts = [subject.numbers(runs, entropy, other=other) for other in (False, True)]
    events = () if subject.chosen else subject.claim.events()
    label = "released number" if subject.chosen else "log-likelihood ratio"
    return histograms(result, parts, [event.threshold for event in events], label)


def histograms(
    result: AuditResult, parts: Sequence[Floats], thresholds: Sequence[float], label: str
) -> "Figure":
    """Return histograms of a number on either table, with the thresholds of what was counted."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(_MISSING) from None
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    edges = _edges(np.concatenate(parts))
    for part, colour, name in zip(parts, _COLOURS, ("one table", "its neighbour"), strict=True):
        axes.hist(part, bins=list(edges), color=colour, alpha=0.5, density=True, label=name)
    for threshold in thresholds:
        axes.axvline(threshold, color="#444444", linewidth=1, linestyle="--")
    axes.set_xlabel(label)
    axes.set_yticks([])
    axes.legend(frameon=False, fontsize=9)
    unit = result.unit
    axes.set_title(
        f"{result.mechanism}, {result.neighbours}: {unit} claimed {result.claimed:.3g}, "
        f"audited {result.audited:.3g}",
        fontsize=11,
    )
    return figure


def save(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write a picture to a PNG or SVG file, in a folder that is made if need be."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def _edges(seen: Floats) -> Floats:
    finite = seen[np.isfinite(seen)]
    low, high = np.quantile(finite, [0.002, 0.998]) if len(finite) else (0.0, 1.0)
    return np.linspace(low, max(high, low + 1e-9), 61)
