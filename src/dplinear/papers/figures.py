"""What figures share: matplotlib, when it is there, and files that are the same on every run."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MISSING = "Figures need matplotlib.\n\nHint: pip install 'dplinear[plots]'."


def blank(width: float, height: float) -> "Figure":
    """Return an empty figure, in inches; it needs no display."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(_MISSING) from None
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: "Figure", path: Path) -> None:
    """Write a PNG or SVG file, by its suffix, the folder too where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix != ".svg":
        figure.savefig(path, dpi=100, metadata={"Software": None})
        return
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, metadata={"Date": None})
